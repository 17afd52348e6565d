//! `pyroscope.ebpf`: samples the stacks of every process of this machine from within the kernel.
//!
//! In: targets that name processes or containers. Out: a CPU profile for each target and interval. The profiler itself
//! is `alluvium_ebpf`; a session is one run of it. This component provides the settings of the profiler and adds labels
//! to the stacks. If a permission is missing, the component reports that in its health and retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::common::passing::fanout::{Fanout, LaneMetrics};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_ebpf::StartError;
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};
use alluvium_profile::{RawProfile, RefusedProfile};

mod arguments;
mod metrics;
mod session;
mod targets;

use arguments::EbpfArguments;
use metrics::EbpfMetrics;
use session::Shared;
use targets::Targets;

/// Time between a failed start and the retry.
const RETRY: Duration = Duration::from_mins(1);
/// Maximum number of intervals whose profiles wait for slow receivers.
const QUEUE: usize = 4;

/// The component's definition.
pub(crate) const DEFINITION: Definition<EbpfArguments> = Definition {
    name: "pyroscope.ebpf",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: |scope| drop((EbpfMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`pyroscope.ebpf` samples the stacks of every process of this machine from within the Linux kernel.",
};

/// The reason why a session ended early.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    /// The profiler cannot start, for example because a permission is missing. A later start may succeed.
    #[error(transparent)]
    Start(StartError),
    /// The profiler's thread cannot start, or it ended on its own.
    #[error(transparent)]
    Thread(#[from] ComponentError),
}

struct Ebpf {
    context: Context,
    metrics: EbpfMetrics,
    fanout: Fanout,
    arguments: Mutex<Arc<EbpfArguments>>,
    /// The targets of the arguments, indexed for the running session.
    targets: Mutex<Arc<Targets>>,
    shared: Mutex<Option<Arc<Shared>>>,
    restart: Notify,
}

fn build(context: Context, arguments: Arc<EbpfArguments>) -> Result<Arc<dyn Component<EbpfArguments>>, ComponentError> {
    let fanout = Fanout::new(&context);
    fanout.update(&arguments.forward_to);
    let metrics = EbpfMetrics::new(&context.metrics);
    // Until the profiler starts, it is unknown whether the kernel permits profiling.
    (context.health)(HealthState::Unknown, "the profiler has not started yet".to_owned());
    let targets = Arc::new(Targets::new(&arguments));
    metrics
        .active_targets
        .set(i64::try_from(targets.len()).unwrap_or(i64::MAX));
    Ok(Arc::new(Ebpf {
        context,
        metrics,
        fanout,
        arguments: Mutex::new(arguments),
        targets: Mutex::new(targets),
        shared: Mutex::default(),
        restart: Notify::new(),
    }))
}

impl Ebpf {
    /// Runs one session after the other until `shutdown`.
    async fn work(&self, shutdown: &Shutdown) -> Result<(), ComponentError> {
        loop {
            let arguments = self.arguments.lock().clone();
            let is_idle = arguments.options.lazy_mode && self.targets.lock().len() == 0;
            if is_idle {
                (self.context.health)(HealthState::Healthy, "waiting for targets (lazy_mode)".to_owned());
                tokio::select! {
                    () = shutdown.cancelled() => return Ok(()),
                    () = self.restart.notified() => {}
                }
                continue;
            }
            match self.session(arguments, shutdown).await {
                Ok(()) => {}
                Err(SessionError::Thread(error)) => return Err(error),
                Err(SessionError::Start(error)) => {
                    tracing::warn!(component = %self.context.id, error = %error, "cannot profile this machine");
                    (self.context.health)(HealthState::Unhealthy, error.to_string());
                    tokio::select! {
                        () = shutdown.cancelled() => return Ok(()),
                        () = self.restart.notified() => {}
                        () = tokio::time::sleep(RETRY) => {}
                    }
                }
            }
            if shutdown.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Runs one session until a restart or `shutdown`.
    async fn session(&self, arguments: Arc<EbpfArguments>, shutdown: &Shutdown) -> Result<(), SessionError> {
        let shared = Arc::new(Shared {
            targets: Mutex::new(self.targets.lock().clone()),
            stop: AtomicBool::new(false),
            metrics: self.metrics.clone(),
            health: {
                let health = self.context.health.clone();
                Box::new(move |message| (health)(HealthState::Healthy, message))
            },
        });
        *self.shared.lock() = Some(shared.clone());
        let _stop = StopWhenDropped(shared.clone());
        let (out, mut profiles) = mpsc::channel::<Vec<RawProfile>>(QUEUE);
        let (start_sender, start_result) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("ebpf-profiler".to_owned())
            .spawn({
                let shared = shared.clone();
                move || {
                    session::run(&arguments.options, &shared, &out, |started| {
                        // The send fails if the component was stopped in the meantime.
                        let _ = start_sender.send(started);
                    });
                }
            })
            .map_err(|error| ComponentError(format!("cannot start a thread: {error}")))?;
        match start_result.await {
            Ok(Ok(message)) => {
                (self.context.health)(HealthState::Healthy, message);
            }
            Ok(Err(error)) => return Err(SessionError::Start(error)),
            Err(_) => return Err(ComponentError("the profiler's thread panicked at startup".to_owned()).into()),
        }
        let mut stopped = std::pin::pin!(async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.restart.notified() => {}
            }
        });
        let mut is_stopping = false;
        loop {
            tokio::select! {
                () = &mut stopped, if !is_stopping => {
                    is_stopping = true;
                    shared.stop.store(true, Ordering::Relaxed);
                }
                batch = profiles.recv() => match batch {
                    Some(batch) => self.forward(batch).await,
                    None => break,
                },
            }
        }
        *self.shared.lock() = None;
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(())) if is_stopping => Ok(()),
            _ => Err(ComponentError("the profiler's thread ended too early".to_owned()).into()),
        }
    }

    async fn forward(&self, batch: Vec<RawProfile>) {
        let errors = self.fanout.append(batch).await;
        if let Some(RefusedProfile { error, .. }) = errors.first() {
            self.metrics.dropped.inc_by(errors.len() as u64);
            tracing::warn!(component = %self.context.id, count = errors.len(), error = %error,
            "receivers refused profiles");
        }
    }
}

/// Stops the thread of a session when dropped, even if the future of the session is dropped early.
struct StopWhenDropped(Arc<Shared>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

impl Component<EbpfArguments> for Ebpf {
    fn update(&self, arguments: Arc<EbpfArguments>) -> Result<(), ComponentError> {
        let targets = Arc::new(Targets::new(&arguments));
        self.metrics
            .active_targets
            .set(i64::try_from(targets.len()).unwrap_or(i64::MAX));
        self.fanout.update(&arguments.forward_to);
        let was_idle = self.targets.lock().len() == 0;
        let lazy_wakes = arguments.options.lazy_mode && was_idle != (targets.len() == 0);
        *self.targets.lock() = targets.clone();
        if let Some(shared) = self.shared.lock().as_ref() {
            *shared.targets.lock() = targets;
        }
        let before = std::mem::replace(&mut *self.arguments.lock(), arguments.clone());
        if before.options != arguments.options || lazy_wakes {
            self.restart.notify_one();
        }
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move { self.work(&shutdown).await })
    }

    fn debug_info(&self) -> Value {
        let count = i64::try_from(self.targets.lock().len()).unwrap_or(i64::MAX);
        Value::object([("targets", Value::Number(Number::Int(count)))])
    }
}
