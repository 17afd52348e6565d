//! The uploaded files of tenants, stored on the shelf (`store::tables::shelf`).
//!
//! In: files with their ids. Out: the same files. If a tenant has too many, its oldest files are removed.

use bytes::Bytes;

use crate::server::routes::adhoc::id::UploadId;
use crate::server::services::shelf::{shelf_error, with_shelf};
use crate::server::state::shared::ServerState;
use crate::store::tables::shelf::Shelf;
use alluvium_profile::TenantId;
use alluvium_wire::connect::{Code, ConnectError};

/// Folder of the files of a tenant.
const FOLDER: &str = "adhoc";
/// Maximum number of files of a tenant.
const MAX_FILES: usize = 100;
/// Maximum total size of the files of a tenant, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Returns a file that the tenant has uploaded.
pub(super) async fn read_file(
    state: &ServerState,
    tenant: &TenantId,
    id: &str,
) -> Result<(UploadId, Bytes), ConnectError> {
    let missing = || ConnectError::new(Code::NotFound, "there is no uploaded profile with this id");
    let id = UploadId::parse(id).ok_or_else(missing)?;
    let (tenant, name) = (tenant.clone(), name_of(&id));
    let read = move |shelf: &Shelf| shelf.read(&tenant, &name).map_err(shelf_error);
    let file = with_shelf(state, read).await?.ok_or_else(missing)?;
    Ok((id, file.into()))
}

/// Lists the files that the tenant has uploaded, the oldest first.
pub(super) async fn listed(state: &ServerState, tenant: TenantId) -> Result<Vec<UploadId>, ConnectError> {
    let files = with_shelf(state, move |shelf| shelf.list(&tenant, FOLDER).map_err(shelf_error)).await?;
    Ok(files
        .iter()
        .filter_map(|stored| UploadId::parse(&stored.name))
        .collect())
}

/// Stores a file. If the tenant has too many files, removes its oldest ones.
pub(super) async fn store_file(
    state: &ServerState,
    tenant: TenantId,
    id: UploadId,
    file: Bytes,
) -> Result<(), ConnectError> {
    with_shelf(state, move |shelf| make_room(shelf, &tenant, &id, &file)).await
}

fn name_of(id: &UploadId) -> String {
    format!("{FOLDER}/{}", id.as_str())
}

fn make_room(shelf: &Shelf, tenant: &TenantId, id: &UploadId, file: &[u8]) -> Result<(), ConnectError> {
    let size = file.len() as u64;
    if size > MAX_BYTES {
        return Err(ConnectError::too_large(format!(
            "the profile has {size} bytes, but a tenant may keep at most {MAX_BYTES}"
        )));
    }
    shelf.exclusively(|| {
        let files = shelf.list(tenant, FOLDER).map_err(shelf_error)?;
        let mut bytes: u64 = files.iter().map(|stored| stored.size).sum();
        let mut count = files.len();
        for oldest in files {
            if count < MAX_FILES && bytes + size <= MAX_BYTES {
                break;
            }
            tracing::info!(tenant = %tenant, file = oldest.name, "removed the oldest uploaded profile for a new one");
            shelf
                .remove(tenant, &format!("{FOLDER}/{}", oldest.name))
                .map_err(shelf_error)?;
            bytes = bytes.saturating_sub(oldest.size);
            count -= 1;
        }
        shelf.write(tenant, &name_of(id), file).map_err(shelf_error)
    })
}
