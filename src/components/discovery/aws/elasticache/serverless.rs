//! Serverless caches, as the API describes them.

use serde::Deserialize;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::discovery::aws::elements::{Endpoint, List, Tag, Time, elements};

elements! {
    /// A serverless cache as the API describes it.
    pub(super) struct ServerlessCache {
        labels {
            arn: String = "ARN",
            create_time: Time = "CreateTime",
            daily_snapshot_time: String = "DailySnapshotTime",
            description: String = "Description",
            engine: String = "Engine",
            full_engine_version: String = "FullEngineVersion",
            kms_key_id: String = "KmsKeyId",
            major_engine_version: String = "MajorEngineVersion",
            name: String = "ServerlessCacheName",
            snapshot_retention_limit: String = "SnapshotRetentionLimit",
            status: String = "Status",
            user_group_id: String = "UserGroupId",
        }
        parts {
            endpoint: Option<Endpoint> = "Endpoint",
            reader_endpoint: Option<Endpoint> = "ReaderEndpoint",
            security_groups: List<String> = "SecurityGroupIds",
            subnets: List<String> = "SubnetIds",
            limits: Option<Limits> = "CacheUsageLimits",
        }
    }
}

/// The limits that are configured for the use of a cache.
#[derive(Deserialize)]
pub(super) struct Limits {
    #[serde(rename = "DataStorage")]
    data_storage: Option<Limit>,
    #[serde(rename = "ECPUPerSecond")]
    ecpu_per_second: Option<Limit>,
}

elements! {
    /// A limit for the use of a cache.
    struct Limit {
        labels {
            maximum: String = "Maximum",
            minimum: String = "Minimum",
            unit: String = "Unit",
        }
    }
}

impl ServerlessCache {
    /// Returns the target of the cache: the endpoint for reads and writes.
    pub(super) fn target(&self, tags: &List<Tag>) -> Target {
        let mut labels = MetaLabels::new("__meta_elasticache_");
        let numbered = |list: &List<String>| -> Vec<(String, String)> {
            let items = list.0.iter().enumerate();
            items.map(|(index, text)| (index.to_string(), text.clone())).collect()
        };
        labels
            .set("deployment_option", "serverless")
            .set_each("serverless_cache_", self.labels())
            .set_each("serverless_cache_security_group_id_", numbered(&self.security_groups))
            .set_each("serverless_cache_subnet_id_", numbered(&self.subnets))
            .set_each("serverless_cache_tag_", tags.pairs());
        if let Some(endpoint) = &self.endpoint {
            labels.set_each("serverless_cache_endpoint_", endpoint.labels());
        }
        if let Some(reader) = &self.reader_endpoint {
            labels.set_each("serverless_cache_endpoint_reader_", reader.labels());
        }
        if let Some(limits) = &self.limits {
            // Prometheus has no underscore between the names of a limit and its parts.
            if let Some(limit) = &limits.data_storage {
                labels.set_each("serverless_cache_cache_usage_limit_data_storage", limit.labels());
            }
            if let Some(limit) = &limits.ecpu_per_second {
                labels.set_each("serverless_cache_cache_usage_limit_ecpu_per_second", limit.labels());
            }
        }
        // A cache that is still being created has no endpoint.
        match self.endpoint.as_ref().and_then(Endpoint::host_port) {
            Some(address) => labels.with_address(address),
            None => labels.into_target(),
        }
    }
}
