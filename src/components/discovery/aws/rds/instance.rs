//! Database instances, as the API describes them.

use serde::Deserialize;

use crate::discovery::aws::elements::{Endpoint, List, Tag, Time, elements};

elements! {
    /// A database instance as the API describes it.
    pub(super) struct Instance {
        labels {
            activity_stream_engine_native_audit_fields_included: String =
                "ActivityStreamEngineNativeAuditFieldsIncluded",
            activity_stream_kinesis_stream_name: String = "ActivityStreamKinesisStreamName",
            activity_stream_kms_key_id: String = "ActivityStreamKmsKeyId",
            activity_stream_mode: String = "ActivityStreamMode",
            activity_stream_policy_status: String = "ActivityStreamPolicyStatus",
            activity_stream_status: String = "ActivityStreamStatus",
            allocated_storage: String = "AllocatedStorage",
            arn: String = "DBInstanceArn",
            auto_minor_version_upgrade: String = "AutoMinorVersionUpgrade",
            automatic_restart_time: Time = "AutomaticRestartTime",
            automation_mode: String = "AutomationMode",
            availability_zone: String = "AvailabilityZone",
            aws_backup_recovery_point_arn: String = "AwsBackupRecoveryPointArn",
            backup_retention_period: String = "BackupRetentionPeriod",
            backup_target: String = "BackupTarget",
            ca_certificate_identifier: String = "CACertificateIdentifier",
            character_set_name: String = "CharacterSetName",
            class: String = "DBInstanceClass",
            copy_tags_to_snapshot: String = "CopyTagsToSnapshot",
            custom_iam_instance_profile: String = "CustomIamInstanceProfile",
            customer_owned_ip_enabled: String = "CustomerOwnedIpEnabled",
            database_insights_mode: String = "DatabaseInsightsMode",
            db_cluster_identifier: String = "DBClusterIdentifier",
            db_name: String = "DBName",
            db_system_id: String = "DBSystemId",
            dedicated_log_volume: String = "DedicatedLogVolume",
            deletion_protection: String = "DeletionProtection",
            engine: String = "Engine",
            engine_lifecycle_support: String = "EngineLifecycleSupport",
            engine_version: String = "EngineVersion",
            enhanced_monitoring_resource_arn: String = "EnhancedMonitoringResourceArn",
            iam_database_authentication_enabled: String = "IAMDatabaseAuthenticationEnabled",
            identifier: String = "DBInstanceIdentifier",
            instance_create_time: Time = "InstanceCreateTime",
            iops: String = "Iops",
            is_storage_config_upgrade_available: String = "IsStorageConfigUpgradeAvailable",
            kms_key_id: String = "KmsKeyId",
            latest_restorable_time: Time = "LatestRestorableTime",
            license_model: String = "LicenseModel",
            master_username: String = "MasterUsername",
            max_allocated_storage: String = "MaxAllocatedStorage",
            monitoring_interval: String = "MonitoringInterval",
            monitoring_role_arn: String = "MonitoringRoleArn",
            multi_az: String = "MultiAZ",
            multi_tenant: String = "MultiTenant",
            nchar_character_set_name: String = "NcharCharacterSetName",
            network_type: String = "NetworkType",
            percent_progress: String = "PercentProgress",
            performance_insights_enabled: String = "PerformanceInsightsEnabled",
            performance_insights_kms_key_id: String = "PerformanceInsightsKMSKeyId",
            performance_insights_retention_period: String = "PerformanceInsightsRetentionPeriod",
            port: String = "DbInstancePort",
            preferred_backup_window: String = "PreferredBackupWindow",
            preferred_maintenance_window: String = "PreferredMaintenanceWindow",
            promotion_tier: String = "PromotionTier",
            publicly_accessible: String = "PubliclyAccessible",
            read_replica_source_db_cluster_identifier: String = "ReadReplicaSourceDBClusterIdentifier",
            read_replica_source_db_instance_identifier: String = "ReadReplicaSourceDBInstanceIdentifier",
            replica_mode: String = "ReplicaMode",
            resource_id: String = "DbiResourceId",
            resume_full_automation_mode_time: Time = "ResumeFullAutomationModeTime",
            secondary_availability_zone: String = "SecondaryAvailabilityZone",
            status: String = "DBInstanceStatus",
            storage_encrypted: String = "StorageEncrypted",
            storage_encryption_type: String = "StorageEncryptionType",
            storage_throughput: String = "StorageThroughput",
            storage_type: String = "StorageType",
            storage_volume_status: String = "StorageVolumeStatus",
            tde_credential_arn: String = "TdeCredentialArn",
            timezone: String = "Timezone",
            upgrade_rollout_order: String = "UpgradeRolloutOrder",
        }
        parts {
            endpoint: Option<Endpoint> = "Endpoint",
            listener_endpoint: Option<Endpoint> = "ListenerEndpoint",
            subnet_group: Option<SubnetGroup> = "DBSubnetGroup",
            tags: List<Tag> = "TagList",
        }
    }
}

/// The subnets in which an instance runs.
#[derive(Deserialize)]
pub(super) struct SubnetGroup {
    #[serde(rename = "DBSubnetGroupName")]
    pub(super) name: Option<String>,
}
