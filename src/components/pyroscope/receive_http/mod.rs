//! `pyroscope.receive_http`: receives the profiles that programs and other collectors send.
//!
//! In: requests to `/ingest` and pushes of push.v1 on its own ports. Out: profiles to the receivers, not decoded. The
//! result of the receivers decides the response. `routes` handles requests. `ingest` and `push` convert them to
//! profiles.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::common::passing::fanout::{Fanout, LaneMetrics};
use crate::common::serving::generations::{self, Generation};
use crate::common::serving::intake::Intake;
use crate::common::serving::listening::OpenPort;
use crate::common::serving::server::{GrpcServer, HttpServer};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, Stability};
use alluvium_wire::grpc::PREFIX_BYTES;

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
    /// Wakes the run loop after a change of the ports or the limits.
    changed: Notify,
}

/// The open ports, and the limits for requests.
#[derive(Clone)]
struct Serving {
    http_port: Arc<OpenPort>,
    grpc_port: Option<Arc<OpenPort>>,
    http: HttpServer,
    grpc: Option<GrpcServer>,
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
    fn new(arguments: &ReceiveArguments, before: Option<&Self>) -> Result<Self, ComponentError> {
        let http_before = before.map(|before| &*before.http_port);
        let grpc_before = before.and_then(|before| before.grpc_port.as_deref());
        let http_port = OpenPort::open(arguments.http.port("http"), http_before)?;
        let grpc_port = arguments.grpc.as_ref().map(|grpc| {
            let port = OpenPort::open(grpc.port("grpc"), grpc_before);
            port.map(Arc::new)
        });
        Ok(Self {
            http_port: Arc::new(http_port),
            grpc_port: grpc_port.transpose()?,
            http: arguments.http.clone(),
            grpc: arguments.grpc.clone(),
            limits: arguments.limits.clone(),
            grace: arguments.graceful_shutdown_timeout,
        })
    }

    fn is_as(&self, arguments: &ReceiveArguments) -> bool {
        self.http == arguments.http
            && self.grpc == arguments.grpc
            && self.limits == arguments.limits
            && self.grace == arguments.graceful_shutdown_timeout
    }

    /// Describes the addresses of the ports, for the health of the component.
    fn addresses(&self) -> String {
        let http = self.http_port.local_addr();
        match &self.grpc_port {
            Some(grpc) => format!("{http} (http), {} (grpc)", grpc.local_addr()),
            None => http.to_string(),
        }
    }
}

impl Receive {
    /// Returns each port with its routes. The requests of both ports share the memory budget and the timeouts.
    fn routers(&self, serving: &Serving) -> Vec<(Arc<OpenPort>, Router)> {
        let budget = serving.limits.budget();
        let max_body = serving.limits.max_body_bytes.get();
        let handlers = |max_body| Handlers {
            fanout: self.fanout.clone(),
            metrics: self.metrics.clone(),
            intake: Intake::new(budget.clone(), max_body, serving.http.server_read_timeout),
            answer_within: serving.http.server_write_timeout,
        };
        let mut routers = vec![(serving.http_port.clone(), routes::http_router(handlers(max_body)))];
        if let (Some(port), Some(grpc)) = (&serving.grpc_port, &serving.grpc) {
            let max_message = max_body.min(grpc.server_max_recv_msg_size.get() as u64);
            let handlers = handlers(max_message.saturating_add(PREFIX_BYTES as u64));
            routers.push((port.clone(), routes::grpc_router(handlers)));
        }
        routers
    }

    /// Creates the listeners for the arguments in force.
    fn generation(&self) -> Result<Generation, ComponentError> {
        let serving = self.serving.lock().clone();
        let routers = self.routers(&serving).into_iter();
        let listeners = routers.map(|(port, router)| Ok((port.listener(serving.grace)?, router)));
        let listeners = listeners.collect::<Result<_, ComponentError>>()?;
        self.metrics.connections_limit.set(serving.http.listen.conn_limit);
        Ok(Generation {
            listeners,
            addresses: serving.addresses(),
        })
    }
}

impl Component<ReceiveArguments> for Receive {
    fn update(&self, arguments: Arc<ReceiveArguments>) -> Result<(), ComponentError> {
        let mut serving = self.serving.lock();
        if !serving.is_as(&arguments) {
            *serving = Serving::new(&arguments, Some(&serving))?;
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
        let serving = self.serving.lock();
        let grpc = serving.grpc_port.as_ref().map(|port| ("grpc_address", port));
        let ports = std::iter::once(("address", &serving.http_port)).chain(grpc);
        Value::object(ports.map(|(name, port)| (name, Value::string(port.local_addr().to_string()))))
    }

    fn is_exclusive(&self) -> bool {
        true
    }
}
