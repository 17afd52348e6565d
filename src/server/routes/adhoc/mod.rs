//! `adhocprofiles.v1`: uploaded profiles that users view separately from the stored ones.
//!
//! In: files in base64. Out: flame graphs and differences in the JSON of `/pyroscope/render`. The server stores the
//! original files of each tenant outside the tables, on the shelf (`store::tables::shelf`). If a tenant has too many,
//! its oldest files are removed.

mod files;
mod id;
mod read;
mod show;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use crate::server::bodies::body::Charge;
use crate::server::bodies::workers::LARGE_WORK;
use crate::server::routes::adhoc::files::{listed, read_file, store_file};
use crate::server::routes::adhoc::id::UploadId;
use crate::server::routes::adhoc::read::{OpenedFile, choose, names, open, preferred_first};
use crate::server::services::parameters::max_nodes;
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::one_tenant;
use alluvium_profile::TenantId;
use alluvium_profile::flamegraph::{Tree, diff};
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::flamebearer::FlamebearerProfile;
use alluvium_wire::proto::adhocprofiles::{
    AdHocProfileService, AdHocProfilesDiffRequest, AdHocProfilesDiffResponse, AdHocProfilesGetRequest,
    AdHocProfilesGetResponse, AdHocProfilesListRequest, AdHocProfilesListResponse, AdHocProfilesProfileMetadata,
    AdHocProfilesUploadRequest,
};
use alluvium_wire::service::{Call, CallResult};

pub(super) use show::show;

/// Accepts base64 with and without padding, because clients differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Implements the calls with the files on the shelf.
#[derive(Clone)]
pub(super) struct AdHoc(pub(in crate::server) ServerState);

impl AdHocProfileService for AdHoc {
    /// Stores a file and returns its flame graph. Parses the file first, so that only profiles are stored.
    async fn upload(&self, call: Call<AdHocProfilesUploadRequest>) -> CallResult<AdHocProfilesGetResponse> {
        let (tenant, request) = (one_tenant(&call.tenants)?, call.request);
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
        let response = self
            .render_file(&tenant, id.clone(), file.clone(), None, request.max_nodes)
            .await?;
        store_file(&self.0, tenant, id, file).await?;
        Ok(response.into())
    }

    async fn get(&self, call: Call<AdHocProfilesGetRequest>) -> CallResult<AdHocProfilesGetResponse> {
        let (tenant, request) = (one_tenant(&call.tenants)?, call.request);
        let (id, file) = read_file(&self.0, &tenant, &request.id).await?;
        let response = self
            .render_file(&tenant, id, file, request.profile_type, request.max_nodes)
            .await?;
        Ok(response.into())
    }

    /// Lists the uploaded files, the newest first.
    async fn list(&self, call: Call<AdHocProfilesListRequest>) -> CallResult<AdHocProfilesListResponse> {
        let ids = listed(&self.0, one_tenant(&call.tenants)?).await?;
        let profiles = ids.iter().rev().map(|id| AdHocProfilesProfileMetadata {
            id: id.as_str().to_owned(),
            name: id.name().to_owned(),
            uploaded_at: id.time_ms(),
        });
        let profiles = profiles.collect();
        Ok(AdHocProfilesListResponse { profiles }.into())
    }

    /// Returns the difference for a type that both files have.
    async fn diff(&self, call: Call<AdHocProfilesDiffRequest>) -> CallResult<AdHocProfilesDiffResponse> {
        let (tenant, request) = (one_tenant(&call.tenants)?, call.request);
        let nodes = max_nodes(request.max_nodes, &self.0.options.limits)?;
        let (_, left) = read_file(&self.0, &tenant, &request.left_id).await?;
        let (_, right) = read_file(&self.0, &tenant, &request.right_id).await?;
        let (left, right): (OpenedFile, OpenedFile) = (
            open(&self.0, &tenant, (left, Charge::default())).await?,
            open(&self.0, &tenant, (right, Charge::default())).await?,
        );
        let of_right = right.types();
        let mut types = preferred_first(left.types());
        types.retain(|own| of_right.contains(own));
        if types.is_empty() {
            return Err(ConnectError::invalid("the two profiles have no profile type in common"));
        }
        let chosen = choose(&types, request.profile_type.as_deref())?;
        let (left, _left_memory) = left.tree(&self.0, chosen.clone(), Tree::by_name()).await?;
        let (right, _right_memory) = right.tree(&self.0, chosen.clone(), Tree::by_name()).await?;
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
    /// Returns the flame graph of one type of a file.
    async fn render_file(
        &self,
        tenant: &TenantId,
        id: UploadId,
        file: Bytes,
        requested: Option<String>,
        nodes: Option<i64>,
    ) -> Result<AdHocProfilesGetResponse, ConnectError> {
        let nodes = max_nodes(nodes, &self.0.options.limits)?;
        let opened = open(&self.0, tenant, (file, Charge::default())).await?;
        let types = preferred_first(opened.types());
        let chosen = choose(&types, requested.as_deref())?;
        let shown = names(&types);
        let profile_type = std::iter::zip(&types, &shown).find(|(own, _)| **own == chosen);
        let profile_type = profile_type.map(|(_, name)| name.clone()).unwrap_or_default();
        let (tree, _memory) = opened.tree(&self.0, chosen.clone(), Tree::by_name()).await?;
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
