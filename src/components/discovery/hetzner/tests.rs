//! Tests against fake servers. Their responses follow the documentation of Hetzner's APIs.

use axum::http::StatusCode;

use super::{DEFINITION, Hetzner};
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, serve_api, shorten};
use alluvium_lang::value::Value;

fn hetzner(url: &url::Url, body: &Body) -> Hetzner {
    Hetzner::with_url(url, &body.arguments(&DEFINITION), &Recorder::context()).unwrap()
}

#[tokio::test]
async fn servers_of_the_cloud_know_their_networks() {
    let (url, _server) = serve_api(|request, _| {
        assert_eq!(request.headers["authorization"], "Bearer hush");
        let text = match request.uri.to_string().as_str() {
            "/servers?page=1&per_page=50" => {
                r#"{"servers": [{"id": 42, "name": "one", "status": "running",
                "public_net": {"ipv4": {"ip": "192.0.2.1"}, "ipv6": {"ip": "2001:db8::/64"}},
                "private_net": [{"network": 7, "ip": "10.0.0.1"}, {"network": 8, "ip": "10.8.0.1"}],
                "server_type": {"name": "cx22", "cores": 2, "cpu_type": "shared", "memory": 4.0, "disk": 40},
                "datacenter": {"name": "fsn1-dc14", "location": {"name": "fsn1", "network_zone": "eu-central"}},
                "image": {"name": "debian-12", "description": "Debian 12", "os_flavor": "debian", "os_version": "12"},
                "labels": {"app.name": "shop"}}], "meta": {"pagination": {"page": 1, "next_page": 2}}}"#
            }
            "/servers?page=2&per_page=50" => {
                r#"{"servers": [{"id": 43, "public_net": {"ipv4": null}, "image": null,
                "private_net": [{"network": 7, "ip": "10.0.0.2"}]}, {"id": 44}],
                "meta": {"pagination": {"next_page": null}}}"#
            }
            "/networks?page=1&per_page=50" => r#"{"networks": [{"id": 7, "name": "my-net"}]}"#,
            other => panic!("unexpected request: {other}"),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let body = Body::new()
        .text("role", "hcloud")
        .with("bearer_token", Value::Secret("hush".into()));
    assert_eq!(
        shorten(&hetzner(&url, &body).targets().await.unwrap()),
        [
            "{__address__=192.0.2.1:80,__meta_hetzner_datacenter=fsn1-dc14,__meta_hetzner_hcloud_cpu_cores=2,\
            __meta_hetzner_hcloud_cpu_type=shared,__meta_hetzner_hcloud_datacenter_location=fsn1,\
            __meta_hetzner_hcloud_datacenter_location_network_zone=eu-central,__meta_hetzner_hcloud_disk_size_gb=40,\
            __meta_hetzner_hcloud_image_description=Debian 12,__meta_hetzner_hcloud_image_name=debian-12,\
            __meta_hetzner_hcloud_image_os_flavor=debian,__meta_hetzner_hcloud_image_os_version=12,\
            __meta_hetzner_hcloud_label_app_name=shop,__meta_hetzner_hcloud_labelpresent_app_name=true,\
            __meta_hetzner_hcloud_location=fsn1,__meta_hetzner_hcloud_location_network_zone=eu-central,\
            __meta_hetzner_hcloud_memory_size_gb=4,__meta_hetzner_hcloud_private_ipv4_my_net=10.0.0.1,\
            __meta_hetzner_hcloud_server_type=cx22,__meta_hetzner_public_ipv4=192.0.2.1,\
            __meta_hetzner_public_ipv6_network=2001:db8::/64,__meta_hetzner_role=hcloud,__meta_hetzner_server_id=42,\
            __meta_hetzner_server_name=one,__meta_hetzner_server_status=running}",
            "{__address__=10.0.0.2:80,__meta_hetzner_hcloud_private_ipv4_my_net=10.0.0.2,__meta_hetzner_role=hcloud,\
            __meta_hetzner_server_id=43}",
        ]
    );
}

#[tokio::test]
async fn servers_of_robot_become_targets_and_a_wrong_password_is_told() {
    let (url, _server) = serve_api(|request, _| {
        // The basic authentication of the user `me` with the password `hush`.
        if request.headers["authorization"] != "Basic bWU6aHVzaA==" {
            let text = r#"{"error": {"status": 401, "code": "UNAUTHORIZED", "message": "Unauthorized"}}"#;
            return (StatusCode::UNAUTHORIZED, text.to_owned());
        }
        assert_eq!(request.uri, "/server");
        let text = r#"[{"server": {"server_ip": "192.0.2.1", "server_number": 321, "server_name": "one",
        "dc": "FSN1-DC5",
            "status": "ready", "product": "AX41", "cancelled": false,
            "subnet": [{"ip": "192.0.2.8", "mask": "29"}, {"ip": "2001:db8::", "mask": "64"}]}}]"#;
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let body = |password: &str| {
        let basic = Body::new()
            .text("username", "me")
            .with("password", Value::Secret(password.into()));
        Body::new().text("role", "robot").block("basic_auth", basic)
    };
    assert_eq!(
        shorten(&hetzner(&url, &body("hush")).targets().await.unwrap()),
        [
            "{__address__=192.0.2.1:80,__meta_hetzner_datacenter=fsn1-dc5,__meta_hetzner_public_ipv4=192.0.2.1,\
            __meta_hetzner_public_ipv6_network=2001:db8::/64,__meta_hetzner_robot_cancelled=false,\
            __meta_hetzner_robot_datacenter=fsn1-dc5,__meta_hetzner_robot_product=AX41,__meta_hetzner_role=robot,\
            __meta_hetzner_server_id=321,__meta_hetzner_server_name=one,__meta_hetzner_server_status=ready}"
        ]
    );
    let error = hetzner(&url, &body("wrong")).targets().await.unwrap_err().to_string();
    assert!(
        error.contains("401 Unauthorized: ") && !error.contains("wrong"),
        "{error}"
    );
}
