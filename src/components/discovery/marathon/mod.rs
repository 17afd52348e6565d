//! `discovery.marathon`: discovers the tasks of a Marathon cluster.
//!
//! In: the applications with their tasks. Out: a target for each port of each task. If a server fails, the component
//! tries the next server.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use crate::common::arguments::checks;
use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::api_error::ApiError;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::{HttpUrl, check_header_secret};
use crate::common::http::web_api::WebApi;
use crate::discovery::marathon::application::{Application, Applications};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, NotEmpty, Secret};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};
use alluvium_wire::client;

mod application;
#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.marathon`.
    pub(crate) struct MarathonArguments {
        /// Authentication token for DC/OS, sent with every request.
        auth_token: Option<Secret>,
        /// File with the authentication token for DC/OS. It is read at every refresh.
        auth_token_file: Option<PathBuf>,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "30s",
        /// URLs of the Marathon servers.
        servers: NotEmpty<Vec<HttpUrl>>,
    }
    shared { client: HttpClientArguments }
    check MarathonArguments::check;
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<MarathonArguments> = polled::definition::<Marathon>(
    "discovery.marathon",
    "`discovery.marathon` finds the tasks of a Marathon cluster.",
);

struct Marathon {
    servers: Vec<WebApi>,
    /// Index of the server that last responded.
    current: AtomicUsize,
    token: Option<client::Secret>,
    interval: Duration,
}

impl MarathonArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        check_header_secret("auth_token", self.auth_token.as_ref())?;
        let token = ("auth_token", self.auth_token.is_some());
        let file = ("auth_token_file", self.auth_token_file.is_some());
        let client = &self.client;
        checks::at_most_one(&[token, file, ("basic_auth", client.basic_auth.is_some())])?;
        let bearer = ("bearer_token", client.bearer_token.is_some());
        let bearer_file = ("bearer_token_file", client.bearer_token_file.is_some());
        checks::at_most_one(&[token, file, bearer, bearer_file])?;
        checks::at_most_one(&[token, file, ("authorization", client.authorization.is_some())])?;
        checks::at_most_one(&[token, file, ("oauth2", client.oauth2.is_some())])
    }
}

impl Discovery for Marathon {
    type Arguments = MarathonArguments;

    fn new(arguments: &MarathonArguments, context: &Context) -> Result<Self, ComponentError> {
        let options = arguments.client.options(&context.user_agent);
        let api = |server: &HttpUrl| WebApi::with_options(&options, server.url());
        let text = arguments.auth_token.as_ref();
        let file = arguments.auth_token_file.clone();
        Ok(Self {
            servers: arguments.servers.0.iter().map(api).collect::<Result<_, _>>()?,
            current: AtomicUsize::new(0),
            token: text
                .map(|token| client::Secret::Text(token.0.clone()))
                .or_else(|| file.map(client::Secret::File)),
            interval: arguments.refresh_interval.get(),
        })
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let headers = self.headers().await?;
        let count = self.servers.len();
        let first = self.current.load(Ordering::Relaxed);
        let mut failures = Vec::new();
        for index in (first..first + count).map(|index| index % count) {
            match self.applications(&self.servers[index], &headers).await {
                Ok(all) => {
                    self.current.store(index, Ordering::Relaxed);
                    return Ok(all.apps.iter().flat_map(Application::targets).collect());
                }
                Err(error) => failures.push(error),
            }
        }
        Err(DiscoveryError::Servers(failures))
    }
}

impl Marathon {
    async fn applications(&self, server: &WebApi, headers: &HeaderMap) -> Result<Applications, DiscoveryError> {
        // Marathon redirects a request for the path without the trailing slash.
        let mut url = server.url(["v2", "apps", ""]);
        url.set_query(Some("embed=apps.tasks"));
        Ok(server.get(url, headers.clone()).await?.json()?)
    }

    /// Returns the header with the token in the form of DC/OS, `token=TOKEN`.
    async fn headers(&self) -> Result<HeaderMap, DiscoveryError> {
        let Some(token) = &self.token else {
            return Ok(HeaderMap::new());
        };
        let token = token.read().await?;
        let value = HeaderValue::from_str(&format!("token={token}"));
        let mut value = value.map_err(|source| ApiError::Header {
            subject: "the token",
            source,
        })?;
        value.set_sensitive(true);
        Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }
}
