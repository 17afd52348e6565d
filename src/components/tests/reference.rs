//! The tables of the reference pages, written from the definitions.
//!
//! In: the definitions. Out: the part of `docs/components/NAME.md` between two markers. The test compares it; with `ALLUVIUM_UPDATE_DOCS=1`
//! in the environment it rewrites it. Prose around the markers is written by hand.

use std::fmt::Write as _;
use std::path::Path;

use crate::components::ALL;
use crate::lang::schema::{Attribute, Kind, Schema};
use crate::pipeline::component::Definition;

const BEGIN: &str = "<!-- written by a test from the definition: begin -->";
const END: &str = "<!-- written by a test from the definition: end -->";

#[test]
fn the_tables_of_the_reference_pages_are_those_of_the_definitions() {
    for definition in ALL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/components/{}.md", definition.name));
        let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (before, rest) = page.split_once(BEGIN).expect("a begin marker");
        let (_, after) = rest.split_once(END).expect("an end marker");
        let expected = format!("{before}{BEGIN}\n\n{}{END}{after}", tables(definition));
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
    if schema.attributes.is_empty() {
        return;
    }
    out.push_str("| Name | Type | Default | Meaning |\n| --- | --- | --- | --- |\n");
    for attribute in schema.attributes {
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
        let label = if block.labelled { " \"LABEL\"" } else { "" };
        let _ = writeln!(out, "### Block `{full}{label}`\n");
        let count = match (block.many, block.required) {
            (true, true) => "One or more.",
            (true, false) => "Any number.",
            (false, true) => "Required.",
            (false, false) => "Optional.",
        };
        let _ = writeln!(out, "{} {count}\n", block.doc);
        attributes(block.schema, block.defaults, out);
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
