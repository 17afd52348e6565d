//! The tables of the reference pages, written from the definitions.
//!
//! In: the definitions. Out: the part of `docs/components/NAME.md` between two markers, or of `docs/reference/known-components.md` for the components
//! that cannot run yet. The test compares it; with `ALLUVIUM_UPDATE_DOCS=1` in the environment it rewrites it. Prose around the markers is written by hand.

use std::fmt::Write as _;
use std::path::Path;

use crate::components::ALL;
use crate::components::common::http_client;
use crate::lang::schema::{Attribute, Block, Kind, Schema};
use crate::pipeline::check::foreign;
use crate::pipeline::component::Definition;

const BEGIN: &str = "<!-- written by a test from the definition: begin -->";
const END: &str = "<!-- written by a test from the definition: end -->";

#[test]
fn the_tables_of_the_reference_pages_are_those_of_the_definitions() {
    for definition in ALL.iter().filter(|definition| definition.build.is_some()) {
        compare(&format!("docs/components/{}.md", definition.name), &tables(definition));
    }
    compare("docs/reference/known-components.md", &known());
    compare("docs/reference/compatibility.md", &standing());
}

/// The text between the markers of a page, compared or written.
fn compare(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (before, rest) = page.split_once(BEGIN).expect("a begin marker");
    let (_, after) = rest.split_once(END).expect("an end marker");
    let expected = format!("{before}{BEGIN}\n\n{text}{END}{after}");
    if std::env::var_os("ALLUVIUM_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            page == expected,
            "{} is not up to date; run: ALLUVIUM_UPDATE_DOCS=1 cargo test --lib reference_pages",
            path.display()
        );
    }
}

/// Every component that cannot run yet; the arguments that most of them share stand once, at the end.
fn known() -> String {
    let mut out = String::new();
    for definition in ALL.iter().filter(|definition| definition.build.is_none()) {
        let _ = writeln!(out, "## {}\n\n{}\n", definition.name, definition.doc);
        let _ = writeln!(out, "Stability: {}.\n", definition.stability.name());
        let names: Vec<&str> = definition.exports.iter().map(|export| export.name).collect();
        let exports = |name: &&Attribute| format!("`{}`, {}", name.name, kind(name.kind));
        let list: Vec<String> = definition.exports.iter().map(|export| exports(&export)).collect();
        let _ = match names.len() {
            0 => writeln!(out, "Exports nothing.\n"),
            _ => writeln!(out, "Exports {}.\n", list.join("; ")),
        };
        let own: Vec<Attribute> = own_attributes(definition.arguments);
        attribute_table(&own, &[], &mut out);
        if takes_client(definition.arguments) {
            out.push_str("It takes the [arguments of HTTP clients](#arguments-of-http-clients).\n\n");
        }
        own_blocks("", definition.arguments, &mut out);
    }
    out.push_str("## Arguments of HTTP clients\n\n");
    let client = Schema {
        attributes: http_client::ATTRIBUTES,
        blocks: &[],
    };
    attributes(&client, &[], &mut out);
    for block in http_client::BLOCKS {
        one_block(block.name, block, false, &mut out);
        own_blocks(block.name, block.schema, &mut out);
    }
    out
}

/// Blocks that are not those of HTTP clients.
fn own_blocks(path: &str, schema: &Schema, out: &mut String) {
    for block in schema.blocks {
        if takes_client(schema) && http_client::BLOCKS.iter().any(|shared| shared.name == block.name) {
            continue;
        }
        let full = if path.is_empty() {
            block.name.to_owned()
        } else {
            format!("{path} > {}", block.name)
        };
        one_block(&full, block, true, out);
        own_blocks(&full, block.schema, out);
    }
}

/// A block with its table; with `refer`, the arguments of HTTP clients are referred to and not repeated.
fn one_block(full: &str, block: &Block, refer: bool, out: &mut String) {
    let label = if block.labelled { " \"LABEL\"" } else { "" };
    let _ = writeln!(out, "### Block `{full}{label}`\n");
    let count = match (block.many, block.required) {
        (true, true) => "One or more.",
        (true, false) => "Any number.",
        (false, true) => "Required.",
        (false, false) => "Optional.",
    };
    let _ = writeln!(out, "{} {count}\n", block.doc);
    if refer && takes_client(block.schema) {
        attribute_table(&own_attributes(block.schema), block.defaults, out);
        out.push_str("It takes the [arguments of HTTP clients](#arguments-of-http-clients).\n\n");
        return;
    }
    attributes(block.schema, block.defaults, out);
}

