//! Tests against a fake Linode API. Its responses follow the documentation of the API.

use axum::http::StatusCode;

use super::{DEFINITION, Linode};
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, serve_api, shorten};
use alluvium_lang::value::Value;

#[tokio::test]
async fn instances_of_all_pages_get_their_addresses() {
    let (url, _server) = serve_api(|request, _| {
        if request.headers["authorization"] != "Bearer hush" {
            let text = r#"{"errors": [{"reason": "Invalid Token"}]}"#;
            return (StatusCode::UNAUTHORIZED, text.to_owned());
        }
        assert_eq!(request.headers["x-filter"], r#"{"region":"eu-central"}"#);
        let text = match request.uri.to_string().as_str() {
            "/linode/instances?page=1&page_size=500" => {
                r#"{"page": 1, "pages": 2, "data": [{"id": 42, "label": "one", "image": "linode/debian12", "group": "g",
                "region": "eu-central", "type": "g6-nanode-1", "status": "running", "hypervisor": "kvm",
                "tags": ["shop", "web"], "backups": {"enabled": true}, "ipv6": "2001:db8::1/128",
                "specs": {"disk": 1, "memory": 1024, "vcpus": 1, "gpus": 0, "transfer": 1000},
                "ipv4": ["192.0.2.1", "10.0.0.1", "192.0.2.2"]}]}"#
            }
            "/linode/instances?page=2&page_size=500" => {
                r#"{"page": 2, "pages": 2, "data": [{"id": 43, "ipv4": []}, {"id": 44, "ipv4": ["10.0.0.9"],
                "ipv6": null}]}"#
            }
            "/networking/ips?page=1&page_size=500" => {
                r#"{"page": 1, "pages": 1, "data": [{"address": "192.0.2.1", "public": true, "rdns": "one.example.com"},
                {"address": "10.0.0.1", "public": false, "rdns": null}, {"address": "192.0.2.2", "public": true},
                {"address": "2001:db8::1", "public": true, "rdns": "null"}]}"#
            }
            "/networking/ipv6/ranges?page=1&page_size=500" => {
                r#"{"page": 1, "pages": 1, "data": [{"range": "2001:db8:1::", "prefix": 64,
                "route_target": "2001:db8::1"}]}"#
            }
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let targets = async |token: &str| {
        let body = Body::new()
            .text("region", "eu-central")
            .with("bearer_token", Value::Secret(token.into()));
        Linode::with_url(&url, &body.arguments(&DEFINITION), &Recorder::context())
            .unwrap()
            .targets()
            .await
    };
    assert_eq!(
        shorten(&targets("hush").await.unwrap()),
        [
            "{__address__=192.0.2.1:80,__meta_linode_backups=enabled,__meta_linode_extra_ips=,192.0.2.2,,\
            __meta_linode_gpus=0,__meta_linode_group=g,__meta_linode_hypervisor=kvm,\
            __meta_linode_image=linode/debian12,\
            __meta_linode_instance_id=42,__meta_linode_instance_label=one,__meta_linode_ipv6_ranges=,2001:db8:1::/64,,\
            __meta_linode_private_ipv4=10.0.0.1,__meta_linode_public_ipv4=192.0.2.1,\
            __meta_linode_public_ipv4_rdns=one.example.com,__meta_linode_public_ipv6=2001:db8::1,\
            __meta_linode_region=eu-central,__meta_linode_specs_disk_bytes=1048576,\
            __meta_linode_specs_memory_bytes=1073741824,__meta_linode_specs_transfer_bytes=1048576000,\
            __meta_linode_specs_vcpus=1,__meta_linode_status=running,__meta_linode_tags=,shop,web,,\
            __meta_linode_type=g6-nanode-1}",
            "{__address__=:80,__meta_linode_backups=disabled,__meta_linode_instance_id=44}",
        ]
    );
    let error = targets("old").await.unwrap_err().to_string();
    assert!(
        error.ends_with(r#"401 Unauthorized: {"errors": [{"reason": "Invalid Token"}]}"#),
        "{error}"
    );
}
