//! `discovery.relabel`: targets in, targets out, changed by relabel rules.
//!
//! Works whenever it gets new arguments; its run only waits for the end. A target that a rule drops, or that has no label left, is not
//! in the output.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::{BoxFuture, Shutdown};
use crate::components::common::relabel::{RULE_BLOCK, RULES, Rules};
use crate::components::common::targets;
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, TARGETS};
use crate::lang::value::{Number, Value};
use crate::pipeline::component::live::LiveHandle;
use crate::pipeline::component::{
    ArgumentError, Component, ComponentError, Context, Definition, ExportsSender, HealthSender, HealthState, Stability,
};

/// The component's definition.
pub const DEFINITION: Definition = Definition {
    name: "discovery.relabel",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[Attribute::required("targets", TARGETS, "Targets to change.")],
        blocks: &[RULE_BLOCK],
    },
    exports: &[
        Attribute::required(
            "output",
            TARGETS,
            "The targets after all rules, without those that were dropped.",
        ),
        Attribute::required(
            "rules",
            Kind::Capsule(RULES),
            "The rules, for components that take them.",
        ),
    ],
    validate: |arguments| Rules::from_arguments(arguments).map(drop),
    build: Some(build),
    doc: "`discovery.relabel` changes the labels of targets by relabeling rules and drops targets that are not wanted.",
};

struct Relabel {
    exports: ExportsSender,
    health: HealthSender,
    live: LiveHandle,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy)]
struct Counts {
    received: usize,
    kept: usize,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    let component = Relabel {
        exports: context.exports,
        health: context.health,
        live: context.live,
        counts: Mutex::new(Counts { received: 0, kept: 0 }),
    };
    component.update(arguments)?;
    Ok(Arc::new(component))
}

impl Component for Relabel {
    fn update(&self, arguments: Arguments) -> Result<(), ComponentError> {
        let rules = Rules::from_arguments(&arguments)
            .map_err(|ArgumentError { path, message }| ComponentError(format!("{path}: {message}")))?;
        if self.live.is_watched() {
            let received = arguments.targets("targets");
            received.iter().for_each(|target| rules.tell(&self.live, false, target));
        }
        let targets = arguments.value("targets");
        let output = targets::map(targets, |target| rules.apply(target));
        let counts = Counts {
            received: targets::count(targets),
            kept: targets::count(&output),
        };
        *self.counts.lock() = counts;
        self.live.exported_targets(counts.kept);
        (self.exports)(BTreeMap::from([
            ("output".into(), output),
            ("rules".into(), Value::Capsule(rules.capsule())),
        ]));
        (self.health)(HealthState::Healthy, "targets relabeled".to_owned());
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            shutdown.cancelled().await;
            Ok(())
        })
    }

    fn is_passive(&self) -> bool {
        true
    }

    fn show_live(&self, arguments: &Arguments, live: &LiveHandle) {
        if let Ok(rules) = Rules::from_arguments(arguments) {
            let targets = arguments.targets("targets");
            targets.iter().for_each(|target| rules.tell(live, false, target));
        }
    }

    fn debug_info(&self) -> Value {
        let counts = *self.counts.lock();
        let number = |count| Value::Number(Number::Int(count as i64));
        Value::object([
            ("targets", number(counts.received)),
            ("kept", number(counts.kept)),
            ("dropped", number(counts.received - counts.kept)),
        ])
    }
}

#[cfg(test)]
mod tests;
