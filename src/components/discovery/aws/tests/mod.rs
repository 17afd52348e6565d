//! Tests of roles and credentials against a fake server. Its responses follow the documentation of Amazon's services.

use axum::http::StatusCode;

use super::{AnyRole, DEFINITION};
use crate::common::clouds::aws::testing::Amazon;
use crate::common::clouds::environment::Environment;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, shorten};
use alluvium_lang::value::Value;

mod elasticache;
mod rds;

const KEY: (&str, &str) = ("AKID", "hush");

/// Refreshes once with these arguments in this environment and returns the targets.
async fn targets(body: &Body, environment: Environment) -> Result<Vec<String>, DiscoveryError> {
    let discovery = AnyRole::within(&body.arguments(&DEFINITION), &Recorder::context(), environment).unwrap();
    Ok(shorten(&discovery.targets().await?))
}

fn ok(text: &str) -> (StatusCode, String) {
    (StatusCode::OK, text.to_owned())
}

fn role(name: &str) -> Body {
    Body::new().text("role", name).text("region", "eu-central-1")
}

/// Returns the arguments of a role whose service is at `url`.
fn role_at(name: &str, url: &str) -> Body {
    role(name)
        .text("endpoint", url)
        .text("access_key", KEY.0)
        .with("secret_key", Value::Secret(KEY.1.into()))
}

/// Returns the text of a target with this address, and with labels that begin with `prefix`.
fn target(address: &str, prefix: &str, labels: &[&str]) -> String {
    let mut labels: Vec<String> = labels.iter().map(|label| format!("{prefix}{label}")).collect();
    labels.push(format!("__address__={address}"));
    labels.sort();
    format!("{{{}}}", labels.join(","))
}

/// Returns a response that refuses a request with an error code.
fn refusal(status: StatusCode, code: &str) -> (StatusCode, String) {
    let text = format!(
        "<ErrorResponse xmlns=\"http://rds.amazonaws.com/doc/2014-10-31/\">\n <Error>\n  <Type>Sender</Type>\n  \
        <Code>{code}</Code>\n  <Message>refused by the test</Message>\n </Error>\n \
        <RequestId>0d1</RequestId>\n</ErrorResponse>"
    );
    (status, text)
}

