//! `adhocprofiles.v1`: profiles that are uploaded to be looked at, apart from the stored ones.
//!
//! In: files in base64. Out: flame graphs and differences in the JSON of the plain routes. The files are kept as they
//! came, by tenant; when a tenant has too many, its oldest go. They are in no table.

mod id;
mod read;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use crate::profile::TenantId;
use crate::profile::flamegraph::diff;
use crate::server::ServerState;
use crate::server::adhoc::id::UploadId;
use crate::server::adhoc::read::{Opened, choose, names, open};
use crate::server::kept::{failed, on_shelf};
use crate::server::questions::max_nodes;
use crate::store::shelf::Shelf;
use crate::wire::connect::{Code, ConnectError};
use crate::wire::flamebearer::FlamebearerProfile;
use crate::wire::proto::adhocprofiles::{
    AdHocProfileService, AdHocProfilesDiffRequest, AdHocProfilesDiffResponse, AdHocProfilesGetRequest,
    AdHocProfilesGetResponse, AdHocProfilesListRequest, AdHocProfilesListResponse, AdHocProfilesProfileMetadata,
    AdHocProfilesUploadRequest,
};
use crate::wire::service::{Call, CallResult};

/// Folder of the files of a tenant.
const FOLDER: &str = "adhoc";
/// Bytes of work that are more than the thread of a request should do.
const LARGE_WORK: usize = 1 << 20;
/// Maximum number of files of a tenant.
const MAX_FILES: usize = 100;
/// Maximum size of the files of a tenant together, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Accepts base64 with and without padding, since clients differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Answers from the shelf.
#[derive(Clone)]
pub(super) struct AdHoc(pub(super) ServerState);

impl AdHocProfileService for AdHoc {
    /// The file is read before it is kept, so that only profiles are.
    async fn upload(&self, call: Call<AdHocProfilesUploadRequest>) -> CallResult<AdHocProfilesGetResponse> {
        let (tenant, request) = (call.tenant, call.request);
        let (text, _memory) = (request.profile, call.memory);
        let size = text.len();
        let decode = move || {
            let bytes = BASE64.decode(text.trim());
            bytes.map_err(|error| ConnectError::invalid(format!("the profile is not base64: {error}")))
        };
        let file = Bytes::from(self.0.workers.run(size, decode).await?);
        if file.is_empty() {
            return Err(ConnectError::invalid("the profile is empty"));
        }
        let id = UploadId::new(chrono::Utc::now().timestamp_millis(), &request.name);
        let answer = self
            .draw(&tenant, id.clone(), file.clone(), None, request.max_nodes)
            .await?;
        on_shelf(&self.0, move |shelf| keep(shelf, &tenant, &id, &file)).await?;
        Ok(answer.into())
    }

    async fn get(&self, call: Call<AdHocProfilesGetRequest>) -> CallResult<AdHocProfilesGetResponse> {
        let request = call.request;
        let (id, file) = self.kept(&call.tenant, &request.id).await?;
        let answer = self
            .draw(&call.tenant, id, file, request.profile_type, request.max_nodes)
            .await?;
        Ok(answer.into())
    }

    /// Lists the newest files first.
    async fn list(&self, call: Call<AdHocProfilesListRequest>) -> CallResult<AdHocProfilesListResponse> {
        let tenant = call.tenant;
        let found = on_shelf(&self.0, move |shelf| shelf.list(&tenant, FOLDER).map_err(failed)).await?;
        let ids = found.iter().rev().filter_map(|kept| UploadId::parse(&kept.name));
        let profiles = ids.map(|id| AdHocProfilesProfileMetadata {
            id: id.as_str().to_owned(),
            name: id.name().to_owned(),
            uploaded_at: id.time_ms(),
        });
        let profiles = profiles.collect();
        Ok(AdHocProfilesListResponse { profiles }.into())
    }

