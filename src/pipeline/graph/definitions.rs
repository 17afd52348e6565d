//! What a name of a block means: the components there are, and what is to be said of one that is not there, not stable or not built.

use std::collections::HashMap;

use crate::lang::ast::Identifier;
use crate::lang::diagnostic::nearest;
use crate::lang::schema::Schema;
use crate::lang::{Diagnostic, Source, codes};
use crate::pipeline::component::{Definition, Stability};
use crate::pipeline::foreign;
use crate::pipeline::graph::build::{Analyzer, MODULE_BLOCKS, SETTINGS};
use crate::pipeline::graph::{Env, stability_name};

/// The definitions by name.
pub(crate) struct Catalog {
    by_name: HashMap<&'static str, &'static Definition>,
}

impl Catalog {
    /// A catalog of these definitions.
    pub(crate) fn new(definitions: &[&'static Definition]) -> Self {
        let by_name = definitions.iter().map(|definition| (definition.name, *definition));
        Self {
            by_name: by_name.collect(),
        }
    }

    /// The definition of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Definition> {
        self.by_name.get(name).copied()
    }

    /// The arguments of HTTP clients: components that have one have them in this block.
    pub(crate) fn http_client(&self) -> Option<&'static Schema> {
        let fetching = self.find("import.http")?;
        let client = fetching.arguments.blocks.iter().find(|block| block.name == "client");
        client.map(|client| client.schema)
    }

    /// All names, sorted.
    fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.by_name.keys().copied().collect();
        names.sort_unstable();
        names
    }
}

impl Analyzer<'_> {
    /// The component of this name; says that there is none.
    pub(super) fn definition(
        &mut self,
        env: &Env<'_>,
        source: &Source,
        name: &Identifier,
    ) -> Option<&'static Definition> {
        let found = self.catalog.find(&name.name);
        if found.is_none() {
            let diagnostic = self.no_such_component(env, source, name);
            self.diagnostics.push(diagnostic);
        }
        found
    }

    /// What is to be said of a definition that is used: not stable enough, not built yet.
    pub(super) fn check_definition(
        &mut self,
        source: &Source,
        name: &Identifier,
        what: &str,
        definition: &'static Definition,
    ) {
        if definition.stability < self.minimum {
            self.diagnostics.push(below_minimum(
                source,
                name,
                &format!("{what} \"{}\"", name.name),
                definition.stability,
                self.minimum,
            ));
        }
        if definition.build.is_none() {
            self.diagnostics.push(
                Diagnostic::warning(codes::WILL_NOT_RUN, source, name.span, definition.not_built())
                    .hint("the configuration is checked, and `run` refuses it"),
            );
        }
    }

    fn no_such_component(&self, env: &Env<'_>, source: &Source, name: &Identifier) -> Diagnostic {
        if foreign::is_foreign(&name.name) {
            let message = format!(
                "component \"{}\" is one of Alloy's that Alluvium does not have",
                name.name
            );
            return Diagnostic::error(codes::FOREIGN_COMPONENT, source, name.span, message)
                .hint("Alluvium collects profiles only: leave the block to an Alloy that runs beside it");
        }
        let own = env.declared_names().into_iter().chain(self.catalog.names());
        let own = own.chain(SETTINGS).chain(MODULE_BLOCKS);
        let near = nearest(&name.name, own.chain(foreign::NAMES.iter().copied()));
        let message = format!("cannot find the definition of component name \"{}\"", name.name);
        Diagnostic::error(codes::UNKNOWN_COMPONENT, source, name.span, message)
            .maybe_hint(near.map(|name| format!("did you mean `{name}`?")))
    }
}

/// The refusal of something that is not stable enough for the level that was asked for.
pub fn below_minimum(
    source: &Source,
    name: &Identifier,
    what: &str,
    level: Stability,
    minimum: Stability,
) -> Diagnostic {
    let message = format!(
        "{what} is at stability level \"{}\", which is below the minimum allowed stability level \"{}\"",
        stability_name(level),
        stability_name(minimum),
    );
    Diagnostic::error(codes::STABILITY, source, name.span, message)
        .hint(format!("use `--stability.level {}`", stability_name(level)))
}
