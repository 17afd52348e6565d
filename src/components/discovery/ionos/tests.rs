//! Tests against a fake server. Its responses follow the documentation of the IONOS API.

use axum::http::StatusCode;

use super::{DEFINITION, Ionos};
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, serve_api, shorten};
use alluvium_lang::value::Value;

#[tokio::test]
async fn servers_of_all_pages_become_targets_and_a_refusal_is_told() {
    let (url, _server) = serve_api(|request, _| {
        if request.headers["authorization"] != "Bearer hush" {
            let text = r#"{"httpStatus": 401, "messages": [{"message": "Unauthorized"}]}"#;
            return (StatusCode::UNAUTHORIZED, text.to_owned());
        }
        let text = match request.uri.to_string().as_str() {
            "/datacenters/d%2F1/servers?depth=3&limit=1000&offset=0" => {
                let empty = vec!["{\"id\": \"without address\"}"; 999].join(",");
                format!(
                    r#"{{"id": "d1/servers", "items": [{empty}, {{"id": "s1", "metadata": {{"state": "AVAILABLE"}},
                    "properties": {{"name": "one", "availabilityZone": "ZONE_1", "cpuFamily": "INTEL_XEON",
                    "vmState": "RUNNING", "type": "ENTERPRISE", "bootVolume": {{"id": "v1"}},
                    "bootCdrom": {{"id": "c1"}}}},
                    "entities": {{"volumes": {{"items": [{{"properties": {{"image": "i1"}}}}]}}, "nics": {{"items": [
                    {{"properties": {{"name": "lan 1", "ips": ["10.0.0.1"]}}}},
                    {{"properties": {{"ips": ["192.0.2.1", "2001:db8::1"]}}}}]}}}}}}]}}"#
                )
            }
            "/datacenters/d%2F1/servers?depth=3&limit=1000&offset=1000" => {
                r#"{"id": "d1/servers", "items": []}"#.to_owned()
            }
            other => panic!("unexpected request: {other}"),
        };
        (StatusCode::OK, text)
    })
    .await;
    let targets = async |token: &str| {
        let body = Body::new()
            .text("datacenter_id", "d/1")
            .with("bearer_token", Value::Secret(token.into()));
        Ionos::with_url(&url, &body.arguments(&DEFINITION), &Recorder::context())
            .unwrap()
            .targets()
            .await
    };
    assert_eq!(
        shorten(&targets("hush").await.unwrap()),
        [
            "{__address__=192.0.2.1:80,__meta_ionos_server_availability_zone=ZONE_1,\
            __meta_ionos_server_boot_cdrom_id=c1,\
            __meta_ionos_server_boot_image_id=i1,__meta_ionos_server_boot_volume_id=v1,\
            __meta_ionos_server_cpu_family=INTEL_XEON,__meta_ionos_server_id=s1,\
            __meta_ionos_server_ip=,192.0.2.1,2001:db8::1,10.0.0.1,,__meta_ionos_server_lifecycle=AVAILABLE,\
            __meta_ionos_server_name=one,__meta_ionos_server_nic_ip_lan_1=,10.0.0.1,,\
            __meta_ionos_server_nic_ip_unnamed=,192.0.2.1,2001:db8::1,,__meta_ionos_server_servers_id=d1/servers,\
            __meta_ionos_server_state=RUNNING,__meta_ionos_server_type=ENTERPRISE}"
        ]
    );
    let error = targets("old").await.unwrap_err().to_string();
    assert!(
        error.contains("401 Unauthorized: ") && !error.contains("old"),
        "{error}"
    );
}
