//! What the components' tests share: arguments with the schema's defaults, a context that records, a server, polling
//! with a deadline.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use parking_lot::Mutex;

use crate::base::{BoxFuture, Shutdown};
use crate::components::common::targets::Targets;
use crate::lang::attribute::FromValue as _;
use crate::lang::body::FromBody;
use crate::lang::schema::{ArgumentBlock, Arguments, Block, RECEIVER, Schema};
use crate::lang::value::{Capsule, Number, Value};
use crate::pipeline::component::live::LiveHandle;
use crate::pipeline::component::own_http::OwnHttp;
use crate::pipeline::component::{Component, ComponentError, Context, Definition, HealthState};
use crate::profile::sink::Receiver;
use crate::profile::{ProfileSink, RawProfile, SinkError};
use crate::telemetry::metrics::Scope;

/// A body as a test writes it: what it leaves out has the schema's default.
#[derive(Default, Clone)]
pub struct Body {
    attributes: Vec<(&'static str, Value)>,
    blocks: Vec<(&'static str, Option<&'static str>, Body)>,
}

impl Body {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.attributes.retain(|(other, _)| *other != name);
        self.attributes.push((name, value));
        self
    }

    pub fn text(self, name: &'static str, text: &str) -> Self {
        self.with(name, Value::string(text))
    }

    pub fn block(mut self, name: &'static str, body: Body) -> Self {
        self.blocks.push((name, None, body));
        self
    }

    pub fn labelled(mut self, name: &'static str, label: &'static str, body: Body) -> Self {
        self.blocks.push((name, Some(label), body));
        self
    }

    /// The arguments as a component is built with them.
    pub fn arguments<A: FromBody + Send + Sync>(&self, definition: &Definition<A>) -> Arc<A> {
        self.read(definition).expect("arguments are valid")
    }

    /// The arguments, or what is wrong with them first.
    pub fn read<A: FromBody + Send + Sync>(&self, definition: &Definition<A>) -> Result<Arc<A>, String> {
        let values = self.fit(A::SCHEMA, &[]);
        definition.read(&values).map_err(|errors| errors.0[0].to_string())
    }

    /// The body as the language would hand it over.
    pub fn fit(&self, schema: &Schema, defaults: &[(&str, &str)]) -> Arguments {
        for (name, _) in &self.attributes {
            assert!(
                schema.attributes.iter().any(|attribute| attribute.name == *name),
                "attribute {name}"
            );
        }
        let attributes = schema
            .attributes
            .iter()
            .map(|attribute| {
                let given = self.attributes.iter().find(|(name, _)| *name == attribute.name);
                let default = defaults
                    .iter()
                    .find(|(name, _)| *name == attribute.name)
                    .map(|(_, text)| *text)
                    .or(attribute.default);
                let value = match (given, default) {
                    (Some((_, value)), _) => value.clone(),
                    (None, Some(text)) => literal(text),
                    (None, None) => Value::Null,
                };
                (Arc::from(attribute.name), value)
            })
            .collect();
        let find = |name: &str| -> &Block {
            schema
                .blocks
                .iter()
                .find(|block| block.name == name)
                .unwrap_or_else(|| panic!("block {name}"))
        };
        let mut blocks: Vec<ArgumentBlock> = self
            .blocks
            .iter()
            .map(|(name, label, body)| ArgumentBlock {
                name: (*name).into(),
                label: label.map(Into::into),
                body: body.fit(find(name).schema, find(name).defaults),
            })
            .collect();
        for block in schema.blocks.iter().filter(|block| block.implied) {
            if !self.blocks.iter().any(|(name, ..)| *name == block.name) {
                blocks.push(ArgumentBlock {
                    name: block.name.into(),
                    label: None,
                    body: Body::new().fit(block.schema, block.defaults),
                });
            }
        }
        Arguments { attributes, blocks }
    }
}

/// A default of a schema: the few forms of literals that defaults have.
pub fn literal(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "[]" => Value::array([]),
        "{}" => Value::object::<&str>([]),
        _ => match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(inner) if !inner.contains(['"', '\\']) => Value::string(inner),
            Some(_) => panic!("default {text} is not a plain literal"),
            None => Value::Number(match text.parse::<i64>() {
                Ok(int) => Number::Int(int),
                Err(_) => Number::Float(text.parse().expect(text)),
            }),
        },
    }
}

