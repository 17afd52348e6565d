//! Tests against a fake Scaleway API. Its responses follow the documentation of the API.

use axum::http::StatusCode;
use url::Url;

use super::{DEFINITION, Scaleway};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, serve_api, shorten};
use alluvium_lang::value::Value;

const PRIVATE_IPS: &str = "/ipam/v1/regions/fr-par/ips\
    ?resource_types=instance_private_nic&resource_ids=nic1&page=1&page_size=100";

fn body(url: &Url, role: &str) -> Body {
    Body::new()
        .text("api_url", url.as_str())
        .text("access_key", "SCW1")
        .text("project_id", "p1")
        .text("name_filter", "web")
        .with("tags_filter", Value::array([Value::string("a"), Value::string("b")]))
        .text("role", role)
}

async fn targets(body: Body) -> Result<Vec<String>, DiscoveryError> {
    let scaleway = Scaleway::new(&body.arguments(&DEFINITION), &Recorder::context()).unwrap();
    Ok(shorten(&scaleway.targets().await?))
}

#[tokio::test]
async fn instances_are_reached_by_their_first_good_address() {
    let (url, _server) = serve_api(|request, _| {
        if request.headers["x-auth-token"] != "hush" {
            let text = r#"{"type": "denied_authentication", "message": "authentication is denied"}"#;
            return (StatusCode::UNAUTHORIZED, text.to_owned());
        }
        let text = match request.uri.to_string().as_str() {
            "/instance/v1/zones/fr-par-1/servers?project=p1&name=web&tags=a%2Cb&page=1&per_page=100" => {
                let plain = vec!["{\"id\": \"without address\"}"; 99].join(",");
                format!(
                    r#"{{"servers": [{plain}, {{"id": "i1", "name": "one", "hostname": "one", "boot_type": "local",
                    "organization": "o1", "project": "p1", "state": "running", "commercial_type": "DEV1-S",
                    "zone": "fr-par-1", "tags": ["a", "b"], "private_ip": null, "ipv6": {{"address": "2001:db8::1"}},
                    "public_ip": {{"address": "192.0.2.1", "family": "inet"}},
                    "public_ips": [{{"address": "192.0.2.1", "family": "inet"}}, {{"address": "2001:db8::1",
                    "family": "inet6"}}],
                    "image": {{"id": "im1", "name": "Debian", "arch": "x86_64"}},
                    "location": {{"cluster_id": "c", "hypervisor_id": "h", "node_id": "n"}},
                    "security_group": {{"id": "sg", "name": "default"}}}}]}}"#
                )
            }
            "/instance/v1/zones/fr-par-1/servers?project=p1&name=web&tags=a%2Cb&page=2&per_page=100" => {
                r#"{"servers": [{"id": "i2", "private_nics": [{"id": "nic1"}]}]}"#.to_owned()
            }
            PRIVATE_IPS => r#"{"ips": [{"address": "fd00::1/64", "is_ipv6": true, "resource": {"id": "nic1"}},
                {"address": "10.0.0.2/22", "is_ipv6": false, "resource": {"id": "nic1"}}]}"#
                .to_owned(),
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text)
    })
    .await;
    let with_key = |key: &str| body(&url, "instance").with("secret_key", Value::Secret(key.into()));
    assert_eq!(
        targets(with_key("hush")).await.unwrap(),
        [
            "{__address__=192.0.2.1:80,__meta_scaleway_instance_boot_type=local,__meta_scaleway_instance_hostname=one,\
            __meta_scaleway_instance_id=i1,__meta_scaleway_instance_image_arch=x86_64,\
            __meta_scaleway_instance_image_id=im1,__meta_scaleway_instance_image_name=Debian,\
            __meta_scaleway_instance_location_cluster_id=c,__meta_scaleway_instance_location_hypervisor_id=h,\
            __meta_scaleway_instance_location_node_id=n,__meta_scaleway_instance_name=one,\
            __meta_scaleway_instance_organization_id=o1,__meta_scaleway_instance_project_id=p1,\
            __meta_scaleway_instance_public_ipv4=192.0.2.1,\
            __meta_scaleway_instance_public_ipv4_addresses=,192.0.2.1,,\
            __meta_scaleway_instance_public_ipv6=2001:db8::1,\
            __meta_scaleway_instance_public_ipv6_addresses=,2001:db8::1,,__meta_scaleway_instance_region=fr-par,\
            __meta_scaleway_instance_security_group_id=sg,__meta_scaleway_instance_security_group_name=default,\
            __meta_scaleway_instance_status=running,__meta_scaleway_instance_tags=,a,b,,\
            __meta_scaleway_instance_type=DEV1-S,__meta_scaleway_instance_zone=fr-par-1}",
            "{__address__=10.0.0.2:80,__meta_scaleway_instance_id=i2,__meta_scaleway_instance_private_ipv4=10.0.0.2,\
            __meta_scaleway_instance_region=fr-par}",
        ]
    );
    let error = targets(with_key("wrong")).await.unwrap_err().to_string();
    assert!(
        error.contains("denied_authentication") && !error.contains("wrong"),
        "{error}"
    );
}

#[tokio::test]
async fn bare_metal_servers_know_their_offer_and_system() {
    let (url, _server) = serve_api(|request, _| {
        assert_eq!(request.headers["x-auth-token"], "hush");
        let text = match request.uri.to_string().as_str() {
            "/baremetal/v1/zones/fr-par-1/servers?project_id=p1&name=web&tags=a&tags=b&page=1&page_size=100" => {
                r#"{"servers": [{"id": "b1", "name": "metal", "zone": "fr-par-1", "status": "ready", "project_id": "p1",
                "offer_id": "of2", "install": {"os_id": "os1"}, "tags": ["a"],
                "ips": [{"version": "IPv6", "address": "2001:db8::1"}, {"version": "IPv4", "address": "192.0.2.1"}]},
                {"id": "b2", "ips": []}], "total_count": 2}"#
            }
            "/baremetal/v1/zones/fr-par-1/offers?page=1&page_size=100" => {
                r#"{"offers": [{"id": "of1", "name": "X"}, {"id": "of2", "name": "EM-A210R"}]}"#
            }
            "/baremetal/v1/zones/fr-par-1/os?page=1&page_size=100" => {
                r#"{"os": [{"id": "os1", "name": "Debian", "version": "12"}]}"#
            }
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "hush\n").unwrap();
    let body = body(&url, "baremetal").text("secret_key_file", file.to_str().unwrap());
    assert_eq!(
        targets(body).await.unwrap(),
        [
            "{__address__=192.0.2.1:80,__meta_scaleway_baremetal_id=b1,__meta_scaleway_baremetal_name=metal,\
            __meta_scaleway_baremetal_os_name=Debian,__meta_scaleway_baremetal_os_version=12,\
            __meta_scaleway_baremetal_project_id=p1,__meta_scaleway_baremetal_public_ipv4=192.0.2.1,\
            __meta_scaleway_baremetal_public_ipv6=2001:db8::1,__meta_scaleway_baremetal_status=ready,\
            __meta_scaleway_baremetal_tags=,a,,__meta_scaleway_baremetal_type=EM-A210R,\
            __meta_scaleway_baremetal_zone=fr-par-1}"
        ]
    );
}
