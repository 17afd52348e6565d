//! Tests of the role `rds`. The responses have the form of the examples in the documentation of Amazon RDS.

use axum::http::StatusCode;

use super::{KEY, ok, refusal, role_at, target, targets};
use crate::common::clouds::aws::testing::Amazon;
use crate::common::clouds::environment::Environment;
use crate::common::testing::Body;
use alluvium_lang::value::{Number, Value};

const CLUSTERS: &str = "DescribeDBClusters&Version=2014-10-31&MaxRecords=100";
const FILTERS: &str = "DescribeDBInstances&Version=2014-10-31&Filters.Filter.1.Name=db-cluster-id\
    &Filters.Filter.1.Values.Value.1=arn%3A";

fn clusters(clusters: &str, marker: &str) -> (StatusCode, String) {
    ok(&format!(
        "<DescribeDBClustersResponse xmlns=\"http://rds.amazonaws.com/doc/2014-10-31/\">\n \
        <DescribeDBClustersResult>\n  <DBClusters>\n{clusters}  </DBClusters>\n{marker} \
        </DescribeDBClustersResult>\n <ResponseMetadata>\n  <RequestId>0d1</RequestId>\n </ResponseMetadata>\n\
        </DescribeDBClustersResponse>\n"
    ))
}

fn instances(instances: &str, marker: &str) -> (StatusCode, String) {
    ok(&format!(
        "<DescribeDBInstancesResponse xmlns=\"http://rds.amazonaws.com/doc/2014-10-31/\">\n \
        <DescribeDBInstancesResult>\n  <DBInstances>\n{instances}  </DBInstances>\n{marker} \
        </DescribeDBInstancesResult>\n <ResponseMetadata>\n  <RequestId>0d1</RequestId>\n </ResponseMetadata>\n\
        </DescribeDBInstancesResponse>\n"
    ))
}

fn cluster(name: &str) -> String {
    format!("<DBCluster><DBClusterArn>arn:{name}</DBClusterArn></DBCluster>")
}

fn instance(name: &str) -> String {
    format!(
        "<DBInstance><DBInstanceIdentifier>{name}</DBInstanceIdentifier><Endpoint><Address>{name}.local</Address>\
        <Port>5432</Port></Endpoint></DBInstance>"
    )
}

fn labels_of(cluster: &str, instance: &str) -> String {
    let cluster = format!("cluster_arn=arn:{cluster}");
    let identifier = format!("instance_identifier={instance}");
    let address = format!("instance_endpoint_address={instance}.local");
    target(
        &format!("{instance}.local:80"),
        "__meta_rds_",
        &[&cluster, &address, "instance_endpoint_port=5432", &identifier],
    )
}

