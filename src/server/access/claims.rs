//! Verifies tokens of an OIDC issuer: checks the signature of a JSON Web Token (RFC 7519) with the issuer's keys, and
//! interprets its claims.
//!
//! In: a token. Out: an identity and its validity period, or a refusal. The keys are fetched at their first use, and
//! again after an hour. A token with an unknown key also causes a fetch, at most once in 30 seconds. If the issuer does
//! not respond, the known keys stay in force, and a caller whose token is signed with a known key does not wait.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use jsonwebtoken::{Algorithm, Header, decode_header};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;

use crate::server::access::identity::{Identity, Rights, TenantScope};
use crate::server::access::jwks::{Keys, KeysError, Signature};
use crate::server::access::options::{AccessError, IssuerError, OidcOptions};
use crate::server::access::refusal::Refusal;
use alluvium_profile::TenantId;
use alluvium_wire::client::{BodyError, ClientError, ClientOptions, HttpClient, Pem, TlsOptions, read_decoded};

/// Age at which the keys are fetched again.
const KEYS_AGE: Duration = Duration::from_hours(1);
/// Minimum time between two fetches.
const FETCH_PAUSE: Duration = Duration::from_secs(30);
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a key set in bytes.
const MAX_KEYS_BYTES: usize = 256 << 10;
/// Maximum length of a token in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// Tolerated difference between the clocks of the issuer and of this server, in seconds.
const SKEW_SECONDS: u64 = 60;

/// An issuer and its keys.
pub(super) struct Issuer {
    options: OidcOptions,
    client: HttpClient,
    keys: Mutex<Option<(Arc<Keys>, Instant)>>,
    /// Time at which the last fetch ended, even if it failed. The lock is held during a fetch.
    fetching: Arc<tokio::sync::Mutex<Option<Instant>>>,
}

/// Reason why the keys of an issuer could not be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The request failed. The error does not contain the URL.
    #[error(transparent)]
    Request(Box<dyn std::error::Error + Send + Sync>),
    #[error("the issuer responded with status {0}")]
    Status(StatusCode),
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("the issuer did not respond in time")]
    Timeout,
}

