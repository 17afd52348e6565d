//! Tests of the role `elasticache`. The responses have the form of the examples in the documentation of Amazon
//! ElastiCache.

use axum::http::StatusCode;

use super::{KEY, ok, refusal, role_at, target, targets};
use crate::common::clouds::aws::testing::Amazon;
use crate::common::clouds::environment::Environment;
use alluvium_lang::value::{Number, Value};

const CACHES: &str = "DescribeServerlessCaches&Version=2015-02-02&MaxResults=50";
const CLUSTERS: &str = "DescribeCacheClusters&Version=2015-02-02&ShowCacheNodeInfo=true&MaxRecords=100";
const TAGS: &str = "ListTagsForResource&Version=2015-02-02&ResourceName=arn%3A";
const PREFIX: &str = "__meta_elasticache_";

fn result(action: &str, content: &str) -> (StatusCode, String) {
    ok(&format!(
        "<{action}Response xmlns=\"http://elasticache.amazonaws.com/doc/2015-02-02/\">\n \
        <{action}Result>\n{content}\n </{action}Result>\n <ResponseMetadata>\n  <RequestId>0d1</RequestId>\n \
        </ResponseMetadata>\n</{action}Response>\n"
    ))
}

fn caches(caches: &str, token: &str) -> (StatusCode, String) {
    let content = format!("<ServerlessCaches>{caches}</ServerlessCaches>{token}");
    result("DescribeServerlessCaches", &content)
}

fn clusters(clusters: &str, marker: &str) -> (StatusCode, String) {
    let content = format!("<CacheClusters>{clusters}</CacheClusters>{marker}");
    result("DescribeCacheClusters", &content)
}

fn tags(tags: &[(&str, &str)]) -> (StatusCode, String) {
    let tag = |(key, value): &(&str, &str)| format!("<Tag>\n<Key>{key}</Key>\n<Value>{value}</Value>\n</Tag>\n");
    let tags: Vec<String> = tags.iter().map(tag).collect();
    result("ListTagsForResource", &format!("<TagList>{}</TagList>", tags.concat()))
}

/// Returns a serverless cache without an endpoint.
fn cache(name: &str) -> String {
    format!("<member><ServerlessCacheName>{name}</ServerlessCacheName></member>")
}

/// Returns a cache cluster with one node.
fn cluster(id: &str, group: &str) -> String {
    format!(
        "<CacheCluster><CacheClusterId>{id}</CacheClusterId>{group}<CacheNodes><CacheNode><Endpoint>\
        <Address>{id}.local</Address><Port>6379</Port></Endpoint></CacheNode></CacheNodes></CacheCluster>"
    )
}

/// Returns the text of the target of `cluster(id, ..)`.
fn node(id: &str, group: Option<&str>) -> String {
    let id_label = format!("cache_cluster_cache_cluster_id={id}");
    let address_label = format!("cache_cluster_node_endpoint_address={id}.local");
    let group_label = group.map(|group| format!("cache_cluster_replication_group_id={group}"));
    let mut labels = vec![
        "deployment_option=node",
        "cache_cluster_node_endpoint_port=6379",
        &id_label,
        &address_label,
    ];
    labels.extend(group_label.as_deref());
    target(&format!("{id}.local:6379"), PREFIX, &labels)
}

/// Returns the text of the target of `cache(name)`.
fn serverless(name: &str) -> String {
    format!("{{{PREFIX}deployment_option=serverless,{PREFIX}serverless_cache_name={name}}}")
}

fn arns(texts: &[&str]) -> Value {
    let arn = |text: &&str| Value::string(format!("arn:aws:elasticache:eu-central-1:42:{text}"));
    Value::array(texts.iter().map(arn))
}

