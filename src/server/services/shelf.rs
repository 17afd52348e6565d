//! Access to the shelf, where users keep settings and files beside their stored profiles.
//!
//! In: blocking work. Out: its result, computed on a thread for blocking work. If the store has no shelf, the call
//! fails with `unimplemented`.

use crate::server::services::parameters::unimplemented;
use crate::server::state::shared::ServerState;
use crate::store::StoreError;
use crate::store::tables::shelf::Shelf;
use alluvium_wire::connect::{Code, ConnectError};

/// Runs work on the shelf to its end, even if the caller is dropped.
pub(in crate::server) async fn with_shelf<T: Send + 'static>(
    state: &ServerState,
    work: impl FnOnce(&Shelf) -> Result<T, ConnectError> + Send + 'static,
) -> Result<T, ConnectError> {
    let Some(shelf) = state.store.shelf() else {
        return Err(unimplemented("settings and files, as the store keeps only profiles"));
    };
    let result = tokio::task::spawn_blocking(move || work(&shelf)).await;
    result.map_err(|error| {
        ConnectError::new(
            Code::Internal,
            format!("cannot use the stored settings and files: {error}"),
        )
    })?
}

/// Converts an error of the disk or the bucket, for use in `map_err`.
pub(in crate::server) fn shelf_error(error: StoreError) -> ConnectError {
    ConnectError::new(Code::Unavailable, error.to_string())
}