/// Returns true if the text has the form of a JSON Web Token.
pub(super) fn is_jwt(token: &str) -> bool {
    token.starts_with("ey") && token.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl Issuer {
    /// Creates an issuer. Its keys are not fetched yet.
    pub(super) fn new(options: OidcOptions) -> Result<Self, AccessError> {
        let issuer_error = |source: IssuerError| AccessError::Oidc {
            issuer: options.issuer.clone(),
            source,
        };
        let is_local = matches!(options.jwks_url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if options.jwks_url.scheme() != "https" && !is_local {
            return Err(issuer_error(IssuerError::Insecure(options.jwks_url.clone())));
        }
        if options.issuer.is_empty() || options.audience.is_empty() {
            return Err(issuer_error(IssuerError::Empty));
        }
        let mut client = ClientOptions::new(concat!("alluvium/", env!("CARGO_PKG_VERSION")).into());
        client.proxy.from_environment = true;
        client.follow_redirects = false;
        client.tls = TlsOptions {
            ca: options.ca.clone().map(Pem::File),
            ..TlsOptions::default()
        };
        Ok(Self {
            client: HttpClient::new(&client).map_err(|error| issuer_error(error.into()))?,
            options,
            keys: Mutex::new(None),
            fetching: Arc::default(),
        })
    }

    /// Verifies a token, and returns its identity and the remaining time of its validity.
    pub(super) async fn verify(self: &Arc<Self>, token: &str) -> Result<(Arc<Identity>, Duration), Refusal> {
        let header = read_header(token).ok_or(Refusal::InvalidCredential)?;
        let keys = self.keys().await?;
        let mut checked = keys.check(&header, token);
        if checked == Signature::UnknownKey {
            let newer = self.fetched(&keys).await;
            checked = newer.check(&header, token);
        }
        let Signature::Valid(claims) = checked else {
            return Err(Refusal::InvalidCredential);
        };
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let left = valid_for(&self.options, &claims, now).ok_or(Refusal::InvalidCredential)?;
        Ok((identity(&self.options, &claims), left))
    }

    /// Returns the known keys. If no keys are known, fetches them first. Keys older than [`KEYS_AGE`] remain in use
    /// while newer ones are fetched.
    async fn keys(self: &Arc<Self>) -> Result<Arc<Keys>, Refusal> {
        let known_keys = self.keys.lock().clone();
        let Some((keys, fetch_time)) = known_keys else {
            self.fetch().await;
            let known_keys = self.keys.lock().clone();
            return known_keys.map(|(keys, _)| keys).ok_or(Refusal::Issuer);
        };
        if fetch_time.elapsed() >= KEYS_AGE
            && let Ok(last) = self.fetching.clone().try_lock_owned()
        {
            drop(self.begin_fetch(last));
        }
        Ok(keys)
    }

    /// Tries to fetch newer keys than `old`, and returns the newest known keys.
    async fn fetched(self: &Arc<Self>, old: &Arc<Keys>) -> Arc<Keys> {
        self.fetch().await;
        let known_keys = self.keys.lock().clone();
        known_keys.map_or_else(|| old.clone(), |(keys, _)| keys)
    }

    /// Fetches the keys, unless the last attempt is too recent.
    async fn fetch(self: &Arc<Self>) {
        let last = self.fetching.clone().lock_owned().await;
        if let Some(fetch) = self.begin_fetch(last) {
            let _ = fetch.await;
        }
    }

    /// Starts to fetch the keys, unless the last attempt is too recent. The fetch continues if its caller is dropped.
    /// Otherwise a stranger could disconnect, and the next request would start another fetch at once.
    fn begin_fetch(self: &Arc<Self>, mut last: OwnedMutexGuard<Option<Instant>>) -> Option<JoinHandle<()>> {
        if last.is_some_and(|last| last.elapsed() < FETCH_PAUSE) {
            return None;
        }
        let issuer = self.clone();
        Some(tokio::spawn(async move {
            let fetched = tokio::time::timeout(FETCH_TIMEOUT, issuer.request_keys()).await;
            *last = Some(Instant::now());
            match fetched.unwrap_or(Err(FetchError::Timeout)) {
                Ok(keys) => *issuer.keys.lock() = Some((Arc::new(keys), Instant::now())),
                Err(error) => {
                    let issuer = &issuer.options.issuer;
                    tracing::warn!(issuer, %error, "cannot fetch the keys of the issuer");
                }
            }
        }))
    }

    async fn request_keys(&self) -> Result<Keys, FetchError> {
        let request = self.client.get(self.options.jwks_url.clone()).await?;
        let response = self.client.client().send(request).await;
        let response = response.map_err(|error| FetchError::Request(Box::new(error)))?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status()));
        }
        Ok(Keys::read(&read_decoded(response, MAX_KEYS_BYTES).await?)?)
    }
}

/// Returns the header of a token, which is not verified yet. Returns `None` for algorithms other than RS256 and ES256,
/// so that a token with another algorithm causes no fetch of keys. Also returns `None` if the token requires an
/// extension (`crit`), because this server supports none.
fn read_header(token: &str) -> Option<Header> {
    if token.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let header = decode_header(token).ok()?;
    (matches!(header.alg, Algorithm::RS256 | Algorithm::ES256) && header.crit.is_none()).then_some(header)
}

/// Checks the issuer, the audience and the times of a token. Returns its remaining validity, or `None` if it is
/// invalid.
fn valid_for(options: &OidcOptions, claims: &Map<String, Value>, now: u64) -> Option<Duration> {
    let is_of = claims.get("iss")?.as_str()? == options.issuer;
    let is_for_us = values(claims.get("aud")?).any(|audience| audience == options.audience);
    // A time in a claim may have a fractional part.
    let time = |name: &str| claims.get(name).map(|time| time.as_f64().map(|time| time as u64));
    let begins = match time("nbf") {
        Some(time) => time?,
        None => 0,
    };
    let ends = time("exp")??.saturating_add(SKEW_SECONDS);
    let is_now = begins <= now.saturating_add(SKEW_SECONDS) && now < ends;
    (is_of && is_for_us && is_now).then(|| Duration::from_secs(ends - now))
}

