//! Tests against a fake server. Its responses follow the documentation of Compute Engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use url::Url;

use super::{DEFINITION, Gce};
use crate::common::clouds::environment::Environment;
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, Server, serve_api, shorten};

const MACHINE_TOKEN: &str = "/computeMetadata/v1/instance/service-accounts/default/token\
    ?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcompute.readonly";

const KEY: &str = include_str!("../../../wire/testdata/service_account.pem");

const FIRST: &str = r#"{"items": [{"id": "42", "name": "one", "zone": "zones/a", "status": "RUNNING",
    "machineType": "types/n2", "tags": {"items": ["http", "shop"]}, "labels": {"app-name": "shop"},
    "metadata": {"items": [{"key": "ssh.keys", "value": "k"}, {"key": "none"}]},
    "networkInterfaces": [{"name": "nic0", "network": "nets/default", "subnetwork": "subnets/a",
    "networkIP": "10.0.0.1",
      "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "natIP": "192.0.2.1"}]}, {"name": "nic1", "networkIP": "10.1.0.1"}]},
    {"id": "43", "name": "off the network"}], "nextPageToken": "more"}"#;

/// Starts a fake API with a token server. Counts the issued tokens. The API rejects the first token as expired.
async fn google() -> (Url, Arc<AtomicUsize>, Server) {
    let token_count = Arc::new(AtomicUsize::new(0));
    let tokens = token_count.clone();
    let (url, server) = serve_api(move |request, body| {
        let header = |name: &str| request.headers.get(name).map_or("", |value| value.to_str().unwrap());
        let token = || {
            let number = tokens.fetch_add(1, Ordering::SeqCst);
            json!({ "access_token": format!("token{number}"), "expires_in": 3600 }).to_string()
        };
        let text = match request.uri.to_string().as_str() {
            "/token" => {
                let form: Vec<(String, String)> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
                if form[0].1 == "refresh_token" {
                    assert_eq!(
                        body,
                        "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r"
                    );
                } else {
                    let claims = form[1].1.split('.').nth(1).unwrap();
                    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
                    assert_eq!(claims["iss"], "reader@example.com");
                    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/compute.readonly");
                }
                token()
            }
            MACHINE_TOKEN => {
                assert_eq!(header("metadata-flavor"), "Google");
                token()
            }
            _ if header("authorization") == "Bearer token0" => {
                let text = "{\n \"error\": {\"code\": 401, \"message\": \"expired\"}}";
                return (StatusCode::UNAUTHORIZED, text.to_owned());
            }
            "/projects/shop/zones/a/instances?filter=status+%3D+RUNNING" => FIRST.to_owned(),
            "/projects/shop/zones/a/instances?filter=status+%3D+RUNNING&pageToken=more" => "{}".to_owned(),
            other => panic!("unexpected request: {other}"),
        };
        (StatusCode::OK, text)
    })
    .await;
    (url, token_count, server)
}

fn gce(url: &Url, environment: Environment) -> Gce {
    let body = Body::new()
        .text("project", "shop")
        .text("zone", "a")
        .text("filter", "status = RUNNING");
    Gce::with_url(url, &body.arguments(&DEFINITION), &Recorder::context(), environment).unwrap()
}

#[tokio::test]
async fn instances_of_all_pages_become_targets_and_an_expired_token_is_renewed() {
    let (url, token_count, _server) = google().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("account.json");
    let account = json!({
        "type": "service_account", "project_id": "shop", "client_email": "reader@example.com", "private_key": KEY,
        "private_key_id": "k1", "token_uri": url.join("token").unwrap().as_str(),
    });
    std::fs::write(&path, account.to_string()).unwrap();
    let gce = gce(
        &url,
        Environment::from([("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())]),
    );
    let error = gce.targets().await.unwrap_err().to_string();
    let expected = "401 Unauthorized: { \"error\": {\"code\": 401, \"message\": \"expired\"}}";
    assert!(error.starts_with("request to ") && error.ends_with(expected), "{error}");
    assert_eq!(
        shorten(&gce.targets().await.unwrap()),
        [
            "{__address__=10.0.0.1:80,__meta_gce_instance_id=42,__meta_gce_instance_name=one,\
            __meta_gce_instance_status=RUNNING,__meta_gce_interface_ipv4_nic0=10.0.0.1,\
            __meta_gce_interface_ipv4_nic1=10.1.0.1,__meta_gce_label_app_name=shop,__meta_gce_machine_type=types/n2,\
            __meta_gce_metadata_ssh_keys=k,__meta_gce_network=nets/default,__meta_gce_private_ip=10.0.0.1,\
            __meta_gce_project=shop,__meta_gce_public_ip=192.0.2.1,__meta_gce_subnetwork=subnets/a,\
            __meta_gce_tags=,http,shop,,__meta_gce_zone=zones/a}"
        ]
    );
    assert_eq!(
        token_count.load(Ordering::SeqCst),
        2,
        "one token for the rejected request, and one for all pages"
    );
}

#[tokio::test]
async fn the_user_s_file_and_the_machine_give_tokens_too() {
    let (url, token_count, _server) = google().await;
    token_count.store(1, Ordering::SeqCst);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("application_default_credentials.json");
    let host = format!("127.0.0.1:{}", url.port().unwrap());
    let environment = Environment::from([
        ("CLOUDSDK_CONFIG", folder.path().to_str().unwrap()),
        ("GCE_METADATA_HOST", &host),
    ]);
    assert_eq!(gce(&url, environment.clone()).targets().await.unwrap().len(), 1);
    let token_uri = url.join("token").unwrap().to_string();
    let user = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": token_uri,
    });
    std::fs::write(&path, user.to_string()).unwrap();
    assert_eq!(gce(&url, environment.clone()).targets().await.unwrap().len(), 1);
    std::fs::write(&path, r#"{"type": "external_account"}"#).unwrap();
    let error = gce(&url, environment.clone()).targets().await.unwrap_err().to_string();
    assert!(
        error.ends_with("is of the type external_account, which is not supported"),
        "{error}"
    );
    std::fs::write(
        &path,
        r#"{"type": "service_account", "client_email": "x", "private_key": "hush"}"#,
    )
    .unwrap();
    let error = gce(&url, environment).targets().await.unwrap_err().to_string();
    assert!(
        error.contains("the private key is not PEM") && !error.contains("hush"),
        "{error}"
    );
}