#[tokio::test]
async fn tasks_are_found_by_their_own_address_or_that_of_their_machine() {
    let answer = |request: &str| {
        let (action, parameters) = request.split_once([' ', '&']).unwrap();
        ok(match action {
            "ListClusters" if parameters.contains("nextToken") => r#"{"clusterArns": []}"#,
            "ListClusters" => r#"{"clusterArns": ["arn:c"], "nextToken": "more"}"#,
            "DescribeClusters" => {
                r#"{"clusters": [{"clusterArn": "arn:c", "clusterName": "main", "tags": [{"key": "a.b",
                "value": "1"}]}]}"#
            }
            "ListServices" => r#"{"serviceArns": ["arn:s"]}"#,
            "DescribeServices" => {
                r#"{"services": [{"serviceArn": "arn:s", "serviceName": "web", "status": "ACTIVE",
                "tags": [{"key": "tier", "value": "front"}]}]}"#
            }
            "ListTasks" => r#"{"taskArns": ["arn:t1", "arn:t2", "arn:t3"]}"#,
            "DescribeTasks" => {
                r#"{"tasks": [
                {"taskArn": "arn:t1", "group": "service:web", "launchType": "FARGATE", "lastStatus": "RUNNING",
                 "attachments": [{"type": "ElasticNetworkInterface", "details": [{"name": "subnetId", "value": "sn-1"},
                   {"name": "networkInterfaceId", "value": "eni-1"},
                   {"name": "privateIPv4Address", "value": "10.0.0.1"}]}],
                 "tags": [{"key": "team", "value": "x"}]},
                {"taskArn": "arn:t2", "group": "family:job", "launchType": "EC2", "containerInstanceArn": "arn:ci"},
                {"taskArn": "arn:t3", "launchType": "FARGATE"}]}"#
            }
            "DescribeContainerInstances" => {
                r#"{"containerInstances": [{"containerInstanceArn": "arn:ci", "ec2InstanceId": "i-1"}]}"#
            }
            "DescribeInstances" => {
                "<R><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId>
                <instanceType>m5.large</instanceType><privateIpAddress>10.0.0.2</privateIpAddress>
                <subnetId>sn-2</subnetId><tagSet><item><key>rack</key><value>7</value></item></tagSet></item>
                </instancesSet></item></reservationSet></R>"
            }
            "DescribeNetworkInterfaces" => {
                "<R><networkInterfaceSet><item><networkInterfaceId>eni-1</networkInterfaceId>
                <association><publicIp>192.0.2.1</publicIp></association></item></networkInterfaceSet></R>"
            }
            other => panic!("unexpected request: {other}"),
        })
    };
    let amazon = Amazon::start("", &[KEY], answer).await;
    let environment = Environment::from([
        ("AWS_ENDPOINT_URL", amazon.url.as_str()),
        ("AWS_ACCESS_KEY_ID", KEY.0),
        ("AWS_SECRET_ACCESS_KEY", KEY.1),
    ]);
    let one = Value::Number(alluvium_lang::value::Number::Int(1));
    let exported = targets(&role("ecs").with("request_concurrency", one), environment)
        .await
        .unwrap();
    assert_eq!(
        exported,
        [
            "{__address__=10.0.0.1:80,__meta_ecs_cluster=main,__meta_ecs_cluster_arn=arn:c,\
            __meta_ecs_ip_address=10.0.0.1,\
            __meta_ecs_last_status=RUNNING,__meta_ecs_launch_type=FARGATE,__meta_ecs_network_mode=awsvpc,\
            __meta_ecs_public_ip=192.0.2.1,__meta_ecs_region=eu-central-1,__meta_ecs_service=web,\
            __meta_ecs_service_arn=arn:s,__meta_ecs_service_status=ACTIVE,__meta_ecs_subnet_id=sn-1,\
            __meta_ecs_tag_cluster_a_b=1,__meta_ecs_tag_service_tier=front,__meta_ecs_tag_task_team=x,\
            __meta_ecs_task_arn=arn:t1,__meta_ecs_task_group=service:web}",
            "{__address__=10.0.0.2:80,__meta_ecs_cluster=main,__meta_ecs_cluster_arn=arn:c,\
            __meta_ecs_container_instance_arn=arn:ci,__meta_ecs_ec2_instance_id=i-1,\
            __meta_ecs_ec2_instance_private_ip=10.0.0.2,__meta_ecs_ec2_instance_type=m5.large,\
            __meta_ecs_ip_address=10.0.0.2,__meta_ecs_launch_type=EC2,__meta_ecs_network_mode=bridge,\
            __meta_ecs_region=eu-central-1,__meta_ecs_subnet_id=sn-2,__meta_ecs_tag_cluster_a_b=1,\
            __meta_ecs_tag_ec2_rack=7,__meta_ecs_task_arn=arn:t2,__meta_ecs_task_group=family:job}",
        ]
    );
}

#[tokio::test]
async fn brokers_and_controllers_are_targets_by_endpoint() {
    let answer = |request: &str| {
        ok(match request {
            "GET /api/v2/clusters?clusterTypeFilter=PROVISIONED&maxResults=100" => {
                r#"{"clusterInfoList": [{"clusterArn": "arn:aws:kafka:eu-central-1:42:cluster/a/1", "clusterName": "a",
                "clusterType": "PROVISIONED", "state": "ACTIVE", "currentVersion": "K1", "tags": {"team": "x"},
                "provisioned": {"currentBrokerSoftwareInfo": {"kafkaVersion": "3.6.0"}, "openMonitoring":
                {"prometheus": {"jmxExporter": {"enabledInBroker": true},
                "nodeExporter": {"enabledInBroker": false}}}}}]}"#
            }
            "GET /v1/clusters/arn:aws:kafka:eu-central-1:42:cluster%2Fa%2F1/nodes?maxResults=100" => {
                r#"{"nodeInfoList": [{"nodeARN": "arn:n1", "instanceType": "m5.large", "brokerNodeInfo": {"brokerId": 1,
                "attachedENIId": "eni-1", "clientSubnet": "sn-1", "clientVpcIpAddress": "10.0.0.1",
                "endpoints": ["b-1"]}}],
                "nextToken": "more"}"#
            }
            "GET /v1/clusters/arn:aws:kafka:eu-central-1:42:cluster%2Fa%2F1/nodes?maxResults=100&nextToken=more" => {
                r#"{"nodeInfoList": [{"nodeARN": "arn:n2", "controllerNodeInfo": {"endpoints": ["c-1"]}}, {}]}"#
            }
            other => panic!("unexpected request: {other}"),
        })
    };
    let amazon = Amazon::start("kafka", &[KEY], answer).await;
    let exported = targets(&role_at("msk", &amazon.url), Environment::from([]))
        .await
        .unwrap();
    let cluster = "__meta_msk_cluster_arn=arn:aws:kafka:eu-central-1:42:cluster/a/1,\
        __meta_msk_cluster_jmx_exporter_enabled=true,__meta_msk_cluster_kafka_version=3.6.0,__meta_msk_cluster_name=a,\
        __meta_msk_cluster_state=ACTIVE,__meta_msk_cluster_tag_team=x,__meta_msk_cluster_type=PROVISIONED,\
        __meta_msk_cluster_version=K1";
    assert_eq!(
        exported,
        [
            format!(
                "{{__address__=b-1:80,__meta_msk_broker_client_subnet=sn-1,__meta_msk_broker_client_vpc_ip=10.0.0.1,\
                __meta_msk_broker_endpoint_index=0,__meta_msk_broker_id=1,\
                __meta_msk_broker_node_exporter_enabled=false,\
                {cluster},__meta_msk_node_arn=arn:n1,__meta_msk_node_attached_eni=eni-1,\
                __meta_msk_node_instance_type=m5.large,__meta_msk_node_type=BROKER}}"
            ),
            format!(
                "{{__address__=c-1:80,{cluster},__meta_msk_controller_endpoint_index=0,__meta_msk_node_arn=arn:n2,\
                __meta_msk_node_type=CONTROLLER}}"
            ),
        ]
    );
}