/// Targets as a value of the configuration language.
pub fn targets(targets: &[&[(&str, &str)]]) -> Value {
    Value::array(targets.iter().map(|target| {
        Value::object(
            target
                .iter()
                .map(|(name, value)| (Arc::<str>::from(*name), Value::string(*value))),
        )
    }))
}

/// `forward_to` with these sinks.
pub fn receivers(sinks: impl IntoIterator<Item = Receiver>) -> Value {
    Value::array(
        sinks
            .into_iter()
            .map(|sink| Value::Capsule(Capsule::new(RECEIVER, sink))),
    )
}

/// A context and what a component told it.
#[derive(Clone)]
pub struct Recorder {
    pub context: Context,
    exports: Arc<Mutex<BTreeMap<Arc<str>, Value>>>,
    health: Arc<Mutex<(HealthState, String)>>,
}

impl Recorder {
    pub fn new(id: &str, data_path: &Path) -> Self {
        let exports: Arc<Mutex<BTreeMap<Arc<str>, Value>>> = Arc::default();
        let health = Arc::new(Mutex::new((HealthState::Unknown, String::new())));
        let (to_exports, to_health) = (exports.clone(), health.clone());
        Self {
            context: Context {
                id: id.into(),
                data_path: data_path.to_owned(),
                metrics: Scope::new(),
                exports: Arc::new(move |new| *to_exports.lock() = new),
                health: Arc::new(move |state, message| *to_health.lock() = (state, message)),
                user_agent: "alluvium-test".into(),
                live: LiveHandle::detached(id),
                own_http: OwnHttp::default(),
            },
            exports,
            health,
        }
    }

    pub fn export(&self, name: &str) -> Value {
        self.exports.lock().get(name).cloned().unwrap_or_default()
    }

    /// An export that is a list of targets, in short form: `{a=1,b=2}`.
    pub fn exported_targets(&self, name: &str) -> Vec<String> {
        let targets = Targets::from_value(name, &self.export(name)).expect("targets");
        let short = |target: BTreeMap<Arc<str>, Arc<str>>| {
            let pairs: Vec<String> = target.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{{{}}}", pairs.join(","))
        };
        targets.iter().map(short).collect()
    }

    pub fn receiver(&self) -> Receiver {
        match self.export("receiver") {
            Value::Capsule(capsule) => capsule.downcast::<Receiver>().expect("a receiver"),
            other => panic!("receiver is {other:?}"),
        }
    }

    pub fn health(&self) -> (HealthState, String) {
        self.health.lock().clone()
    }
}

/// A component that runs; stopped when told to.
pub struct Running<A: 'static> {
    pub component: Arc<dyn Component<A>>,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<Result<(), ComponentError>>,
}

impl<A: FromBody + Send + Sync> Running<A> {
    pub fn start(definition: &Definition<A>, recorder: &Recorder, body: &Body) -> Self {
        let arguments = body.arguments(definition);
        let component = (definition.build.expect("a component that can run"))(recorder.context.clone(), arguments)
            .expect("component builds");
        let shutdown = Shutdown::new();
        let task = tokio::spawn(component.clone().run(shutdown.clone()));
        Self {
            component,
            shutdown,
            task,
        }
    }

    /// Asks it to end and waits.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic").expect("a clean end");
    }

    /// Ends it as a kill would: nothing is finished.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Waits until `check` is true; panics with `what` after a minute.
pub async fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !check() {
        assert!(Instant::now() < deadline, "waited a minute for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Serves `router` on a free port until the returned guard is dropped; the URL has no slash at its end.
pub async fn serve(router: Router) -> (String, Server) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper_util::service::TowerToHyperService::new(router.clone());
            connections.spawn(async move {
                let io = hyper_util::rt::TokioIo::new(stream);
                let builder = hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
                let _ = builder.serve_connection(io, service).await;
            });
        }
    });
    (format!("http://{address}"), Server(task))
}

/// Ends the server when dropped.
pub struct Server(tokio::task::JoinHandle<()>);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A sink that keeps what it gets.
#[derive(Default)]
pub struct Collector {
    profiles: Mutex<Vec<RawProfile>>,
}

impl Collector {
    pub fn profiles(&self) -> Vec<RawProfile> {
        self.profiles.lock().clone()
    }
}

impl ProfileSink for Collector {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<(usize, SinkError)>> {
        self.profiles.lock().extend(profiles);
        Box::pin(async { Vec::new() })
    }
}
