//! `version.v1` and `capabilities.v1`: what clients ask before they choose how to ask for the rest.
//!
//! In: empty messages. Out: constants. The data of the tenant is not looked at.

use crate::wire::proto::capabilities::{
    FeatureFlag, FeatureFlagsService, GetFeatureFlagsRequest, GetFeatureFlagsResponse,
};
use crate::wire::proto::version::{Version, VersionRequest, VersionResponse};
use crate::wire::service::{Call, CallResult};

/// Version of `querier.v1` that this server speaks.
const QUERIER_API: u64 = 1;

/// Name of each known flag, whether the server has it, and what it stands for.
const FLAGS: [(&str, bool, &str); 4] = [
    ("pyroscopeRuler", false, "recording rules"),
    ("pyroscopeRulerFunctions", false, "recording rules of functions"),
    ("utf8LabelNames", true, "names of labels with any characters"),
    ("v2StorageLayer", true, "exemplars and heatmaps"),
];

/// Answers from constants.
#[derive(Clone)]
pub(super) struct About;

impl Version for About {
    async fn version(&self, _call: Call<VersionRequest>) -> CallResult<VersionResponse> {
        Ok(VersionResponse {
            querier_api: QUERIER_API,
        }
        .into())
    }
}

impl FeatureFlagsService for About {
    async fn get_feature_flags(&self, _call: Call<GetFeatureFlagsRequest>) -> CallResult<GetFeatureFlagsResponse> {
        let flag = |(name, enabled, description): (&str, bool, &str)| FeatureFlag {
            name: name.to_owned(),
            enabled,
            description: Some(description.to_owned()),
            documentation_url: None,
        };
        let feature_flags = FLAGS.map(flag).to_vec();
        Ok(GetFeatureFlagsResponse { feature_flags }.into())
    }
}
