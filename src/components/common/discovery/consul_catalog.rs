//! Code that `discovery.consul` and `discovery.consulagent` share: the agent's address, the selection of services, and
//! the labels.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;

use crate::common::arguments::checks;
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Interval, Secret, choices, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::{self, ClientOptions, Credential};

/// Header that carries a token to Consul.
const TOKEN: HeaderName = HeaderName::from_static("x-consul-token");

arguments! {
    /// Arguments that both components share: address and credentials of the agent, and the selection of services.
    pub(crate) struct Catalog {
        /// Data center of the services. Defaults to the agent's data center.
        datacenter: Option<Arc<str>>,
        /// Password (old form of basic_auth).
        password: Option<Secret>,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "30s",
        /// Scheme of the agent's URL: http or https.
        scheme: Scheme = "http",
        /// Host and port of the agent.
        server: Agent = "localhost:8500",
        /// Services to discover. Defaults to all services.
        services: Option<Vec<Arc<str>>>,
        /// Separator between the tags in the label with all tags.
        tag_separator: Arc<str> = ",",
        /// Tags of the services to discover. A service must have all of them.
        tags: Option<Vec<Arc<str>>>,
        /// Token of the API, sent with every request.
        token: Option<Secret>,
        /// User name (old form of basic_auth).
        username: Option<Arc<str>>,
    }
}

choices! {
    /// Scheme of requests to an agent.
    pub(crate) enum Scheme {
        Http = "http",
        Https = "https",
    }
}

/// Host and port of an agent, optionally after a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agent(Arc<str>);

impl FromValue for Agent {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let server = Arc::<str>::from_value(name, value)?;
        let url = if server.contains("://") {
            http_url(&server)
        } else {
            http_url(&format!("http://{server}"))
        };
        url.map_err(wrong)?;
        Ok(Self(server))
    }
}

impl Catalog {
    /// Returns a client of the agent's API with these options.
    pub(crate) fn api(&self, mut options: ClientOptions) -> Result<WebApi, ComponentError> {
        if let Some(Secret(token)) = &self.token {
            let mut value = HeaderValue::from_str(token.trim_ascii_end()).map_err(|_| {
                ComponentError("the token contains characters that are not allowed in an HTTP header".to_owned())
            })?;
            value.set_sensitive(true);
            options.headers.insert(TOKEN, value);
        }
        if let Some(username) = &self.username {
            let password = self.password.as_ref().map(|password| password.0.clone());
            options.credential = Credential::Basic {
                username: username.clone(),
                password: client::Secret::Text(password.unwrap_or_default()),
            };
        }
        let url = match (&self.scheme, &*self.server.0) {
            (_, server) if server.starts_with("https://") => http_url(server),
            (Scheme::Http, server) => http_url(&format!("http://{}", server.trim_start_matches("http://"))),
            (Scheme::Https, server) => http_url(&format!("https://{}", server.trim_start_matches("http://"))),
        };
        WebApi::with_options(&options, &url.map_err(ComponentError::new)?)
    }

    /// Returns an error if more than one of `username` and `others` is set, or if `password` is set without `username`.
    /// Each pair in `others` is the name of a credential and whether it is set.
    pub(crate) fn check_credentials(&self, others: &[(&'static str, bool)]) -> Result<(), ArgumentError> {
        if self.password.is_some() && self.username.is_none() {
            return Err(ArgumentError::new("password", "a password needs a username"));
        }
        let mut all = vec![("username", self.username.is_some())];
        all.extend(others);
        checks::at_most_one(&all)
    }

    /// Returns true if `services` names this service or is empty.
    pub(crate) fn has_service(&self, name: &str) -> bool {
        let named = self.services.as_deref().unwrap_or_default();
        named.is_empty() || named.iter().any(|service| &**service == name)
    }

    /// Returns true if a service has every tag of the argument `tags`.
    pub(crate) fn has_tags(&self, tags: &[String]) -> bool {
        let required_tags = self.tags.iter().flatten();
        required_tags
            .into_iter()
            .all(|required| tags.iter().any(|tag| *tag == **required))
    }

    /// Joins tags into one label value. The separator also precedes the first tag and follows the last tag, so that one
    /// pattern matches a tag at any position.
    pub(crate) fn joined(&self, tags: &[String]) -> String {
        let separator = &*self.tag_separator;
        format!("{separator}{}{separator}", tags.join(separator))
    }
}

/// A health check, as the catalog and the agent return it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Check {
    #[serde(rename = "CheckID")]
    pub(crate) id: String,
    #[serde(rename = "Status")]
    pub(crate) status: String,
    #[serde(rename = "ServiceID")]
    pub(crate) service_id: String,
}

/// Returns the worst status of the checks. If there are no checks, returns `passing`. If a status is unknown, returns
/// an empty text.
pub(crate) fn health<'a>(checks: impl Iterator<Item = &'a Check>) -> &'static str {
    const ORDER: [&str; 4] = ["passing", "warning", "critical", "maintenance"];
    let rank = |check: &Check| match &*check.id {
        "_node_maintenance" => Some(3),
        id if id.starts_with("_service_maintenance:") => Some(3),
        _ => ORDER[..3].iter().position(|status| *status == check.status),
    };
    // If the status of one check is unknown, the health of the service is unknown, too.
    let worst = checks
        .map(rank)
        .try_fold(0, |worst, rank| rank.map(|rank| rank.max(worst)));
    worst.and_then(|rank| ORDER.get(rank).copied()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_check_is_the_health() {
        let aggregate = |checks: &[(&str, &str)]| {
            let checks: Vec<Check> = checks
                .iter()
                .map(|(id, status)| Check {
                    id: (*id).to_owned(),
                    status: (*status).to_owned(),
                    service_id: String::new(),
                })
                .collect();
            health(checks.iter())
        };
        assert_eq!(aggregate(&[]), "passing");
        assert_eq!(aggregate(&[("a", "passing"), ("b", "warning")]), "warning");
        assert_eq!(aggregate(&[("a", "critical"), ("b", "warning")]), "critical");
        assert_eq!(
            aggregate(&[("_service_maintenance:web", "critical"), ("b", "critical")]),
            "maintenance"
        );
        assert_eq!(aggregate(&[("_node_maintenance", "critical")]), "maintenance");
        assert_eq!(aggregate(&[("a", "unheard-of")]), "");
    }
}
