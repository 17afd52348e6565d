//! Small components for tests of the engine. They write a line for each event into the file `events` of the storage
//! path.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::argument_error::{ArgumentError, ArgumentErrors};
use alluvium_lang::attribute::text;
use alluvium_lang::body::{FromBody, Reader};
use alluvium_lang::schema::{Arguments, Attribute, Block, Kind, RECEIVER, RECEIVERS, Schema, TARGETS};
use alluvium_lang::value::{Capsule, Value};
use alluvium_pipeline::component::{
    AnyDefinition, Component, ComponentError, Context, Definition, HealthState, Stability, no_metrics,
};
use parking_lot::Mutex;

/// The components below and the program's import blocks, sorted by name.
pub(super) fn definitions() -> Vec<&'static dyn AnyDefinition> {
    let imports = ["import.file", "import.git", "import.http", "import.string"];
    let imports = imports.map(|name| alluvium_components::find(name).unwrap());
    let own: [&'static dyn AnyDefinition; 7] = [&CHECKED, &EXPERIMENT, &FAILING, &PLANNED, &RECEIVING, &STRICT, &VALUE];
    imports.into_iter().chain(own).collect()
}

/// Declares a type of arguments that stores the evaluated values, which a component reads by name.
macro_rules! probed {
    ($name:ident, $schema:expr $(, $check:path)?) => {
        #[derive(Debug)]
        struct $name(Arguments);

        impl FromBody for $name {
            const SCHEMA: &'static Schema = &$schema;

            fn from_body(body: &Arguments) -> Result<Self, ArgumentErrors> {
                $( $check(body)?; )?
                Ok(Self(body.clone()))
            }
        }

        impl AsRef<Arguments> for $name {
            fn as_ref(&self) -> &Arguments {
                &self.0
            }
        }
    };
}

/// Returns a definition of a component that is a [`Probe`].
const fn probe<A: AsRef<Arguments> + Send + Sync>(
    name: &'static str,
    stability: Stability,
    exports: &'static [Attribute],
) -> Definition<A> {
    Definition {
        name,
        stability,
        exports,
        metrics: no_metrics,
        build: Some(Probe::build),
        doc: "",
    }
}

probed!(
    ValueArguments,
    Schema {
        attributes: &[
            Attribute::optional("refuse", Kind::Any, "An input that `update` refuses."),
            Attribute::required("input", Kind::Any, "Value to export."),
        ],
        blocks: &[],
    }
);

/// A component that exports its argument unchanged.
const VALUE: Definition<ValueArguments> = probe(
    "test.value",
    Stability::GenerallyAvailable,
    &[Attribute::optional("output", Kind::Any, "The input.")],
);

probed!(
    FailingArguments,
    Schema {
        attributes: &[
            Attribute::with_default("build", Kind::Bool, "false", "True to fail while it is built."),
            Attribute::with_default("run", Kind::Bool, "false", "True to end with an error."),
            Attribute::with_default("health", Kind::String, "\"\"", "Message of an unhealthy component."),
            Attribute::optional("input", Kind::Any, "Anything."),
        ],
        blocks: &[],
    }
);

/// A component that cannot be built, ends with an error, or reports that it is unhealthy.
const FAILING: Definition<FailingArguments> = probe("test.failing", Stability::GenerallyAvailable, &[]);

probed!(
    PlannedArguments,
    Schema {
        attributes: &[Attribute::required("names", Kind::List(&Kind::String), "Strings.")],
        blocks: &[],
    }
);

/// A component that the language knows, but that has no implementation.
const PLANNED: Definition<PlannedArguments> = Definition {
    name: "test.planned",
    stability: Stability::GenerallyAvailable,
    exports: &[Attribute::optional("targets", TARGETS, "Targets.")],
    metrics: no_metrics,
    build: None,
    doc: "",
};

probed!(
    CheckedArguments,
    Schema {
        attributes: &[
            Attribute::with_default("flag", Kind::Bool, "true", "A flag."),
            Attribute::with_default("interval", Kind::Duration, "\"15s\"", "A duration."),
            Attribute::with_default("limit", Kind::Int, "10", "A number."),
            Attribute::with_default("names", Kind::List(&Kind::String), "[]", "Strings."),
            Attribute::optional("password", Kind::Secret, "A secret."),
            Attribute::required("targets", TARGETS, "Targets."),
            Attribute::with_default("forward_to", RECEIVERS, "[]", "Receivers."),
        ],
        blocks: &[
            Block::many("endpoint", Endpoint::SCHEMA, "An endpoint."),
            Block {
                labelled: true,
                ..Block::many("profile.custom", &Schema::EMPTY, "A profile.")
            },
            Block::implied("single", &Schema::EMPTY, "At most one."),
        ],
    },
    check
);

probed!(
    Endpoint,
    Schema {
        attributes: &[
            Attribute::required("url", Kind::String, "URL of the endpoint."),
            Attribute::with_default("headers", Kind::Map(&Kind::String), "{}", "Headers."),
        ],
        blocks: &[],
    },
    check_endpoint
);

