//! Live debugging in the controller: the components that can be watched, and the flow within a module.
//!
//! Ids are full: the id of a component in a module begins with the module's id and a slash. A nested module is one
//! component of the module that contains it: flows from or to its components are shown as flows of the nested module.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::component::live::{FlowCount, LiveHub, TargetCount, Watch};
use crate::run::controller::Controller;

/// The reason why a component cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The configuration does not enable live debugging.
    #[error(
        "live debugging is disabled; put `livedebugging {{ enabled = true }}` into the configuration and reload to \
         enable it"
    )]
    Disabled,
    /// There is no such component.
    #[error("there is no component `{0}`")]
    Unknown(String),
}

/// The flow from a component during an interval, with Alloy's fields and additional ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeRate {
    /// Full id of the sending component.
    #[serde(rename = "componentID")]
    pub component_id: String,
    /// Full ids of the receivers; empty means all components that refer to the sender.
    #[serde(rename = "targetComponentIDs")]
    pub target_component_ids: Vec<String>,
    /// Type of the data: `profile` or `target`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Number of profiles sent, or targets exported, per second.
    pub rate: f64,
    /// Number of bytes sent per second; only for profiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_rate: Option<f64>,
    /// Number of targets that are currently exported; only for targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<u64>,
}

/// Measures the flow in a module as the difference between two readings.
pub struct Flow {
    hub: LiveHub,
    module: String,
    last: FlowReading,
}

impl Controller {
    /// Returns the hub of live debugging.
    pub fn live(&self) -> &LiveHub {
        self.live_hub()
    }

    /// Starts to watch a component. The first entries are the component's current state. `probability` is the fraction
    /// of entries to send, 0 to 1.
    pub fn watch(&self, id: &str, probability: f64) -> Result<Watch, WatchError> {
        if !self.live().is_enabled() {
            return Err(WatchError::Disabled);
        }
        let unknown = || WatchError::Unknown(id.to_owned());
        let watch = self.live().subscribe(id, probability).ok_or_else(unknown)?;
        if let Some(node) = self.running().nodes.get(id) {
            node.show_live(&watch.handle(&node.id));
        }
        Ok(watch)
    }

    /// Starts to measure the flow in a module; the empty id is the root.
    pub fn flow(&self, module: &str) -> Flow {
        Flow::new(self.live().clone(), module)
    }
}

impl Flow {
    fn new(hub: LiveHub, module: &str) -> Self {
        let mut flow = Self {
            hub,
            module: module.to_owned(),
            last: FlowReading::default(),
        };
        flow.last = flow.read();
        flow
    }

    /// Returns the flow since the last call, which was `elapsed` ago.
    pub fn next(&mut self, elapsed: Duration) -> Vec<EdgeRate> {
        let reading = self.read();
        let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let rate = |after: u64, before: u64| after.saturating_sub(before) as f64 / seconds;
        let mut rates = Vec::with_capacity(reading.edges.len() + reading.targets.len());
        for ((from, to), (profiles, bytes)) in &reading.edges {
            let before = self
                .last
                .edges
                .get(&(from.clone(), to.clone()))
                .copied()
                .unwrap_or_default();
            rates.push(EdgeRate {
                component_id: from.clone(),
                target_component_ids: vec![to.clone()],
                kind: "profile",
                rate: rate(*profiles, before.0),
                bytes_rate: Some(rate(*bytes, before.1)),
                current: None,
            });
        }
        for (id, (current, exported)) in &reading.targets {
            let before = self.last.targets.get(id).map_or(0, |(_, exported)| *exported);
            rates.push(EdgeRate {
                component_id: id.clone(),
                target_component_ids: Vec::new(),
                kind: "target",
                rate: rate(*exported, before),
                bytes_rate: None,
                current: Some(*current),
            });
        }
        self.last = reading;
        rates
    }

    fn read(&self) -> FlowReading {
        let (edges, targets) = self.hub.counts();
        FlowReading::of(&self.module, &edges, &targets)
    }
}

/// Summed counters of a module.
#[derive(Default)]
struct FlowReading {
    /// Profiles and bytes by sender and receiver.
    edges: BTreeMap<(String, String), (u64, u64)>,
    /// Current and total exported targets by component.
    targets: BTreeMap<String, (u64, u64)>,
}

impl FlowReading {
    fn of(module: &str, edges: &[FlowCount], targets: &[TargetCount]) -> Self {
        let mut reading = Self::default();
        for edge in edges {
            let (Some(from), Some(to)) = (component_in(module, &edge.from), component_in(module, &edge.to)) else {
                continue;
            };
            if from != to {
                let sum = reading.edges.entry((from, to)).or_default();
                sum.0 += edge.profiles;
                sum.1 += edge.bytes;
            }
        }
        for count in targets {
            // Targets of nested components are not shown.
            if component_in(module, &count.component).is_some_and(|id| *id == *count.component) {
                let counts = (count.current, count.exported);
                reading.targets.insert(count.component.to_string(), counts);
            }
        }
        reading
    }
}

/// Returns the component of `module` that has the id `id` or contains the component with this id.
fn component_in(module: &str, id: &Arc<str>) -> Option<String> {
    let rest = match module {
        "" => id.as_ref(),
        module => id.strip_prefix(module)?.strip_prefix('/')?,
    };
    let local = rest.split('/').next().filter(|local| !local.is_empty())?;
    Some(match module {
        "" => local.to_owned(),
        module => format!("{module}/{local}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_sees_its_components_and_what_is_inside_of_them_as_one() {
        let id = |id: &str| Arc::<str>::from(id);
        let component = |module: &str, path: &str| component_in(module, &id(path));
        assert_eq!(component("", "a.b.c").as_deref(), Some("a.b.c"));
        assert_eq!(component("", "m.x/a.b.c").as_deref(), Some("m.x"));
        assert_eq!(component("m.x", "m.x/a.b.c").as_deref(), Some("m.x/a.b.c"));
        assert_eq!(component("m.x", "m.x/n.y/a.b.c").as_deref(), Some("m.x/n.y"));
        assert_eq!(component("m.x", "m.xy/a.b.c"), None);
        assert_eq!(component("m.x", "m.x"), None);
        assert_eq!(component("", ""), None);
    }
}
