//! Tokens of an OIDC issuer: keys from a test server, and claims that become roles and tenants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use alluvium::server::ServerOptions;
use alluvium::server::access::OidcOptions;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::{Doors, with_json};
use crate::harness::TestServer;

const TYPES: &str = "/querier.v1.QuerierService/ProfileTypes";

struct Key {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        Self { id, pair }
    }

    fn public(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "x": text(x), "y": text(y)})
    }

    fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&json!({"alg": "ES256", "kid": self.id})), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// A test issuer that serves its keys on a port.
struct Issuer {
    url: String,
    keys: Arc<Mutex<Value>>,
    asked: Arc<AtomicUsize>,
}

async fn issuer(keys: &[&Key]) -> Issuer {
    let keys: Vec<Value> = keys.iter().map(|key| key.public()).collect();
    let keys = Arc::new(Mutex::new(json!({ "keys": keys })));
    let asked = Arc::new(AtomicUsize::new(0));
    let (shown, counted) = (keys.clone(), asked.clone());
    let answer = get(async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        shown.lock().to_string()
    });
    let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", tcp.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(tcp, axum::Router::new().route("/keys", answer)).await });
    Issuer { url, keys, asked }
}

fn claims(changed: Value) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": "https://issuer", "aud": "alluvium", "exp": now + 600, "sub": "ada", "teams": ["shop"],
        "roles": ["viewer"],
    });
    claims
        .as_object_mut()
        .unwrap()
        .extend(changed.as_object().unwrap().clone());
    claims
}

async fn server(issuer: &Issuer) -> (TestServer, Doors) {
    let doors = Doors::new();
    let mut options = doors.options();
    options.oidc = Some(OidcOptions {
        issuer: "https://issuer".to_owned(),
        audience: "alluvium".to_owned(),
        jwks_url: issuer.url.parse().unwrap(),
        ca: None,
        name_claim: "sub".to_owned(),
        tenant_claim: Some("teams".to_owned()),
        role_claim: "roles".to_owned(),
        roles: [("viewer".to_owned(), "read".parse().unwrap())].into(),
    });
    let several = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    (doors.server_with(options, several).await, doors)
}

async fn ask(server: &TestServer, path: &str, token: &str, tenant: &str) -> u16 {
    let request = server
        .post(path)
        .header("content-type", "application/json")
        .bearer_auth(token);
    let request = request.header("x-scope-orgid", tenant).body("{}");
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_token_of_the_issuer_has_the_roles_and_tenants_of_its_claims() {
    let key = Key::new("one");
    let issuer = issuer(&[&key]).await;
    let (server, _doors) = server(&issuer).await;
    let good = key.sign(&claims(json!({})));
    assert_eq!(ask(&server, TYPES, &good, "shop").await, 200);
    assert_eq!(ask(&server, TYPES, &good, "desk").await, 403);
    assert_eq!(ask(&server, "/push.v1.PusherService/Push", &good, "shop").await, 403);
    let login = with_json(server.post("/api/v1/login"), &json!({ "password": good }));
    let login = login.send().await.unwrap();
    assert_eq!(login.status(), 204);
    let cookie = login.headers()["set-cookie"].to_str().unwrap();
    let age = cookie.split("Max-Age=").nth(1).unwrap().parse::<u64>().unwrap();
    assert!(age <= 660, "the session outlives the token: {cookie}");
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1, "keys are kept");
}

#[tokio::test]
async fn a_token_that_is_forged_expired_or_for_others_is_refused() {
    let (key, stranger) = (Key::new("one"), Key::new("one"));
    let issuer = issuer(&[&key]).await;
    let (server, _doors) = server(&issuer).await;
    let good = key.sign(&claims(json!({})));
    assert_eq!(ask(&server, TYPES, &good, "shop").await, 200);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = format!("{}.{}.", part(json!({"alg": "none"})), part(claims(json!({}))));
    let header = part(json!({"alg": "ES256", "kid": "one"}));
    let changed = format!("{header}.{}.{signature}", part(claims(json!({"teams": ["desk"]}))));
    for wrong in [
        stranger.sign(&claims(json!({}))),
        key.sign(&claims(json!({"exp": 1_700_000_000}))),
        key.sign(&claims(json!({"aud": "other"}))),
        key.sign(&claims(json!({"iss": "https://other"}))),
        format!("{signed}."),
        unsigned,
        changed,
    ] {
        assert_eq!(ask(&server, TYPES, &wrong, "shop").await, 401, "{wrong}");
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn unknown_keys_make_the_server_ask_the_issuer_once_and_not_for_each_token() {
    let (key, newer) = (Key::new("one"), Key::new("two"));
    let issuer = issuer(&[&key]).await;
    let (server, _doors) = server(&issuer).await;
    assert_eq!(ask(&server, TYPES, &key.sign(&claims(json!({}))), "shop").await, 200);
    *issuer.keys.lock() = json!({"keys": [newer.public()]});
    let token = newer.sign(&claims(json!({})));
    // The server fetched the keys a moment ago. Requests with an unknown key must not make the server fetch the keys
    // each time.
    for _ in 0..5 {
        assert_eq!(ask(&server, TYPES, &token, "shop").await, 401);
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
}
