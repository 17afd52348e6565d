//! The state of the controller for HTTP, in the shapes of Alloy's API (`/api/v0/web/components`).
//!
//! The structs are serialized with `serde`; the layer `admin` serves them. Secrets appear as `(secret)`.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use crate::check::blocks::ForeachBody;
use crate::check::graph::NodeKind;
use crate::run::controller::{Controller, health_name};
use crate::run::instance::{Instance, NodeData};
use crate::run::node::Health;
use alluvium_base::BoxFuture;
use alluvium_lang::body::FromBody as _;
use alluvium_lang::convert::value_name;
use alluvium_lang::decode::default_of;
use alluvium_lang::diagnostic::Diagnostics;
use alluvium_lang::schema::{Arguments, Kind, RECEIVER, Schema};
use alluvium_lang::value::{Number, Value};

/// One component. Arguments, exports and debug info are empty unless the request names the component.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentView {
    /// Name of its kind, such as `pyroscope.scrape`.
    pub name: String,
    /// Always `block`, as in Alloy's API.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Id in the module, such as `pyroscope.scrape.default`.
    #[serde(rename = "localID")]
    pub local_id: String,
    /// Id of the module that contains the component; empty for the root.
    #[serde(rename = "moduleID")]
    pub module_id: String,
    /// Label of the component, such as `default`; absent if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Ids of the components that the arguments refer to.
    pub references_to: Vec<String>,
    /// Ids of the components whose arguments refer to this component.
    pub referenced_by: Vec<String>,
    /// Ids of the components that this component sends data to.
    pub data_flow_edges_to: Vec<String>,
    /// Health of the component: the worst of its task, its last evaluation and its own report.
    pub health: HealthView,
    /// Always empty; Alloy's page expects the field.
    pub original: &'static str,
    /// The arguments: a list of attributes and blocks, without attributes that have their default value.
    pub arguments: serde_json::Value,
    /// The exports: a list of attributes.
    pub exports: serde_json::Value,
    /// The debug info: a list of attributes and blocks.
    pub debug_info: serde_json::Value,
    /// Ids of the modules that this component created; absent if there are none.
    #[serde(rename = "createdModuleIDs", skip_serializing_if = "Vec::is_empty")]
    pub created_module_ids: Vec<String>,
    /// True if live debugging is enabled.
    pub live_debugging_enabled: bool,
}

/// Health of a component, in Alloy's shape.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthView {
    /// `healthy`, `unknown`, `unhealthy` or `exited`.
    pub state: &'static str,
    /// Reason for the state, for display.
    pub message: String,
    /// Time at which the state began, in RFC 3339.
    pub updated_time: String,
}

/// Result of the last load.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastLoadView {
    /// True if the load succeeded.
    pub success: bool,
    /// Time at which the load ended, in RFC 3339.
    pub time: String,
    /// Diagnostics of a failed load.
    pub diagnostics: serde_json::Value,
    /// The diagnostics with excerpts, as text.
    pub text: String,
}

impl Controller {
    /// Returns the components of a module (`""` is the root) sorted by id, without arguments, exports and debug info.
    /// Returns `None` if there is no such module. The list includes imports, modules and `foreach` blocks.
    pub fn components(&self, module_id: &str) -> Option<Vec<ComponentView>> {
        let running = self.running();
        let instance = running.root.module(module_id)?;
        let views = (0..instance.graph.nodes.len()).filter_map(|index| view(instance, index));
        let live_debugging_enabled = self.live().is_enabled();
        let views = views.map(|view| ComponentView {
            live_debugging_enabled,
            ..view
        });
        let mut views: Vec<ComponentView> = views.collect();
        views.sort_by(|left, right| left.local_id.cmp(&right.local_id));
        Some(views)
    }