const INSTANCES: &str = r#"{"instances": [{"privateIpAddress": "10.0.0.1"}]}"#;

fn role_given(action: &str, key: (&str, &str)) -> (StatusCode, String) {
    ok(&format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
        <AccessKeyId>{}</AccessKeyId><SecretAccessKey>{}</SecretAccessKey><SessionToken>token</SessionToken>\
        <Expiration>2000-01-01T00:00:00Z</Expiration></Credentials></{action}Result></{action}Response>",
        key.0, key.1
    ))
}

#[tokio::test]
async fn a_web_identity_becomes_a_role_and_that_another() {
    let answer = |request: &str| match request {
        "GetInstances {}" => ok(INSTANCES),
        "AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Apod&RoleSessionName=alluvium\
         &WebIdentityToken=jwt" => role_given("AssumeRoleWithWebIdentity", ("POD", "pod")),
        "AssumeRole&Version=2011-06-15&RoleArn=arn%3Areader&RoleSessionName=alluvium&ExternalId=us" => {
            role_given("AssumeRole", ("READER", "reader"))
        }
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("", &[("POD", "pod"), ("READER", "reader")], answer).await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "jwt\n").unwrap();
    let environment = Environment::from([
        ("AWS_ENDPOINT_URL", amazon.url.as_str()),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:pod"),
    ]);
    let body = role("lightsail")
        .text("role_arn", "arn:reader")
        .text("external_id", "us");
    assert_eq!(targets(&body, environment).await.unwrap().len(), 1);
    assert_eq!(amazon.requests().len(), 3);
}

