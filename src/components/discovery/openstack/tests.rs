//! Tests against a fake OpenStack cloud. Its responses follow the documentation of Keystone, Nova and Neutron.

use std::sync::Arc;

use axum::Router;
use axum::body::Body as HttpBody;
use axum::http::Request;
use parking_lot::Mutex;

use super::{DEFINITION, OpenStack};
use crate::common::clouds::environment::Environment;
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, Server, serve, shorten};
use alluvium_lang::value::Value;

/// The requests that the cloud has received, oldest first.
type Asked = Arc<Mutex<Vec<String>>>;

/// Starts the cloud. It issues a new token at each login and rejects the first token.
async fn cloud() -> (String, Asked, Server) {
    let requests: Asked = Arc::default();
    let log = requests.clone();
    let router =
        Router::new().fallback(move |request: Request<HttpBody>| {
            let log = log.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                let line = format!("{} {}", head.uri, String::from_utf8_lossy(&body));
                log.lock().push(line.trim().to_owned());
                let host = head.headers["host"].to_str().unwrap();
                let header = |name: &str| head.headers.get(name).map_or("", |value| value.to_str().unwrap());
                let (mut token, mut status) = (String::new(), 200);
                let text = match head.uri.to_string().as_str() {
                "/identity/v3/auth/tokens" if line.contains("wrong") => {
                    status = 401;
                    r#"{"error": {"code": 401, "message": "The request you have made requires authentication."}}"#
                        .to_owned()
                }
                "/identity/v3/auth/tokens" => {
                    token = format!("token{}", log.lock().iter().filter(|line| line.contains("auth/tokens")).count());
                    status = 201;
                    let endpoint = |region: &str, interface: &str, path: &str| {
                        format!(r#"{{"interface": "{interface}", "region_id": "{region}",
                        "url": "http://{host}/{path}"}}"#)
                    };
                    format!(
                        r#"{{"token": {{"expires_at": "2999-01-01T00:00:00.000000Z", "catalog": [
                        {{"type": "compute", "endpoints": [{}, {}, {}]}}, {{"type": "network",
                        "endpoints": [{}]}}]}}}}"#,
                        endpoint("two", "public", "other"),
                        endpoint("one", "internal", "inside"),
                        endpoint("one", "public", "compute/v2.1"),
                        endpoint("one", "public", "network"),
                    )
                }
                _ if header("x-auth-token") == "token1" => {
                    status = 401;
                    r#"{"error": {"message": "expired"}}"#.to_owned()
                }
                "/network/v2.0/ports" => r#"{"ports": [{"id": "p1", "device_id": "s1"}]}"#.to_owned(),
                "/network/v2.0/floatingips" => r#"{"floatingips": [{"port_id": "p1", "fixed_ip_address": "10.0.0.1",
                    "floating_ip_address": "192.0.2.1"}, {"port_id": null, "floating_ip_address": "192.0.2.9"}]}"#
                    .to_owned(),
                "/compute/v2.1/servers/detail?all_tenants=true" => r#"{"servers": [{"id": "s1", "name": "one",
                    "status": "ACTIVE", "tenant_id": "t1", "user_id": "u1", "flavor": {"id": "f1"},
                    "image": {"id": "i1"},
                    "metadata": {"app.name": "shop"}, "addresses": {"private": [{"addr": "10.0.0.1"},
                    {"addr": "192.0.2.1"}],
                    "second": [{"addr": "2001:db8::1"}]}}],
                    "servers_links": [{"rel": "next",
                    "href": "http://internal.name/servers/detail?all_tenants=true&marker=s1"}]}"#
                    .to_owned(),
                "/compute/v2.1/servers/detail?all_tenants=true&marker=s1" => {
                    r#"{"servers": [{"id": "s2", "flavor": {"original_name": "small"}, "image": "", "addresses": {}}]}"#
                        .to_owned()
                }
                "/inside/os-hypervisors/detail" => r#"{"hypervisors": [{"id": 7, "host_ip": "10.9.0.1", "state": "up",
                    "status": "enabled", "hypervisor_type": "QEMU", "hypervisor_hostname": "node1"}]}"#
                    .to_owned(),
                other => panic!("asked {other}"),
            };
                axum::http::Response::builder()
                    .status(status)
                    .header("x-subject-token", token)
                    .body(HttpBody::from(text))
                    .unwrap()
            }
        });
    let (url, server) = serve(router).await;
    (url, requests, server)
}

fn body(url: &str, role: &str, password: &str) -> Body {
    Body::new()
        .text("identity_endpoint", &format!("{url}/identity"))
        .text("username", "me")
        .with("password", Value::Secret(password.into()))
        .text("domain_name", "Default")
        .text("project_name", "shop")
        .text("region", "one")
        .text("role", role)
}

