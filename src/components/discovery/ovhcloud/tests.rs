//! Tests against a fake OVHcloud API, which checks the signatures of requests. Its responses follow the documentation
//! of the API.

use axum::http::StatusCode;
use chrono::Utc;
use url::Url;

use super::{DEFINITION, Ovhcloud};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, Server, serve_api, shorten};
use alluvium_lang::value::Value;

/// Starts the API. Its clock is an hour ahead.
async fn ovh() -> (Url, Server) {
    serve_api(|request, _| {
        let (uri, header) = (request.uri.to_string(), |name: &str| {
            request.headers[name].to_str().unwrap()
        });
        let now = Utc::now().timestamp() + 3600;
        if uri == "/1.0/auth/time" {
            return (StatusCode::OK, now.to_string());
        }
        assert_eq!(
            (header("x-ovh-application"), header("x-ovh-consumer")),
            ("app", "consumer")
        );
        let time = header("x-ovh-timestamp");
        assert!((time.parse::<i64>().unwrap() - now).abs() < 600, "{time}");
        let text = format!("hush+consumer+GET+http://{}{uri}++{time}", header("host"));
        let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if header("x-ovh-signature") != format!("$1${digest}") {
            let text = r#"{"class": "Client::Forbidden", "message": "Invalid signature"}"#;
            return (StatusCode::FORBIDDEN, text.to_owned());
        }
        let text = match uri.as_str() {
            "/1.0/dedicated/server" => r#"["one", "broken"]"#,
            "/1.0/dedicated/server/one" => {
                r#"{"name": "one", "state": "ok", "commercialRange": "advance", "linkSpeed": 1000, "rack": "R1",
                "noIntervention": false, "os": "debian12", "supportLevel": "pro", "serverId": 42,
                "reverse": "one.ovh.net",
                "datacenter": "gra3"}"#
            }
            "/1.0/dedicated/server/one/ips" => r#"["192.0.2.1/32", "2001:db8::/64", "198.51.100.0/29"]"#,
            "/1.0/dedicated/server/broken" => r#"{"name": "broken"}"#,
            "/1.0/dedicated/server/broken/ips" => "[]",
            "/1.0/vps" => r#"["vps-1/2"]"#,
            "/1.0/vps/vps-1%2F2" => {
                r#"{"name": "vps-1", "displayName": "My VPS", "zone": "gra", "cluster": "c1", "state": "running",
                "netbootMode": "local", "memoryLimit": 2048, "offerType": "ssd", "vcore": 1, "model": {"offer": "VPS",
                "datacenter": ["gra", "sbg"], "vcore": 2, "maximumAdditionnalIp": 16, "version": "2019v1", "name": "m",
                "disk": 40, "memory": 4096}}"#
            }
            "/1.0/vps/vps-1%2F2/ips" => r#"["2001:db8::1"]"#,
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await
}

fn body(endpoint: &str, service: &str, secret: &str) -> Body {
    Body::new()
        .text("endpoint", endpoint)
        .text("application_key", "app")
        .with("application_secret", Value::Secret(secret.into()))
        .with("consumer_key", Value::Secret("consumer".into()))
        .text("service", service)
}

async fn targets(url: &Url, service: &str, secret: &str) -> Result<Vec<String>, DiscoveryError> {
    let body = body(url.join("1.0").unwrap().as_str(), service, secret);
    let ovhcloud = Ovhcloud::new(&body.arguments(&DEFINITION), &Recorder::context()).unwrap();
    Ok(shorten(&ovhcloud.targets().await?))
}

#[tokio::test]
async fn servers_are_asked_for_with_signatures() {
    let (url, _server) = ovh().await;
    assert_eq!(
        targets(&url, "dedicated_server", "hush").await.unwrap(),
        [
            "{__address__=192.0.2.1,__meta_ovhcloud_dedicated_server_commercial_range=advance,\
            __meta_ovhcloud_dedicated_server_datacenter=gra3,__meta_ovhcloud_dedicated_server_ipv4=192.0.2.1,\
            __meta_ovhcloud_dedicated_server_link_speed=1000,__meta_ovhcloud_dedicated_server_name=one,\
            __meta_ovhcloud_dedicated_server_no_intervention=false,__meta_ovhcloud_dedicated_server_os=debian12,\
            __meta_ovhcloud_dedicated_server_rack=R1,__meta_ovhcloud_dedicated_server_reverse=one.ovh.net,\
            __meta_ovhcloud_dedicated_server_server_id=42,__meta_ovhcloud_dedicated_server_state=ok,\
            __meta_ovhcloud_dedicated_server_support_level=pro,instance=one}"
        ]
    );
    assert_eq!(
        targets(&url, "vps", "hush").await.unwrap(),
        [
            "{__address__=2001:db8::1,__meta_ovhcloud_vps_cluster=c1,__meta_ovhcloud_vps_datacenter=[gra sbg],\
            __meta_ovhcloud_vps_disk=40,__meta_ovhcloud_vps_display_name=My VPS,__meta_ovhcloud_vps_ipv6=2001:db8::1,\
            __meta_ovhcloud_vps_maximum_additional_ip=16,__meta_ovhcloud_vps_memory=4096,\
            __meta_ovhcloud_vps_memory_limit=2048,__meta_ovhcloud_vps_model_name=m,__meta_ovhcloud_vps_model_vcore=2,\
            __meta_ovhcloud_vps_name=vps-1,__meta_ovhcloud_vps_netboot_mode=local,__meta_ovhcloud_vps_offer=VPS,\
            __meta_ovhcloud_vps_offer_type=ssd,__meta_ovhcloud_vps_state=running,__meta_ovhcloud_vps_vcore=1,\
            __meta_ovhcloud_vps_version=2019v1,__meta_ovhcloud_vps_zone=gra,instance=vps-1}"
        ]
    );
    let error = targets(&url, "vps", "wrong").await.unwrap_err().to_string();
    assert!(
        error.contains("403 Forbidden: ") && error.contains("Invalid signature"),
        "{error}"
    );
    assert!(!error.contains("wrong"), "{error}");
}

#[tokio::test]
async fn keys_may_end_with_the_line_break_of_their_file() {
    let (url, _server) = ovh().await;
    let targets = async |secret: &str| {
        let body = Body::new()
            .text("endpoint", url.join("1.0").unwrap().as_str())
            .text("application_key", "app\r\n")
            .with("application_secret", Value::Secret(secret.into()))
            .with("consumer_key", Value::Secret("consumer\n".into()))
            .text("service", "vps");
        let ovhcloud = Ovhcloud::new(&body.arguments(&DEFINITION), &Recorder::context()).unwrap();
        ovhcloud.targets().await
    };
    assert_eq!(targets("hush\n").await.unwrap().len(), 1);
    // A space is part of the secret, so the signature differs.
    assert!(
        targets("hush ")
            .await
            .unwrap_err()
            .to_string()
            .contains("403 Forbidden")
    );
}

#[test]
fn an_unknown_endpoint_is_refused() {
    let error = body("ovh-mars", "vps", "hush").read(&DEFINITION).unwrap_err();
    assert!(
        error.starts_with("endpoint: unknown endpoint \"ovh-mars\": must be a URL or one of ovh-eu, "),
        "{error}"
    );
}
