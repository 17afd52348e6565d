//! Helpers for the components' tests: arguments with the schema's defaults, a context that records exports and health,
//! a test server, and polling with a deadline.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::common::arguments::targets::{Target, Targets};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_cluster::Cluster;
use alluvium_lang::attribute::FromValue as _;
use alluvium_lang::body::FromBody;
use alluvium_lang::schema::{ArgumentBlock, Arguments, Block, RECEIVER, Schema};
use alluvium_lang::value::{Capsule, Number, Value};
use alluvium_pipeline::component::large_responses::LargeResponses;
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_pipeline::component::own_http::OwnHttp;
use alluvium_pipeline::component::{
    AnyDefinition, Component, ComponentError, Context, Definition, HealthState, InFlight,
};
use alluvium_profile::sink::Receiver;
use alluvium_profile::{ProfileSink, RawProfile, RefusedProfile};
use alluvium_telemetry::metrics::Scope;

pub(crate) use alluvium_testing::http::{Server, serve, serve_api, serve_unix};

/// The body of a component or block, built by a test. Omitted attributes have the schema's defaults.
#[derive(Default, Clone)]
pub(crate) struct Body {
    attributes: Vec<(&'static str, Value)>,
    blocks: Vec<(&'static str, Option<&'static str>, Body)>,
}

impl Body {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, name: &'static str, value: Value) -> Self {
        self.attributes.retain(|(other, _)| *other != name);
        self.attributes.push((name, value));
        self
    }

    pub(crate) fn text(self, name: &'static str, text: &str) -> Self {
        self.with(name, Value::string(text))
    }

    pub(crate) fn block(mut self, name: &'static str, body: Body) -> Self {
        self.blocks.push((name, None, body));
        self
    }

    pub(crate) fn labelled(mut self, name: &'static str, label: &'static str, body: Body) -> Self {
        self.blocks.push((name, Some(label), body));
        self
    }

    /// Returns the arguments with which a component is built.
    pub(crate) fn arguments<A: FromBody + Send + Sync>(&self, definition: &Definition<A>) -> Arc<A> {
        self.read(definition).expect("the arguments are invalid")
    }

    /// Returns the arguments, or the first error in them.
    pub(crate) fn read<A: FromBody + Send + Sync>(&self, definition: &Definition<A>) -> Result<Arc<A>, String> {
        let values = self.fit(A::SCHEMA, &[]);
        definition.read(&values).map_err(|errors| errors.0[0].to_string())
    }

