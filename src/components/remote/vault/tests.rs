//! Tests against a fake Vault server. Its responses follow the documentation of Vault.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode, Uri};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use crate::common::testing::{Body, Recorder, Running, Server, eventually, serve};
use crate::remote::vault::arguments::VaultArguments;
use crate::remote::vault::{DEFINITION, pause_after_failure};
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::HealthState;

/// A server with three secret stores and the login methods that need no cloud.
struct Vault {
    secret: Mutex<String>,
    logins: AtomicUsize,
    /// If true, the server rejects every login.
    refuses_logins: AtomicBool,
    renewals: AtomicUsize,
    unwraps: AtomicUsize,
    /// Seconds for which a token is valid, and whether it can be renewed.
    lease: Mutex<(u64, bool)>,
    /// Number of requests that the server rejects with 500 before it responds normally.
    outages: AtomicUsize,
    /// The token that the server accepts.
    token: Mutex<String>,
    requests: Mutex<Vec<(String, HeaderMap)>>,
}

impl Vault {
    async fn start() -> (Arc<Self>, String, Server) {
        let vault = Arc::new(Self {
            secret: Mutex::new("hush".to_owned()),
            logins: AtomicUsize::new(0),
            refuses_logins: AtomicBool::new(false),
            renewals: AtomicUsize::new(0),
            unwraps: AtomicUsize::new(0),
            lease: Mutex::new((0, false)),
            outages: AtomicUsize::new(0),
            token: Mutex::new("root".to_owned()),
            requests: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(vault.clone());
        let (url, server) = serve(router).await;
        (vault, url, server)
    }

    fn auth(&self) -> Response {
        let (lease, renewable) = *self.lease.lock();
        let token = self.token.lock().clone();
        let auth = json!({ "client_token": token, "lease_duration": lease, "renewable": renewable });
        json_of(json!({ "auth": auth }))
    }

    fn login(&self, is_valid: bool) -> Response {
        if !is_valid || self.refuses_logins.load(Ordering::SeqCst) {
            return (StatusCode::BAD_REQUEST, r#"{"errors": ["invalid credentials"]}"#).into_response();
        }
        let number = self.logins.fetch_add(1, Ordering::SeqCst);
        *self.token.lock() = format!("token-{number}");
        self.auth()
    }
}

fn json_of(value: Json) -> Response {
    value.to_string().into_response()
}

async fn answer(
    State(vault): State<Arc<Vault>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().trim_start_matches("/v1/").to_owned();
    vault.requests.lock().push((path.clone(), headers.clone()));
    if vault.outages.load(Ordering::SeqCst) > 0 {
        vault.outages.fetch_sub(1, Ordering::SeqCst);
        return (StatusCode::INTERNAL_SERVER_ERROR, r#"{"errors": ["sealed"]}"#).into_response();
    }
    let sent: Json = serde_json::from_slice(&body).unwrap_or_default();
    let sent_token = headers
        .get("x-vault-token")
        .and_then(|token| token.to_str().ok())
        .unwrap_or_default();
    if method == Method::POST {
        match path.as_str() {
            "auth/approle/login" => return vault.login(sent == json!({"role_id": "r", "secret_id": "s"})),
            "auth/k8s/login" => return vault.login(sent == json!({"role": "r", "jwt": "account-token"})),
            "auth/userpass/login/u" | "auth/ldap/login/u" => return vault.login(sent == json!({"password": "p"})),
            "auth/jwt/login" => {
                return vault.login(sent == json!({"jwt": "j"}) && headers["x-vault-namespace"] == "inner");
            }
            "sys/wrapping/unwrap" => {
                // A wrapping token can be used once.
                let is_first = vault.unwraps.fetch_add(1, Ordering::SeqCst) == 0;
                if sent_token == "wrapped" && is_first {
                    return json_of(json!({ "data": { "secret_id": "s" } }));
                }
                return StatusCode::BAD_REQUEST.into_response();
            }
            _ => {}
        }
    }
    if sent_token != *vault.token.lock() {
        return (StatusCode::FORBIDDEN, r#"{"errors": ["permission denied"]}"#).into_response();
    }
    let secret = vault.secret.lock().clone();
    match path.as_str() {
        "auth/token/renew-self" => {
            vault.renewals.fetch_add(1, Ordering::SeqCst);
            vault.auth()
        }
        "sys/internal/ui/mounts/secret/app" => {
            json_of(json!({ "data": { "path": "secret/", "options": { "version": "2" } } }))
        }
        "sys/internal/ui/mounts/old/app" => json_of(json!({ "data": { "path": "old/", "options": null } })),
        "secret/data/app" | "deep/store/data/app/key" => {
            let inner = json!({ "password": secret, "number": 7 });
            json_of(json!({ "data": { "data": inner, "metadata": {} } }))
        }
        "old/app" => json_of(json!({ "data": { "password": secret }, "lease_duration": 2_764_800 })),
        _ => (StatusCode::NOT_FOUND, r#"{"errors": []}"#).into_response(),
    }
}

fn body(url: &str, path: &str) -> Body {
    let options = Body::new().text("min_retry_wait", "1ms").text("max_retry_wait", "2ms");
    Body::new()
        .text("server", url)
        .text("path", path)
        .block("client_options", options)
}

fn token(url: &str, path: &str) -> Body {
    let token = Body::new().with("token", Value::Secret("root".into()));
    body(url, path).block("auth.token", token)
}

fn recorder() -> Recorder {
    Recorder::new("remote.vault.test", Path::new("/nonexistent"))
}

/// Builds the component on a thread that may block, as the engine does.
async fn start(recorder: &Recorder, body: Body) -> Result<Running<VaultArguments>, String> {
    let (recorder, handle) = (recorder.clone(), tokio::runtime::Handle::current());
    let started = tokio::task::spawn_blocking(move || {
        let _runtime = handle.enter();
        Running::start_or(&DEFINITION, &recorder, &body)
    });
    started.await.unwrap().map_err(|error| error.0)
}

fn password(recorder: &Recorder) -> Option<String> {
    let Value::Object(data) = recorder.export("data") else {
        return None;
    };
    match data.get("password") {
        Some(Value::Secret(text)) => Some(text.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_read_from_either_version_of_a_store_and_stays_secret() {
    let (vault, url, _server) = Vault::start().await;
    for body in [
        token(&url, "secret/app").text("namespace", "team"),
        token(&url, "old/app"),
        token(&url, "deep/store").text("key", "app/key"),
    ] {
        let recorder = recorder();
        let running = start(&recorder, body).await.unwrap();
        assert_eq!(password(&recorder).as_deref(), Some("hush"));
        // The debug output does not contain the secret. (The component skips `number`, which is not a string.)
        assert!(!format!("{:?}", recorder.export("data")).contains("hush"));
        assert_eq!(recorder.health().0, HealthState::Healthy);
        running.stop().await;
    }
    let first = vault.requests.lock()[0].1.clone();
    assert_eq!(
        (&first["x-vault-token"], &first["x-vault-namespace"]),
        (&"root".parse().unwrap(), &"team".parse().unwrap())
    );
    let requests = vault.requests.lock();
    assert!(requests.iter().all(|(_, headers)| headers["x-vault-request"] == "true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_logs_in_as_vault_wants_it() {
    let (vault, url, _server) = Vault::start().await;
    let folder = tempfile::tempdir().unwrap();
    let account = folder.path().join("token");
    std::fs::write(&account, "account-token\n").unwrap();
    let secret = |text: &str| Value::Secret(text.into());
    let user = || Body::new().text("username", "u").with("password", secret("p"));
    let role = |text: &str| Body::new().text("role_id", "r").with("secret", secret(text));
    let cluster = Body::new()
        .text("role", "r")
        .text("mount_path", "k8s")
        .text("service_account_file", account.to_str().unwrap());
    let custom = Body::new()
        .text("path", "auth/jwt/login")
        .text("namespace", "inner")
        .with("data", Value::object([("jwt", secret("j"))]));
    for (number, (name, method)) in [
        ("auth.approle", role("s")),
        (
            "auth.approle",
            role("wrapped").with("wrapping_token", Value::Bool(true)),
        ),
        ("auth.kubernetes", cluster),
        ("auth.userpass", user().text("mount_path", "userpass")),
        ("auth.ldap", user().text("mount_path", "ldap")),
        ("auth.custom", custom),
    ]
    .into_iter()
    .enumerate()
    {
        let recorder = recorder();
        let running = start(&recorder, body(&url, "secret/app").block(name, method))
            .await
            .unwrap();
        assert_eq!(password(&recorder).as_deref(), Some("hush"), "{name}");
        assert_eq!(vault.logins.load(Ordering::SeqCst), number + 1);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_followed_and_a_token_that_was_revoked_is_replaced() {
    let (vault, url, _server) = Vault::start().await;
    let recorder = recorder();
    let role = Body::new()
        .text("role_id", "r")
        .with("secret", Value::Secret("s".into()));
    let body = body(&url, "secret/app")
        .text("reread_frequency", "10ms")
        .block("auth.approle", role);
    let running = start(&recorder, body).await.unwrap();
    *vault.secret.lock() = "new".to_owned();
    eventually("the change", || password(&recorder).as_deref() == Some("new")).await;
    assert_eq!(vault.logins.load(Ordering::SeqCst), 1);
    *vault.token.lock() = "another".to_owned();
    *vault.secret.lock() = "newer".to_owned();
    eventually("the change", || password(&recorder).as_deref() == Some("newer")).await;
    let logins = vault.logins.load(Ordering::SeqCst);
    assert!(logins >= 2);
    // The server stays sealed: the last value stays exported, and the health message contains the reason.
    vault.outages.store(usize::MAX, Ordering::SeqCst);
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    assert!(
        recorder.health().1.contains("500 Internal Server Error: sealed"),
        "{}",
        recorder.health().1
    );
    assert_eq!(password(&recorder).as_deref(), Some("newer"));
    vault.outages.store(0, Ordering::SeqCst);
    eventually("the recovery", || recorder.health().0 == HealthState::Healthy).await;
    // The token was valid all the time.
    assert_eq!(vault.logins.load(Ordering::SeqCst), logins);
    running.stop().await;
    // The mount path of the store cannot be read during an outage, so the component requests no guessed path.
    vault.requests.lock().clear();
    vault.outages.store(usize::MAX, Ordering::SeqCst);
    let other = Recorder::new("remote.vault.other", Path::new("/nonexistent"));
    let error = start(&other, token(&url, "old/app")).await.err().unwrap();
    assert!(error.contains("for sys/internal/ui/mounts/old/app failed"), "{error}");
    assert_eq!(vault.requests.lock().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_before_it_ends_or_made_anew() {
    for (renewable, counter) in [
        (true, "remote_vault_auth_lease_renewal_total 1"),
        (false, "remote_vault_auth_total 2"),
    ] {
        let (vault, url, _server) = Vault::start().await;
        *vault.lease.lock() = (1, renewable);
        let recorder = recorder();
        let user = Body::new()
            .text("username", "u")
            .text("mount_path", "userpass")
            .with("password", Value::Secret("p".into()));
        let running = start(&recorder, body(&url, "secret/app").block("auth.userpass", user))
            .await
            .unwrap();
        let metrics = || recorder.context.metrics.encode();
        eventually(counter, || metrics().contains(counter)).await;
        assert_eq!(vault.renewals.load(Ordering::SeqCst) > 0, renewable);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_can_be_neither_renewed_nor_replaced_for_a_while_is_kept() {
    let (vault, url, _server) = Vault::start().await;
    *vault.lease.lock() = (1, true);
    let recorder = recorder();
    let role = Body::new()
        .text("role_id", "r")
        .with("secret", Value::Secret("s".into()));
    let body = body(&url, "secret/app")
        .text("reread_frequency", "10ms")
        .block("auth.approle", role);
    let running = start(&recorder, body).await.unwrap();
    let state = || recorder.health().0;
    // The secret ID permits one login only.
    vault.refuses_logins.store(true, Ordering::SeqCst);
    // The server is sealed when the token has to be renewed.
    vault.outages.store(usize::MAX, Ordering::SeqCst);
    let renewal = |(path, _): &(String, HeaderMap)| path == "auth/token/renew-self";
    eventually("a renewal", || vault.requests.lock().iter().any(renewal)).await;
    eventually("the failure", || state() == HealthState::Unhealthy).await;
    vault.outages.store(0, Ordering::SeqCst);
    eventually("the recovery", || state() == HealthState::Healthy).await;
    // The permission is withdrawn and given back.
    let token = std::mem::replace(&mut *vault.token.lock(), "another".to_owned());
    eventually("the failure", || state() == HealthState::Unhealthy).await;
    *vault.token.lock() = token;
    eventually("the recovery", || state() == HealthState::Healthy).await;
    assert_eq!(vault.logins.load(Ordering::SeqCst), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn short_outages_are_waited_for_and_what_cannot_be_read_fails_the_build() {
    let (vault, url, _server) = Vault::start().await;
    vault.outages.store(2, Ordering::SeqCst);
    let first = recorder();
    start(&first, token(&url, "secret/app")).await.unwrap().stop().await;
    let userpass = Body::new()
        .text("username", "u")
        .text("mount_path", "userpass")
        .with("password", Value::Secret("wrong-password".into()));
    for (body, reason) in [
        (
            body(&url, "secret/app").block("auth.userpass", userpass),
            "400 Bad Request: invalid credentials",
        ),
        (
            token(&url, "secret/nowhere"),
            "for secret/data/nowhere failed: the server answered 404 Not Found",
        ),
    ] {
        let error = start(&recorder(), body).await.err().unwrap();
        assert!(error.ends_with(reason) && !error.contains("wrong-password"), "{error}");
    }
    let retries = Body::new().with("max_retries", Value::Number(Number::Int(-1)));
    let refused = body(&url, "secret/app")
        .block("client_options", retries)
        .read(&DEFINITION)
        .map(drop);
    assert!(refused.is_err());
    let store = token(&url, "secret").read(&DEFINITION).map(drop).unwrap_err();
    assert!(store.contains("names a store but no secret in it"), "{store}");
}

#[test]
fn a_failed_read_is_retried_within_a_minute() {
    for (reread, pause) in [(0, 60), (5, 5), (86_400, 60)] {
        let (reread, pause) = (Duration::from_secs(reread), Duration::from_secs(pause));
        assert_eq!(pause_after_failure(reread), pause);
    }
}

/// Serves a standby node, which redirects every request to `active` with the same path.
async fn standby(status: u16, active: &str) -> (String, Server, Arc<AtomicUsize>) {
    let (active, requests) = (active.to_owned(), Arc::new(AtomicUsize::new(0)));
    let counted = requests.clone();
    let redirect = move |uri: Uri| {
        counted.fetch_add(1, Ordering::SeqCst);
        let location = format!("{active}{uri}");
        let status = StatusCode::from_u16(status).unwrap();
        std::future::ready((status, [("location", location)]))
    };
    let (url, server) = serve(Router::new().fallback(redirect)).await;
    (url, server, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_node_redirects_logins_and_reads_to_the_active_node() {
    for status in [307, 308] {
        let (vault, active, _server) = Vault::start().await;
        // The nodes of a cluster have different names.
        let active = active.replace("127.0.0.1", "localhost");
        let (first, _first, requests) = standby(status, &active).await;
        let role = Body::new()
            .text("role_id", "r")
            .with("secret", Value::Secret("s\n".into()));
        let recorder = recorder();
        let body = body(&first, "secret/app").text("namespace", "team");
        let running = start(&recorder, body.block("auth.approle", role)).await.unwrap();
        assert_eq!(password(&recorder).as_deref(), Some("hush"));
        assert_eq!(vault.logins.load(Ordering::SeqCst), 1);
        let received = vault.requests.lock().clone();
        assert_eq!(requests.load(Ordering::SeqCst), received.len());
        for (path, headers) in &received {
            assert_eq!(headers["x-vault-namespace"], "team");
            assert_eq!(
                headers.contains_key("x-vault-token"),
                path != "auth/approle/login",
                "{path}"
            );
        }
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_that_a_vault_never_sends_do_not_receive_the_token() {
    let (vault, active, _server) = Vault::start().await;
    let active = active.replace("127.0.0.1", "localhost");
    for (status, target, reason) in [
        (
            302,
            active.clone(),
            format!("redirected the request to {active} with status 302"),
        ),
        (
            303,
            active.clone(),
            format!("redirected the request to {active} with status 303"),
        ),
        (
            307,
            format!("{active}/signin?to="),
            format!("redirected the request to {active} with status 307"),
        ),
        (
            307,
            "ftp://127.0.0.1".to_owned(),
            "an address that is not an HTTP URL".to_owned(),
        ),
    ] {
        let (first, _first, _) = standby(status, &target).await;
        let error = start(&recorder(), token(&first, "secret/app")).await.err().unwrap();
        assert!(error.contains(&reason) && !error.contains("root"), "{error}");
    }
    assert!(vault.requests.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_redirect_to_each_other_are_tried_a_few_times() {
    // The address of the node is its own, so it redirects to itself.
    let (url, _server, requests) = standby(307, "").await;
    let error = start(&recorder(), token(&url, "secret/app")).await.err().unwrap();
    assert!(error.contains("redirected the request more than 3 times"), "{error}");
    // Four requests for each of three attempts.
    assert_eq!(requests.load(Ordering::SeqCst), 12);
}
