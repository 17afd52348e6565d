//! Work on the shelf, where users keep things beside their stored profiles.
//!
//! In: work that blocks. Out: its result, from a thread for such work. A store without a shelf answers `unimplemented`.

use crate::server::services::questions::unimplemented;
use crate::server::state::shared::ServerState;
use crate::store::StoreError;
use crate::store::tables::shelf::Shelf;
use crate::wire::connect::{Code, ConnectError};

/// Runs work on the shelf to its end, even if the caller is dropped.
pub(in crate::server) async fn on_shelf<T: Send + 'static>(
    state: &ServerState,
    work: impl FnOnce(&Shelf) -> Result<T, ConnectError> + Send + 'static,
) -> Result<T, ConnectError> {
    let Some(shelf) = state.store.shelf() else {
        return Err(unimplemented("the store keeps nothing but profiles: the call is"));
    };
    let done = tokio::task::spawn_blocking(move || work(&shelf)).await;
    done.map_err(|error| ConnectError::new(Code::Internal, format!("work on what is kept failed: {error}")))?
}

/// For `map_err`: a failure of the disk or the bucket.
pub(in crate::server) fn failed(error: StoreError) -> ConnectError {
    ConnectError::new(Code::Unavailable, error.to_string())
}
