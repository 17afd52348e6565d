//! Decodes a body against its schema: checks names, counts, labels and types, reports errors with their positions, and
//! returns an [`Arguments`].
//!
//! The caller decides how an expression becomes a value ([`Resolve`]): the engine evaluates it, `validate` only checks
//! types. A body is always decoded to its end, so that all errors are reported at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ast::{self, Expression, ExpressionKind, Identifier, Statement};
use crate::codes;
use crate::convert::{ConversionError, Step, convert};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::eval::{NoScope, Scope, evaluate};
use crate::parser::parse_expression;
use crate::schema::{ArgumentBlock, Arguments, Attribute, Kind, Schema};
use crate::source::{Source, Span};
use crate::value::{Fields, Number, Value};

/// Turns the expression of an attribute into a value of its type.
pub trait Resolve {
    /// Returns the converted value; `None` if it is not known yet.
    fn resolve(&self, source: &Source, expression: &Expression, kind: &Kind) -> Result<Option<Value>, Diagnostic>;

    /// Returns precomputed defaults that many bodies share.
    fn defaults(&self) -> Option<&Defaults> {
        None
    }
}

/// Evaluates in a scope where every value is known.
pub struct Evaluate<'a> {
    /// The scope whose names have values.
    pub scope: &'a dyn Scope,
    /// Precomputed defaults that many bodies share.
    pub defaults: Option<&'a Defaults>,
}

impl Evaluate<'_> {
    /// Evaluates with only the standard library in scope.
    fn standard() -> Self {
        Self {
            scope: &NoScope,
            defaults: None,
        }
    }
}

impl Resolve for Evaluate<'_> {
    fn resolve(&self, source: &Source, expression: &Expression, kind: &Kind) -> Result<Option<Value>, Diagnostic> {
        let value = evaluate(source, expression, self.scope)?;
        convert(&value, kind)
            .map(Some)
            .map_err(|error| wrong_type(source, expression, &error))
    }

    fn defaults(&self) -> Option<&Defaults> {
        self.defaults
    }
}

/// Attribute names and defaults of schemas, computed once and shared by all bodies. Holds one list for each combination
/// of a schema and overrides that a decoded body has used.
#[derive(Default)]
pub struct Defaults(Mutex<HashMap<DefaultsKey, SharedDefaults>>);

/// Address and length of a schema's attributes and of the overrides. Both are constants, so addresses identify them.
type DefaultsKey = ((usize, usize), (usize, usize));
/// The name and default of each attribute; `None` for an invalid default.
type SharedDefaults = Arc<[(Arc<str>, Option<Value>)]>;
/// Defaults that differ from those of a schema.
type Overrides = &'static [(&'static str, &'static str)];

impl Defaults {
    fn get(&self, schema: &'static Schema, overrides: Overrides) -> SharedDefaults {
        let key = (
            (schema.attributes.as_ptr() as usize, schema.attributes.len()),
            (overrides.as_ptr() as usize, overrides.len()),
        );
        let work_out = || {
            let default = |attribute: &Attribute| {
                let mut diagnostics = Diagnostics::new();
                let value = default_value(attribute, overrides, &mut diagnostics);
                (Arc::from(attribute.name), diagnostics.is_empty().then_some(value))
            };
            schema.attributes.iter().map(default).collect()
        };
        self.0.lock().entry(key).or_insert_with(work_out).clone()
    }
}

/// Result of decoding a body.
pub struct Decoded {
    /// The values of the body. An invalid value is null; an attribute whose value is not known yet is absent.
    pub arguments: Arguments,
    /// Errors and warnings about the body.
    pub diagnostics: Diagnostics,
}