    /// Returns the body as the language passes it to a component.
    pub(crate) fn fit(&self, schema: &Schema, defaults: &[(&str, &str)]) -> Arguments {
        for (name, _) in &self.attributes {
            assert!(
                schema.attributes.iter().any(|attribute| attribute.name == *name),
                "the schema has no attribute {name}"
            );
        }
        let attributes = schema
            .attributes
            .iter()
            .map(|attribute| {
                let explicit = self.attributes.iter().find(|(name, _)| *name == attribute.name);
                let default = defaults
                    .iter()
                    .find(|(name, _)| *name == attribute.name)
                    .map(|(_, text)| *text)
                    .or(attribute.default);
                let value = match (explicit, default) {
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
                .unwrap_or_else(|| panic!("the schema has no block {name}"))
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

/// Parses a default of a schema, which has one of a few literal forms.
pub(crate) fn literal(text: &str) -> Value {
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

/// Returns targets as a value of the configuration language.
pub(crate) fn targets(targets: &[&[(&str, &str)]]) -> Value {
    Value::array(targets.iter().map(|target| {
        Value::object(
            target
                .iter()
                .map(|(name, value)| (Arc::<str>::from(*name), Value::string(*value))),
        )
    }))
}

/// Returns the value of `forward_to` with these sinks.
pub(crate) fn receivers(sinks: impl IntoIterator<Item = Receiver>) -> Value {
    Value::array(
        sinks
            .into_iter()
            .map(|sink| Value::Capsule(Capsule::new(RECEIVER, sink))),
    )
}

/// Formats targets in short form: `{a=1,b=2}`.
pub(crate) fn shorten(targets: &[Target]) -> Vec<String> {
    let labels = |target: &Target| {
        let pairs: Vec<String> = target.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{{{}}}", pairs.join(","))
    };
    targets.iter().map(labels).collect()
}

/// A context that records the exports and the health of a component.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub context: Context,
    exports: Arc<Mutex<BTreeMap<Arc<str>, Value>>>,
    health: Arc<Mutex<(HealthState, String)>>,
}

impl Recorder {
    pub(crate) fn new(id: &str, data_path: &Path) -> Self {
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
                cluster: Cluster::default(),
                large_responses: LargeResponses::default(),
                in_flight: InFlight::default(),
            },
            exports,
            health,
        }
    }

    /// Returns a context whose reports are discarded.
    pub(crate) fn context() -> Context {
        Self::new("test", Path::new("")).context
    }

    /// Returns the current exports by name.
    pub(crate) fn exports(&self) -> BTreeMap<Arc<str>, Value> {
        self.exports.lock().clone()
    }

    pub(crate) fn export(&self, name: &str) -> Value {
        self.exports.lock().get(name).cloned().unwrap_or_default()
    }

    /// Returns an export that is a list of targets, in short form: `{a=1,b=2}`.
    pub(crate) fn exported_targets(&self, name: &str) -> Vec<String> {
        let targets = Targets::from_value(name, &self.export(name)).expect("the export is not a list of targets");
        shorten(&targets.iter().collect::<Vec<Target>>())
    }

    pub(crate) fn receiver(&self) -> Receiver {
        match self.export("receiver") {
            Value::Capsule(capsule) => capsule.downcast::<Receiver>().expect("the export is not a receiver"),
            other => panic!("receiver is {other:?}"),
        }
    }

    pub(crate) fn health(&self) -> (HealthState, String) {
        self.health.lock().clone()
    }
}

/// A running component, which a test stops.
pub(crate) struct Running<A: 'static> {
    pub component: Arc<dyn Component<A>>,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<Result<(), ComponentError>>,
}

impl<A: FromBody + Send + Sync> Running<A> {
    pub(crate) fn start(definition: &Definition<A>, recorder: &Recorder, body: &Body) -> Self {
        Self::start_or(definition, recorder, body).expect("the component cannot be built")
    }

    /// Starts the component, or returns the reason why it cannot be built.
    pub(crate) fn start_or(
        definition: &Definition<A>,
        recorder: &Recorder,
        body: &Body,
    ) -> Result<Self, ComponentError> {
        let arguments = body.arguments(definition);
        let component = (definition.build.expect("a definition without `build`"))(recorder.context.clone(), arguments)?;
        let shutdown = Shutdown::new();
        let task = tokio::spawn(component.clone().run(shutdown.clone()));
        Ok(Self {
            component,
            shutdown,
            task,
        })
    }

    /// Requests the end of the component and waits for it.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task
            .await
            .expect("the component panicked")
            .expect("the component failed");
    }

    /// Aborts the component as a kill would: nothing is finished.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// A running component with arguments of any type, for tests of several components together.
pub(crate) struct AnyRunning {
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<Result<(), ComponentError>>,
}

impl AnyRunning {
    pub(crate) fn start(definition: &dyn AnyDefinition, recorder: &Recorder, body: &Body) -> Self {
        let values = body.fit(definition.arguments(), &[]);
        let arguments = definition.validate(values).expect("the arguments are invalid");
        let component = definition
            .build(recorder.context.clone(), &arguments)
            .expect("the component cannot be built");
        let shutdown = Shutdown::new();
        let task = tokio::spawn(component.run(shutdown.clone()));
        Self { shutdown, task }
    }

    /// Requests the end of the component and waits for it.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task
            .await
            .expect("the component panicked")
            .expect("the component failed");
    }

    /// Aborts the component as a kill would: nothing is finished.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Waits until `check` is true. Panics with `subject` after a minute.
pub(crate) async fn eventually(subject: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !check() {
        assert!(Instant::now() < deadline, "waited a minute for: {subject}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A sink that keeps the profiles it receives.
#[derive(Default)]
pub(crate) struct Collector {
    profiles: Mutex<Vec<RawProfile>>,
}

impl Collector {
    pub(crate) fn profiles(&self) -> Vec<RawProfile> {
        self.profiles.lock().clone()
    }
}

impl ProfileSink for Collector {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        self.profiles.lock().extend(profiles);
        Box::pin(async { Vec::new() })
    }
}