/// A component with one argument of each type and one block of each kind.
const CHECKED: Definition<CheckedArguments> = probe(
    "test.checked",
    Stability::PublicPreview,
    &[
        Attribute::optional("targets", TARGETS, "Targets."),
        Attribute::optional("password", Kind::Secret, "A secret."),
        Attribute::optional("limit", Kind::Int, "A number."),
    ],
);

fn check(body: &Arguments) -> Result<(), ArgumentErrors> {
    let mut reader = Reader::new(body);
    reader.blocks::<Vec<Endpoint>>("endpoint");
    let limit: Option<i64> = reader.attribute("limit");
    reader.finish(Some(()))?;
    if limit.is_some_and(|limit| limit < 0) {
        return Err(ArgumentError::new("limit", "must not be negative").into());
    }
    Ok(())
}

fn check_endpoint(body: &Arguments) -> Result<(), ArgumentErrors> {
    match body.attributes.get("url") {
        Some(Value::String(url)) if url.is_empty() => Err(ArgumentError::new("url", "must not be empty").into()),
        _ => Ok(()),
    }
}

probed!(
    StrictArguments,
    Schema {
        attributes: &[],
        blocks: &[Block {
            required: true,
            ..Block::optional("needed", &Schema::EMPTY, "A required block.")
        }],
    }
);

/// A component with a required block.
const STRICT: Definition<StrictArguments> = probe("test.strict", Stability::GenerallyAvailable, &[]);

probed!(
    ReceivingArguments,
    Schema {
        attributes: &[Attribute::with_default("forward_to", RECEIVERS, "[]", "Receivers.")],
        blocks: &[],
    }
);

const RECEIVING: Definition<ReceivingArguments> = probe(
    "test.receiving",
    Stability::GenerallyAvailable,
    &[Attribute::optional(
        "receiver",
        Kind::Capsule(RECEIVER),
        "The receiver.",
    )],
);

probed!(ExperimentArguments, Schema::EMPTY);

const EXPERIMENT: Definition<ExperimentArguments> = probe("test.experiment", Stability::Experimental, &[]);

/// The running instance of each component that [`probe`] defines.
struct Probe {
    context: Context,
    arguments: Mutex<Arguments>,
}

impl Probe {
    fn build<A: AsRef<Arguments>>(
        context: Context,
        arguments: Arc<A>,
    ) -> Result<Arc<dyn Component<A>>, ComponentError> {
        let arguments = (*arguments).as_ref();
        let probe = Self {
            context,
            arguments: Mutex::new(arguments.clone()),
        };
        probe.tell(&format!("build {}{}", probe.context.id, input(arguments)));
        if arguments.value("build") == &Value::Bool(true) {
            return Err(ComponentError("told to fail".to_owned()));
        }
        probe.export(arguments);
        Ok(Arc::new(probe))
    }

    fn tell(&self, line: &str) {
        // The storage path is above the folders of the component and of its modules.
        let depth = self.context.id.split('/').count();
        let path = self.context.data_path.ancestors().nth(depth).unwrap().join("events");
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn export(&self, arguments: &Arguments) {
        let id = self.context.id.clone();
        let kind = id.rsplit('/').next().unwrap().to_owned();
        let mut exports: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        if kind.starts_with("test.value") {
            exports.insert("output".into(), arguments.value("input").clone());
        } else if kind.starts_with("test.receiving") {
            exports.insert("receiver".into(), Value::Capsule(Capsule::new(RECEIVER, id)));
        } else if kind.starts_with("test.checked") {
            for name in ["targets", "password", "limit"] {
                exports.insert(name.into(), arguments.value(name).clone());
            }
        }
        (self.context.exports)(exports);
    }
}

fn input(arguments: &Arguments) -> String {
    match arguments.value("input") {
        Value::Null => String::new(),
        value => format!(" {}", super::values::show(value)),
    }
}

impl<A: AsRef<Arguments>> Component<A> for Probe {
    fn update(&self, arguments: Arc<A>) -> Result<(), ComponentError> {
        let arguments = (*arguments).as_ref();
        self.tell(&format!("update {}{}", self.context.id, input(arguments)));
        let refuse = arguments.value("refuse");
        if refuse != &Value::Null && refuse == arguments.value("input") {
            return Err(ComponentError("told to refuse".to_owned()));
        }
        self.export(arguments);
        *self.arguments.lock() = arguments.clone();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            self.tell(&format!("run {}", self.context.id));
            let (fails, complaint) = {
                let arguments = self.arguments.lock();
                let fails = arguments.value("run") == &Value::Bool(true);
                (fails, text(arguments.value("health")))
            };
            if let Some(complaint) = complaint.filter(|complaint| !complaint.is_empty()) {
                (self.context.health)(HealthState::Unhealthy, complaint.to_string());
            }
            if fails {
                return Err(ComponentError("told to end".to_owned()));
            }
            shutdown.cancelled().await;
            self.tell(&format!("stop {}", self.context.id));
            Ok(())
        })
    }
}
