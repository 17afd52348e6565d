//! `pyroscope.receive_http`: receives the profiles that programs and other collectors send.
//!
//! In: requests to `/ingest` and pushes of push.v1 on its own port. Out: profiles to the receivers, not decoded. The
//! result of the receivers decides the response. `routes` handles requests. `ingest` and `push` convert them to
//! profiles.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::common::passing::fanout::{Fanout, LaneMetrics};
use crate::common::serving::generations::{self, Generation};
use crate::common::serving::intake::Intake;
use crate::common::serving::listening::OpenPort;
use crate::common::serving::server::HttpServer;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, Stability};

mod arguments;
mod ingest;
mod metrics;
mod push;
mod routes;
#[cfg(test)]
mod tests;

use arguments::{Limits, ReceiveArguments};
use metrics::ReceiveMetrics;
use routes::Handlers;

/// The definition of `pyroscope.receive_http`.
pub(crate) const DEFINITION: Definition<ReceiveArguments> = Definition {
    name: "pyroscope.receive_http",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: |scope| drop((ReceiveMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`pyroscope.receive_http` receives the profiles that programs and other collectors send.",
};

struct Receive {
    context: Context,
    fanout: Arc<Fanout>,
    metrics: ReceiveMetrics,
    serving: Mutex<Serving>,
    /// Wakes the run loop after a change of the port or the limits.
    changed: Notify,
}

/// The open port, and the limits for requests.
#[derive(Clone)]
struct Serving {
    port: Arc<OpenPort>,
    http: HttpServer,
    limits: Limits,
    grace: Duration,
}

fn build(
    context: Context,
    arguments: Arc<ReceiveArguments>,
) -> Result<Arc<dyn Component<ReceiveArguments>>, ComponentError> {
    let serving = Serving::new(&arguments, None)?;
    let fanout = Fanout::with_acknowledgement(&context);
    fanout.update(&arguments.forward_to);
    Ok(Arc::new(Receive {
        metrics: ReceiveMetrics::new(&context.metrics),
        context,
        fanout: Arc::new(fanout),
        serving: Mutex::new(serving),
        changed: Notify::new(),
    }))
}

impl Serving {
    fn new(arguments: &ReceiveArguments, before: Option<&OpenPort>) -> Result<Self, ComponentError> {
        Ok(Self {
            port: Arc::new(OpenPort::open(arguments.http.port("http"), before)?),
            http: arguments.http.clone(),
            limits: arguments.limits.clone(),
            grace: arguments.graceful_shutdown_timeout,
        })
    }

    fn is_as(&self, arguments: &ReceiveArguments) -> bool {
        self.http == arguments.http
            && self.limits == arguments.limits
            && self.grace == arguments.graceful_shutdown_timeout
    }
}

impl Receive {
    /// Creates the listener for the arguments in force.
    fn generation(&self) -> Result<Generation, ComponentError> {
        let serving = self.serving.lock().clone();
        let listener = serving.port.listener(serving.grace)?;
        let handlers = Handlers {
            fanout: self.fanout.clone(),
            metrics: self.metrics.clone(),
            intake: Intake::new(
                serving.limits.budget(),
                serving.limits.max_body_bytes.get(),
                serving.http.server_read_timeout,
            ),
            answer_within: serving.http.server_write_timeout,
        };
        self.metrics.connections_limit.set(serving.http.listen.conn_limit);
        Ok(Generation {
            listeners: vec![(listener, routes::router(handlers))],
            addresses: serving.port.local_addr().to_string(),
        })
    }
}

impl Component<ReceiveArguments> for Receive {
    fn update(&self, arguments: Arc<ReceiveArguments>) -> Result<(), ComponentError> {
        let mut serving = self.serving.lock();
        if !serving.is_as(&arguments) {
            *serving = Serving::new(&arguments, Some(&serving.port))?;
            self.changed.notify_one();
        }
        drop(serving);
        self.fanout.update(&arguments.forward_to);
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            let next = || self.generation();
            generations::serve(next, &self.changed, &self.context.health, shutdown).await
        })
    }

    fn debug_info(&self) -> Value {
        let address = self.serving.lock().port.local_addr();
        Value::object([("address", Value::string(address.to_string()))])
    }

    fn is_exclusive(&self) -> bool {
        true
    }
}