/// Decodes `body`. `header` is the position at which a missing attribute or block is reported.
pub fn decode(
    source: &Source,
    header: Span,
    body: &[Statement],
    schema: &'static Schema,
    resolve: &dyn Resolve,
) -> Decoded {
    let mut decoder = Decoder {
        source,
        resolve,
        diagnostics: Diagnostics::new(),
    };
    let arguments = decoder.body(header, body, schema, &[]);
    Decoded {
        arguments,
        diagnostics: decoder.diagnostics,
    }
}

/// Returns the arguments of an empty body; required attributes are null. Fails if a default does not have the type of
/// its attribute. A test calls this function for the schema of every component.
pub fn defaults(schema: &Schema) -> Result<Arguments, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let arguments = default_arguments(schema, &[], &mut diagnostics);
    // Blocks that are not implied have defaults too, which are checked here but not returned.
    for block in schema.blocks {
        default_arguments(block.schema, block.defaults, &mut diagnostics);
        if let Err(inner) = defaults(block.schema) {
            diagnostics.extend(inner);
        }
    }
    diagnostics.into_result(arguments)
}

/// Returns the value of an omitted attribute; null if it has no default, or a default of the wrong type.
pub fn default_of(attribute: &Attribute, overrides: &[(&'static str, &'static str)]) -> Value {
    default_value(attribute, overrides, &mut Diagnostics::new())
}

/// Creates a type error, placed at the invalid part of the expression if this part can be located.
pub fn wrong_type(source: &Source, expression: &Expression, error: &ConversionError) -> Diagnostic {
    let mut part = expression;
    let mut rest = String::new();
    for step in &error.path {
        let next = match (&part.kind, step) {
            (ExpressionKind::Array(items), Step::Index(index)) if rest.is_empty() => items.get(*index),
            (ExpressionKind::Object(fields), Step::Key(key)) if rest.is_empty() => fields
                .iter()
                .rev()
                .find(|field| field.name.name == *key)
                .map(|field| &field.value),
            _ => None,
        };
        match (next, step) {
            (Some(next), _) => part = next,
            (None, Step::Index(index)) => rest.push_str(&format!("[{index}]")),
            (None, Step::Key(key)) => rest.push_str(&format!("[\"{key}\"]")),
        }
    }
    let message = if rest.is_empty() {
        error.message.clone()
    } else {
        format!("{}{rest}: {}", source.slice(part.span), error.message)
    };
    Diagnostic::error(codes::WRONG_TYPE, source, part.span, message)
}

/// Returns the span of the attribute or block with a path such as `rule[2].action`; `fallback` if it does not exist.
pub fn locate(body: &[Statement], path: &str, fallback: Span) -> Span {
    if path.is_empty() {
        return fallback;
    }
    let mut block_counts: BTreeMap<&str, usize> = BTreeMap::new();
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => {
                if let Some(rest) = path.strip_prefix(attribute.name.name.as_ref())
                    && (rest.is_empty() || rest.starts_with(['[', '.']))
                {
                    return attribute.span();
                }
            }
            Statement::Block(block) => {
                let count = block_counts.entry(block.name.name.as_ref()).or_default();
                let index = *count;
                *count += 1;
                let Some(rest) = path.strip_prefix(block.name.name.as_ref()) else {
                    continue;
                };
                let numbered = rest.strip_prefix(format!("[{index}]").as_str());
                let rest = match numbered {
                    Some(rest) => rest,
                    None if index == 0 && !rest.starts_with('[') => rest,
                    None => continue,
                };
                if rest.is_empty() {
                    return block.header();
                }
                if let Some(inner) = rest.strip_prefix('.') {
                    return locate(&block.body, inner, block.header());
                }
            }
        }
    }
    fallback
}

struct Decoder<'a> {
    source: &'a Source,
    resolve: &'a dyn Resolve,
    diagnostics: Diagnostics,
}

