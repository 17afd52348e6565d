//! The component of both OTLP exporters: a receiver, and an outbox with one endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::common::passing::receiver;
use crate::common::passing::receiver::TakesProfiles;
use crate::common::sending::outbox::{MetricNames, Outbox, Plan};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Component, ComponentError, Context};
use alluvium_profile::{RawProfile, RefusedProfile, SinkError};

/// The arguments of an exporter, and the names of its metrics. The arguments describe the exporter's endpoint.
pub(crate) trait Exporter: Send + Sync + 'static {
    /// Names of the component's metrics.
    const METRICS: MetricNames;

    /// Returns the endpoint that the arguments describe.
    fn plan(&self, user_agent: &Arc<str>) -> Result<Plan, ComponentError>;
}

struct Taking {
    context: Context,
    outbox: Arc<Outbox>,
}

struct Running(Arc<Taking>);

/// Builds the component with these arguments.
pub(crate) fn build<A: Exporter>(context: Context, arguments: Arc<A>) -> Result<Arc<dyn Component<A>>, ComponentError> {
    let taking = Arc::new(Taking {
        outbox: Arc::new(Outbox::new(context.clone(), &A::METRICS)),
        context,
    });
    taking.set_arguments(&*arguments)?;
    taking.outbox.report_orphans();
    let input = receiver::export(&taking.context.id, Arc::downgrade(&taking));
    (taking.context.exports)(BTreeMap::from([("input".into(), input)]));
    Ok(Arc::new(Running(taking)))
}

impl Taking {
    fn set_arguments(&self, arguments: &impl Exporter) -> Result<(), ComponentError> {
        let plan = arguments.plan(&self.context.user_agent)?;
        self.outbox.set_endpoints(vec![plan])
    }
}

impl TakesProfiles for Taking {
    fn take(self: Arc<Self>, profiles: Vec<RawProfile>) -> BoxFuture<'static, Vec<RefusedProfile>> {
        Box::pin(async move { self.outbox.append(profiles, prepare).await })
    }
}

/// Sets a new id if the profile has none.
fn prepare(profile: RawProfile) -> Result<RawProfile, SinkError> {
    if !profile.id.is_empty() {
        return Ok(profile);
    }
    let id = Uuid::new_v4().to_string().into();
    Ok(RawProfile { id, ..profile })
}

impl<A: Exporter> Component<A> for Running {
    fn update(&self, arguments: Arc<A>) -> Result<(), ComponentError> {
        self.0.set_arguments(&*arguments)?;
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
