//! `prometheus.exporter.self`: a target for Alluvium's own metrics.
//!
//! In: nothing. Out: one target, with Alluvium's in-process address and the path at which the component serves the
//! metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};

use crate::common::arguments::targets;
use crate::common::arguments::targets::Target;
use crate::common::discovery::schema;
use alluvium_base::{BoxFuture, Shutdown, net};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_pipeline::component::{
    Component, ComponentError, Context, Definition, HealthState, Stability, no_metrics, run_passive,
};
use alluvium_telemetry::metrics;

#[cfg(test)]
mod tests;

/// Path of the metrics, below the path of the component.
const METRICS_PATH: &str = "/metrics";

arguments! {
    /// Arguments of `prometheus.exporter.self`, which has none.
    pub(crate) struct SelfArguments {}
}

/// The definition of `prometheus.exporter.self`.
pub(crate) const DEFINITION: Definition<SelfArguments> = Definition {
    name: "prometheus.exporter.self",
    stability: Stability::GenerallyAvailable,
    exports: schema::EXPORTS,
    metrics: no_metrics,
    build: Some(build),
    doc: "`prometheus.exporter.self` exports a target for Alluvium's own metrics.",
};

struct OwnMetrics {
    context: Context,
    target: Target,
}

fn build(
    context: Context,
    _arguments: Arc<SelfArguments>,
) -> Result<Arc<dyn Component<SelfArguments>>, ComponentError> {
    let component = OwnMetrics {
        target: target(&context),
        context,
    };
    let exported = targets::to_value(vec![component.target.clone()]);
    component.show_live(&SelfArguments {}, &component.context.live);
    (component.context.exports)(BTreeMap::from([("targets".into(), exported)]));
    (component.context.health)(HealthState::Healthy, "serving metrics".to_owned());
    Ok(Arc::new(component))
}

fn target(context: &Context) -> Target {
    let id: &str = &context.id;
    let name = id.rsplit_once('.').map_or(id, |(name, _)| name);
    let path = format!("/api/v0/component/{id}{METRICS_PATH}");
    let hostname = net::hostname();
    let labels = [
        ("__address__", context.own_http.address()),
        ("__meta_component_id", id),
        ("__meta_component_name", name),
        ("__metrics_path__", &path),
        ("__scheme__", "http"),
        ("instance", &hostname),
        ("job", "integrations/self"),
    ];
    labels
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

impl Component<SelfArguments> for OwnMetrics {
    fn update(&self, _arguments: Arc<SelfArguments>) -> Result<(), ComponentError> {
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        run_passive(shutdown)
    }

    fn is_passive(&self) -> bool {
        true
    }

    fn serve(&self, request: Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let is_known = request.uri().path() == METRICS_PATH;
        let scope = self.context.metrics.clone();
        Some(Box::pin(async move {
            if is_known {
                let mut response = Response::new(Bytes::from(scope.encode()));
                let text = HeaderValue::from_static(metrics::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, text);
                response
            } else {
                let mut response = Response::new(Bytes::from_static(b"the metrics are at /metrics\n"));
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        }))
    }

    fn show_live(&self, _arguments: &SelfArguments, live: &LiveHandle) {
        targets::tell(std::slice::from_ref(&self.target), live);
    }
}