impl Decoder<'_> {
    fn body(&mut self, header: Span, body: &[Statement], schema: &'static Schema, overrides: Overrides) -> Arguments {
        let mut arguments = Arguments {
            attributes: Fields::with_capacity(schema.attributes.len()),
            blocks: Vec::new(),
        };
        let mut block_counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut unknown = Vec::new();
        for statement in body {
            match statement {
                Statement::Attribute(attribute) => {
                    unknown.extend(self.attribute(attribute, schema, &mut arguments));
                }
                Statement::Block(block) => {
                    *block_counts.entry(block.name.name.as_ref()).or_default() += 1;
                    let count = block_counts[block.name.name.as_ref()];
                    self.block(block, count, schema, &mut arguments);
                }
            }
        }
        let shared = self.resolve.defaults().map(|defaults| defaults.get(schema, overrides));
        for (index, attribute) in schema.attributes.iter().enumerate() {
            if arguments.attributes.contains_key(attribute.name) {
                continue;
            }
            // A block with that name has been reported already.
            if attribute.required && !block_counts.contains_key(attribute.name) {
                self.report_missing(header, attribute);
            }
            let (name, value) = self.default(shared.as_ref(), index, attribute, overrides);
            arguments.attributes.insert(name, value);
        }
        for block in schema.blocks {
            if block_counts.contains_key(block.name) {
                continue;
            }
            let as_attribute = body.iter().any(
                |statement| matches!(statement, Statement::Attribute(attribute) if &*attribute.name.name == block.name),
            );
            if block.required && !as_attribute {
                let message = format!("missing required block \"{}\"", block.name);
                self.diagnostics.push(
                    Diagnostic::error(codes::MISSING_BLOCK, self.source, header, message)
                        .hint(format!("add `{} {{ ... }}`: {}", block.name, block.doc)),
                );
            } else if block.implied {
                arguments.blocks.push(ArgumentBlock {
                    name: block.name.into(),
                    label: None,
                    body: self.implied(block.schema, block.defaults),
                });
            }
        }
        for name in unknown {
            arguments.attributes.remove(&name);
        }
        arguments.attributes.shrink_to_fit();
        arguments.blocks.shrink_to_fit();
        arguments
    }

    /// Returns the body of an implied block that is not written.
    fn implied(&mut self, schema: &'static Schema, overrides: Overrides) -> Arguments {
        let shared = self.resolve.defaults().map(|defaults| defaults.get(schema, overrides));
        let attributes = schema.attributes.iter().enumerate();
        let attributes = attributes
            .map(|(index, attribute)| self.default(shared.as_ref(), index, attribute, overrides))
            .collect();
        let blocks = schema.blocks.iter().filter(|block| block.implied);
        let blocks = blocks.map(|block| ArgumentBlock {
            name: block.name.into(),
            label: None,
            body: self.implied(block.schema, block.defaults),
        });
        Arguments {
            attributes,
            blocks: blocks.collect(),
        }
    }

    fn default(
        &mut self,
        shared: Option<&SharedDefaults>,
        index: usize,
        attribute: &Attribute,
        overrides: Overrides,
    ) -> (Arc<str>, Value) {
        match shared.and_then(|shared| shared.get(index)) {
            Some((name, Some(value))) => (name.clone(), value.clone()),
            _ => (
                attribute.name.into(),
                default_value(attribute, overrides, &mut self.diagnostics),
            ),
        }
    }

    fn report_missing(&mut self, header: Span, attribute: &Attribute) {
        let message = format!("missing required attribute \"{}\"", attribute.name);
        self.diagnostics.push(
            Diagnostic::error(codes::MISSING_ATTRIBUTE, self.source, header, message)
                .hint(format!("add `{} = ...`: {}", attribute.name, attribute.doc)),
        );
    }

    /// Adds an attribute. Returns its name if its value is not known yet.
    fn attribute(
        &mut self,
        attribute: &ast::Attribute,
        schema: &'static Schema,
        arguments: &mut Arguments,
    ) -> Option<Arc<str>> {
        let name = &attribute.name;
        let Some(definition) = schema.attributes.iter().find(|other| other.name == &*name.name) else {
            self.unknown_attribute(attribute, schema);
            return None;
        };
        if arguments.attributes.contains_key(definition.name) {
            let message = format!("attribute \"{}\" may only be provided once", name.name);
            let diagnostic = Diagnostic::error(codes::DUPLICATE_ATTRIBUTE, self.source, attribute.span(), message);
            self.diagnostics.push(diagnostic.hint("keep one of them"));
            return None;
        }
        let resolved = self.resolve.resolve(self.source, &attribute.value, &definition.kind);
        let value = resolved.unwrap_or_else(|diagnostic| {
            self.diagnostics.push(diagnostic);
            Some(Value::Null)
        });
        let unknown = value.is_none().then(|| name.name.clone());
        // Use the name from the text, so that its allocation is shared.
        arguments
            .attributes
            .insert(name.name.clone(), value.unwrap_or_default());
        unknown
    }

    fn unknown_attribute(&mut self, attribute: &ast::Attribute, schema: &Schema) {
        let name = &attribute.name.name;
        if schema.blocks.iter().any(|block| block.name == &**name) {
            let message = format!("\"{name}\" must be a block, but is used as an attribute");
            let hint = format!("write `{name} {{ ... }}`");
            self.push(codes::MUST_BE_BLOCK, attribute.span(), message, Some(hint));
            return;
        }
        let message = format!("unrecognized attribute name \"{name}\"");
        let hint = suggestion(
            name,
            schema.attributes.iter().map(|attribute| attribute.name),
            "attributes",
        );
        self.push(codes::UNKNOWN_ATTRIBUTE, attribute.name.span, message, hint);
    }

    fn block(&mut self, block: &ast::Block, count: usize, schema: &'static Schema, arguments: &mut Arguments) {
        let name = &block.name.name;
        let Some(definition) = schema.blocks.iter().find(|other| other.name == &**name) else {
            return self.unknown_block(block, schema);
        };
        if count == 2 && !definition.many {
            let message = format!("block \"{name}\" may only be specified once");
            self.push(codes::DUPLICATE_BLOCK, block.header(), message, None);
        }
        match (&block.label, definition.labelled) {
            (None, true) => {
                let message = format!("block \"{name}\" requires non-empty label");
                let hint = Some(format!("write `{name} \"LABEL\" {{ ... }}`"));
                self.push(codes::LABEL_REQUIRED, block.name.span, message, hint);
            }
            (Some(label), false) => {
                let message = format!("block \"{name}\" does not support specifying labels");
                self.push(codes::LABEL_REFUSED, label.span, message, None);
            }
            _ => {}
        }
        let body = self.body(block.header(), &block.body, definition.schema, definition.defaults);
        arguments.blocks.push(ArgumentBlock {
            name: name.clone(),
            label: block.label.as_ref().map(|Identifier { name, .. }| name.clone()),
            body,
        });
    }

    fn unknown_block(&mut self, block: &ast::Block, schema: &Schema) {
        let name = &block.name.name;
        if schema.attributes.iter().any(|attribute| attribute.name == &**name) {
            let message = format!("\"{name}\" must be an attribute, but is used as a block");
            let hint = format!("write `{name} = ...`");
            self.push(codes::MUST_BE_ATTRIBUTE, block.header(), message, Some(hint));
            return;
        }
        let message = format!("unrecognized block name \"{name}\"");
        let hint = suggestion(name, schema.blocks.iter().map(|block| block.name), "blocks");
        self.push(codes::UNKNOWN_BLOCK, block.header(), message, hint);
    }

    fn push(&mut self, code: codes::Code, span: Span, message: String, hint: Option<String>) {
        self.diagnostics
            .push(Diagnostic::error(code, self.source, span, message).maybe_hint(hint));
    }
}

