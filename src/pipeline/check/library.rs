//! Imported texts: their declarations and nested imports.
//!
//! In: the texts, and later the declarations that are instantiated. Out: a [`Parsed`], and the analyses of the
//! instantiated declarations. The text of a module contains only `declare` and `import.*` blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::analyzer::{Analyzer, Extent};
use crate::check::blocks::IMPORT;
use crate::check::broken::Broken;
use crate::check::catalog::Catalog;
use crate::check::env::{Declares, Env, ScopeKind};
use crate::check::graph::{Declare, SourceBlock};
use crate::component::{AnyDefinition, Stability};
use alluvium_lang::ast::Statement;
use alluvium_lang::diagnostic::nearest;
use alluvium_lang::value::Value;
use alluvium_lang::{Diagnostic, Diagnostics, Source, codes, parse};

/// The parsed texts of an import.
pub(crate) struct Parsed {
    pub(crate) declares: Declares,
    /// The imports in the texts by namespace.
    pub(crate) imports: BTreeMap<Arc<str>, (Arc<SourceBlock>, &'static dyn AnyDefinition)>,
}

/// Parses the texts of an import.
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
            let (file, parse_diagnostics) = parse(&Source::new(name.clone(), content.clone()));
            let source = match text {
                Value::Secret(_) => blank(&file.source),
                _ => file.source.clone(),
            };
            diagnostics.extend(
                parse_diagnostics
                    .into_iter()
                    .map(|diagnostic| Diagnostic {
                        source: source.clone(),
                        ..diagnostic
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

/// Returns a copy of the text in which spaces replace everything except line ends, so that positions stay valid and
/// excerpts show nothing.
fn blank(source: &Source) -> Source {
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    let text: String = source.text().bytes().map(blank).collect();
    Source::new(source.path().clone(), text)
}

impl Parsed {
    /// Returns the declaration that a block instantiates. `namespace` is the label of the import.
    pub(crate) fn declare(&self, namespace: &str, name: &str, text: &SourceBlock) -> Result<&Arc<Declare>, Diagnostic> {
        self.declares.get(name).ok_or_else(|| {
            let names = self.declares.keys().map(AsRef::as_ref);
            let hint = match nearest(name, names.clone()) {
                Some(candidate) => format!("did you mean `{namespace}.{candidate}`?"),
                None => format!("it declares: {}", names.collect::<Vec<&str>>().join(", ")),
            };
            let message = format!("the import \"{namespace}\" has no declare \"{name}\"");
            let span = text.block.name.span;
            Diagnostic::error(codes::UNKNOWN_COMPONENT, &text.source, span, message).hint(hint)
        })
    }

    /// Analyses one of the declarations. Does nothing if the declaration has already been analysed.
    pub(crate) fn analyze(&self, declare: &Arc<Declare>, catalog: &Catalog, minimum: Stability) {
        let imports = self.imports.keys().cloned().collect();
        let env = Env {
            parent: None,
            kind: ScopeKind::Library,
            declares: &self.declares,
            imports: &imports,
            graph: None,
            variable: None,
        };
        let mut analyzer = Analyzer {
            catalog,
            minimum,
            extent: Extent::Run,
            broken: &Broken::default(),
            diagnostics: Diagnostics::new(),
            stack: Vec::new(),
        };
        analyzer.declaration(declare, &env);
    }

    fn statement(&mut self, source: &Source, statement: &Statement, catalog: &Catalog, diagnostics: &mut Diagnostics) {
        let Statement::Block(block) = statement else {
            let message = "only declare and import blocks are allowed in a module, got an attribute";
            diagnostics.push(Diagnostic::error(
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
            diagnostics.push(
                Diagnostic::error(codes::MISPLACED_BLOCK, source, block.header(), message)
                    .hint("write it in the body of a `declare`"),
            );
            return;
        }
        let Some(label) = block.label.as_ref().map(|label| label.name.clone()) else {
            let message = format!("{name} block must have a label");
            diagnostics.push(Diagnostic::error(
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
        let first = if let Some(definition) = import {
            let first = self.imports.get(&label).map(|(first, _)| first.clone());
            self.imports.entry(label).or_insert_with(|| (text.clone(), definition));
            first
        } else {
            let first = self.declares.get(&label).map(|first| first.block.clone());
            let declare = || Arc::new(Declare::new(label.clone(), text.clone()));
            self.declares.entry(label.clone()).or_insert_with(declare);
            first
        };
        if let Some(first) = first {
            let (line, column) = first.source.position(first.block.name.span.start);
            let location = format!("{}:{line}:{column}", first.source.path());
            let message = format!("block {} already declared at {location}", block.id());
            diagnostics.push(Diagnostic::error(
                codes::ALREADY_DECLARED,
                source,
                block.header(),
                message,
            ));
        }
    }
}
