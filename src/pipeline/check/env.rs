//! What surrounds a block in the text: the declarations and imports that it may instantiate, and the names that it may
//! use.
//!
//! Scopes nest as blocks do. Declarations and imports are seen from every scope inside; values only from the template
//! of a `foreach`, which sees what the `foreach` itself sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::pipeline::check::graph::{Declare, Graph};

/// Declarations of a scope, by label.
pub(crate) type Declares = BTreeMap<Arc<str>, Arc<Declare>>;

/// What a scope is the scope of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    /// The configuration itself.
    Root,
    /// The body of a `declare`.
    Declare,
    /// The template of a `foreach`.
    Template,
    /// A text that was imported.
    Library,
}

/// A scope and those around it.
pub(crate) struct Env<'a> {
    /// The scope around this one.
    pub(crate) parent: Option<&'a Env<'a>>,
    /// The kind of scope that it is.
    pub(crate) kind: ScopeKind,
    /// The declarations that stand in it.
    pub(crate) declares: &'a Declares,
    /// Labels of the imports that stand in it.
    pub(crate) imports: &'a BTreeSet<Arc<str>>,
    /// Its nodes, once they are known.
    pub(crate) graph: Option<&'a Graph>,
    /// The name of the item, in a template.
    pub(crate) variable: Option<Arc<str>>,
}

/// What a block's name leads to.
pub(crate) enum Instantiated {
    /// A declaration, and how many scopes out it stands.
    Declare(Arc<Declare>, usize),
    /// Something of an import: its namespace, the name, and how many scopes out the import stands.
    Imported(Arc<str>, Arc<str>, usize),
    /// The first part names a declaration or an import, but the whole does not fit it.
    Misused(Misuse),
    /// The name is not that of a custom component.
    Nothing,
}

/// How a name does not fit.
pub(crate) enum Misuse {
    /// `a.b` where `a` is a declaration.
    DeclareWithDots,
    /// `a` where `a` is an import.
    NamespaceAlone,
}

impl<'a> Env<'a> {
    /// The scope that is `level` further out.
    pub(crate) fn ancestor(&'a self, level: usize) -> Option<&'a Env<'a>> {
        let mut current = self;
        for _ in 0..level {
            current = current.parent?;
        }
        Some(current)
    }

    /// This scope and those around it, with their distances.
    pub(crate) fn outward(&'a self) -> impl Iterator<Item = (usize, &'a Env<'a>)> {
        std::iter::successors(Some(self), |env| env.parent).enumerate()
    }

    /// What a block of this name instantiates. Declarations and imports come before components of the program, as in
    /// Alloy.
    pub(crate) fn instantiated(&self, name: &str) -> Instantiated {
        let (first, rest) = match name.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (name, None),
        };
        match rest {
            None => {
                for (level, env) in self.outward() {
                    if let Some(declare) = env.declares.get(first) {
                        return Instantiated::Declare(declare.clone(), level);
                    }
                }
            }
            Some(rest) => {
                for (level, env) in self.outward() {
                    if let Some(namespace) = env.imports.get(first) {
                        return Instantiated::Imported(namespace.clone(), rest.into(), level);
                    }
                }
            }
        }
        for (_, env) in self.outward() {
            if env.declares.contains_key(first) {
                return Instantiated::Misused(Misuse::DeclareWithDots);
            }
            if env.imports.contains(first) {
                return Instantiated::Misused(Misuse::NamespaceAlone);
            }
        }
        Instantiated::Nothing
    }

    /// Names of everything that can be instantiated from here, imports aside.
    pub(crate) fn declared_names(&self) -> Vec<&str> {
        self.outward()
            .flat_map(|(_, env)| env.declares.keys().map(AsRef::as_ref))
            .collect()
    }
}
