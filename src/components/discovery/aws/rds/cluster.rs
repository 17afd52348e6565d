//! Database clusters, as the API describes them.

use serde::Deserialize;

use crate::discovery::aws::elements::{List, Tag, Time, elements};

elements! {
    /// A database cluster as the API describes it.
    pub(super) struct Cluster {
        labels {
            activity_stream_kinesis_stream_name: String = "ActivityStreamKinesisStreamName",
            activity_stream_kms_key_id: String = "ActivityStreamKmsKeyId",
            activity_stream_mode: String = "ActivityStreamMode",
            activity_stream_status: String = "ActivityStreamStatus",
            allocated_storage: String = "AllocatedStorage",
            arn: String = "DBClusterArn",
            auto_minor_version_upgrade: String = "AutoMinorVersionUpgrade",
            automatic_restart_time: Time = "AutomaticRestartTime",
            aws_backup_recovery_point_arn: String = "AwsBackupRecoveryPointArn",
            backtrack_consumed_change_records: String = "BacktrackConsumedChangeRecords",
            backtrack_window: String = "BacktrackWindow",
            backup_retention_period: String = "BackupRetentionPeriod",
            capacity: String = "Capacity",
            character_set_name: String = "CharacterSetName",
            clone_group_id: String = "CloneGroupId",
            cluster_create_time: Time = "ClusterCreateTime",
            cluster_scalability_type: String = "ClusterScalabilityType",
            copy_tags_to_snapshot: String = "CopyTagsToSnapshot",
            cross_account_clone: String = "CrossAccountClone",
            database_insights_mode: String = "DatabaseInsightsMode",
            database_name: String = "DatabaseName",
            db_system_id: String = "DBSystemId",
            deletion_protection: String = "DeletionProtection",
            earliest_backtrack_time: Time = "EarliestBacktrackTime",
            earliest_restorable_time: Time = "EarliestRestorableTime",
            endpoint: String = "Endpoint",
            engine: String = "Engine",
            engine_lifecycle_support: String = "EngineLifecycleSupport",
            engine_mode: String = "EngineMode",
            engine_version: String = "EngineVersion",
            global_cluster_identifier: String = "GlobalClusterIdentifier",
            global_write_forwarding_requested: String = "GlobalWriteForwardingRequested",
            global_write_forwarding_status: String = "GlobalWriteForwardingStatus",
            hosted_zone_id: String = "HostedZoneId",
            http_endpoint_enabled: String = "HttpEndpointEnabled",
            iam_database_authentication_enabled: String = "IAMDatabaseAuthenticationEnabled",
            identifier: String = "DBClusterIdentifier",
            instance_class: String = "DBClusterInstanceClass",
            io_optimized_next_allowed_modification_time: Time = "IOOptimizedNextAllowedModificationTime",
            iops: String = "Iops",
            kms_key_id: String = "KmsKeyId",
            latest_restorable_time: Time = "LatestRestorableTime",
            local_write_forwarding_status: String = "LocalWriteForwardingStatus",
            master_username: String = "MasterUsername",
            monitoring_interval: String = "MonitoringInterval",
            monitoring_role_arn: String = "MonitoringRoleArn",
            multi_az: String = "MultiAZ",
            network_type: String = "NetworkType",
            parameter_group: String = "DBClusterParameterGroup",
            percent_progress: String = "PercentProgress",
            performance_insights_enabled: String = "PerformanceInsightsEnabled",
            performance_insights_kms_key_id: String = "PerformanceInsightsKMSKeyId",
            performance_insights_retention_period: String = "PerformanceInsightsRetentionPeriod",
            port: String = "Port",
            preferred_backup_window: String = "PreferredBackupWindow",
            preferred_maintenance_window: String = "PreferredMaintenanceWindow",
            publicly_accessible: String = "PubliclyAccessible",
            reader_endpoint: String = "ReaderEndpoint",
            replication_source_identifier: String = "ReplicationSourceIdentifier",
            resource_id: String = "DbClusterResourceId",
            serverless_v2_platform_version: String = "ServerlessV2PlatformVersion",
            status: String = "Status",
            storage_encrypted: String = "StorageEncrypted",
            storage_encryption_type: String = "StorageEncryptionType",
            storage_throughput: String = "StorageThroughput",
            storage_type: String = "StorageType",
            subnet_group: String = "DBSubnetGroup",
            upgrade_rollout_order: String = "UpgradeRolloutOrder",
        }
        parts {
            members: List<Member> = "DBClusterMembers",
            tags: List<Tag> = "TagList",
        }
    }
}

/// An instance of a cluster, and its role in the cluster.
#[derive(Deserialize)]
pub(super) struct Member {
    /// Identifier of the instance.
    #[serde(rename = "DBInstanceIdentifier")]
    pub(super) instance: Option<String>,
    /// `true` for the instance that accepts writes.
    #[serde(rename = "IsClusterWriter")]
    pub(super) is_writer: Option<String>,
}