    /// The difference by a type that both files have.
    async fn diff(&self, call: Call<AdHocProfilesDiffRequest>) -> CallResult<AdHocProfilesDiffResponse> {
        let request = call.request;
        let nodes = max_nodes(request.max_nodes, &self.0.options.limits)?;
        let (_, left) = self.kept(&call.tenant, &request.left_id).await?;
        let (_, right) = self.kept(&call.tenant, &request.right_id).await?;
        let (left, right): (Opened, Opened) = (
            open(&self.0, &call.tenant, left).await?,
            open(&self.0, &call.tenant, right).await?,
        );
        let of_right = right.types();
        let mut types = left.types();
        types.retain(|own| of_right.contains(own));
        if types.is_empty() {
            return Err(ConnectError::invalid("the two profiles have no type in common"));
        }
        let chosen = choose(&types, request.profile_type.as_deref())?;
        let (left, _left_memory) = left.tree(&self.0, chosen.clone()).await?;
        let (right, _right_memory) = right.tree(&self.0, chosen.clone()).await?;
        let write = move || text(&FlamebearerProfile::double(diff(&left, &right, nodes), &chosen));
        let flamebearer_profile = self.0.workers.run(LARGE_WORK, write).await?;
        Ok(AdHocProfilesDiffResponse {
            profile_types: names(&types),
            flamebearer_profile,
        }
        .into())
    }
}

impl AdHoc {
    /// A file that the tenant has uploaded.
    async fn kept(&self, tenant: &TenantId, id: &str) -> Result<(UploadId, Bytes), ConnectError> {
        let missing = || ConnectError::new(Code::NotFound, "there is no uploaded profile with this id");
        let id = UploadId::parse(id).ok_or_else(missing)?;
        let (tenant, name) = (tenant.clone(), name_of(&id));
        let read = move |shelf: &Shelf| shelf.read(&tenant, &name).map_err(failed);
        let file = on_shelf(&self.0, read).await?.ok_or_else(missing)?;
        Ok((id, file.into()))
    }

    /// The flame graph of one type of a file.
    async fn draw(
        &self,
        tenant: &TenantId,
        id: UploadId,
        file: Bytes,
        asked: Option<String>,
        nodes: Option<i64>,
    ) -> Result<AdHocProfilesGetResponse, ConnectError> {
        let nodes = max_nodes(nodes, &self.0.options.limits)?;
        let opened = open(&self.0, tenant, file).await?;
        let types = opened.types();
        let chosen = choose(&types, asked.as_deref())?;
        let shown = names(&types);
        let profile_type = std::iter::zip(&types, &shown).find(|(own, _)| **own == chosen);
        let profile_type = profile_type.map(|(_, name)| name.clone()).unwrap_or_default();
        let (tree, _memory) = opened.tree(&self.0, chosen.clone()).await?;
        let write = move || text(&FlamebearerProfile::single(tree.to_flamegraph(nodes), &chosen));
        Ok(AdHocProfilesGetResponse {
            id: id.as_str().to_owned(),
            name: id.name().to_owned(),
            uploaded_at: id.time_ms(),
            profile_type,
            profile_types: shown,
            flamebearer_profile: self.0.workers.run(LARGE_WORK, write).await?,
        })
    }
}

fn text(profile: &FlamebearerProfile) -> Result<String, ConnectError> {
    serde_json::to_string(profile)
        .map_err(|error| ConnectError::new(Code::Internal, format!("cannot write the flame graph: {error}")))
}

fn name_of(id: &UploadId) -> String {
    format!("{FOLDER}/{}", id.as_str())
}

/// Keeps a file; the oldest files of the tenant make room for it.
fn keep(shelf: &Shelf, tenant: &TenantId, id: &UploadId, file: &[u8]) -> Result<(), ConnectError> {
    let size = file.len() as u64;
    if size > MAX_BYTES {
        return Err(ConnectError::too_large(format!(
            "the profile has {size} bytes, a tenant may keep {MAX_BYTES}"
        )));
    }
    shelf.alone(|| {
        let found = shelf.list(tenant, FOLDER).map_err(failed)?;
        let mut bytes: u64 = found.iter().map(|kept| kept.size).sum();
        let mut count = found.len();
        for oldest in found {
            if count < MAX_FILES && bytes + size <= MAX_BYTES {
                break;
            }
            tracing::info!(tenant = %tenant, file = oldest.name, "the oldest uploaded profile makes room for another");
            shelf
                .remove(tenant, &format!("{FOLDER}/{}", oldest.name))
                .map_err(failed)?;
            bytes = bytes.saturating_sub(oldest.size);
            count -= 1;
        }
        shelf.write(tenant, &name_of(id), file).map_err(failed)
    })
}