#[tokio::test]
async fn an_instance_of_a_cluster_is_a_target_with_the_labels_of_both() {
    let answer = |request: &str| match request {
        CLUSTERS => clusters(FULL_CLUSTER, ""),
        _ if request.starts_with(FILTERS) => instances(FULL_INSTANCES, ""),
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("rds", &[KEY], answer).await;
    let body = role_at("rds", &amazon.url).with("port", Value::Number(Number::Int(9187)));
    let exported = targets(&body, Environment::from([])).await.unwrap();
    let cluster = [
        "cluster_activity_stream_status=stopped",
        "cluster_allocated_storage=1",
        "cluster_arn=arn:aws:rds:eu-central-1:42:cluster:shop",
        "cluster_auto_minor_version_upgrade=true",
        "cluster_backup_retention_period=7",
        "cluster_cluster_create_time=2026-02-03T04:05:06Z",
        "cluster_copy_tags_to_snapshot=false",
        "cluster_database_name=orders",
        "cluster_deletion_protection=true",
        "cluster_endpoint=shop.cluster-x.eu-central-1.rds.amazonaws.com",
        "cluster_engine=aurora-postgresql",
        "cluster_engine_mode=provisioned",
        "cluster_engine_version=16.4",
        "cluster_hosted_zone_id=Z1",
        "cluster_http_endpoint_enabled=false",
        "cluster_iam_database_authentication_enabled=true",
        "cluster_identifier=shop",
        "cluster_kms_key_id=arn:aws:kms:eu-central-1:42:key/1",
        "cluster_latest_restorable_time=2026-11-28T10:00:00Z",
        "cluster_master_username=keeper",
        "cluster_multi_az=true",
        "cluster_parameter_group=default.aurora-postgresql16",
        "cluster_performance_insights_kms_key_id=arn:aws:kms:eu-central-1:42:key/2",
        "cluster_port=5432",
        "cluster_preferred_backup_window=02:00-02:30",
        "cluster_reader_endpoint=shop.cluster-ro-x.eu-central-1.rds.amazonaws.com",
        "cluster_resource_id=cluster-R1",
        "cluster_status=available",
        "cluster_storage_encrypted=true",
        "cluster_subnet_group=private",
        "cluster_tag_cost_center=7",
    ];
    let mut first = cluster.to_vec();
    first.extend([
        "instance_allocated_storage=1",
        "instance_arn=arn:aws:rds:eu-central-1:42:db:shop-1",
        "instance_availability_zone=eu-central-1a",
        "instance_ca_certificate_identifier=rds-ca-rsa2048-g1",
        "instance_class=db.r6g.large",
        "instance_db_cluster_identifier=shop",
        "instance_db_name=orders",
        "instance_endpoint_address=shop-1.x.eu-central-1.rds.amazonaws.com",
        "instance_endpoint_hosted_zone_id=Z1",
        "instance_endpoint_port=5432",
        "instance_engine=aurora-postgresql",
        "instance_engine_version=16.4",
        "instance_iam_database_authentication_enabled=true",
        "instance_identifier=shop-1",
        "instance_instance_create_time=2026-02-03T04:15:00Z",
        "instance_is_cluster_writer=true",
        "instance_license_model=postgresql-license",
        "instance_listener_endpoint_address=listener.local",
        "instance_listener_endpoint_port=1433",
        "instance_monitoring_interval=60",
        "instance_multi_az=false",
        "instance_port=0",
        "instance_promotion_tier=1",
        "instance_publicly_accessible=false",
        "instance_resource_id=db-R1",
        "instance_status=available",
        "instance_storage_type=aurora",
        "instance_subnet_group=private",
        "instance_tag_team=x",
    ]);
    let mut second = cluster.to_vec();
    second.extend([
        "instance_identifier=shop-2",
        "instance_is_cluster_writer=false",
        "instance_status=creating",
    ]);
    let second = target("", "__meta_rds_", &second).replace("__address__=,", "");
    assert_eq!(
        exported,
        [
            target("shop-1.x.eu-central-1.rds.amazonaws.com:9187", "__meta_rds_", &first),
            second,
        ]
    );
    assert_eq!(
        amazon.requests()[1],
        format!("{FILTERS}aws%3Ards%3Aeu-central-1%3A42%3Acluster%3Ashop&MaxRecords=100")
    );
}

#[tokio::test]
async fn clusters_and_instances_are_read_to_the_last_page() {
    let first = format!("{FILTERS}a&MaxRecords=100");
    let next = format!("{first}&Marker=m%2F2");
    let other = format!("{FILTERS}b&MaxRecords=100");
    let answer = move |request: &str| match request {
        CLUSTERS => clusters(&cluster("a"), "<Marker>m1</Marker>"),
        "DescribeDBClusters&Version=2014-10-31&MaxRecords=100&Marker=m1" => clusters(&cluster("b"), "<Marker/>"),
        _ if request == first => instances(&(instance("a-1") + &instance("a-2")), "<Marker>m/2</Marker>"),
        _ if request == next => instances(&instance("a-3"), ""),
        _ if request == other => instances(&instance("b-1"), ""),
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("rds", &[KEY], answer).await;
    let exported = targets(&role_at("rds", &amazon.url), Environment::from([]))
        .await
        .unwrap();
    let expected = [("a", "a-1"), ("a", "a-2"), ("a", "a-3"), ("b", "b-1")];
    assert_eq!(
        exported,
        expected.map(|(cluster, instance)| labels_of(cluster, instance))
    );
}

#[tokio::test]
async fn named_clusters_are_requested_one_by_one_and_filters_apply_to_instances() {
    let (first, second) = (
        "DescribeDBClusters&Version=2014-10-31&DBClusterIdentifier=a&MaxRecords=100",
        "DescribeDBClusters&Version=2014-10-31&DBClusterIdentifier=arn%3Ab&MaxRecords=100",
    );
    let filtered = |name: &str| {
        format!(
            "{FILTERS}{name}&Filters.Filter.2.Name=engine&Filters.Filter.2.Values.Value.1=mysql\
            &Filters.Filter.2.Values.Value.2=aurora-mysql&Filters.Filter.3.Name=dbi-resource-id\
            &Filters.Filter.3.Values.Value.1=db-R1&MaxRecords=100"
        )
    };
    let (of_first, of_second) = (filtered("a"), filtered("b"));
    let expected = [first, second, &of_first, &of_second].map(str::to_owned);
    let answer = move |request: &str| match request {
        _ if request == first => clusters(&cluster("a"), ""),
        _ if request == second => clusters(&cluster("b"), ""),
        _ if request == of_first => instances(&instance("a-1"), ""),
        _ if request == of_second => instances("", ""),
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("rds", &[KEY], answer).await;
    let list = |texts: &[&str]| Value::array(texts.iter().map(|text| Value::string(*text)));
    let filter = |name: &str, values: &[&str]| Body::new().text("name", name).with("values", list(values));
    let body = role_at("rds", &amazon.url)
        .with("clusters", list(&["a", "arn:b"]))
        .with("request_concurrency", Value::Number(Number::Int(1)))
        .block("filter", filter("engine", &["mysql", "aurora-mysql"]))
        .block("filter", filter("dbi-resource-id", &["db-R1"]));
    let exported = targets(&body, Environment::from([])).await.unwrap();
    assert_eq!(exported, [labels_of("a", "a-1")]);
    assert_eq!(amazon.requests(), expected);
}

#[tokio::test]
async fn an_error_has_the_code_of_the_service_or_names_the_missing_cluster() {
    let answer = |request: &str| match request {
        CLUSTERS => refusal(StatusCode::FORBIDDEN, "AccessDenied"),
        _ if request.contains("DBClusterIdentifier=empty") => clusters("", ""),
        _ => refusal(StatusCode::NOT_FOUND, "DBClusterNotFoundFault"),
    };
    let amazon = Amazon::start("rds", &[KEY], answer).await;
    let named = |name: &str| {
        let names = Value::array([Value::string(name)]);
        role_at("rds", &amazon.url).with("clusters", names)
    };
    for (body, reason) in [
        (
            role_at("rds", &amazon.url),
            "403 Forbidden: AccessDenied: refused by the test",
        ),
        (
            named("gone"),
            "404 Not Found: DBClusterNotFoundFault: refused by the test",
        ),
        (named("empty"), "there is no cluster `empty`"),
    ] {
        let error = targets(&body, Environment::from([])).await.unwrap_err().to_string();
        assert!(error.starts_with("DescribeDBClusters: "), "{error}");
        assert!(error.ends_with(reason), "{error}");
    }
}

#[tokio::test]
async fn without_clusters_or_instances_there_are_no_targets() {
    let empty = "<DescribeDBClustersResponse><DescribeDBClustersResult><DBClusters/></DescribeDBClustersResult>\
        </DescribeDBClustersResponse>";
    let amazon = Amazon::start("rds", &[KEY], move |_| ok(empty)).await;
    let exported = targets(&role_at("rds", &amazon.url), Environment::from([]))
        .await
        .unwrap();
    assert_eq!(exported, [""; 0]);
    let answer = |request: &str| match request {
        CLUSTERS => clusters(&cluster("a"), ""),
        _ => ok("<DescribeDBInstancesResponse><DescribeDBInstancesResult/></DescribeDBInstancesResponse>"),
    };
    let amazon = Amazon::start("rds", &[KEY], answer).await;
    let exported = targets(&role_at("rds", &amazon.url), Environment::from([]))
        .await
        .unwrap();
    assert_eq!(exported, [""; 0]);
}

const FULL_CLUSTER: &str = "
   <DBCluster>
    <AllocatedStorage>1</AllocatedStorage>
    <ActivityStreamStatus>stopped</ActivityStreamStatus>
    <AssociatedRoles/>
    <AutoMinorVersionUpgrade>true</AutoMinorVersionUpgrade>
    <AvailabilityZones>
     <AvailabilityZone>eu-central-1a</AvailabilityZone>
     <AvailabilityZone>eu-central-1b</AvailabilityZone>
    </AvailabilityZones>
    <BackupRetentionPeriod>7</BackupRetentionPeriod>
    <ClusterCreateTime>2026-02-03T04:05:06.789Z</ClusterCreateTime>
    <CopyTagsToSnapshot>false</CopyTagsToSnapshot>
    <DatabaseName>orders</DatabaseName>
    <DBClusterArn>arn:aws:rds:eu-central-1:42:cluster:shop</DBClusterArn>
    <DBClusterIdentifier>shop</DBClusterIdentifier>
    <DBClusterMembers>
     <DBClusterMember>
      <DBClusterParameterGroupStatus>in-sync</DBClusterParameterGroupStatus>
      <DBInstanceIdentifier>shop-1</DBInstanceIdentifier>
      <IsClusterWriter>true</IsClusterWriter>
      <PromotionTier>1</PromotionTier>
     </DBClusterMember>
     <DBClusterMember>
      <DBInstanceIdentifier>shop-2</DBInstanceIdentifier>
      <IsClusterWriter>false</IsClusterWriter>
     </DBClusterMember>
    </DBClusterMembers>
    <DBClusterParameterGroup>default.aurora-postgresql16</DBClusterParameterGroup>
    <DbClusterResourceId>cluster-R1</DbClusterResourceId>
    <DBSubnetGroup>private</DBSubnetGroup>
    <DeletionProtection>true</DeletionProtection>
    <Endpoint>shop.cluster-x.eu-central-1.rds.amazonaws.com</Endpoint>
    <Engine>aurora-postgresql</Engine>
    <EngineMode>provisioned</EngineMode>
    <EngineVersion>16.4</EngineVersion>
    <HostedZoneId>Z1</HostedZoneId>
    <HttpEndpointEnabled>false</HttpEndpointEnabled>
    <IAMDatabaseAuthenticationEnabled>true</IAMDatabaseAuthenticationEnabled>
    <KmsKeyId>arn:aws:kms:eu-central-1:42:key/1</KmsKeyId>
    <LatestRestorableTime>2026-11-28T10:00:00Z</LatestRestorableTime>
    <MasterUsername>keeper</MasterUsername>
    <MultiAZ>true</MultiAZ>
    <PerformanceInsightsKMSKeyId>arn:aws:kms:eu-central-1:42:key/2</PerformanceInsightsKMSKeyId>
    <Port>5432</Port>
    <PreferredBackupWindow>02:00-02:30</PreferredBackupWindow>
    <ReaderEndpoint>shop.cluster-ro-x.eu-central-1.rds.amazonaws.com</ReaderEndpoint>
    <Status>available</Status>
    <StorageEncrypted>true</StorageEncrypted>
    <TagList>
     <Tag>
      <Key>cost-center</Key>
      <Value>7</Value>
     </Tag>
    </TagList>
    <VpcSecurityGroups>
     <VpcSecurityGroupMembership>
      <Status>active</Status>
      <VpcSecurityGroupId>sg-1</VpcSecurityGroupId>
     </VpcSecurityGroupMembership>
    </VpcSecurityGroups>
   </DBCluster>
";

const FULL_INSTANCES: &str = "
   <DBInstance>
    <AllocatedStorage>1</AllocatedStorage>
    <AvailabilityZone>eu-central-1a</AvailabilityZone>
    <CACertificateIdentifier>rds-ca-rsa2048-g1</CACertificateIdentifier>
    <DBClusterIdentifier>shop</DBClusterIdentifier>
    <DBInstanceArn>arn:aws:rds:eu-central-1:42:db:shop-1</DBInstanceArn>
    <DBInstanceClass>db.r6g.large</DBInstanceClass>
    <DBInstanceIdentifier>shop-1</DBInstanceIdentifier>
    <DbInstancePort>0</DbInstancePort>
    <DBInstanceStatus>available</DBInstanceStatus>
    <DbiResourceId>db-R1</DbiResourceId>
    <DBName>orders</DBName>
    <DBParameterGroups>
     <DBParameterGroup>
      <DBParameterGroupName>default.aurora-postgresql16</DBParameterGroupName>
      <ParameterApplyStatus>in-sync</ParameterApplyStatus>
     </DBParameterGroup>
    </DBParameterGroups>
    <DBSubnetGroup>
     <DBSubnetGroupName>private</DBSubnetGroupName>
     <Subnets>
      <Subnet>
       <SubnetIdentifier>subnet-1</SubnetIdentifier>
      </Subnet>
     </Subnets>
     <VpcId>vpc-1</VpcId>
    </DBSubnetGroup>
    <Endpoint>
     <Address>shop-1.x.eu-central-1.rds.amazonaws.com</Address>
     <HostedZoneId>Z1</HostedZoneId>
     <Port>5432</Port>
    </Endpoint>
    <Engine>aurora-postgresql</Engine>
    <EngineVersion>16.4</EngineVersion>
    <IAMDatabaseAuthenticationEnabled>true</IAMDatabaseAuthenticationEnabled>
    <InstanceCreateTime>2026-02-03T04:15:00.001Z</InstanceCreateTime>
    <LicenseModel>postgresql-license</LicenseModel>
    <ListenerEndpoint>
     <Address>listener.local</Address>
     <Port>1433</Port>
    </ListenerEndpoint>
    <MonitoringInterval>60</MonitoringInterval>
    <MultiAZ>false</MultiAZ>
    <PendingModifiedValues/>
    <PromotionTier>1</PromotionTier>
    <PubliclyAccessible>false</PubliclyAccessible>
    <ReadReplicaDBInstanceIdentifiers/>
    <StorageType>aurora</StorageType>
    <TagList>
     <Tag>
      <Key>team</Key>
      <Value>x</Value>
     </Tag>
    </TagList>
   </DBInstance>
   <DBInstance>
    <DBInstanceIdentifier>shop-2</DBInstanceIdentifier>
    <DBInstanceStatus>creating</DBInstanceStatus>
   </DBInstance>
";