    /// Returns one component with arguments, exports and debug info. `id` is its full id: in a module, the module's id,
    /// a `/`, and the component's own id.
    pub fn component(&self, id: &str) -> Option<ComponentView> {
        let running = self.running();
        let (instance, index) = running.root.locate(id)?;
        let entry = instance.entry(index)?;
        let mut view = view(instance, index)?;
        view.live_debugging_enabled = self.live().is_enabled();
        let (arguments, exports, debug_info) = match &entry.data {
            NodeData::Component(node) => (
                body(node.arguments().values(), node.definition.arguments(), &[]),
                node.exports(),
                node.debug_info(),
            ),
            NodeData::Import(node) => (
                body(node.arguments().values(), node.definition.arguments(), &[]),
                Value::Null,
                node.debug_info(),
            ),
            NodeData::Custom(module) => {
                let arguments = module.instance.arguments.lock().attributes.clone();
                let arguments = attributes(&Value::Object(arguments.into()));
                (arguments, module.instance.exports(), Value::Null)
            }
            NodeData::Foreach(children) => (
                body(&children.values.lock(), ForeachBody::SCHEMA, &[]),
                Value::Null,
                Value::Null,
            ),
            NodeData::Argument | NodeData::Export => return None,
        };
        view.arguments = arguments;
        view.exports = attributes(&exports);
        view.debug_info = attributes_and_blocks(&debug_info);
        Some(view)
    }

    /// True if a component with this id is running.
    pub fn has_component(&self, id: &str) -> bool {
        self.running().nodes.contains_key(id)
    }

    /// Passes a request to a component; `None` if there is no such component, or it has no endpoints.
    pub fn serve(&self, id: &str, request: http::Request<Bytes>) -> Option<BoxFuture<'static, http::Response<Bytes>>> {
        self.running().nodes.get(id)?.serve(request)
    }

    /// Returns the result of the last load, for display; `None` before the first load.
    pub fn last_load_view(&self) -> Option<LastLoadView> {
        self.last_load().map(|load| LastLoadView {
            success: load.error.is_none(),
            time: rfc3339(load.time),
            diagnostics: load.error.as_ref().map_or_else(|| json!([]), Diagnostics::to_json),
            text: load.error.map(|error| error.render()).unwrap_or_default(),
        })
    }
}

fn view(instance: &Instance, index: usize) -> Option<ComponentView> {
    let graph = &instance.graph;
    let graph_node = graph.nodes.get(index)?;
    if matches!(graph_node.kind, NodeKind::Argument | NodeKind::Export) {
        return None;
    }
    let entry = instance.entry(index)?;
    let ids = |indices: &[usize]| -> Vec<String> {
        let mut ids: Vec<String> = indices
            .iter()
            .filter_map(|index| graph.nodes.get(*index))
            .map(|node| node.id.to_string())
            .collect();
        ids.sort();
        ids.dedup();
        ids
    };
    // Data flows from this component to the components whose receivers it uses, and to the components that use its
    // exports other than receivers.
    let takes = |export: &(usize, std::sync::Arc<str>)| {
        graph.export(export.0, &export.1).is_some_and(|kind| is_receiver(&kind))
    };
    let uses = |user: &&usize| {
        let exports = graph.nodes.get(**user).map(|user| user.used_exports.as_slice());
        exports
            .unwrap_or_default()
            .iter()
            .any(|export| export.0 == index && !takes(export))
    };
    let mut flows: Vec<usize> = graph_node
        .used_exports
        .iter()
        .filter(|export| takes(export))
        .map(|export| export.0)
        .collect();
    flows.extend(graph_node.referenced_by.iter().filter(uses));
    Some(ComponentView {
        name: graph_node.block.block.name.name.to_string(),
        kind: "block",
        local_id: graph_node.id.to_string(),
        module_id: instance.path.to_string(),
        label: graph_node.label().to_owned(),
        references_to: ids(&graph_node.references),
        referenced_by: ids(&graph_node.referenced_by),
        data_flow_edges_to: ids(&flows),
        health: health(&entry.health()),
        original: "",
        arguments: json!([]),
        exports: json!([]),
        debug_info: json!([]),
        created_module_ids: instance
            .modules(index)
            .iter()
            .map(|module| module.path.to_string())
            .collect(),
        live_debugging_enabled: false,
    })
}