#[tokio::test]
async fn caches_and_nodes_are_targets_with_the_labels_of_their_description_and_their_tags() {
    let answer = |request: &str| match request {
        CACHES => caches(FULL_CACHE, ""),
        CLUSTERS => clusters(FULL_CLUSTER, ""),
        _ if request == format!("{TAGS}carts") => tags(&[("cost-center", "7"), ("team", "x")]),
        _ if request == format!("{TAGS}pages") => tags(&[("team", "y")]),
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("elasticache", &[KEY], answer).await;
    // The role has no use for the port.
    let body = role_at("elasticache", &amazon.url).with("port", Value::Number(Number::Int(9121)));
    let exported = targets(&body, Environment::from([])).await.unwrap();
    let carts = [
        "deployment_option=serverless",
        "serverless_cache_arn=arn:carts",
        "serverless_cache_cache_usage_limit_data_storagemaximum=10",
        "serverless_cache_cache_usage_limit_data_storageminimum=1",
        "serverless_cache_cache_usage_limit_data_storageunit=GB",
        "serverless_cache_cache_usage_limit_ecpu_per_secondmaximum=5000",
        "serverless_cache_cache_usage_limit_ecpu_per_secondminimum=1000",
        "serverless_cache_create_time=2026-02-03T04:05:06Z",
        "serverless_cache_daily_snapshot_time=03:00",
        "serverless_cache_description=carts of the shop",
        "serverless_cache_endpoint_address=carts-x.serverless.euc1.cache.amazonaws.com",
        "serverless_cache_endpoint_port=6379",
        "serverless_cache_endpoint_reader_address=carts-ro.serverless.euc1.cache.amazonaws.com",
        "serverless_cache_endpoint_reader_port=6380",
        "serverless_cache_engine=valkey",
        "serverless_cache_full_engine_version=8.0",
        "serverless_cache_kms_key_id=key-1",
        "serverless_cache_major_engine_version=8",
        "serverless_cache_name=carts",
        "serverless_cache_security_group_id_0=sg-1",
        "serverless_cache_security_group_id_1=sg-2",
        "serverless_cache_snapshot_retention_limit=3",
        "serverless_cache_status=available",
        "serverless_cache_subnet_id_0=subnet-1",
        "serverless_cache_tag_cost_center=7",
        "serverless_cache_tag_team=x",
        "serverless_cache_user_group_id=shoppers",
    ];
    let pages = [
        "cache_cluster_arn=arn:pages",
        "cache_cluster_at_rest_encryption_enabled=false",
        "cache_cluster_auth_token_enabled=true",
        "cache_cluster_auth_token_last_modified=2026-03-04T05:06:07Z",
        "cache_cluster_auto_minor_version_upgrade=true",
        "cache_cluster_cache_cluster_create_time=2026-02-03T04:05:06Z",
        "cache_cluster_cache_cluster_id=pages",
        "cache_cluster_cache_cluster_status=available",
        "cache_cluster_cache_node_type=cache.t4g.small",
        "cache_cluster_cache_parameter_group=default.memcached1.6",
        "cache_cluster_cache_subnet_group_name=private",
        "cache_cluster_client_download_landing_page=https://console.aws.amazon.com/elasticache",
        "cache_cluster_configuration_endpoint_address=pages.cfg.euc1.cache.amazonaws.com",
        "cache_cluster_configuration_endpoint_port=11211",
        "cache_cluster_engine=memcached",
        "cache_cluster_engine_version=1.6.22",
        "cache_cluster_ip_discovery=ipv4",
        "cache_cluster_log_delivery_configuration_destination_type_0=cloudwatch-logs",
        "cache_cluster_log_delivery_configuration_destination_type_1=kinesis-firehose",
        "cache_cluster_log_delivery_configuration_delivery_stream_1=slow",
        "cache_cluster_log_delivery_configuration_log_format_0=json",
        "cache_cluster_log_delivery_configuration_log_group_0=/pages",
        "cache_cluster_log_delivery_configuration_log_type_0=engine-log",
        "cache_cluster_log_delivery_configuration_message_1=no such stream",
        "cache_cluster_log_delivery_configuration_status_0=active",
        "cache_cluster_log_delivery_configuration_status_1=error",
        "cache_cluster_network_type=ipv4",
        "cache_cluster_notification_topic_arn=arn:topic",
        "cache_cluster_notification_topic_status=active",
        "cache_cluster_num_cache_nodes=2",
        "cache_cluster_pending_modified_values_cache_node_ids_to_remove=0001,0002",
        "cache_cluster_pending_modified_values_num_cache_nodes=1",
        "cache_cluster_preferred_availability_zone=Multiple",
        "cache_cluster_preferred_maintenance_window=fri:08:30-fri:09:00",
        "cache_cluster_replication_group_log_delivery_enabled=false",
        "cache_cluster_security_group_membership_id_0=sg-1",
        "cache_cluster_security_group_membership_status_0=active",
        "cache_cluster_snapshot_retention_limit=0",
        "cache_cluster_snapshot_window=05:00-06:00",
        "cache_cluster_tag_team=y",
        "cache_cluster_transit_encryption_enabled=true",
        "cache_cluster_transit_encryption_mode=required",
        "deployment_option=node",
    ];
    let mut first = pages.to_vec();
    first.extend([
        "cache_cluster_node_availability_zone=eu-central-1a",
        "cache_cluster_node_create_time=2026-02-03T04:05:06Z",
        "cache_cluster_node_endpoint_address=pages.0001.euc1.cache.amazonaws.com",
        "cache_cluster_node_endpoint_port=11211",
        "cache_cluster_node_id=0001",
        "cache_cluster_node_parameter_group_status=in-sync",
        "cache_cluster_node_status=available",
    ]);
    let mut second = pages.to_vec();
    second.extend(["cache_cluster_node_id=0002", "cache_cluster_node_status=creating"]);
    assert_eq!(
        exported,
        [
            target("carts-x.serverless.euc1.cache.amazonaws.com:6379", PREFIX, &carts),
            target("pages.0001.euc1.cache.amazonaws.com:11211", PREFIX, &first),
            target("", PREFIX, &second).replace("__address__=,", ""),
        ]
    );
}

#[tokio::test]
async fn caches_and_clusters_are_read_to_the_last_page() {
    let answer = |request: &str| match request {
        CACHES => caches(&cache("a"), "<NextToken>t/2</NextToken>"),
        CLUSTERS => clusters(&(cluster("b", "") + &cluster("c", "")), "<Marker>m2</Marker>"),
        _ if request == format!("{CACHES}&NextToken=t%2F2") => caches(&cache("d"), ""),
        _ if request == format!("{CLUSTERS}&Marker=m2") => clusters(&cluster("e", ""), ""),
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("elasticache", &[KEY], answer).await;
    let body = role_at("elasticache", &amazon.url);
    let exported = targets(&body, Environment::from([])).await.unwrap();
    let expected = [
        serverless("a"),
        serverless("d"),
        node("b", None),
        node("c", None),
        node("e", None),
    ];
    assert_eq!(exported, expected);
}

const NAMED_CACHE: &str = "DescribeServerlessCaches&Version=2015-02-02&ServerlessCacheName=";
const NAMED_CLUSTER: &str = "DescribeCacheClusters&Version=2015-02-02&ShowCacheNodeInfo=true&CacheClusterId=";

#[tokio::test]
async fn arns_select_caches_clusters_and_replication_groups() {
    let group = "<ReplicationGroupId>sessions</ReplicationGroupId>";
    let answer = move |request: &str| match request {
        CLUSTERS => {
            let members = cluster("sessions-001", group) + &cluster("sessions-002", group);
            clusters(&(members + &cluster("other", "")), "")
        }
        _ if request == format!("{NAMED_CLUSTER}pages&MaxRecords=100") => clusters(&cluster("pages", ""), ""),
        _ if request == format!("{NAMED_CACHE}carts&MaxResults=50") => caches(&cache("carts"), ""),
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("elasticache", &[KEY], answer).await;
    let select = async |texts: &[&str]| {
        let body = role_at("elasticache", &amazon.url).with("clusters", arns(texts));
        targets(&body, Environment::from([])).await.unwrap()
    };
    // A member that is also named itself is one target.
    let texts = [
        "serverlesscache:carts",
        "cluster:pages",
        "cluster:sessions-002",
        "replicationgroup:sessions",
    ];
    let expected = [
        serverless("carts"),
        node("sessions-001", Some("sessions")),
        node("sessions-002", Some("sessions")),
        node("pages", None),
    ];
    assert_eq!(select(&texts).await, expected);
    assert_eq!(select(&["replicationgroup:other"]).await, [node("other", None)]);
    let count = amazon.requests().len();
    assert_eq!(select(&["serverlesscache:carts"]).await, [serverless("carts")]);
    assert_eq!(amazon.requests().len(), count + 1, "no other cache is requested");
}

#[tokio::test]
async fn an_error_has_the_code_of_the_service_or_names_the_missing_group() {
    let answer = |request: &str| match request {
        CLUSTERS => clusters(&cluster("a", ""), ""),
        _ if request.starts_with(NAMED_CLUSTER) => refusal(StatusCode::NOT_FOUND, "CacheClusterNotFound"),
        _ if request.starts_with(TAGS) => refusal(StatusCode::FORBIDDEN, "AccessDenied"),
        _ => caches("<member><ARN>arn:carts</ARN></member>", ""),
    };
    let amazon = Amazon::start("elasticache", &[KEY], answer).await;
    for (text, action, reason) in [
        (
            "cluster:gone",
            "DescribeCacheClusters: ",
            "404 Not Found: CacheClusterNotFound: refused by the test",
        ),
        (
            "replicationgroup:gone",
            "DescribeCacheClusters: ",
            "the replication group `gone` has no cache cluster",
        ),
        (
            "serverlesscache:carts",
            "ListTagsForResource: ",
            "403 Forbidden: AccessDenied: refused by the test",
        ),
    ] {
        let body = role_at("elasticache", &amazon.url).with("clusters", arns(&[text]));
        let error = targets(&body, Environment::from([])).await.unwrap_err().to_string();
        assert!(error.starts_with(action), "{error}");
        assert!(error.ends_with(reason), "{error}");
    }
}

#[tokio::test]
async fn without_caches_there_are_no_targets() {
    let answer = |request: &str| match request {
        CACHES => caches("\n  ", ""),
        CLUSTERS => result("DescribeCacheClusters", "<CacheClusters/>"),
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("elasticache", &[KEY], answer).await;
    let body = role_at("elasticache", &amazon.url);
    assert_eq!(targets(&body, Environment::from([])).await.unwrap(), [""; 0]);
}

const FULL_CACHE: &str = "
   <member>
    <ServerlessCacheName>carts</ServerlessCacheName>
    <Description>carts of the shop</Description>
    <CreateTime>2026-02-03T04:05:06.789Z</CreateTime>
    <Status>available</Status>
    <Engine>valkey</Engine>
    <MajorEngineVersion>8</MajorEngineVersion>
    <FullEngineVersion>8.0</FullEngineVersion>
    <CacheUsageLimits>
     <DataStorage>
      <Maximum>10</Maximum>
      <Minimum>1</Minimum>
      <Unit>GB</Unit>
     </DataStorage>
     <ECPUPerSecond>
      <Maximum>5000</Maximum>
      <Minimum>1000</Minimum>
     </ECPUPerSecond>
    </CacheUsageLimits>
    <KmsKeyId>key-1</KmsKeyId>
    <SecurityGroupIds>
     <SecurityGroupId>sg-1</SecurityGroupId>
     <SecurityGroupId>sg-2</SecurityGroupId>
    </SecurityGroupIds>
    <Endpoint>
     <Address>carts-x.serverless.euc1.cache.amazonaws.com</Address>
     <Port>6379</Port>
    </Endpoint>
    <ReaderEndpoint>
     <Address>carts-ro.serverless.euc1.cache.amazonaws.com</Address>
     <Port>6380</Port>
    </ReaderEndpoint>
    <ARN>arn:carts</ARN>
    <UserGroupId>shoppers</UserGroupId>
    <SubnetIds>
     <SubnetId>subnet-1</SubnetId>
    </SubnetIds>
    <SnapshotRetentionLimit>3</SnapshotRetentionLimit>
    <DailySnapshotTime>03:00</DailySnapshotTime>
   </member>
";

const FULL_CLUSTER: &str = "
   <CacheCluster>
    <CacheClusterId>pages</CacheClusterId>
    <ConfigurationEndpoint>
     <Address>pages.cfg.euc1.cache.amazonaws.com</Address>
     <Port>11211</Port>
    </ConfigurationEndpoint>
    <ClientDownloadLandingPage>https://console.aws.amazon.com/elasticache</ClientDownloadLandingPage>
    <CacheNodeType>cache.t4g.small</CacheNodeType>
    <Engine>memcached</Engine>
    <EngineVersion>1.6.22</EngineVersion>
    <CacheClusterStatus>available</CacheClusterStatus>
    <NumCacheNodes>2</NumCacheNodes>
    <PreferredAvailabilityZone>Multiple</PreferredAvailabilityZone>
    <CacheClusterCreateTime>2026-02-03T04:05:06.789Z</CacheClusterCreateTime>
    <PreferredMaintenanceWindow>fri:08:30-fri:09:00</PreferredMaintenanceWindow>
    <PendingModifiedValues>
     <NumCacheNodes>1</NumCacheNodes>
     <CacheNodeIdsToRemove>
      <CacheNodeId>0001</CacheNodeId>
      <CacheNodeId>0002</CacheNodeId>
     </CacheNodeIdsToRemove>
    </PendingModifiedValues>
    <NotificationConfiguration>
     <TopicArn>arn:topic</TopicArn>
     <TopicStatus>active</TopicStatus>
    </NotificationConfiguration>
    <CacheSecurityGroups/>
    <CacheParameterGroup>
     <CacheParameterGroupName>default.memcached1.6</CacheParameterGroupName>
     <ParameterApplyStatus>in-sync</ParameterApplyStatus>
     <CacheNodeIdsToReboot/>
    </CacheParameterGroup>
    <CacheSubnetGroupName>private</CacheSubnetGroupName>
    <CacheNodes>
     <CacheNode>
      <CacheNodeId>0001</CacheNodeId>
      <CacheNodeStatus>available</CacheNodeStatus>
      <CacheNodeCreateTime>2026-02-03T04:05:06.789Z</CacheNodeCreateTime>
      <Endpoint>
       <Address>pages.0001.euc1.cache.amazonaws.com</Address>
       <Port>11211</Port>
      </Endpoint>
      <ParameterGroupStatus>in-sync</ParameterGroupStatus>
      <CustomerAvailabilityZone>eu-central-1a</CustomerAvailabilityZone>
     </CacheNode>
     <CacheNode>
      <CacheNodeId>0002</CacheNodeId>
      <CacheNodeStatus>creating</CacheNodeStatus>
     </CacheNode>
    </CacheNodes>
    <AutoMinorVersionUpgrade>true</AutoMinorVersionUpgrade>
    <SecurityGroups>
     <member>
      <SecurityGroupId>sg-1</SecurityGroupId>
      <Status>active</Status>
     </member>
    </SecurityGroups>
    <SnapshotRetentionLimit>0</SnapshotRetentionLimit>
    <SnapshotWindow>05:00-06:00</SnapshotWindow>
    <AuthTokenEnabled>true</AuthTokenEnabled>
    <AuthTokenLastModifiedDate>2026-03-04T05:06:07Z</AuthTokenLastModifiedDate>
    <TransitEncryptionEnabled>true</TransitEncryptionEnabled>
    <AtRestEncryptionEnabled>false</AtRestEncryptionEnabled>
    <ARN>arn:pages</ARN>
    <ReplicationGroupLogDeliveryEnabled>false</ReplicationGroupLogDeliveryEnabled>
    <LogDeliveryConfigurations>
     <LogDeliveryConfiguration>
      <LogType>engine-log</LogType>
      <DestinationType>cloudwatch-logs</DestinationType>
      <DestinationDetails>
       <CloudWatchLogsDetails>
        <LogGroup>/pages</LogGroup>
       </CloudWatchLogsDetails>
      </DestinationDetails>
      <LogFormat>json</LogFormat>
      <Status>active</Status>
     </LogDeliveryConfiguration>
     <LogDeliveryConfiguration>
      <DestinationType>kinesis-firehose</DestinationType>
      <DestinationDetails>
       <KinesisFirehoseDetails>
        <DeliveryStream>slow</DeliveryStream>
       </KinesisFirehoseDetails>
      </DestinationDetails>
      <Status>error</Status>
      <Message>no such stream</Message>
     </LogDeliveryConfiguration>
    </LogDeliveryConfigurations>
    <NetworkType>ipv4</NetworkType>
    <IpDiscovery>ipv4</IpDiscovery>
    <TransitEncryptionMode>required</TransitEncryptionMode>
   </CacheCluster>
";
