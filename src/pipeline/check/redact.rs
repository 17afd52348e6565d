//! Removes the secrets from a configuration's text, for a support bundle.
//!
//! In: the name and text of a file and the definitions of components. Out: the same text without secrets. `(secret)`
//! replaces every string in the value of a secret attribute, and every string next to a word such as `password` (also
//! in comments). The user and the password are removed from URLs. A text that does not parse is omitted as a whole,
//! since its secrets cannot be located.

use crate::component::AnyDefinition;
use alluvium_lang::ast::{Block, Expression, ExpressionKind, Statement};
use alluvium_lang::schema::{Kind, Schema};
use alluvium_lang::token::TokenKind;
use alluvium_lang::{Source, parse};

/// A string after one of these words is redacted.
const SUSPICIOUS_WORDS: [&str; 6] = ["password", "passwd", "secret", "token", "credential", "key_pem"];
const SECRET: &str = "\"(secret)\"";

/// Returns the text without its secrets. The syntax is HCL if `path` ends in `.hcl`, Alloy otherwise.
pub fn redact(path: &str, text: &str, definitions: &[&'static dyn AnyDefinition]) -> String {
    let source = Source::new(path, text);
    let (file, diagnostics) = parse(&source);
    if diagnostics.has_errors() {
        return "// left out: this file does not parse, so its secrets cannot be located\n".to_owned();
    }
    let mut spans = Vec::new();
    for statement in &file.body {
        if let Statement::Block(block) = statement {
            collect_block(block, definitions, &mut spans);
        }
    }
    spans.sort_unstable();
    let mut clean = String::with_capacity(text.len());
    let mut offset = 0;
    for (start, end) in spans {
        if start < offset {
            continue;
        }
        clean.push_str(text.get(offset..start).unwrap_or_default());
        clean.push_str(SECRET);
        offset = end;
    }
    clean.push_str(text.get(offset..).unwrap_or_default());
    clean.split_inclusive('\n').map(line).collect()
}

/// Collects the spans of the secrets in a component, or in a block that contains components.
fn collect_block(block: &Block, definitions: &[&'static dyn AnyDefinition], spans: &mut Vec<(usize, usize)>) {
    let definition = definitions
        .iter()
        .find(|definition| definition.name() == &*block.name.name);
    if let Some(definition) = definition {
        return collect_body(&block.body, Some(definition.arguments()), spans);
    }
    for statement in &block.body {
        match statement {
            Statement::Block(inner) => collect_block(inner, definitions, spans),
            Statement::Attribute(attribute) if is_suspicious(&attribute.name.name) => strings(&attribute.value, spans),
            Statement::Attribute(_) => {}
        }
    }
}

fn collect_body(body: &[Statement], schema: Option<&Schema>, spans: &mut Vec<(usize, usize)>) {
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => {
                let name = &*attribute.name.name;
                let definition =
                    schema.and_then(|schema| schema.attributes.iter().find(|definition| definition.name == name));
                if definition.is_some_and(|definition| is_secret(&definition.kind)) || is_suspicious(name) {
                    strings(&attribute.value, spans);
                }
            }
            Statement::Block(block) => {
                let name = &*block.name.name;
                let definition =
                    schema.and_then(|schema| schema.blocks.iter().find(|definition| definition.name == name));
                collect_body(&block.body, definition.map(|definition| definition.schema), spans);
            }
        }
    }
}

fn is_secret(kind: &Kind) -> bool {
    match kind {
        Kind::Secret | Kind::OptionalSecret => true,
        Kind::List(inner) | Kind::Map(inner) => is_secret(inner),
        _ => false,
    }
}

fn is_suspicious(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // An attribute with the path of a file is not secret, even if the file is.
    SUSPICIOUS_WORDS.iter().any(|word| name.contains(word)) && !name.ends_with("_file")
}

