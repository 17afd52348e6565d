//! `version.v1` and `capabilities.v1`: what clients ask before they choose how to ask for the rest.
//!
//! In: empty messages. Out: what the program and its configuration have. The data of the tenant is not looked at.

use crate::wire::proto::capabilities::{
    FeatureFlag, FeatureFlagsService, GetFeatureFlagsRequest, GetFeatureFlagsResponse,
};
use crate::wire::proto::version::{Version, VersionRequest, VersionResponse};
use crate::wire::service::{Call, CallResult};

/// Version of `querier.v1` that this server speaks.
const QUERIER_API: u64 = 1;

/// Name of the flag of ours that says whether metrics can be shown beside profiles.
const PROMETHEUS: &str = "alluviumPrometheus";

/// Name of each known flag of Pyroscope, whether the server has it, and what it stands for.
const FLAGS: [(&str, bool, &str); 4] = [
    ("pyroscopeRuler", false, "recording rules"),
    ("pyroscopeRulerFunctions", false, "recording rules of functions"),
    ("utf8LabelNames", true, "names of labels with any characters"),
    ("v2StorageLayer", true, "exemplars and heatmaps"),
];

/// Answers from constants and the configuration.
#[derive(Clone)]
pub(super) struct About {
    /// There is a server of metrics.
    pub(super) has_prometheus: bool,
}

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
        let own = flag((PROMETHEUS, self.has_prometheus, "metrics beside profiles"));
        let feature_flags = FLAGS.into_iter().map(flag).chain([own]).collect();
        Ok(GetFeatureFlagsResponse { feature_flags }.into())
    }
}
