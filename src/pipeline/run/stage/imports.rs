//! The imports of a new tree, and the declarations that blocks instantiate from them.
//!
//! If the new text of an import is not accepted, the import keeps its previous text. A declaration is analysed when the
//! first block instantiates it.

use std::sync::Arc;

use crate::check::graph::{Analysis, Call, Declare, Graph, SourceBlock};
use crate::check::library::{self as texts, Parsed};
use crate::component::AnyDefinition;
use crate::run::engine::Engine;
use crate::run::evaluate::{block_error, refuse_not_built};
use crate::run::instance::join;
use crate::run::library::{self, Library, RuntimeEnv};
use crate::run::names::Names;
use crate::run::node::Node;
use crate::run::stage::{Accept, MAX_DEPTH, Stage, Staged, too_deep};
use alluvium_lang::{Diagnostics, codes};

impl Stage<'_> {
    /// Reuses or builds an import, with its content.
    pub(super) fn import(
        &mut self,
        id: Arc<str>,
        module: &str,
        definition: &'static dyn AnyDefinition,
        text: &Arc<SourceBlock>,
        names: &Names<'_>,
    ) -> Staged<(Arc<Node>, Arc<Library>)> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep(text));
        }
        let previous = self.current.nodes.get(&id).zip(self.current.libraries.get(&id));
        let running = previous.map(|(running, _)| running.as_ref());
        let arguments = self.engine.arguments(definition, text, names, running)?;
        let has_same_arguments = |node: &Node| node.has_arguments(&arguments);
        let running = match previous {
            Some((running, _)) if self.is_frozen(&id) || has_same_arguments(running) => running.clone(),
            _ => self.build(id.clone(), module, definition, arguments, text)?,
        };
        self.take(&running);
        let exports = running.exports();
        let new = library::content(&exports);
        let is_old = previous.is_some_and(|(old, _)| Arc::ptr_eq(old, &running));
        let keeps_content = is_old && (self.is_frozen(&id) || self.accept == Accept::AllButContent);
        let (content, parsed) = match previous {
            Some((_, old)) if keeps_content || old.content == new => (old.content.clone(), old.parsed.clone()),
            _ => {
                let parsed = texts::read(&new, &self.engine.catalog)?;
                (new, Arc::new(parsed))
            }
        };
        let folder = library::folder(&exports).unwrap_or_else(|| names.module_path.clone());
        let surroundings = RuntimeEnv::new(None, folder);
        self.depth += 1;
        let nested = self.nested(&id, definition, &parsed, &surroundings);
        self.depth -= 1;
        nested?;
        let library = Arc::new(Library {
            content,
            parsed,
            surroundings,
        });
        self.libraries.insert(id, library.clone());
        Ok((running, library))
    }

    /// Reuses or builds the imports in the text of an import.
    fn nested(
        &mut self,
        id: &str,
        definition: &dyn AnyDefinition,
        parsed: &Parsed,
        surroundings: &Arc<RuntimeEnv>,
    ) -> Staged<()> {
        let mut diagnostics = Diagnostics::new();
        let no_nodes = Graph::default();
        for (namespace, (text, inner)) in &parsed.imports {
            if definition.name() == "import.http" && inner.name() == "import.file" {
                let message = "a module that import.http fetched cannot contain an import.file block";
                diagnostics.push(block_error(codes::MISPLACED_BLOCK, text, message.to_owned()));
                continue;
            }
            let names = Names::of_text(&no_nodes, &self.engine.common, &surroundings.module_path);
            match self.import(join(id, &text.block.id().into()), id, *inner, text, &names) {
                Ok((_, library)) => {
                    let mut libraries = surroundings.libraries.lock();
                    libraries.insert(namespace.clone(), library);
                }
                Err(errors) => {
                    self.failed = true;
                    diagnostics.extend(errors);
                }
            }
        }
        diagnostics.into_result(())
    }

    /// Returns the declaration that a block instantiates, and its environment.
    pub(super) fn declaration(
        &mut self,
        from: &Arc<RuntimeEnv>,
        call: &Call,
        text: &SourceBlock,
    ) -> Staged<(Arc<Declare>, Arc<RuntimeEnv>)> {
        let outer = from.ancestor(call.level).ok_or_else(Diagnostics::new)?;
        let Some(namespace) = &call.namespace else {
            let declare = call.declare.clone().ok_or_else(Diagnostics::new)?;
            return Ok((declare, outer));
        };
        let library = outer.libraries.lock().get(namespace).cloned();
        let library = library.ok_or_else(Diagnostics::new)?;
        let declare = library.parsed.declare(namespace, &call.name, text)?;
        self.analyze(declare, &library)?;
        Ok((declare.clone(), library.surroundings.clone()))
    }

    /// Analyses a declaration of an import once; fails if the declaration has errors.
    fn analyze(&mut self, declare: &Arc<Declare>, library: &Library) -> Staged<()> {
        let fresh = declare.analysis().is_none();
        if fresh {
            let Engine { catalog, stability, .. } = self.engine;
            library.parsed.analyze(declare, catalog, *stability);
        }
        let errors = declare
            .analysis()
            .map(|analysis: &Analysis| analysis.diagnostics.clone());
        let errors = refuse_not_built(errors.unwrap_or_default());
        if !errors.has_errors() {
            if fresh {
                self.diagnostics.extend(errors);
            }
            return Ok(());
        }
        if self.reported.insert(Arc::as_ptr(declare)) {
            Err(errors)
        } else {
            Err(Diagnostics::new())
        }
    }
}
