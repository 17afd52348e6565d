//! `pyroscope.write`: sends profiles to servers that accept push.v1. Each endpoint has its own durable queue.
//!
//! In: profiles through the exported receiver. Out: requests. A producer waits for the disk only, never for an
//! endpoint. Each endpoint receives every profile, and `common::sending::outbox` sends to each endpoint independently
//! of the other endpoints. `delivery` makes the requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::common::passing::receiver;
use crate::common::passing::receiver::TakesProfiles;
use crate::common::sending::outbox::{MetricNames, Outbox, Plan, register_metrics};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::schema::{Attribute, Kind, RECEIVER};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, Stability};
use alluvium_profile::{RawProfile, RefusedProfile};
use alluvium_wire::client::HttpClient;

mod arguments;
mod delivery;
mod labels;
mod parcel;
#[cfg(test)]
mod tests;

use arguments::{EndpointArguments, WriteArguments};
use delivery::Delivery;
use labels::LabelPolicy;

/// Names of the component's metrics.
const METRICS: MetricNames = MetricNames {
    sent_profiles: "pyroscope_write_sent_profiles",
    sent_bytes: "pyroscope_write_sent_bytes",
    dropped_profiles: "pyroscope_write_dropped_profiles",
    dropped_bytes: "pyroscope_write_dropped_bytes",
    dropped_profiles_by_reason: "pyroscope_write_dropped_profiles_by_reason",
    retries: "pyroscope_write_retries",
    requests: "pyroscope_write_requests",
    latency: "pyroscope_write_latency",
    queue_profiles: "pyroscope_write_queue_profiles",
    queue_bytes: "pyroscope_write_queue_bytes",
    queue_oldest_age: "pyroscope_write_queue_oldest_age_seconds",
};

/// The component's definition.
pub(crate) const DEFINITION: Definition<WriteArguments> = Definition {
    name: "pyroscope.write",
    stability: Stability::GenerallyAvailable,
    exports: &[Attribute::required(
        "receiver",
        Kind::Capsule(RECEIVER),
        "Receives profiles for all endpoints.",
    )],
    metrics: |scope| register_metrics(scope, &METRICS),
    build: Some(build),
    doc: "`pyroscope.write` sends profiles to Pyroscope or Alluvium servers and keeps them in a durable queue until \
        the server has accepted them.",
};

struct Write {
    context: Context,
    outbox: Arc<Outbox>,
    labels: RwLock<LabelPolicy>,
}

fn build(
    context: Context,
    arguments: Arc<WriteArguments>,
) -> Result<Arc<dyn Component<WriteArguments>>, ComponentError> {
    let component = Arc::new(Write {
        outbox: Arc::new(Outbox::new(context.clone(), &METRICS)),
        context,
        labels: RwLock::default(),
    });
    component.set_arguments(&arguments)?;
    component.outbox.report_orphans();
    let receiver = receiver::export(&component.context.id, Arc::downgrade(&component));
    (component.context.exports)(BTreeMap::from([("receiver".into(), receiver)]));
    Ok(Arc::new(RunningWrite(component)))
}

impl Write {
    /// Applies the arguments. On an error none of the endpoints changes.
    fn set_arguments(&self, arguments: &WriteArguments) -> Result<(), ComponentError> {
        let plans = arguments.endpoint.iter().map(|endpoint| self.plan(endpoint));
        self.outbox.set_endpoints(plans.collect::<Result<_, _>>()?)?;
        *self.labels.write() = LabelPolicy {
            external: arguments.external_labels.0.clone(),
            tenants: arguments.tenant_labels().collect(),
        };
        Ok(())
    }

    fn plan(&self, arguments: &EndpointArguments) -> Result<Plan, ComponentError> {
        let options = arguments.client_options(&self.context.user_agent);
        let client = HttpClient::new(&options)
            .map_err(|error| ComponentError(format!("endpoint {}: {error}", arguments.url.written())))?;
        Ok(Plan {
            name: arguments.name.clone(),
            url: arguments.url.url().clone(),
            settings: arguments.settings(),
            delivery: Arc::new(Delivery {
                client,
                arguments: arguments.clone(),
                last_limit: Mutex::default(),
            }),
        })
    }
}

impl TakesProfiles for Write {
    fn take(self: Arc<Self>, profiles: Vec<RawProfile>) -> BoxFuture<'static, Vec<RefusedProfile>> {
        Box::pin(async move {
            let labels = self.labels.read().clone();
            self.outbox.append(profiles, |profile| labels.prepare(profile)).await
        })
    }
}

struct RunningWrite(Arc<Write>);

impl Component<WriteArguments> for RunningWrite {
    fn update(&self, arguments: Arc<WriteArguments>) -> Result<(), ComponentError> {
        self.0.set_arguments(&arguments)?;
        self.0.outbox.wake();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            self.0.outbox.clone().run(shutdown).await;
            Ok(())
        })
    }

    fn debug_info(&self) -> Value {
        self.0.outbox.debug_info()
    }
}
