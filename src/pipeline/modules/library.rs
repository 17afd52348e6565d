//! What an import brought: the declarations and further imports in its texts.
//!
//! In: the exports of an import's component, [`CONTENT`] and [`FOLDER`]. Out: a [`Parsed`], kept for as long as the content is the same.
//! Texts of modules hold `declare` and `import.*` blocks and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lang::ast::Statement;
use crate::lang::value::Value;
use crate::lang::{Diagnostic, Diagnostics, Source, codes, parse};
use crate::pipeline::component::Definition;
use crate::pipeline::graph::{Catalog, Declares, IMPORT, SourceBlock};
use crate::pipeline::modules::declare::Declare;
use crate::pipeline::modules::instance::Surroundings;

/// Export of an import: its texts, an object from name to text. Diagnostics call a text by its name.
pub const CONTENT: &str = "content";
/// Export of an import: the folder (or the start of the URL) of its texts, for `module_path`; null for that of the text which imports.
pub const FOLDER: &str = "folder";

/// An import in force.
pub struct Library {
    /// The texts that it is made of.
    pub content: Value,
    /// The texts, read.
    pub parsed: Arc<Parsed>,
    /// Its folder, and what it imports itself.
    pub surroundings: Arc<Surroundings>,
}

/// The texts of an import, read.
pub struct Parsed {
    pub(crate) declares: Declares,
    /// Its imports by namespace.
    pub(crate) imports: BTreeMap<Arc<str>, (Arc<SourceBlock>, &'static Definition)>,
}

/// The texts among the exports of an import.
pub(crate) fn content(exports: &Value) -> Value {
    match exports {
        Value::Object(fields) => fields.get(CONTENT).cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

/// The folder among the exports of an import.
pub(crate) fn folder(exports: &Value) -> Option<Arc<str>> {
    match exports {
        Value::Object(fields) => match fields.get(FOLDER) {
            Some(Value::String(folder)) => Some(folder.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the texts of an import.
pub(crate) fn read(content: &Value, catalog: &Catalog) -> Result<Parsed, Diagnostics> {
    let mut parsed = Parsed {
        declares: Declares::new(),
        imports: BTreeMap::new(),
    };
    let mut diagnostics = Diagnostics::new();
    if let Value::Object(texts) = content {
        for (name, text) in texts.iter() {
            let (Value::String(content) | Value::Secret(content)) = text else {
                continue;
            };
            let (file, found) = parse(&Source::new(name.clone(), content.clone()));
            let source = match text {
                Value::Secret(_) => blank(&file.source),
                _ => file.source.clone(),
            };
            diagnostics.extend(
                found
                    .into_iter()
                    .map(|found| Diagnostic {
                        source: source.clone(),
                        ..found
                    })
                    .collect(),
            );
            for statement in &file.body {
                parsed.statement(&source, statement, catalog, &mut diagnostics);
            }
        }
    }
    diagnostics.into_result(parsed)
}

/// The text with everything but its line ends replaced: places in it are right, and excerpts of it show nothing.
fn blank(source: &Source) -> Source {
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    let text: String = source.text().bytes().map(blank).collect();
    Source::new(source.path().clone(), text)
}

impl Parsed {
    fn statement(&mut self, source: &Source, statement: &Statement, catalog: &Catalog, found: &mut Diagnostics) {
        let Statement::Block(block) = statement else {
            let message = "only declare and import blocks are allowed in a module, got an attribute";
            found.push(Diagnostic::error(
                codes::MISPLACED_BLOCK,
                source,
                statement.span(),
                message,
            ));
            return;
        };
        let name = &*block.name.name;
        let import = catalog.find(name).filter(|_| name.starts_with(IMPORT));
        if name != "declare" && import.is_none() {
            let message = format!("only declare and import blocks are allowed in a module, got {name}");
            found.push(
                Diagnostic::error(codes::MISPLACED_BLOCK, source, block.header(), message)
                    .hint("write it in the body of a `declare`"),
            );
            return;
        }
        let Some(label) = block.label.as_ref().map(|label| label.name.clone()) else {
            let message = format!("{name} block must have a label");
            found.push(Diagnostic::error(
                codes::LABEL_REQUIRED,
                source,
                block.name.span,
                message,
            ));
            return;
        };
        let text = Arc::new(SourceBlock {
            source: source.clone(),
            block: block.clone(),
        });
        let first = match import {
            Some(definition) => {
                let first = self.imports.get(&label).map(|(first, _)| first.clone());
                self.imports.entry(label).or_insert_with(|| (text.clone(), definition));
                first
            }
            None => {
                let first = self.declares.get(&label).map(|first| first.block.clone());
                let declare = || Arc::new(Declare::new(label.clone(), text.clone()));
                self.declares.entry(label.clone()).or_insert_with(declare);
                first
            }
        };
        if let Some(first) = first {
            let (line, column) = first.source.position(first.block.name.span.start);
            let place = format!("{}:{line}:{column}", first.source.path());
            let message = format!("block {} already declared at {place}", block.id());
            found.push(Diagnostic::error(
                codes::ALREADY_DECLARED,
                source,
                block.header(),
                message,
            ));
        }
    }
}
