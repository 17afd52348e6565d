//! `discovery.scaleway`: discovers the instances or the bare metal servers of Scaleway.
//!
//! In: the servers of a zone and project, page by page. Out: a target for each server that has an address.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::api_error::ApiError;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::web_api::WebApi;
use crate::discovery::scaleway::arguments::{Role, ScalewayArguments};
use crate::discovery::scaleway::lists::Lists;
use alluvium_pipeline::component::{ComponentError, Context, Definition};
use alluvium_wire::client;

mod arguments;
mod baremetal;
mod instance;
mod lists;
#[cfg(test)]
mod tests;

/// The header that carries the secret key.
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// The component's definition.
pub(crate) const DEFINITION: Definition<ScalewayArguments> = polled::definition::<Scaleway>(
    "discovery.scaleway",
    "`discovery.scaleway` finds the instances or the bare metal servers of Scaleway.",
);

struct Scaleway {
    api: WebApi,
    secret: client::Secret,
    arguments: ScalewayArguments,
}

impl Discovery for Scaleway {
    type Arguments = ScalewayArguments;

    fn new(arguments: &ScalewayArguments, context: &Context) -> Result<Self, ComponentError> {
        let client = HttpClientArguments {
            tls_config: arguments.tls_config.clone(),
            ..HttpClientArguments::with_transport(&arguments.transport)
        };
        let secret = match (&arguments.secret_key, &arguments.secret_key_file) {
            (Some(secret), _) => client::Secret::Text(secret.0.clone()),
            (None, file) => client::Secret::File(file.clone().unwrap_or_default()),
        };
        Ok(Self {
            api: WebApi::new(&client, &context.user_agent, arguments.api_url.url())?,
            secret,
            arguments: arguments.clone(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let lists = Lists {
            api: &self.api,
            headers: self.headers().await?,
        };
        match self.arguments.role {
            Role::Instance => instance::targets(&lists, &self.arguments).await,
            Role::BareMetal => baremetal::targets(&lists, &self.arguments).await,
        }
    }
}

impl Scaleway {
    async fn headers(&self) -> Result<HeaderMap, DiscoveryError> {
        let secret = self.secret.read().await?;
        let mut value = HeaderValue::from_str(&secret).map_err(|source| ApiError::Header {
            subject: "secret_key",
            source,
        })?;
        value.set_sensitive(true);
        Ok(HeaderMap::from_iter([(TOKEN, value)]))
    }
}