/// Collects the spans of all strings in a value.
fn strings(expression: &Expression, spans: &mut Vec<(usize, usize)>) {
    match &expression.kind {
        ExpressionKind::Literal { kind, .. } => {
            if *kind == TokenKind::String {
                spans.push((expression.span.start, expression.span.end));
            }
        }
        ExpressionKind::Identifier(_) => {}
        ExpressionKind::Array(items) => items.iter().for_each(|item| strings(item, spans)),
        ExpressionKind::Object(fields) => fields.iter().for_each(|field| strings(&field.value, spans)),
        ExpressionKind::Access { value, .. } | ExpressionKind::Unary { value, .. } => strings(value, spans),
        ExpressionKind::Index { value, index, .. } => {
            strings(value, spans);
            strings(index, spans);
        }
        ExpressionKind::Call { arguments, .. } => arguments.iter().for_each(|argument| strings(argument, spans)),
        ExpressionKind::Binary { left, right, .. } => {
            strings(left, spans);
            strings(right, spans);
        }
        ExpressionKind::Paren(inner) => strings(inner, spans),
    }
}

/// Redacts strings that no schema covers: strings after a suspicious word (in a comment, or in an object in the
/// arguments of a module), and user and password in URLs.
fn line(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let word = SUSPICIOUS_WORDS
        .iter()
        .filter_map(|word| Some(lower.find(word)? + word.len()))
        .min();
    let assigned = word.is_some_and(|end| {
        let rest = line.get(end..).unwrap_or_default().trim_start_matches('"').trim_start();
        rest.starts_with('=') || rest.starts_with(':')
    });
    let mut clean = String::with_capacity(line.len());
    let (kept, rest) = match word {
        Some(end) if assigned => line.split_at_checked(end).unwrap_or((line, "")),
        _ => (line, ""),
    };
    clean.push_str(kept);
    // Skip the quote that closes a key, to find the one that opens the value.
    let skipped = rest.find(['=', ':']).unwrap_or(0);
    let (before, mut rest) = rest.split_at_checked(skipped).unwrap_or((rest, ""));
    clean.push_str(before);
    while let Some(open) = rest.find(['"', '`']) {
        let quote = &rest[open..=open];
        let inner = &rest[open + 1..];
        clean.push_str(&rest[..open]);
        clean.push_str(SECRET);
        rest = inner.find(quote).map_or("\n", |close| &inner[close + 1..]);
    }
    clean.push_str(rest);
    alluvium_telemetry::logs::without_userinfo(clean)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::component::{Definition, Stability, no_metrics};
    use alluvium_lang::attribute::Secret;
    use alluvium_lang::body::arguments;

    arguments! {
        /// Arguments with secrets.
        struct ClientArguments {}
        blocks {
            /// Endpoints that requests go to.
            endpoint: Vec<Endpoint>,
        }
    }

    arguments! {
        /// Attributes with secrets.
        struct Endpoint {
            /// A secret that stands by itself.
            bearer: Option<Secret>,
            /// Secrets within a map of lists.
            headers: BTreeMap<Arc<str>, Vec<Secret>>,
            /// A text that is not secret.
            plain: Option<Arc<str>>,
        }
    }

    const DEFINITION: Definition<ClientArguments> = Definition {
        name: "test.client",
        stability: Stability::GenerallyAvailable,
        exports: &[],
        metrics: no_metrics,
        build: None,
        doc: "",
    };

    #[test]
    fn secrets_are_gone_and_the_rest_is_as_written() {
        let text = r#"// password = "in a comment"
test.client "a" {
	endpoint {
		bearer  = "one" + sys.env("TWO")
		headers = {"X" = ["three"], Y = [`four`]}
		plain   = "https://user:five@host/path"
	}
}

declare "m" {
	argument "token" { }
	test.client "b" {
		endpoint {
			bearer = argument.token.value
		}
	}
	unknown.thing "c" {
		password      = "six"
		password_file = "/etc/kept"
		nested        = {"api_token" = "seven", kept = 1}
	}
}
"#;
        let clean = redact("a.alloy", text, &[&DEFINITION]);
        for secret in ["in a comment", "one", "TWO", "three", "four", "five", "six", "seven"] {
            assert!(!clean.contains(secret), "{secret} in\n{clean}");
        }
        for kept in [
            "argument.token.value",
            "https://host/path",
            "\"/etc/kept\"",
            "declare \"m\"",
            "argument \"token\" { }",
        ] {
            assert!(clean.contains(kept), "no {kept} in\n{clean}");
        }
        assert_eq!(clean.lines().count(), text.lines().count());
        assert!(redact("a.alloy", "test.client \"a\" { password = \"x", &[&DEFINITION]).starts_with("// left out"));
    }
}
