//! Tests against a fake server. Its responses follow DigitalOcean's API documentation.

use axum::http::StatusCode;

use super::{DEFINITION, DigitalOcean};
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, serve_api, shorten};
use alluvium_lang::value::Value;

#[tokio::test]
async fn droplets_of_all_pages_become_targets_and_a_wrong_token_is_told() {
    let (url, _server) = serve_api(|request, _| {
        if request.headers["authorization"] != "Bearer hush" {
            let text = r#"{"id": "unauthorized", "message": "Unable to authenticate you"}"#;
            return (StatusCode::UNAUTHORIZED, text.to_owned());
        }
        let text = match request.uri.to_string().as_str() {
            "/v2/droplets?page=1&per_page=200" => {
                r#"{"droplets": [{"id": 42, "name": "one", "size_slug": "s-1vcpu", "status": "active", "vpc_uuid": "v1",
                "image": {"slug": "debian-12", "name": "12 x64"}, "region": {"slug": "fra1"}, "features": ["ipv6"],
                "tags": ["shop", "web"], "networks": {"v4": [{"ip_address": "10.0.0.1", "type": "private"},
                {"ip_address": "192.0.2.1", "type": "public"}], "v6": [{"ip_address": "2001:db8::1",
                "type": "public"}]}}],
                "links": {"pages": {"next": "https://api.digitalocean.com/v2/droplets?page=2"}}}"#
            }
            "/v2/droplets?page=2&per_page=200" => {
                r#"{"droplets": [{"id": 43, "networks": {"v4": []}}, {"id": 44, "image": {"slug": null},
                "networks": {"v4": [{"ip_address": "10.0.0.2", "type": "private"}]}}], "links": {}}"#
            }
            other => panic!("unexpected request: {other}"),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let targets = async |token: &str| {
        let body = Body::new().with("bearer_token", Value::Secret(token.into()));
        DigitalOcean::with_url(&url, &body.arguments(&DEFINITION), &Recorder::context())
            .unwrap()
            .targets()
            .await
    };
    assert_eq!(
        shorten(&targets("hush").await.unwrap()),
        [
            "{__address__=192.0.2.1:80,__meta_digitalocean_droplet_id=42,__meta_digitalocean_droplet_name=one,\
            __meta_digitalocean_features=,ipv6,,__meta_digitalocean_image=debian-12,\
            __meta_digitalocean_image_name=12 x64,__meta_digitalocean_private_ipv4=10.0.0.1,\
            __meta_digitalocean_public_ipv4=192.0.2.1,__meta_digitalocean_public_ipv6=2001:db8::1,\
            __meta_digitalocean_region=fra1,__meta_digitalocean_size=s-1vcpu,__meta_digitalocean_status=active,\
            __meta_digitalocean_tags=,shop,web,,__meta_digitalocean_vpc=v1}",
            "{__address__=:80,__meta_digitalocean_droplet_id=44,__meta_digitalocean_private_ipv4=10.0.0.2}",
        ]
    );
    let error = targets("old").await.unwrap_err().to_string();
    let expected = r#"401 Unauthorized: {"id": "unauthorized", "message": "Unable to authenticate you"}"#;
    assert!(error.ends_with(expected) && !error.contains("old"), "{error}");
}

#[test]
fn a_token_is_needed() {
    let error = Body::new().read(&DEFINITION).unwrap_err();
    assert!(
        error.contains("exactly one of bearer_token and bearer_token_file must be given"),
        "{error}"
    );
}