/// Suggests the nearest candidate, or lists all if the list is short enough to help.
fn suggestion<'a>(name: &str, candidates: impl Iterator<Item = &'a str> + Clone, noun: &str) -> Option<String> {
    if let Some(candidate) = nearest(name, candidates.clone()) {
        return Some(format!("did you mean `{candidate}`?"));
    }
    let all: Vec<&str> = candidates.collect();
    match all.len() {
        0 => Some(format!("no {noun} are allowed here")),
        1..=12 => Some(format!("{noun} allowed here: {}", all.join(", "))),
        _ => None,
    }
}

fn default_arguments(schema: &Schema, overrides: &[(&'static str, &'static str)], out: &mut Diagnostics) -> Arguments {
    let attributes = schema
        .attributes
        .iter()
        .map(|attribute| (Arc::from(attribute.name), default_value(attribute, overrides, out)))
        .collect();
    let blocks = schema
        .blocks
        .iter()
        .filter(|block| block.implied)
        .map(|block| ArgumentBlock {
            name: block.name.into(),
            label: None,
            body: default_arguments(block.schema, block.defaults, out),
        })
        .collect();
    Arguments { attributes, blocks }
}

/// Returns the value of a literal in a plain form: a keyword, an empty list or object, a string without escapes, or a
/// decimal integer without a sign. `None` for any other text.
fn literal(text: &str) -> Option<Value> {
    match text {
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        "null" => return Some(Value::Null),
        "[]" => return Some(Value::array([])),
        "{}" => return Some(Value::object::<Arc<str>>([])),
        _ => {}
    }
    if let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return (!inner.contains(['"', '\\', '\n'])).then(|| Value::string(inner));
    }
    // A leading zero would make the number octal.
    let decimal = text == "0" || !text.starts_with('0');
    let digits = decimal && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .map(|number| Value::Number(Number::Int(number)))
}