#[tokio::test]
async fn a_profile_leads_by_its_source_to_a_role() {
    let answer = |request: &str| match request {
        "GetInstances {}" => ok(INSTANCES),
        "AssumeRole&Version=2011-06-15&RoleArn=arn%3Areader&RoleSessionName=build" => {
            role_given("AssumeRole", ("READER", "reader"))
        }
        other => panic!("unexpected request: {other}"),
    };
    let amazon = Amazon::start("", &[KEY, ("READER", "reader")], answer).await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let config = write(
        "config",
        "[default]\nregion = eu-central-1\n[profile reader]\nregion = eu-central-1\nrole_arn = arn:reader\n\
        role_session_name = build\nsource_profile = default\n[profile loop]\nrole_arn = arn:x\nsource_profile = loop2\n\
        [profile loop2]\nrole_arn = arn:x\nsource_profile = loop\n[profile sso]\nsso_session = x\n",
    );
    let credentials = write(
        "credentials",
        "[default]\naws_access_key_id = AKID\naws_secret_access_key = hush\n",
    );
    let environment = Environment::from([
        ("AWS_ENDPOINT_URL", amazon.url.as_str()),
        ("AWS_CONFIG_FILE", &config),
        ("AWS_SHARED_CREDENTIALS_FILE", &credentials),
        // The argument `profile` takes precedence over environment variables.
        ("AWS_ACCESS_KEY_ID", "OTHER"),
        ("AWS_SECRET_ACCESS_KEY", "other"),
    ]);
    let body = |profile: &str| Body::new().text("role", "lightsail").text("profile", profile);
    assert_eq!(targets(&body("reader"), environment.clone()).await.unwrap().len(), 1);
    for (profile, reason) in [
        ("none", "there is no profile `none`"),
        ("loop", "refers to itself by source_profile"),
        ("sso", "the profile `sso` uses sso_session, which is not supported"),
    ] {
        let body = body(profile).text("region", "eu-central-1");
        let error = targets(&body, environment.clone()).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_machine_and_a_container_tell_their_region_and_their_credentials() {
    let response = r#"{"Code": "Success", "AccessKeyId": "AKID", "SecretAccessKey": "hush", "Token": "session",
        "Expiration": "2999-01-01T00:00:00Z"}"#;
    let answer = move |request: &str| {
        ok(match request {
            "GetInstances {}" => INSTANCES,
            "PUT /latest/api/token" => "imds-token",
            "GET /latest/meta-data/placement/region" => "eu-central-1",
            "GET /latest/meta-data/iam/security-credentials/" => "reader",
            "GET /latest/meta-data/iam/security-credentials/reader" | "GET /v1/credentials" => response,
            other => panic!("unexpected request: {other}"),
        })
    };
    let amazon = Amazon::start("lightsail", &[KEY], answer).await;
    let missing_path = "/nonexistent";
    let files = [
        ("AWS_CONFIG_FILE", missing_path),
        ("AWS_SHARED_CREDENTIALS_FILE", missing_path),
    ];
    let [config, credentials] = files;
    let services = ("AWS_ENDPOINT_URL_LIGHTSAIL", amazon.url.as_str());
    let machine = Environment::from([
        services,
        config,
        credentials,
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &amazon.url),
    ]);
    let body = Body::new().text("role", "lightsail");
    assert_eq!(targets(&body, machine).await.unwrap().len(), 1);
    assert_eq!(
        amazon.requests().last().map(String::as_str),
        Some("GetInstances {}"),
        "the last request is the one to Lightsail"
    );
    let full = format!("{}/v1/credentials", amazon.url);
    let container = Environment::from([
        services,
        config,
        credentials,
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", full.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod-token"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]);
    assert_eq!(targets(&role("lightsail"), container.clone()).await.unwrap().len(), 1);
    let error = targets(&body, container).await.unwrap_err().to_string();
    assert!(
        error.starts_with("no region is configured, and the instance metadata has none: "),
        "{error}"
    );
}

#[tokio::test]
async fn credentials_are_kept_and_found_again_after_a_refusal() {
    let refused = std::sync::atomic::AtomicBool::new(true);
    let answer = move |request: &str| match request {
        "GetInstances {}" if refused.swap(false, std::sync::atomic::Ordering::SeqCst) => {
            let text = r#"{"__type": "ExpiredTokenException", "message": "the token has expired"}"#;
            (StatusCode::BAD_REQUEST, text.to_owned())
        }
        "GetInstances {}" => ok(INSTANCES),
        _ => ok(
            r#"{"AccessKeyId": "AKID", "SecretAccessKey": "hush", "Token": "session",
            "Expiration": "2999-01-01T00:00:00Z"}"#,
        ),
    };
    let amazon = Amazon::start("lightsail", &[KEY], answer).await;
    let full = format!("{}/v1/credentials", amazon.url);
    let environment = Environment::from([
        ("AWS_ENDPOINT_URL_LIGHTSAIL", amazon.url.as_str()),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &full),
    ]);
    let arguments = role("lightsail").arguments(&DEFINITION);
    let discovery = AnyRole::within(&arguments, &Recorder::context(), environment).unwrap();
    let error = discovery.targets().await.unwrap_err().to_string();
    assert!(error.contains("ExpiredTokenException"), "{error}");
    assert_eq!(discovery.targets().await.unwrap().len(), 1);
    assert_eq!(discovery.targets().await.unwrap().len(), 1);
    let (credentials, instances) = ("GET /v1/credentials", "GetInstances {}");
    assert_eq!(
        amazon.requests(),
        [credentials, instances, credentials, instances, instances]
    );
}

#[test]
fn what_a_role_does_not_take_is_refused_by_name() {
    let list = Value::array([Value::string("a")]);
    let filter = Body::new().text("name", "a").with("values", list.clone());
    for (body, reason) in [
        (
            role("ec2").with("clusters", list.clone()),
            "clusters: clusters is for the roles ecs, elasticache, msk and rds, not for ec2",
        ),
        (
            role("ecs").block("filter", filter.clone()),
            "filter: filter blocks are for the roles ec2 and rds, not for ecs",
        ),
        (
            role("elasticache").block("filter", filter),
            "filter: filter blocks are for the roles ec2 and rds, not for elasticache",
        ),
        (
            role("elasticache").with("clusters", list),
            "clusters: `a` is not the ARN of a serverless cache, a replication group or a cache cluster",
        ),
    ] {
        assert_eq!(body.read(&DEFINITION).unwrap_err(), reason);
    }
}
