//! Reads the statements of a scope into the nodes of its graph.
//!
//! In: statements with their sources, and the environment of the scope. Out: a [`Graph`], and diagnostics in the
//! [`Analyzer`]. Each instantiated declaration is analysed once, when its first instance is read. A check also analyses
//! the other declarations.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::check::analyzer::{Analyzer, Extent, below_minimum};
use crate::check::blocks::{IMPORT, MODULE_BLOCKS, SETTINGS};
use crate::check::bodies::check_bodies;
use crate::check::env::{Declares, Env, Instantiated, Misuse, ScopeKind};
use crate::check::graph::{Analysis, Call, Declare, Foreach, Graph, NodeKind, SourceBlock};
use crate::check::links::{self, Links};
use crate::check::order;
use crate::component::{AnyDefinition, Stability};
use alluvium_lang::ast::{Block, ExpressionKind, File, Statement};
use alluvium_lang::eval::unquote;
use alluvium_lang::token::TokenKind;
use alluvium_lang::{Diagnostic, Source, codes, is_identifier};

/// A scope while its statements are read.
struct ScopeReader<'e> {
    parent: Option<&'e Env<'e>>,
    kind: ScopeKind,
    variable: Option<Arc<str>>,
    graph: Graph,
    declares: Declares,
    imports: BTreeSet<Arc<str>>,
    /// The first block with each id, valid or not.
    declared: BTreeMap<String, Arc<SourceBlock>>,
    /// Blocks whose names are resolved once all declarations are known.
    instances: Vec<Arc<SourceBlock>>,
    /// Templates of `foreach` nodes.
    templates: HashMap<usize, Arc<SourceBlock>>,
    /// Blocks with duplicate ids; they are checked as well.
    repeated: Vec<Arc<SourceBlock>>,
}

impl ScopeReader<'_> {
    /// Returns the environment of the inner scopes.
    fn env<'s>(&'s self, graph: Option<&'s Graph>) -> Env<'s> {
        Env {
            parent: self.parent,
            kind: self.kind,
            declares: &self.declares,
            imports: &self.imports,
            graph,
            variable: self.variable.clone(),
        }
    }
}

