//! Tests of `crate::ALL`, the list of all components: rules that hold for every component.

mod annotated;
mod contract;
mod engine;
mod example;
mod ignored;
mod live;
mod modules;
mod receiving;
mod reference;
mod reloads;
mod sources;

use crate::ALL;
use crate::common::testing::literal;
use alluvium_lang::schema::{Attribute, Kind, Schema};
use alluvium_lang::value::Value;

#[test]
fn the_list_is_sorted_and_names_are_unique() {
    let names: Vec<_> = ALL.iter().map(|definition| definition.name()).collect();
    assert!(names.is_sorted_by(|left, right| left < right), "{names:?}");
}

#[test]
fn every_schema_is_sorted_documented_and_has_defaults_of_its_types() {
    for definition in ALL {
        assert!(!definition.doc().is_empty(), "{}", definition.name());
        assert!(
            !definition.exports().iter().any(|export| export.doc.is_empty()),
            "{}",
            definition.name()
        );
        check(definition.name(), definition.arguments());
        if let Err(diagnostics) = alluvium_lang::decode::defaults(definition.arguments()) {
            panic!("{}: {}", definition.name(), diagnostics.render());
        }
    }
}

fn check(path: &str, schema: &Schema) {
    assert!(
        schema.attributes.is_sorted_by(|left, right| left.name < right.name),
        "attributes of {path}"
    );
    assert!(
        schema.blocks.is_sorted_by(|left, right| left.name < right.name),
        "blocks of {path}"
    );
    for attribute in schema.attributes {
        assert!(!attribute.doc.is_empty(), "{path}.{}", attribute.name);
        assert!(
            !attribute.required || attribute.default.is_none(),
            "{path}.{}",
            attribute.name
        );
        if let Some(default) = attribute.default {
            fits(path, attribute, default);
        }
    }
    for block in schema.blocks {
        assert!(!block.doc.is_empty(), "{path}.{}", block.name);
        for (name, default) in block.defaults {
            let attribute = block.schema.attributes.iter().find(|attribute| attribute.name == *name);
            fits(block.name, attribute.expect(name), default);
        }
        check(&format!("{path}.{}", block.name), block.schema);
    }
}

fn fits(path: &str, attribute: &Attribute, default: &str) {
    let value = literal(default);
    let fits = match attribute.kind {
        Kind::Bool => matches!(value, Value::Bool(_)),
        Kind::Int | Kind::Uint | Kind::Float => matches!(value, Value::Number(_)),
        Kind::String | Kind::Secret | Kind::OptionalSecret => matches!(value, Value::String(_)),
        Kind::Duration => matches!(&value, Value::String(text) if alluvium_base::duration::parse(text).is_ok()),
        Kind::List(_) => matches!(value, Value::Array(_)),
        Kind::Map(_) => matches!(value, Value::Object(_)),
        Kind::Any => true,
        Kind::Capsule(_) => false,
    };
    assert!(fits, "{path}.{}: default {default}", attribute.name);
}
