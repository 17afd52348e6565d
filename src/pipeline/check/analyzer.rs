//! The state of an analysis of scopes: the available components, the diagnostics so far, and the declarations under
//! analysis.
//!
//! The analyzer also checks the name of a block: whether the component exists, is stable enough and can be built.

use std::sync::Arc;

use crate::check::blocks::{MODULE_BLOCKS, SETTINGS};
use crate::check::broken::Broken;
use crate::check::catalog::Catalog;
use crate::check::env::Env;
use crate::check::foreign;
use crate::check::graph::Declare;
use crate::component::{AnyDefinition, Stability};
use alluvium_lang::ast::Identifier;
use alluvium_lang::diagnostic::nearest;
use alluvium_lang::{Diagnostic, Diagnostics, Source, codes};

/// The purpose of an analysis. It determines the extent of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A check: declarations that are never instantiated are analysed too.
    Whole,
    /// An analysis before this program runs the configuration.
    Run,
    /// An analysis before this program runs a configuration from a server. Such a configuration may not configure the
    /// program.
    RunRemote,
}

/// Analyses scopes and collects diagnostics.
pub(super) struct Analyzer<'a> {
    /// The available components.
    pub(super) catalog: &'a Catalog,
    /// Minimum stability of components and functions.
    pub(super) minimum: Stability,
    /// The purpose of the analysis.
    pub(super) extent: Extent,
    /// The locations of syntax errors.
    pub(super) broken: &'a Broken,
    /// Errors and warnings so far.
    pub(super) diagnostics: Diagnostics,
    /// Declarations under analysis, outermost first.
    pub(super) stack: Vec<Arc<Declare>>,
}

impl Analyzer<'_> {
    /// Returns the component with this name; reports an error if there is none.
    pub(super) fn definition(
        &mut self,
        env: &Env<'_>,
        source: &Source,
        name: &Identifier,
    ) -> Option<&'static dyn AnyDefinition> {
        let definition = self.catalog.find(&name.name);
        if definition.is_none() {
            let diagnostic = self.no_such_component(env, source, name);
            self.diagnostics.push(diagnostic);
        }
        definition
    }

    /// Reports a definition that is not stable enough or cannot be built yet.
    pub(super) fn check_definition(
        &mut self,
        source: &Source,
        name: &Identifier,
        noun: &str,
        definition: &'static dyn AnyDefinition,
    ) {
        if definition.stability() < self.minimum {
            self.diagnostics.push(below_minimum(
                source,
                name,
                &format!("{noun} \"{}\"", name.name),
                definition.stability(),
                self.minimum,
            ));
        }
        if !definition.can_run() {
            self.diagnostics.push(
                Diagnostic::warning(codes::WILL_NOT_RUN, source, name.span, definition.not_built())
                    .hint("the check accepts the configuration, but `run` refuses it"),
            );
        }
    }

    fn no_such_component(&self, env: &Env<'_>, source: &Source, name: &Identifier) -> Diagnostic {
        if foreign::is_foreign(&name.name) {
            let message = format!("component \"{}\" exists in Alloy but not in Alluvium", name.name);
            return Diagnostic::error(codes::FOREIGN_COMPONENT, source, name.span, message)
                .hint("Alluvium collects profiles only: leave the block to an Alloy that runs beside it");
        }
        let names = env.declared_names().into_iter().chain(self.catalog.names());
        let names = names.chain(SETTINGS).chain(MODULE_BLOCKS);
        let candidate = nearest(&name.name, names.chain(foreign::NAMES.iter().copied()));
        let message = format!("cannot find the definition of component name \"{}\"", name.name);
        Diagnostic::error(codes::UNKNOWN_COMPONENT, source, name.span, message)
            .maybe_hint(candidate.map(|name| format!("did you mean `{name}`?")))
    }
}

/// Returns the error for a component, block or function below the minimum stability level.
pub(super) fn below_minimum(
    source: &Source,
    name: &Identifier,
    subject: &str,
    level: Stability,
    minimum: Stability,
) -> Diagnostic {
    let message = format!(
        "{subject} is at stability level \"{}\", which is below the minimum allowed stability level \"{}\"",
        level.name(),
        minimum.name(),
    );
    Diagnostic::error(codes::STABILITY, source, name.span, message)
        .hint(format!("use `--stability.level {}`", level.name()))
}