/// Returns the identity that the claims of a valid token describe.
fn identity(options: &OidcOptions, claims: &Map<String, Value>) -> Arc<Identity> {
    let name = claim(claims, &options.name_claim).or_else(|| claims.get("sub"));
    let name = name.and_then(Value::as_str).unwrap_or("?");
    let roles = claim(claims, &options.role_claim);
    let mut rights = Rights::none();
    for value in roles.into_iter().flat_map(values) {
        let role_rights = match options.roles.get(value) {
            Some(rights) => Some(rights.clone()),
            None if options.roles.is_empty() => value.parse::<Rights>().ok(),
            None => None,
        };
        rights.extend(role_rights);
    }
    let tenants = match &options.tenant_claim {
        None => TenantScope::anonymous(),
        Some(named) => {
            let ids = claim(claims, named).into_iter().flat_map(values);
            TenantScope::Only(ids.filter_map(|id| id.parse::<TenantId>().ok()).collect())
        }
    };
    Identity::proven(name, rights, tenants)
}

/// Returns a claim by its name. Dots in the name separate the names of nested objects.
fn claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    claim(claims.get(first)?.as_object()?, rest)
}

/// Returns the texts of a claim. A claim is one text or a list of texts.
fn values(claim: &Value) -> impl Iterator<Item = &str> {
    let list = claim.as_array().map(Vec::as_slice).unwrap_or_default();
    claim.as_str().into_iter().chain(list.iter().filter_map(Value::as_str))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::routing::get;
    use serde_json::json;
    use tokio::sync::Notify;

    use super::*;
    use crate::server::access::identity::Right;
    use crate::server::access::secret;

    const NOW: u64 = 1_700_000_000;

    fn options() -> OidcOptions {
        OidcOptions {
            issuer: "https://issuer".to_owned(),
            audience: "alluvium".to_owned(),
            jwks_url: "https://issuer/keys".parse().unwrap(),
            ca: None,
            name_claim: "email".to_owned(),
            tenant_claim: Some("teams".to_owned()),
            role_claim: "realm.roles".to_owned(),
            roles: [("viewer".to_owned(), "read".parse().unwrap())].into(),
        }
    }

    fn claims(changed: Value) -> Map<String, Value> {
        let mut claims = json!({
            "iss": "https://issuer", "aud": ["other", "alluvium"], "exp": NOW + 300, "sub": "7",
            "email": "ada@example.com", "teams": ["shop", "a/b"], "realm": {"roles": ["viewer", "admin"]},
        });
        let (all, changed) = (claims.as_object_mut().unwrap(), changed.as_object().unwrap().clone());
        all.extend(changed);
        all.retain(|_, value| !value.is_null());
        all.clone()
    }

    #[test]
    fn issuer_audience_and_times_must_fit() {
        let left = |changed: Value| valid_for(&options(), &claims(changed), NOW).map(|left| left.as_secs());
        assert_eq!(left(json!({})), Some(360));
        assert_eq!(left(json!({"aud": "alluvium", "exp": NOW as f64 + 10.5})), Some(70));
        assert_eq!(left(json!({"exp": NOW - 59})), Some(1));
        assert_eq!(left(json!({"nbf": NOW + 60})), Some(360));
        for changed in [
            json!({"iss": "https://issuer/"}),
            json!({"aud": "other"}),
            json!({"aud": null}),
            json!({"exp": NOW - 60}),
            json!({"exp": null}),
            json!({"exp": "tomorrow"}),
            json!({"nbf": NOW + 61}),
            json!({"nbf": "now"}),
        ] {
            assert_eq!(left(changed.clone()), None, "{changed}");
        }
    }

    #[test]
    fn claims_become_a_name_roles_and_tenants() {
        let caller = identity(&options(), &claims(json!({})));
        assert_eq!(&*caller.name, "ada@example.com");
        // `admin` is not a role here, because `OidcOptions::roles` does not contain it.
        assert!(caller.rights.has(Right::Read) && !caller.rights.has(Right::Admin));
        assert_eq!(caller.tenants.ids(), ["shop"]);
        let nobody = identity(
            &options(),
            &claims(json!({"realm": null, "teams": null, "email": null})),
        );
        assert_eq!((&*nobody.name, nobody.rights.roles().len()), ("7", 0));
        assert!(nobody.tenants.ids().is_empty());
        let plain = OidcOptions {
            roles: Default::default(),
            tenant_claim: None,
            role_claim: "role".to_owned(),
            ..options()
        };
        let caller = identity(&plain, &claims(json!({"role": "write"})));
        assert_eq!(
            (caller.rights.to_string().as_str(), caller.tenants.ids()),
            ("write", vec!["anonymous".to_owned()])
        );
    }

    #[test]
    fn a_token_without_a_signature_that_we_know_is_not_read() {
        let part = |value: Value| secret::text(value.to_string().as_bytes());
        for header in [
            json!({"alg": "none"}),
            json!({"alg": "HS256"}),
            json!({"alg": "RS256", "crit": ["b64"]}),
        ] {
            let token = format!("{}.{}.AA", part(header.clone()), part(json!({})));
            assert!(is_jwt(&token) && read_header(&token).is_none(), "{header}");
        }
        let token = format!("{}.{}.AA", part(json!({"alg": "RS256"})), part(json!({})));
        assert!(read_header(&token).is_some());
        assert!(read_header(&format!("{token}{}", "A".repeat(MAX_TOKEN_BYTES))).is_none());
        assert!(!is_jwt("allu_abc"));
    }

    #[test]
    fn keys_are_fetched_over_tls_or_from_this_machine() {
        let new_issuer = |url: &str| {
            Issuer::new(OidcOptions {
                jwks_url: url.parse().unwrap(),
                ..options()
            })
        };
        assert!(new_issuer("https://issuer/keys").is_ok() && new_issuer("http://127.0.0.1:1/keys").is_ok());
        assert!(new_issuer("http://issuer/keys").is_err());
    }

    /// Starts a mock issuer that sends its key `one` after a notification. Returns the issuer, the notifier, and the
    /// counter of requests.
    async fn slow_issuer() -> (Arc<Issuer>, Arc<Notify>, Arc<AtomicUsize>) {
        let (finish, requests) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (notifier, counted) = (finish.clone(), requests.clone());
        let answer = get(async move || {
            counted.fetch_add(1, Ordering::SeqCst);
            notifier.notified().await;
            json!({ "keys": [one()] }).to_string()
        });
        let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", tcp.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(tcp, Router::new().route("/keys", answer)).await });
        let issuer = Issuer::new(OidcOptions {
            jwks_url: url.parse().unwrap(),
            ..options()
        });
        (Arc::new(issuer.unwrap()), finish, requests)
    }

    fn one() -> Value {
        json!({"kty": "EC", "crv": "P-256", "kid": "one", "x": secret::text(&[1; 32]), "y": secret::text(&[2; 32])})
    }

    /// Returns a token that names the key `one` and has a wrong signature.
    fn forged() -> String {
        let part = |value: Value| secret::text(value.to_string().as_bytes());
        let header = part(json!({"alg": "ES256", "kid": "one"}));
        format!("{header}.{}.AA", part(json!({})))
    }

    #[tokio::test]
    async fn who_goes_away_neither_ends_a_fetch_nor_makes_the_next_one_begin() {
        let (issuer, finish, requests) = slow_issuer().await;
        for _ in 0..3 {
            let waited = tokio::time::timeout(Duration::from_millis(100), issuer.verify(&forged())).await;
            assert!(waited.is_err());
        }
        finish.notify_one();
        assert_eq!(issuer.verify(&forged()).await.err(), Some(Refusal::InvalidCredential));
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn nobody_waits_for_newer_keys_while_old_ones_are_there() {
        let (issuer, _finish, requests) = slow_issuer().await;
        let keys = Keys::read(json!({ "keys": [one()] }).to_string().as_bytes()).unwrap();
        let fetch_time = Instant::now().checked_sub(KEYS_AGE).unwrap();
        *issuer.keys.lock() = Some((Arc::new(keys), fetch_time));
        // The issuer never responds.
        for _ in 0..3 {
            let token = forged();
            let checked = tokio::time::timeout(FETCH_TIMEOUT / 2, issuer.verify(&token)).await;
            assert_eq!(checked.unwrap().err(), Some(Refusal::InvalidCredential));
        }
        let begun = async {
            while requests.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(FETCH_TIMEOUT, begun).await.unwrap();
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }
}