fn openstack(body: &Body, environment: &Environment) -> OpenStack {
    OpenStack::within(&body.arguments(&DEFINITION), &Recorder::context(), environment).unwrap()
}

#[tokio::test]
async fn addresses_of_instances_become_targets_and_a_revoked_token_is_renewed() {
    let (url, requests, _server) = cloud().await;
    let body = body(&url, "instance", "hush").with("all_tenants", Value::Bool(true));
    let openstack = openstack(&body, &Environment::from([]));
    let error = openstack.targets().await.unwrap_err().to_string();
    assert!(
        error.ends_with(r#"401 Unauthorized: {"error": {"message": "expired"}}"#),
        "{error}"
    );
    let labels = "__meta_openstack_instance_flavor=f1,__meta_openstack_instance_id=s1,\
        __meta_openstack_instance_image=i1,__meta_openstack_instance_name=one,__meta_openstack_instance_status=ACTIVE";
    let ends = "__meta_openstack_project_id=t1";
    let user = "__meta_openstack_tag_app_name=shop,__meta_openstack_user_id=u1";
    assert_eq!(
        shorten(&openstack.targets().await.unwrap()),
        [
            format!(
                "{{__address__=10.0.0.1:80,__meta_openstack_address_pool=private,{labels},\
                __meta_openstack_private_ip=10.0.0.1,{ends},__meta_openstack_public_ip=192.0.2.1,{user}}}"
            ),
            format!(
                "{{__address__=[2001:db8::1]:80,__meta_openstack_address_pool=second,{labels},\
                __meta_openstack_private_ip=2001:db8::1,{ends},{user}}}"
            ),
        ]
    );
    openstack.targets().await.unwrap();
    let requests = requests.lock();
    let logins: Vec<&String> = requests.iter().filter(|line| line.contains("auth/tokens")).collect();
    assert_eq!(logins.len(), 2, "one login for each token");
    let login = concat!(
        r#"/identity/v3/auth/tokens {"auth":{"identity":{"methods":["password"],"password":{"user":{"domain":"#,
        r#"{"name":"Default"},"name":"me","password":"hush"}}},"scope":{"project":{"domain":{"name":"Default"},"#,
        r#""name":"shop"}}}}"#
    );
    assert_eq!(logins[0], login);
}

#[tokio::test]
async fn hypervisors_are_found_with_credentials_of_the_environment() {
    let (url, requests, _server) = cloud().await;
    let body = Body::new()
        .text("region", "one")
        .text("role", "hypervisor")
        .text("availability", "internal");
    let identity = format!("{url}/identity/v3/");
    let environment = Environment::from([
        ("OS_AUTH_URL", identity.as_str()),
        ("OS_APPLICATION_CREDENTIAL_ID", "c1"),
        ("OS_APPLICATION_CREDENTIAL_SECRET", "hush"),
    ]);
    let openstack = openstack(&body, &environment);
    openstack.targets().await.unwrap_err();
    assert_eq!(
        shorten(&openstack.targets().await.unwrap()),
        ["{__address__=10.9.0.1:80,__meta_openstack_hypervisor_host_ip=10.9.0.1,\
            __meta_openstack_hypervisor_hostname=node1,__meta_openstack_hypervisor_id=7,\
            __meta_openstack_hypervisor_state=up,__meta_openstack_hypervisor_status=enabled,\
            __meta_openstack_hypervisor_type=QEMU}"]
    );
    let login = concat!(
        r#"/identity/v3/auth/tokens {"auth":{"identity":{"application_credential":{"id":"c1","secret":"hush"},"#,
        r#""methods":["application_credential"]}}}"#
    );
    assert_eq!(requests.lock()[0], login);
}

#[tokio::test]
async fn what_keeps_from_asking_is_told_without_the_password() {
    let (url, _, _server) = cloud().await;
    let environment = Environment::from([]);
    let error = openstack(&body(&url, "instance", "wrong"), &environment)
        .targets()
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot log in to OpenStack: request to "), "{error}");
    assert!(
        error.contains("401 Unauthorized") && !error.contains("wrong"),
        "{error}"
    );
    let other_region = openstack(&body(&url, "hypervisor", "hush").text("region", "three"), &environment);
    assert_eq!(
        other_region.targets().await.unwrap_err().to_string(),
        "the cloud has no public endpoint of compute in region three"
    );
    let refused = |body: Body| {
        let built = OpenStack::within(&body.arguments(&DEFINITION), &Recorder::context(), &environment);
        built.err().unwrap().to_string()
    };
    let without_user = Body::new().text("region", "one").text("role", "instance");
    assert_eq!(
        refused(without_user.clone()),
        "neither identity_endpoint nor OS_AUTH_URL is set"
    );
    assert_eq!(
        refused(without_user.text("identity_endpoint", &url)),
        "the login needs a user and a password, or an application credential"
    );
}
