//! `version.v1`, `capabilities.v1` and `status.v1`: calls that return the version, the features and the configuration
//! of the server.
//!
//! In: empty messages. Out: facts about the program and its configuration. No call reads data of a tenant.

use std::sync::Arc;

use crate::server::state::settings::Settings;
use alluvium_wire::proto::capabilities::{
    FeatureFlag, FeatureFlagsService, GetFeatureFlagsRequest, GetFeatureFlagsResponse,
};
use alluvium_wire::proto::status::{
    GetBuildInfoData, GetBuildInfoRequest, GetBuildInfoResponse, GetConfigRequest, HttpBody, StatusService,
};
use alluvium_wire::proto::version::{Version, VersionRequest, VersionResponse};
use alluvium_wire::service::{Call, CallResult};

/// Version of `querier.v1` that this server implements.
const QUERIER_API: u64 = 1;

/// Name of Alluvium's own flag for metrics beside profiles.
const PROMETHEUS: &str = "alluviumPrometheus";

/// Name of each known flag of Pyroscope, whether the server has the feature, and a description.
const FLAGS: [(&str, bool, &str); 4] = [
    ("pyroscopeRuler", false, "recording rules"),
    ("pyroscopeRulerFunctions", false, "recording rules of functions"),
    ("utf8LabelNames", true, "label names with any characters"),
    ("v2StorageLayer", true, "exemplars and heatmaps"),
];

/// Content type of the configuration: plain text, so that browsers display it.
const YAML: &str = "text/plain; charset=utf-8";

/// Version of the program.
pub(in crate::server) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the revision that the program was built from, or an empty text if the build did not set it.
pub(in crate::server) fn revision() -> &'static str {
    option_env!("ALLUVIUM_REVISION").unwrap_or("")
}

/// Implements the services from constants and the configuration.
#[derive(Clone)]
pub(in crate::server) struct About {
    /// True if the configuration names a Prometheus server.
    pub(in crate::server) has_prometheus: bool,
    /// The configuration that the calls return.
    pub(in crate::server) settings: Arc<Settings>,
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

impl StatusService for About {
    async fn get_build_info(&self, _call: Call<GetBuildInfoRequest>) -> CallResult<GetBuildInfoResponse> {
        let data = GetBuildInfoData {
            version: VERSION.to_owned(),
            revision: revision().to_owned(),
            ..GetBuildInfoData::default()
        };
        Ok(GetBuildInfoResponse {
            status: "success".to_owned(),
            data: Some(data),
        }
        .into())
    }

    async fn get_config(&self, _call: Call<GetConfigRequest>) -> CallResult<HttpBody> {
        Ok(yaml(self.settings.to_yaml()).into())
    }

    async fn get_diff_config(&self, _call: Call<GetConfigRequest>) -> CallResult<HttpBody> {
        Ok(yaml(self.settings.difference()).into())
    }

    async fn get_default_config(&self, _call: Call<GetConfigRequest>) -> CallResult<HttpBody> {
        Ok(yaml(self.settings.default()).into())
    }
}

fn yaml(text: String) -> HttpBody {
    HttpBody {
        content_type: YAML.to_owned(),
        data: text.into(),
    }
}