fn is_receiver(kind: &Kind) -> bool {
    match kind {
        Kind::Capsule(name) => *name == RECEIVER,
        Kind::List(inner) | Kind::Map(inner) => is_receiver(inner),
        _ => false,
    }
}

fn health(health: &Health) -> HealthView {
    HealthView {
        state: health_name(health.state),
        message: health.message.to_string(),
        updated_time: rfc3339(health.updated),
    }
}

fn rfc3339(time: std::time::SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Nanos, true)
}

/// Writes arguments in the order of their schema. Optional arguments with their default are omitted, as in Alloy.
fn body(arguments: &Arguments, schema: &Schema, overrides: &[(&'static str, &'static str)]) -> serde_json::Value {
    let attributes = schema.attributes.iter().filter_map(|attribute| {
        let value = arguments.value(attribute.name);
        let plain = !attribute.required && *value == default_of(attribute, overrides);
        (!plain).then(|| attribute_json(attribute.name, value))
    });
    let blocks = arguments.blocks.iter().map(|block| {
        let definition = schema.blocks.iter().find(|other| other.name == &*block.name);
        let inner = definition.map_or_else(
            || json!([]),
            |definition| body(&block.body, definition.schema, definition.defaults),
        );
        block_json(&block.name, block.label.as_deref(), inner)
    });
    attributes.chain(blocks).collect()
}

/// Writes the fields of an object as attributes.
fn attributes(value: &Value) -> serde_json::Value {
    let Value::Object(object) = value else {
        return json!([]);
    };
    object.iter().map(|(name, value)| attribute_json(name, value)).collect()
}

/// Writes the fields of an object. An inner object becomes a block, and a list of objects becomes several blocks.
fn attributes_and_blocks(value: &Value) -> serde_json::Value {
    let Value::Object(object) = value else {
        return json!([]);
    };
    let is_object = |value: &Value| matches!(value, Value::Object(_));
    let mut list = Vec::new();
    for (name, value) in object.iter() {
        match value {
            Value::Object(_) => list.push(block_json(name, None, attributes_and_blocks(value))),
            Value::Array(items) if !items.is_empty() && items.iter().all(is_object) => {
                list.extend(
                    items
                        .iter()
                        .map(|item| block_json(name, None, attributes_and_blocks(item))),
                );
            }
            _ => list.push(attribute_json(name, value)),
        }
    }
    list.into()
}

fn attribute_json(name: &str, value: &Value) -> serde_json::Value {
    json!({ "name": name, "type": "attr", "value": value_json(value) })
}

fn block_json(name: &str, label: Option<&str>, body: serde_json::Value) -> serde_json::Value {
    let mut block = json!({ "name": name, "type": "block", "body": body });
    if let (Some(label), Some(fields)) = (label, block.as_object_mut()) {
        fields.insert("label".to_owned(), label.into());
    }
    block
}

fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => json!({ "type": "null", "value": null }),
        Value::Bool(value) => json!({ "type": "bool", "value": value }),
        Value::Number(number) => json!({ "type": "number", "value": match number {
            Number::Int(value) => json!(value),
            Number::Uint(value) => json!(value),
            Number::Float(value) => json!(value),
        }}),
        Value::String(text) => json!({ "type": "string", "value": &**text }),
        Value::Secret(_) => json!({ "type": "capsule", "value": "(secret)" }),
        Value::Array(items) => {
            json!({ "type": "array", "value": items.iter().map(value_json).collect::<Vec<_>>() })
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| json!({ "key": &**key, "value": value_json(value) }))
                .collect();
            json!({ "type": "object", "value": fields })
        }
        Value::Function(_) => json!({ "type": "function", "value": value_name(value) }),
        Value::Capsule(_) => json!({ "type": "capsule", "value": value_name(value) }),
    }
}