/// True when a body takes all of the arguments of HTTP clients, credentials too.
fn takes_client(schema: &Schema) -> bool {
    let has = |shared: &Attribute| schema.attributes.iter().any(|attribute| attribute.name == shared.name);
    http_client::ATTRIBUTES.iter().all(has)
}

fn own_attributes(schema: &Schema) -> Vec<Attribute> {
    let client = takes_client(schema);
    let shared = |name: &str| http_client::ATTRIBUTES.iter().any(|shared| shared.name == name);
    let own = schema
        .attributes
        .iter()
        .filter(|attribute| !client || !shared(attribute.name));
    own.copied().collect()
}

/// The components of Alloy: built, known, or named only.
fn standing() -> String {
    let mut out = String::from("| Component | Standing |\n| --- | --- |\n");
    for definition in ALL {
        let _ = match definition.build {
            Some(_) => writeln!(out, "| [`{0}`](../components/{0}.md) | built |", definition.name),
            None => writeln!(
                out,
                "| [`{}`](known-components.md#{}) | known |",
                definition.name,
                definition.name.replace('.', "")
            ),
        };
    }
    let mut families: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in foreign::NAMES {
        let family = name.split('.').next().unwrap_or(name);
        match families.last_mut() {
            Some((last, names)) if *last == family => names.push(name),
            _ => families.push((family, vec![name])),
        }
    }
    for (family, names) in families {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            out,
            "| `{family}.*` ({}): {} | named only |",
            names.len(),
            names.join(", ")
        );
    }
    out.push('\n');
    out
}

fn tables(definition: &Definition) -> String {
    let mut out = String::from("### Arguments\n\n");
    attributes(definition.arguments, &[], &mut out);
    blocks("", definition.arguments, &mut out);
    out.push_str("### Exports\n\n");
    if definition.exports.is_empty() {
        out.push_str("None.\n\n");
    } else {
        out.push_str("| Name | Type | Meaning |\n| --- | --- | --- |\n");
        for export in definition.exports {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} |",
                export.name,
                kind(export.kind),
                cell(export.doc)
            );
        }
        out.push('\n');
    }
    out
}

fn attributes(schema: &Schema, defaults: &[(&str, &str)], out: &mut String) {
    attribute_table(schema.attributes, defaults, out);
}

fn attribute_table(attributes: &[Attribute], defaults: &[(&str, &str)], out: &mut String) {
    if attributes.is_empty() {
        return;
    }
    out.push_str("| Name | Type | Default | Meaning |\n| --- | --- | --- | --- |\n");
    for attribute in attributes {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            attribute.name,
            kind(attribute.kind),
            default(attribute, defaults),
            cell(attribute.doc)
        );
    }
    out.push('\n');
}

fn blocks(path: &str, schema: &Schema, out: &mut String) {
    for block in schema.blocks {
        let full = if path.is_empty() {
            block.name.to_owned()
        } else {
            format!("{path} > {}", block.name)
        };
        one_block(&full, block, false, out);
        blocks(&full, block.schema, out);
    }
}

fn default(attribute: &Attribute, defaults: &[(&str, &str)]) -> String {
    if attribute.required {
        return "required".to_owned();
    }
    let own = defaults
        .iter()
        .find(|(name, _)| *name == attribute.name)
        .map(|(_, text)| *text);
    own.or(attribute.default)
        .map_or_else(|| "not set".to_owned(), |text| format!("`{text}`"))
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Bool => "bool".to_owned(),
        Kind::Int | Kind::Uint | Kind::Float => "number".to_owned(),
        Kind::String => "string".to_owned(),
        Kind::Secret => "secret".to_owned(),
        Kind::OptionalSecret => "string or secret".to_owned(),
        Kind::Duration => "duration".to_owned(),
        Kind::List(inner) => format!("list({})", self::kind(*inner)),
        Kind::Map(inner) => format!("map({})", self::kind(*inner)),
        Kind::Any => "number or string".to_owned(),
        Kind::Capsule(name) => name.to_owned(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
