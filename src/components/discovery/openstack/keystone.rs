//! Logs in to OpenStack with version 3 of the identity API, which Keystone provides.
//!
//! In: a user with a password, or an application credential, from the arguments or the environment. Out: a token, and
//! the catalog of services.

use std::sync::Arc;
use std::time::SystemTime;

use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use url::Url;

use crate::common::clouds::environment::Environment;
use crate::common::clouds::expiring::{Expiring, Lasting};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::http::json_values::{list, text};
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use crate::discovery::openstack::arguments::OpenStackArguments;
use alluvium_pipeline::component::ComponentError;

/// Response header that carries a new token.
const GIVEN: HeaderName = HeaderName::from_static("x-subject-token");
/// Request header that carries the token.
const SHOWN: HeaderName = HeaderName::from_static("x-auth-token");

/// Logs in, and logs in again before the token expires.
#[derive(Debug)]
pub(super) struct Keystone {
    api: WebApi,
    login: Login,
    cache: Expiring<Arc<Session>>,
}

/// The body of the login request. It contains the password, so `Debug` does not print it.
pub(super) struct Login(Value);

impl std::fmt::Debug for Login {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Login")
    }
}

/// The result of a login: a token and the catalog of services.
#[derive(Debug)]
pub(super) struct Session {
    token: HeaderValue,
    catalog: Value,
}

/// The identity that logs in, from the arguments or the environment.
#[derive(Default)]
struct Identity {
    username: Option<String>,
    user_id: Option<String>,
    password: Option<String>,
    project_name: Option<String>,
    project_id: Option<String>,
    domain_name: Option<String>,
    domain_id: Option<String>,
    credential_name: Option<String>,
    credential_id: Option<String>,
    credential_secret: Option<String>,
}

/// Returns the URL of the identity service, and the login. If `identity_endpoint` is not set, both come from the
/// environment.
pub(super) fn login(arguments: &OpenStackArguments, environment: &Environment) -> Result<(Url, Login), ComponentError> {
    let owned = |text: &Option<Arc<str>>| text.as_ref().map(ToString::to_string);
    let (mut url, identity) = if let Some(endpoint) = &arguments.identity_endpoint {
        let identity = Identity {
            username: owned(&arguments.username),
            user_id: owned(&arguments.userid),
            password: owned(&arguments.password.as_ref().map(|secret| secret.0.clone())),
            project_name: owned(&arguments.project_name),
            project_id: owned(&arguments.project_id),
            domain_name: owned(&arguments.domain_name),
            domain_id: owned(&arguments.domain_id),
            credential_name: owned(&arguments.application_credential_name),
            credential_id: owned(&arguments.application_credential_id),
            credential_secret: owned(
                &arguments
                    .application_credential_secret
                    .as_ref()
                    .map(|secret| secret.0.clone()),
            ),
        };
        (endpoint.url().clone(), identity)
    } else {
        let any = |names: &[&str]| names.iter().find_map(|name| environment.get(name));
        let url = any(&["OS_AUTH_URL"]);
        let url = url.ok_or_else(|| ComponentError("neither identity_endpoint nor OS_AUTH_URL is set".to_owned()))?;
        let identity = Identity {
            username: any(&["OS_USERNAME"]),
            user_id: any(&["OS_USERID", "OS_USER_ID"]),
            password: any(&["OS_PASSWORD"]),
            project_name: any(&["OS_PROJECT_NAME", "OS_TENANT_NAME"]),
            project_id: any(&["OS_PROJECT_ID", "OS_TENANT_ID"]),
            domain_name: any(&["OS_DOMAIN_NAME", "OS_USER_DOMAIN_NAME"]),
            domain_id: any(&["OS_DOMAIN_ID", "OS_USER_DOMAIN_ID"]),
            credential_name: any(&["OS_APPLICATION_CREDENTIAL_NAME"]),
            credential_id: any(&["OS_APPLICATION_CREDENTIAL_ID"]),
            credential_secret: any(&["OS_APPLICATION_CREDENTIAL_SECRET"]),
        };
        (
            http_url(&url).map_err(|error| ComponentError(format!("OS_AUTH_URL: {error}")))?,
            identity,
        )
    };
    if !url.path().trim_end_matches('/').ends_with("/v3")
        && let Ok(mut segments) = url.path_segments_mut()
    {
        segments.pop_if_empty().push("v3");
    }
    Ok((url, identity.login()?))
}

