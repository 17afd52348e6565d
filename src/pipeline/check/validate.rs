//! `validate`: all static checks of a configuration.
//!
//! Pure: it builds no component and reads no environment variable.

use crate::check::analyzer::{Analyzer, Extent};
use crate::check::broken::Broken;
use crate::check::catalog::Catalog;
use crate::check::graph::Graph;
use crate::check::lints;
use crate::component::{AnyDefinition, Stability};
use alluvium_lang::{Diagnostics, Source, parse};

/// Checks a configuration of several files, each with a name and a text. The result includes warnings.
pub fn validate(
    sources: &[(String, String)],
    definitions: &[&'static dyn AnyDefinition],
    minimum: Stability,
) -> Diagnostics {
    let texts: Vec<Source> = sources
        .iter()
        .map(|(path, text)| Source::new(path.as_str(), text.as_str()))
        .collect();
    let catalog = Catalog::new(definitions);
    let (graph, mut diagnostics) = analyze(&texts, &catalog, minimum, Extent::Whole);
    // Lints need a configuration without errors: otherwise a component could wrongly appear unused.
    if !diagnostics.has_errors() {
        diagnostics.extend(lints::unused(sources, &graph));
        diagnostics.sort();
    }
    diagnostics
}

/// Parses the texts, builds the graph and checks every block. The graph can be run if there is no error.
pub(crate) fn analyze(
    sources: &[Source],
    catalog: &Catalog,
    minimum: Stability,
    extent: Extent,
) -> (Graph, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut files = Vec::new();
    let mut broken = Broken::default();
    for source in sources {
        let (file, parsed_diagnostics) = parse(source);
        broken.add(&parsed_diagnostics);
        diagnostics.extend(parsed_diagnostics);
        files.push(file);
    }
    // Statements that parse are checked even if others do not, so that one check shows all mistakes.
    let mut analyzer = Analyzer {
        catalog,
        minimum,
        extent,
        broken: &broken,
        diagnostics: Diagnostics::new(),
        stack: Vec::new(),
    };
    let graph = analyzer.root(&files);
    let analyzed = analyzer.diagnostics;
    diagnostics.extend(broken.without_echoes(analyzed));
    diagnostics.sort();
    (graph, diagnostics)
}
