//! Generates the reference pages from the definitions.
//!
//! In: the definitions, and the text in `page.md` of each component's folder. Out: the whole page
//! `docs/components/NAME.md`, with the tables in place of `{{reference}}` and `{{metrics}}`, and the part between two
//! markers of `docs/reference/compatibility.md`. The test fails if a file differs from its generated page. With
//! `ALLUVIUM_UPDATE_DOCS=1` in the environment, the test rewrites the files instead.

use std::fmt::Write as _;
use std::path::Path;

use crate::ALL;
use alluvium_lang::schema::{Attribute, Block, Kind, Schema};
use alluvium_pipeline::check::foreign;
use alluvium_pipeline::component::AnyDefinition;
use alluvium_telemetry::metrics::Scope;

const BEGIN: &str = "<!-- written by a test from the definition: begin -->";
const END: &str = "<!-- written by a test from the definition: end -->";

/// Parts that every `page.md` must contain: an example, the section about health, and the placeholders of the tables.
const PARTS: [&str; 4] = ["```alloy\n", "{{reference}}", "## Health\n", "{{metrics}}"];

#[test]
fn the_reference_pages_are_those_of_the_definitions() {
    for definition in ALL {
        assert!(definition.can_run(), "{} has no page", definition.name());
        compare(&format!("docs/components/{}.md", definition.name()), |_| {
            page(*definition)
        });
    }
    compare("docs/reference/compatibility.md", |page| {
        between_markers(page, &standing())
    });
}

/// Compares the page at `path` with the page that `expected` generates from it, or rewrites the page.
fn compare(path: &str, expected: impl Fn(&str) -> String) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let expected = expected(&page);
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

/// Returns the page with `text` between its markers.
fn between_markers(page: &str, text: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("a begin marker");
    let (_, after) = rest.split_once(END).expect("an end marker");
    format!("{before}{BEGIN}\n\n{text}{END}{after}")
}

/// Returns the page of a component.
fn page(definition: &dyn AnyDefinition) -> String {
    let name = definition.name();
    let source = format!("src/components/{}/page.md", name.replace('.', "/"));
    let prose = std::fs::read_to_string(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(&source));
    let prose = prose.unwrap_or_else(|error| panic!("{source}: {error}"));
    for part in PARTS {
        assert!(prose.contains(part), "{source} has no {part}");
    }
    let prose = prose.replace("{{reference}}", reference(definition).trim_end());
    let prose = prose.replace("{{metrics}}", metrics(definition).trim_end());
    format!(
        "<!-- Written by a test from the definition and {source}: edit those. -->\n\n# {name}\n\n{}\n\n{prose}",
        definition.doc()
    )
}

/// Returns all tables of a component.
pub(super) fn tables(definition: &dyn AnyDefinition) -> String {
    reference(definition) + &metrics(definition)
}

/// Returns the table of the metrics that a component registers.
fn metrics(definition: &dyn AnyDefinition) -> String {
    let scope = Scope::recording();
    definition.register_metrics(&scope);
    let described = scope.described();
    let mut out = String::from("## Metrics\n\n");
    if described.is_empty() {
        out.push_str("None of its own.\n");
        return out;
    }
    out.push_str("| Name | Kind | Meaning |\n| --- | --- | --- |\n");
    for (name, kind, help) in described {
        let _ = writeln!(out, "| `{name}` | {kind} | {} |", cell(help));
    }
    out
}

/// Returns the table of Alloy's components, which are either built or only known by name.
fn standing() -> String {
    let mut out = String::from("| Component | Standing |\n| --- | --- |\n");
    for definition in ALL {
        let name = definition.name();
        let _ = writeln!(out, "| [`{name}`](../components/{name}.md) | built |");
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

/// Returns the tables of arguments, blocks and exports.
fn reference(definition: &dyn AnyDefinition) -> String {
    let mut out = String::from("## Reference\n\n### Arguments\n\n");
    attributes(definition.arguments(), &[], &mut out);
    blocks("", definition.arguments(), &mut out);
    out.push_str("### Exports\n\n");
    if definition.exports().is_empty() {
        out.push_str("None.\n\n");
    } else {
        out.push_str("| Name | Type | Meaning |\n| --- | --- | --- |\n");
        for export in definition.exports() {
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
            cell(&meaning(attribute.doc, attribute.no_effect))
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
        one_block(&full, block, out);
        blocks(&full, block.schema, out);
    }
}

/// Writes the section of a block with its table.
fn one_block(full: &str, block: &Block, out: &mut String) {
    let label = if block.labelled { " \"LABEL\"" } else { "" };
    let _ = writeln!(out, "### Block `{full}{label}`\n");
    let count = match (block.many, block.required) {
        (true, true) => "One or more.",
        (true, false) => "Any number.",
        (false, true) => "Required.",
        (false, false) => "Optional.",
    };
    let _ = writeln!(out, "{} {count}\n", meaning(block.doc, block.no_effect));
    attributes(block.schema, block.defaults, out);
}

/// Returns the description of an attribute or a block, with the reason if it has no effect.
fn meaning(doc: &str, no_effect: Option<&str>) -> String {
    no_effect.map_or_else(|| doc.to_owned(), |reason| format!("{doc} **No effect:** {reason}."))
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
