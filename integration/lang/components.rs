//! Small components for tests of the engine. What they are told goes, a line each, into the file `events` of the storage path.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use alluvium::base::{BoxFuture, Shutdown};
use alluvium::lang::schema::{Arguments, Attribute, Block, Kind, RECEIVER, RECEIVERS, Schema, TARGETS};
use alluvium::lang::value::{Capsule, Value};
use alluvium::pipeline::component::{
    ArgumentError, Component, ComponentError, Context, Definition, HealthState, Stability,
};
use parking_lot::Mutex;

/// Sorted by name.
pub const DEFINITIONS: &[&Definition] = &[
    &alluvium::components::import::file::DEFINITION,
    &alluvium::components::import::git::DEFINITION,
    &alluvium::components::import::http::DEFINITION,
    &alluvium::components::import::string::DEFINITION,
    &CHECKED,
    &EXPERIMENT,
    &FAILING,
    &PLANNED,
    &RECEIVING,
    &STRICT,
    &VALUE,
];

/// Gives its argument on as export.
const VALUE: Definition = Definition {
    name: "test.value",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::optional("refuse", Kind::Any, "An input that `update` refuses."),
            Attribute::required("input", Kind::Any, "What to export."),
        ],
        blocks: &[],
    },
    exports: &[Attribute::optional("output", Kind::Any, "The input.")],
    validate: |_| Ok(()),
    build: Some(Probe::build),
    doc: "",
};

/// Ends, or does not build.
const FAILING: Definition = Definition {
    name: "test.failing",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default("build", Kind::Bool, "false", "True to fail at once."),
            Attribute::with_default("run", Kind::Bool, "false", "True to end with an error."),
            Attribute::with_default("health", Kind::String, "\"\"", "A complaint."),
            Attribute::optional("input", Kind::Any, "Anything."),
        ],
        blocks: &[],
    },
    exports: &[],
    validate: |_| Ok(()),
    build: Some(Probe::build),
    doc: "",
};

/// Known to the language only.
const PLANNED: Definition = Definition {
    name: "test.planned",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[Attribute::required("names", Kind::List(&Kind::String), "Strings.")],
        blocks: &[],
    },
    exports: &[Attribute::optional("targets", TARGETS, "Targets.")],
    validate: |_| Ok(()),
    build: None,
    doc: "",
};

/// Has one argument of each type and blocks of each sort.
const CHECKED: Definition = Definition {
    name: "test.checked",
    stability: Stability::PublicPreview,
    arguments: &Schema {
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
            Block {
                name: "endpoint",
                labelled: false,
                many: true,
                required: false,
                implied: false,
                schema: &Schema {
                    attributes: &[
                        Attribute::required("url", Kind::String, "Where to."),
                        Attribute::with_default("headers", Kind::Map(&Kind::String), "{}", "Headers."),
                    ],
                    blocks: &[],
                },
                defaults: &[],
                doc: "An endpoint.",
            },
            Block {
                name: "profile.custom",
                labelled: true,
                many: true,
                required: false,
                implied: false,
                schema: &Schema::EMPTY,
                defaults: &[],
                doc: "A profile.",
            },
            Block {
                name: "single",
                labelled: false,
                many: false,
                required: false,
                implied: true,
                schema: &Schema::EMPTY,
                defaults: &[],
                doc: "At most one.",
            },
        ],
    },
    exports: &[
        Attribute::optional("targets", TARGETS, "Targets."),
        Attribute::optional("password", Kind::Secret, "A secret."),
        Attribute::optional("limit", Kind::Int, "A number."),
    ],
    validate: |arguments| {
        for (index, endpoint) in arguments.blocks("endpoint").enumerate() {
            if endpoint.body.string("url").is_empty() {
                return Err(ArgumentError {
                    path: format!("endpoint[{index}].url"),
                    message: "must not be empty".to_owned(),
                });
            }
        }
        if arguments.int("limit") < 0 {
            return Err(ArgumentError {
                path: "limit".to_owned(),
                message: "must not be negative".to_owned(),
            });
        }
        Ok(())
    },
    build: Some(Probe::build),
    doc: "",
};

/// Has a block that must be given.
const STRICT: Definition = Definition {
    name: "test.strict",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[],
        blocks: &[Block {
            name: "needed",
            labelled: false,
            many: false,
            required: true,
            implied: false,
            schema: &Schema::EMPTY,
            defaults: &[],
            doc: "Has to be there.",
        }],
    },
    exports: &[],
    validate: |_| Ok(()),
    build: Some(Probe::build),
    doc: "",
};

/// Exports a receiver.
const RECEIVING: Definition = Definition {
    name: "test.receiving",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[Attribute::with_default("forward_to", RECEIVERS, "[]", "Receivers.")],
        blocks: &[],
    },
    exports: &[Attribute::optional(
        "receiver",
        Kind::Capsule(RECEIVER),
        "The receiver.",
    )],
    validate: |_| Ok(()),
    build: Some(Probe::build),
    doc: "",
};

const EXPERIMENT: Definition = Definition {
    name: "test.experiment",
    stability: Stability::Experimental,
    arguments: &Schema::EMPTY,
    exports: &[],
    validate: |_| Ok(()),
    build: Some(Probe::build),
    doc: "",
};

/// All of the above at run time.
struct Probe {
    context: Context,
    arguments: Mutex<Arguments>,
}

impl Probe {
    fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
        let probe = Self {
            context,
            arguments: Mutex::new(arguments.clone()),
        };
        probe.tell(&format!("build {}{}", probe.context.id, input(&arguments)));
        if arguments.bool("build") {
            return Err(ComponentError("told to fail".to_owned()));
        }
        probe.export(&arguments);
        Ok(Arc::new(probe))
    }

    fn tell(&self, line: &str) {
        // The storage path: above the folder of the component and of the modules that it is in.
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

impl Component for Probe {
    fn update(&self, arguments: Arguments) -> Result<(), ComponentError> {
        self.tell(&format!("update {}{}", self.context.id, input(&arguments)));
        let refuse = arguments.value("refuse");
        if arguments.is_set("refuse") && refuse == arguments.value("input") {
            return Err(ComponentError("told to refuse".to_owned()));
        }
        self.export(&arguments);
        *self.arguments.lock() = arguments;
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            self.tell(&format!("run {}", self.context.id));
            let (fails, complaint) = {
                let arguments = self.arguments.lock();
                (arguments.bool("run"), arguments.string("health"))
            };
            if !complaint.is_empty() {
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
