//! Tests against a fake Lightsail API. Its responses follow the documentation of the API.

use axum::http::StatusCode;

use super::DEFINITION;
use crate::common::clouds::aws::testing::Amazon;
use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_lang::value::Value;

#[tokio::test]
async fn instances_of_all_pages_become_targets() {
    let answer = |request: &str| {
        let text = match request {
            "GetInstances {}" => {
                r#"{"instances": [{"name": "one", "arn": "arn:1", "supportCode": "6/i-1",
                "location": {"availabilityZone": "eu-central-1a", "regionName": "eu-central-1"},
                "blueprintId": "debian_12", "bundleId": "nano_3_0", "privateIpAddress": "172.26.0.7",
                "publicIpAddress": "192.0.2.7", "ipv6Addresses": ["2001:db8::1", "2001:db8::2"],
                "state": {"code": 16, "name": "running"},
                "tags": [{"key": "app.name", "value": "shop"}, {"key": "x"}]}],
                "nextPageToken": "more"}"#
            }
            r#"GetInstances {"pageToken":"more"}"# => {
                r#"{"instances": [{"name": "without address"}, {"privateIpAddress": "172.26.0.8"}]}"#
            }
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text.to_owned())
    };
    let amazon = Amazon::start("lightsail", &[("AKID", "hush")], answer).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.lightsail.test", folder.path());
    let body = Body::new()
        .text("endpoint", &amazon.url)
        .text("region", "eu-central-1")
        .text("access_key", "AKID")
        .with("secret_key", Value::Secret("hush".into()));
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("two targets", || recorder.exported_targets("targets").len() == 2).await;
    assert_eq!(
        recorder.exported_targets("targets"),
        [
            "{__address__=172.26.0.7:80,__meta_lightsail_availability_zone=eu-central-1a,\
            __meta_lightsail_blueprint_id=debian_12,__meta_lightsail_bundle_id=nano_3_0,\
            __meta_lightsail_instance_name=one,__meta_lightsail_instance_state=running,\
            __meta_lightsail_instance_support_code=6/i-1,__meta_lightsail_ipv6_addresses=,2001:db8::1,2001:db8::2,,\
            __meta_lightsail_private_ip=172.26.0.7,__meta_lightsail_public_ip=192.0.2.7,\
            __meta_lightsail_region=eu-central-1,__meta_lightsail_tag_app_name=shop}",
            "{__address__=172.26.0.8:80,__meta_lightsail_private_ip=172.26.0.8,__meta_lightsail_region=eu-central-1}",
        ]
    );
    running.stop().await;
}