impl Identity {
    fn login(&self) -> Result<Login, ComponentError> {
        let domain = match (&self.domain_id, &self.domain_name) {
            (Some(id), _) => json!({ "id": id }),
            (None, Some(name)) => json!({ "name": name }),
            (None, None) => Value::Null,
        };
        let within = |mut named: Value| {
            if !domain.is_null() {
                named["domain"] = domain.clone();
            }
            named
        };
        let user = match (&self.user_id, &self.username) {
            (Some(id), _) => Some(json!({ "id": id })),
            (None, Some(name)) => Some(within(json!({ "name": name }))),
            (None, None) => None,
        };
        if let Some(secret) = &self.credential_secret {
            let credential = match (&self.credential_id, &self.credential_name, user) {
                (Some(id), _, _) => json!({ "id": id, "secret": secret }),
                (None, Some(name), Some(user)) => json!({ "name": name, "user": user, "secret": secret }),
                _ => {
                    let missing = "an application credential needs its id, or its name and a user";
                    return Err(ComponentError(missing.to_owned()));
                }
            };
            let identity = json!({ "methods": ["application_credential"], "application_credential": credential });
            return Ok(Login(json!({ "auth": { "identity": identity } })));
        }
        let (Some(mut user), Some(password)) = (user, &self.password) else {
            let missing = "the login needs a user and a password, or an application credential";
            return Err(ComponentError(missing.to_owned()));
        };
        user["password"] = json!(password);
        let mut auth = json!({ "identity": { "methods": ["password"], "password": { "user": user } } });
        if let Some(id) = &self.project_id {
            auth["scope"] = json!({ "project": { "id": id } });
        } else if let Some(name) = &self.project_name {
            auth["scope"] = json!({ "project": within(json!({ "name": name })) });
        } else if !domain.is_null() {
            auth["scope"] = json!({ "domain": domain });
        }
        Ok(Login(json!({ "auth": auth })))
    }
}

impl Keystone {
    /// Creates a client that logs in at the identity service `api`. Sends no request.
    pub(super) fn new(api: WebApi, login: Login) -> Self {
        Self {
            api,
            login,
            cache: Expiring::default(),
        }
    }

    /// Returns a valid session. Logs in if no valid session is cached.
    pub(super) async fn session(&self) -> Result<Arc<Session>, DiscoveryError> {
        let session = self.cache.get(self.log_in()).await;
        session.map_err(|error| DiscoveryError::Operation {
            operation: "cannot log in to OpenStack".to_owned(),
            source: Box::new(error),
        })
    }

    /// Discards the session, because the cloud may have rejected its token.
    pub(super) async fn forget(&self) {
        self.cache.forget().await;
    }

    async fn log_in(&self) -> Result<Lasting<Arc<Session>>, DiscoveryError> {
        let request = self.api.request(Method::POST, self.api.url(["auth", "tokens"]));
        let request = request.header(http::header::CONTENT_TYPE, "application/json");
        let answer = self.api.send(request.body(self.login.0.to_string())).await?;
        let token = answer.headers.get(GIVEN).cloned();
        let mut token = token.ok_or_else(|| {
            let missing = format!("the response of {} contains no token", answer.url);
            DiscoveryError::Response(missing)
        })?;
        token.set_sensitive(true);
        let body: Value = answer.json()?;
        let ends = text(&body, "/token/expires_at").and_then(|time| DateTime::parse_from_rfc3339(time).ok());
        Ok(Lasting {
            ends: ends.map(SystemTime::from),
            value: Arc::new(Session {
                token,
                catalog: body.pointer("/token/catalog").cloned().unwrap_or_default(),
            }),
        })
    }
}

impl Session {
    /// Returns the header with the session's token.
    pub(super) fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([(SHOWN, self.token.clone())])
    }

    /// Returns the URL of a service in a region.
    pub(super) fn endpoint(&self, service: &str, interface: &str, region: &str) -> Result<Url, DiscoveryError> {
        let services = list(&self.catalog, "")
            .iter()
            .filter(|own| text(own, "/type") == Some(service));
        let mut endpoints = services.flat_map(|own| list(own, "/endpoints"));
        let is_usable = |own: &&Value| {
            let own_region = text(own, "/region_id").or_else(|| text(own, "/region"));
            text(own, "/interface") == Some(interface) && own_region == Some(region)
        };
        let url = endpoints.find(is_usable).and_then(|own| text(own, "/url"));
        let url = url.ok_or_else(|| {
            let missing = format!("the cloud has no {interface} endpoint of {service} in region {region}");
            DiscoveryError::Configuration(missing.into())
        })?;
        http_url(url).map_err(|error| DiscoveryError::Malformed {
            description: format!("the endpoint of {service}"),
            source: error.into(),
        })
    }
}
