//! `discovery.kubelet`: discovers the pods of one node through its kubelet.
//!
//! In: the response of `/pods`. Out: the same targets as `discovery.kubernetes` with the role `pod`, but without
//! requests to the API server.

use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::HttpUrl;
use crate::common::http::web_api::WebApi;
use crate::common::kubernetes::api::Page;
use crate::common::kubernetes::objects::Pod;
use crate::common::kubernetes::pods;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.kubelet`.
    pub(crate) struct KubeletArguments {
        /// Namespaces of the pods. An empty list means all namespaces.
        namespaces: Vec<Arc<str>> = [],
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "5s",
        /// URL of the kubelet, including the port.
        url: HttpUrl = "https://localhost:10250",
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<KubeletArguments> = polled::definition::<Kubelet>(
    "discovery.kubelet",
    "`discovery.kubelet` finds the pods of one node through its kubelet.",
);

struct Kubelet {
    api: WebApi,
    namespaces: Vec<Arc<str>>,
    interval: Duration,
}

impl Discovery for Kubelet {
    type Arguments = KubeletArguments;

    fn new(arguments: &KubeletArguments, context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            api: WebApi::new(&arguments.client, &context.user_agent, arguments.url.url())?,
            namespaces: arguments.namespaces.clone(),
            interval: arguments.refresh_interval.get(),
        })
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let answer: Page<Pod> = self.api.json(self.api.url(["pods"])).await?;
        let mut pods = answer.items.unwrap_or_default();
        pods.retain(|pod| self.is_wanted(&pod.metadata.namespace));
        // The kubelet returns pods in no fixed order.
        pods.sort_by_cached_key(|pod| pod.metadata.key());
        Ok(pods.iter().flat_map(targets).collect())
    }
}

impl Kubelet {
    fn is_wanted(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|name| **name == *namespace)
    }
}

fn targets(pod: &Pod) -> Vec<Target> {
    pods::targets(pod, &pods::labels_with_namespace(pod))
}