fn default_value(attribute: &Attribute, overrides: &[(&'static str, &'static str)], out: &mut Diagnostics) -> Value {
    let override_entry = overrides.iter().find(|(name, _)| *name == attribute.name);
    let Some(text) = override_entry.map(|(_, text)| *text).or(attribute.default) else {
        return Value::Null;
    };
    // Nearly all defaults are plain literals, which need no parser.
    if let Some(plain) = literal(text)
        && let Ok(value) = convert(&plain, &attribute.kind)
    {
        return value;
    }
    let source = Source::new(format!("default of {}", attribute.name), text);
    let (expression, diagnostics) = parse_expression(&source);
    if diagnostics.has_errors() {
        out.extend(diagnostics);
        return Value::Null;
    }
    match Evaluate::standard().resolve(&source, &expression, &attribute.kind) {
        Ok(value) => value.unwrap_or_default(),
        Err(diagnostic) => {
            out.push(diagnostic);
            Value::Null
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_literals_are_what_the_parser_makes_of_them() {
        const LIST: Kind = Kind::List(&Kind::String);
        const MAP: Kind = Kind::Map(&Kind::String);
        for (text, kind) in [
            ("true", Kind::Bool),
            ("false", Kind::Bool),
            ("0", Kind::Int),
            ("10000", Kind::Uint),
            ("7", Kind::Float),
            ("\"\"", Kind::String),
            ("\"$1\"", Kind::String),
            ("\"15s\"", Kind::Duration),
            ("\"x\"", Kind::Secret),
            ("\"x\"", Kind::OptionalSecret),
            ("[]", LIST),
            ("{}", MAP),
        ] {
            let source = Source::new("", text);
            let (expression, _) = parse_expression(&source);
            let parsed = Evaluate::standard()
                .resolve(&source, &expression, &kind)
                .unwrap()
                .unwrap();
            assert_eq!(convert(&literal(text).unwrap(), &kind), Ok(parsed), "{text}");
        }
        for text in ["010", "1.5", "-1", "[1]", "\"a\\n\"", "1 + 1", "\"a\" + \"b\"", ""] {
            assert!(literal(text).is_none(), "{text}");
        }
    }
}
