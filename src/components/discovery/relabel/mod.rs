//! `discovery.relabel`: changes the labels of targets by relabeling rules.
//!
//! The component applies the rules when it receives new arguments. Its function `run` only waits for the shutdown. A
//! target is not exported if a rule drops it or if it has no label left.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::common::arguments::changed_targets::ChangedTargets;
use crate::common::arguments::targets;
use crate::common::arguments::targets::Targets;
use crate::common::passing::relabel::{RULES, Rules};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, Kind, TARGETS};
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::live::{self, LiveHandle};
use alluvium_pipeline::component::{
    Component, ComponentError, Context, Definition, ExportsSender, HealthSender, HealthState, Stability, no_metrics,
    run_passive,
};

arguments! {
    /// Arguments of `discovery.relabel`.
    pub(crate) struct RelabelArguments {
        /// Targets to apply the rules to.
        targets: Targets,
    }
    blocks {
        /// A relabeling rule. Rules apply in the order in which they are written.
        rule: Rules,
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<RelabelArguments> = Definition {
    name: "discovery.relabel",
    stability: Stability::GenerallyAvailable,
    exports: &[
        Attribute::required(
            "output",
            TARGETS,
            "The targets after all rules, without dropped targets.",
        ),
        Attribute::required(
            "rules",
            Kind::Capsule(RULES),
            "The rules, for components that have an argument for rules.",
        ),
    ],
    metrics: no_metrics,
    build: Some(build),
    doc: "`discovery.relabel` changes the labels of targets by relabeling rules, and drops unwanted targets.",
};

struct Relabel {
    exports: ExportsSender,
    health: HealthSender,
    live: LiveHandle,
    relabeled: Mutex<Relabeled>,
    counts: Mutex<Counts>,
}

/// The targets of the last arguments, with the rules that were applied to them.
#[derive(Default)]
struct Relabeled {
    rules: Rules,
    targets: ChangedTargets,
}

#[derive(Clone, Copy)]
struct Counts {
    received: usize,
    kept: usize,
}

fn build(
    context: Context,
    arguments: Arc<RelabelArguments>,
) -> Result<Arc<dyn Component<RelabelArguments>>, ComponentError> {
    let component = Relabel {
        exports: context.exports,
        health: context.health,
        live: context.live,
        relabeled: Mutex::default(),
        counts: Mutex::new(Counts { received: 0, kept: 0 }),
    };
    component.update(arguments)?;
    Ok(Arc::new(component))
}

impl Relabeled {
    /// Applies the rules to the targets. The results of other rules are forgotten.
    fn update(&mut self, targets: &Targets, rules: &Rules) -> Value {
        if self.rules != *rules {
            *self = Self {
                rules: rules.clone(),
                targets: ChangedTargets::default(),
            };
        }
        self.targets.update(targets, |target| rules.apply(target))
    }
}

impl Component<RelabelArguments> for Relabel {
    fn update(&self, arguments: Arc<RelabelArguments>) -> Result<(), ComponentError> {
        if self.live.is_watched() {
            self.show_live(&arguments, &self.live);
        }
        let RelabelArguments { targets, rule: rules } = &*arguments;
        let output = self.relabeled.lock().update(targets, rules);
        let counts = Counts {
            received: targets.count(),
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
        run_passive(shutdown)
    }

    fn is_passive(&self) -> bool {
        true
    }

    fn show_live(&self, arguments: &RelabelArguments, live: &LiveHandle) {
        for target in arguments.targets.iter() {
            arguments.rule.tell(live, live::Relabeled::Target, &target);
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
