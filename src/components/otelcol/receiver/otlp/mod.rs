//! `otelcol.receiver.otlp`: receives the profiles that OpenTelemetry programs send.
//!
//! In: export requests by gRPC and HTTP, each on its own port. Out: profiles as pprof to the receivers. The result of
//! the receivers decides the response. `routes` handles requests, and `wire::otlp` converts them to profiles.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::common::passing::fanout::{Fanout, LaneMetrics};
use crate::common::serving::generations::{self, Generation};
use crate::common::serving::intake::Intake;
use crate::common::serving::listening::OpenPort;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, Stability};
use alluvium_wire::grpc::PREFIX_BYTES;

mod arguments;
mod metrics;
mod receipt;
mod routes;
#[cfg(test)]
mod tests;

use arguments::ReceiverArguments;
use metrics::ReceiverMetrics;
use receipt::ReceiptTimes;
use routes::Handlers;

/// Timeout for reading a body.
const READ_WITHIN: Duration = Duration::from_secs(30);
/// Maximum time from the end of a request body to the response.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Time that requests in progress have to finish when the server stops.
const GRACE: Duration = Duration::from_secs(30);

/// The definition of `otelcol.receiver.otlp`.
pub(crate) const DEFINITION: Definition<ReceiverArguments> = Definition {
    name: "otelcol.receiver.otlp",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: |scope| drop((ReceiverMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`otelcol.receiver.otlp` receives the profiles that OpenTelemetry programs and collectors send.",
};

struct Receive {
    context: Context,
    fanout: Arc<Fanout>,
    metrics: ReceiverMetrics,
    serving: Mutex<Serving>,
    /// Wakes the run loop after a change of the ports or the limits.
    changed: Notify,
    /// Dates profiles without a time, also if a client repeats a request on the other port.
    receipt: Arc<ReceiptTimes>,
}

/// The open ports, and the arguments with which they were opened.
#[derive(Clone)]
struct Serving {
    grpc: Option<Arc<OpenPort>>,
    http: Option<Arc<OpenPort>>,
    arguments: Arc<ReceiverArguments>,
}

fn build(
    context: Context,
    arguments: Arc<ReceiverArguments>,
) -> Result<Arc<dyn Component<ReceiverArguments>>, ComponentError> {
    let serving = Serving::new(arguments.clone(), None)?;
    let fanout = Fanout::with_acknowledgement(&context);
    fanout.update(&arguments.output.profiles);
    Ok(Arc::new(Receive {
        metrics: ReceiverMetrics::new(&context.metrics),
        context,
        fanout: Arc::new(fanout),
        serving: Mutex::new(serving),
        changed: Notify::new(),
        receipt: Arc::default(),
    }))
}

impl Serving {
    fn new(arguments: Arc<ReceiverArguments>, before: Option<&Self>) -> Result<Self, ComponentError> {
        let grpc = arguments.grpc.as_ref().map(|grpc| {
            let before = before.and_then(|before| before.grpc.as_deref());
            OpenPort::open(grpc.port(), before).map(Arc::new)
        });
        let http = arguments.http.as_ref().map(|http| {
            let before = before.and_then(|before| before.http.as_deref());
            OpenPort::open(http.port(), before).map(Arc::new)
        });
        Ok(Self {
            grpc: grpc.transpose()?,
            http: http.transpose()?,
            arguments,
        })
    }

    fn is_as(&self, arguments: &ReceiverArguments) -> bool {
        let own = &self.arguments;
        (&own.grpc, &own.http, &own.limits) == (&arguments.grpc, &arguments.http, &arguments.limits)
    }

    /// Returns the name and the address of each port.
    fn addresses(&self) -> Vec<(&'static str, String)> {
        let ports = [("grpc", &self.grpc), ("http", &self.http)];
        let open = ports
            .into_iter()
            .filter_map(|(name, port)| Some((name, port.as_ref()?)));
        open.map(|(name, port)| (name, port.local_addr().to_string())).collect()
    }
}

impl Receive {
    /// Returns each port with its routes. The requests of both ports share one memory budget.
    fn routers(&self, serving: &Serving) -> Vec<(Arc<OpenPort>, Router)> {
        let budget = serving.arguments.limits.budget();
        let handlers = |max_body| Handlers {
            fanout: self.fanout.clone(),
            metrics: self.metrics.clone(),
            intake: Intake::new(budget.clone(), max_body, READ_WITHIN),
            answer_within: ANSWER_WITHIN,
            receipt: self.receipt.clone(),
        };
        let mut routers = Vec::new();
        if let (Some(port), Some(grpc)) = (&serving.grpc, &serving.arguments.grpc) {
            let handlers = handlers(grpc.max_recv_msg_size.get().saturating_add(PREFIX_BYTES as u64));
            routers.push((port.clone(), routes::grpc_router(handlers)));
        }
        if let (Some(port), Some(http)) = (&serving.http, &serving.arguments.http) {
            let handlers = handlers(http.max_request_body_size.get());
            routers.push((port.clone(), routes::http_router(handlers)));
        }
        routers
    }

    /// Creates the listeners for the arguments in force.
    fn generation(&self) -> Result<Generation, ComponentError> {
        let serving = self.serving.lock().clone();
        let routers = self.routers(&serving).into_iter();
        let listeners = routers.map(|(port, router)| Ok((port.listener(GRACE)?, router)));
        let addresses = serving.addresses().into_iter();
        let addresses: Vec<String> = addresses.map(|(name, address)| format!("{address} ({name})")).collect();
        Ok(Generation {
            listeners: listeners.collect::<Result<_, ComponentError>>()?,
            addresses: addresses.join(", "),
        })
    }
}

impl Component<ReceiverArguments> for Receive {
    fn update(&self, arguments: Arc<ReceiverArguments>) -> Result<(), ComponentError> {
        let mut serving = self.serving.lock();
        if !serving.is_as(&arguments) {
            *serving = Serving::new(arguments.clone(), Some(&serving))?;
            self.changed.notify_one();
        }
        drop(serving);
        self.fanout.update(&arguments.output.profiles);
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            let next = || self.generation();
            generations::serve(next, &self.changed, &self.context.health, shutdown).await
        })
    }

    fn debug_info(&self) -> Value {
        let addresses = self.serving.lock().addresses().into_iter();
        Value::object(addresses.map(|(name, address)| (name, Value::string(address))))
    }

    fn is_exclusive(&self) -> bool {
        true
    }
}