impl Analyzer<'_> {
    /// Builds the graph of several files that form one configuration.
    pub(crate) fn root(&mut self, files: &[File]) -> Graph {
        let statements = files
            .iter()
            .flat_map(|file| file.body.iter().map(|statement| (&file.source, statement)));
        self.scope(statements, None, ScopeKind::Root, None)
    }

    /// Builds the graph of the body of a block.
    pub(crate) fn body(
        &mut self,
        text: &SourceBlock,
        parent: &Env<'_>,
        kind: ScopeKind,
        variable: Option<Arc<str>>,
    ) -> Graph {
        let statements = text.block.body.iter().map(|statement| (&text.source, statement));
        self.scope(statements, Some(parent), kind, variable)
    }

    fn scope<'s>(
        &mut self,
        statements: impl Iterator<Item = (&'s Source, &'s Statement)>,
        parent: Option<&Env<'_>>,
        kind: ScopeKind,
        variable: Option<Arc<str>>,
    ) -> Graph {
        let mut reading = ScopeReader {
            parent,
            kind,
            variable,
            graph: Graph::default(),
            declares: Declares::new(),
            imports: BTreeSet::new(),
            declared: BTreeMap::new(),
            instances: Vec::new(),
            templates: HashMap::new(),
            repeated: Vec::new(),
        };
        for (source, statement) in statements {
            self.statement(&mut reading, source, statement);
        }
        let mut graph = std::mem::take(&mut reading.graph);
        let instances = std::mem::take(&mut reading.instances);
        let scope_env = reading.env(None);
        for text in instances {
            if let Some(kind) = self.instance(&scope_env, &text) {
                graph.push(text.block.id().into(), kind, text);
            }
        }
        if self.extent == Extent::Whole {
            for declare in reading.declares.values() {
                self.declaration(declare, &scope_env);
            }
        }
        let (all_links, templates) = self.links(&reading, &graph);
        links::apply(&mut graph, all_links, templates);
        order::sort(&mut graph, &mut self.diagnostics);
        check_bodies(self, &graph, &reading.env(Some(&graph)));
        for text in &reading.repeated {
            // The block is analysed separately, in a scope inside this one.
            let statement = Statement::Block(text.block.clone());
            let env = reading.env(Some(&graph));
            self.scope(
                [(&text.source, &statement)].into_iter(),
                Some(&env),
                ScopeKind::Template,
                None,
            );
        }
        graph
    }

    /// Returns the links of every node, and the graphs of the templates by node. The links of a `foreach` include
    /// everything outside of its template that the template uses.
    fn links(&mut self, reading: &ScopeReader<'_>, graph: &Graph) -> (Vec<Links>, HashMap<usize, Graph>) {
        let env = reading.env(Some(graph));
        let mut templates = HashMap::new();
        let mut all = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            let mut links = Links::of_node(self, &env, &reading.declared, index, node);
            if let (NodeKind::Foreach(foreach), Some(text)) = (&node.kind, reading.templates.get(&index)) {
                let variable = Some(foreach.variable.clone());
                let template = self.body(text, &env, ScopeKind::Template, variable);
                links.add_template(index, &template);
                templates.insert(index, template);
            }
            all.push(links);
        }
        for text in graph.settings.values() {
            links::check_names(self, &env, &reading.declared, text);
        }
        (all, templates)
    }

    fn statement(&mut self, reading: &mut ScopeReader<'_>, source: &Source, statement: &Statement) {
        let block = match statement {
            Statement::Block(block) => block,
            Statement::Attribute(attribute) => {
                let message = format!("unrecognized attribute name \"{}\"", attribute.name.name);
                let hint = match reading.kind {
                    ScopeKind::Root | ScopeKind::Library => "only blocks are allowed outside of blocks",
                    ScopeKind::Declare => "only blocks are allowed in a declare",
                    ScopeKind::Template => "only blocks are allowed in a template",
                };
                self.diagnostics.push(
                    Diagnostic::error(codes::TOP_LEVEL_ATTRIBUTE, source, attribute.name.span, message).hint(hint),
                );
                return;
            }
        };
        let id = block.id();
        let text = Arc::new(SourceBlock {
            source: source.clone(),
            block: block.clone(),
        });
        if let Some(first) = reading.declared.get(&id) {
            self.already_declared(&text, &id, first);
            let name = &*block.name.name;
            let only_here = SETTINGS.contains(&name) || matches!(name, "argument" | "export");
            if !only_here {
                reading.repeated.push(text);
            }
            return;
        }
        reading.declared.insert(id, text.clone());
        let name = &*block.name.name;
        if SETTINGS.contains(&name) {
            self.setting(reading, text);
        } else if MODULE_BLOCKS.contains(&name) {
            self.module_block(reading, text);
        } else if let Some(definition) = self.import_definition(name) {
            self.import(reading, text, definition);
        } else {
            reading.instances.push(text);
        }
    }

    fn import_definition(&self, name: &str) -> Option<&'static dyn AnyDefinition> {
        self.catalog.find(name).filter(|_| name.starts_with(IMPORT))
    }

    fn already_declared(&mut self, text: &SourceBlock, id: &str, first: &SourceBlock) {
        let (line, column) = first.source.position(first.block.name.span.start);
        let message = format!("block {id} already declared at {}:{line}:{column}", first.source.path());
        let hint = text
            .block
            .label
            .is_some()
            .then(|| "give one of them another label".to_owned());
        self.diagnostics.push(
            Diagnostic::error(codes::ALREADY_DECLARED, &text.source, text.block.header(), message)
                .note_at(&first.source, first.block.header(), "first declared here")
                .maybe_hint(hint),
        );
    }

    fn misplaced(&mut self, text: &SourceBlock, message: String, hint: &str) {
        self.diagnostics
            .push(Diagnostic::error(codes::MISPLACED_BLOCK, &text.source, text.block.header(), message).hint(hint));
    }

    /// Reads a block that configures the program.
    fn setting(&mut self, reading: &mut ScopeReader<'_>, text: Arc<SourceBlock>) {
        let Some(name) = SETTINGS.iter().find(|name| **name == &*text.block.name.name) else {
            return;
        };
        match reading.kind {
            ScopeKind::Root if self.extent == Extent::RunRemote => {
                let message = format!("{name} not allowed in a configuration from a server");
                return self.misplaced(
                    &text,
                    message,
                    "it configures the program: write it into the configuration file",
                );
            }
            ScopeKind::Root => {}
            ScopeKind::Template => {
                let message = format!("{name} not allowed in foreach");
                return self.misplaced(&text, message, "it configures the program: write it outside");
            }
            ScopeKind::Declare | ScopeKind::Library => {
                let message = format!("{name} not allowed in module");
                return self.misplaced(
                    &text,
                    message,
                    "it configures the program: write it outside of the module",
                );
            }
        }
        if let Some(label) = &text.block.label {
            let message = format!("block \"{name}\" does not support specifying labels");
            self.diagnostics.push(Diagnostic::error(
                codes::LABEL_REFUSED,
                &text.source,
                label.span,
                message,
            ));
        }
        reading.graph.settings.insert(name, text);
    }

    /// Returns the label of a block that must have one; reports a missing label.
    fn label(&mut self, text: &SourceBlock) -> Option<Arc<str>> {
        let name = &text.block.name;
        if let Some(label) = &text.block.label {
            return Some(label.name.clone());
        }
        let message = format!("{} block must have a label", name.name);
        self.diagnostics.push(
            Diagnostic::error(codes::LABEL_REQUIRED, &text.source, name.span, message)
                .hint(format!("write `{} \"NAME\" {{ ... }}`", name.name)),
        );
        None
    }

    fn module_block(&mut self, reading: &mut ScopeReader<'_>, text: Arc<SourceBlock>) {
        let name = text.block.name.name.clone();
        let id: Arc<str> = text.block.id().into();
        let Some(label) = self.label(&text) else { return };
        match &*name {
            "declare" => {
                if &*label == "declare" {
                    let message = "'declare' is not a valid label for a declare block";
                    let span = text.block.header();
                    self.diagnostics
                        .push(Diagnostic::error(codes::BAD_LABEL, &text.source, span, message));
                    return;
                }
                reading
                    .declares
                    .insert(label.clone(), Arc::new(Declare::new(label, text)));
            }
            "foreach" => self.foreach(reading, id, &text),
            _ => {
                if reading.kind != ScopeKind::Declare {
                    let message = format!("{name} blocks only allowed inside a module");
                    return self.misplaced(&text, message, "write it in the body of a `declare`");
                }
                let kind = if &*name == "argument" {
                    NodeKind::Argument
                } else {
                    NodeKind::Export
                };
                reading.graph.push(id, kind, text);
            }
        }
    }

    fn foreach(&mut self, reading: &mut ScopeReader<'_>, id: Arc<str>, text: &Arc<SourceBlock>) {
        if self.minimum > Stability::Experimental {
            let subject = "block \"foreach\"";
            let level = Stability::Experimental;
            let diagnostic = below_minimum(&text.source, &text.block.name, subject, level, self.minimum);
            self.diagnostics.push(diagnostic);
        }
        let is_template = |statement: &Statement| match statement {
            Statement::Block(block) => &*block.name.name == "template",
            Statement::Attribute(_) => false,
        };
        let (templates, rest): (Vec<&Statement>, Vec<&Statement>) =
            text.block.body.iter().partition(|statement| is_template(statement));
        let [Statement::Block(template), ..] = templates.as_slice() else {
            let message = "missing required block \"template\"";
            self.diagnostics.push(
                Diagnostic::error(codes::MISSING_BLOCK, &text.source, text.block.header(), message)
                    .hint("add `template { ... }` with the blocks for each item of the collection"),
            );
            return;
        };
        if let Some(second) = templates.get(1) {
            let message = "block \"template\" may only be specified once";
            self.diagnostics.push(Diagnostic::error(
                codes::DUPLICATE_BLOCK,
                &text.source,
                second.span(),
                message,
            ));
        }
        if let Some(label) = &template.label {
            let message = "block \"template\" does not support specifying labels";
            self.diagnostics.push(Diagnostic::error(
                codes::LABEL_REFUSED,
                &text.source,
                label.span,
                message,
            ));
        }
        let variable = self.variable(text).unwrap_or_default();
        let own_text = Arc::new(SourceBlock {
            source: text.source.clone(),
            block: Block {
                body: rest.into_iter().cloned().collect(),
                ..text.block.clone()
            },
        });
        let template = Arc::new(SourceBlock {
            source: text.source.clone(),
            block: template.clone(),
        });
        reading.templates.insert(reading.graph.nodes.len(), template);
        let kind = NodeKind::Foreach(Foreach {
            variable,
            template: Arc::default(),
        });
        reading.graph.push(id, kind, own_text);
    }

    /// Returns the value of the attribute `var` of a `foreach`: the name of the item in the template. The name must be
    /// known before evaluation, because it decides the meaning of other names in the template.
    fn variable(&mut self, text: &SourceBlock) -> Option<Arc<str>> {
        let attribute = text.block.body.iter().find_map(|statement| match statement {
            Statement::Attribute(attribute) if &*attribute.name.name == "var" => Some(attribute),
            _ => None,
        })?;
        let plain = match &attribute.value.kind {
            ExpressionKind::Literal {
                kind: TokenKind::String,
                text,
            } => unquote(text),
            _ => None,
        };
        let (message, hint) = match plain {
            Some(name) if is_identifier(&name) => return Some(name.into()),
            Some(name) => (
                format!("\"{name}\" is not a valid name for the item"),
                "use letters, digits and `_`, and begin with a letter or `_`",
            ),
            None => (
                "the name of the item has to be a plain string".to_owned(),
                "write `var = \"item\"`",
            ),
        };
        let span = attribute.value.span;
        self.diagnostics
            .push(Diagnostic::error(codes::BAD_ARGUMENT, &text.source, span, message).hint(hint));
        None
    }

    fn import(
        &mut self,
        reading: &mut ScopeReader<'_>,
        text: Arc<SourceBlock>,
        definition: &'static dyn AnyDefinition,
    ) {
        let Some(label) = self.label(&text) else { return };
        self.check_definition(&text.source, &text.block.name, "block", definition);
        if reading.imports.contains(&label) {
            let other = reading.declared.iter().find(|(id, other)| {
                let another = id.starts_with(IMPORT) && **id != text.block.id();
                another && other.block.label.as_ref().is_some_and(|other| other.name == label)
            });
            if let Some((id, first)) = other.map(|(id, first)| (id.clone(), first.clone())) {
                self.already_declared(&text, &id, &first);
            }
            return;
        }
        reading.graph.imports.insert(label.clone(), reading.graph.nodes.len());
        reading.imports.insert(label);
        let id = text.block.id().into();
        reading.graph.push(id, NodeKind::Import(definition), text);
    }

    /// Returns the kind of a block that is neither a setting nor a module block: an instance of a `declare`, or a
    /// component.
    fn instance(&mut self, env: &Env<'_>, text: &Arc<SourceBlock>) -> Option<NodeKind> {
        let name = &text.block.name;
        let kind = match env.instantiated(&name.name) {
            Instantiated::Nothing => NodeKind::Component(self.definition(env, &text.source, name)?),
            Instantiated::Imported(namespace, declared, level) => NodeKind::Custom(Call {
                namespace: Some(namespace),
                name: declared,
                level,
                declare: None,
            }),
            Instantiated::Declare(declare, level) => {
                if self.stack.iter().any(|outer| Arc::ptr_eq(outer, &declare)) {
                    self.recursion(text, &declare);
                    return None;
                }
                let outer = env.ancestor(level)?;
                self.declaration(&declare, outer);
                NodeKind::Custom(Call {
                    namespace: None,
                    name: declare.name.clone(),
                    level,
                    declare: Some(declare),
                })
            }
            Instantiated::Misused(misuse) => {
                let first = name.name.split('.').next().unwrap_or_default();
                let (message, hint) = match misuse {
                    Misuse::DeclareWithDots => (
                        format!("cannot find the definition of component name \"{}\"", name.name),
                        format!("`{first}` is declared here, write `{first} \"LABEL\"`"),
                    ),
                    Misuse::NamespaceAlone => (
                        format!("cannot find the definition of component name \"{}\"", name.name),
                        format!("`{first}` is an import, write `{first}.NAME \"LABEL\"`"),
                    ),
                };
                self.diagnostics
                    .push(Diagnostic::error(codes::UNKNOWN_COMPONENT, &text.source, name.span, message).hint(hint));
                return None;
            }
        };
        if text.block.label.is_none() {
            let message = format!("component \"{}\" must have a label", name.name);
            self.diagnostics.push(
                Diagnostic::error(codes::COMPONENT_LABEL, &text.source, name.span, message)
                    .hint(format!("write `{} \"default\" {{ ... }}`", name.name)),
            );
            return None;
        }
        if let NodeKind::Component(definition) = &kind {
            self.check_definition(&text.source, name, "component", *definition);
        }
        Some(kind)
    }

    fn recursion(&mut self, text: &SourceBlock, declare: &Arc<Declare>) {
        let from = self.stack.iter().position(|outer| Arc::ptr_eq(outer, declare));
        let circle = self.stack.get(from.unwrap_or(0)..).unwrap_or_default();
        let names: Vec<&str> = circle.iter().map(|declare| declare.name.as_ref()).collect();
        let message = format!("declare \"{}\" instantiates itself", declare.name);
        let hint = format!("{} -> {}", names.join(" -> "), declare.name);
        self.diagnostics
            .push(Diagnostic::error(codes::MODULE_RECURSION, &text.source, text.block.header(), message).hint(hint));
    }

    /// Analyses a declaration, at most once. `env` is the environment that contains it.
    pub(crate) fn declaration(&mut self, declare: &Arc<Declare>, env: &Env<'_>) {
        if declare.analysis().is_some() {
            return;
        }
        let before = std::mem::take(&mut self.diagnostics);
        self.stack.push(declare.clone());
        let graph = self.body(&declare.block, env, ScopeKind::Declare, None);
        self.stack.pop();
        let diagnostics = std::mem::replace(&mut self.diagnostics, before);
        self.diagnostics.extend(diagnostics.clone());
        declare.set_analysis(Analysis::new(graph, diagnostics));
    }
}
