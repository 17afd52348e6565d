//! `discovery.http`: fetches targets from a web service, in the format of `discovery.file`.
//!
//! In: a JSON list of groups, each with `targets` (addresses) and `labels`. Out: targets.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::discovery::target_groups;
use crate::common::discovery::target_groups::TargetGroup;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::HttpUrl;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Header with the refresh interval in seconds. Prometheus sends the same header.
const INTERVAL_HEADER: &str = "x-prometheus-refresh-interval-seconds";

arguments! {
    /// Arguments of `discovery.http`.
    pub(crate) struct HttpArguments {
        /// Time between two refreshes of the targets, and the timeout of each request.
        refresh_interval: Interval = "60s",
        /// URL from which the component fetches the targets as JSON.
        url: HttpUrl,
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<HttpArguments> = polled::definition::<Http>(
    "discovery.http",
    "`discovery.http` fetches targets from a web service, in the format of `discovery.file`.",
);

struct Http {
    api: WebApi,
    url: Url,
    written: Arc<str>,
    interval: Duration,
}

impl Discovery for Http {
    type Arguments = HttpArguments;

    fn new(arguments: &HttpArguments, context: &Context) -> Result<Self, ComponentError> {
        let (url, interval) = (arguments.url.url(), arguments.refresh_interval.get());
        let api = WebApi::new(&arguments.client, &context.user_agent, url)?;
        Ok(Self {
            api: api.with_timeout(interval),
            url: url.clone(),
            written: arguments.url.written().clone(),
            interval,
        })
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (
                http::HeaderName::from_static(INTERVAL_HEADER),
                HeaderValue::from(self.interval.as_secs()),
            ),
        ]);
        let answer = self.api.get(self.url.clone(), headers).await?;
        let media = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !media.eq_ignore_ascii_case("application/json") {
            let url = &answer.url;
            let message = format!("{url} answered with the content type `{media}`, not application/json");
            return Err(DiscoveryError::Response(message));
        }
        let groups = target_groups::from_json(&answer.body).map_err(|error| DiscoveryError::Malformed {
            description: format!("{} answered with invalid JSON", answer.url),
            source: error.into(),
        })?;
        Ok(groups.iter().flat_map(|group| self.group(group)).collect())
    }
}

impl Http {
    fn group<'a>(&'a self, group: &'a TargetGroup) -> impl Iterator<Item = Target> + 'a {
        let label = |(name, value): (&String, &String)| (Arc::from(&**name), Arc::from(&**value));
        let labels: Target = group.labels.iter().map(label).collect();
        group.targets.iter().map(move |address| {
            let mut target = labels.clone();
            target.insert("__address__".into(), address.as_str().into());
            target.insert("__meta_url".into(), self.written.clone());
            target
        })
    }
}
