//! The environment of a block in the text: the declarations and imports that it may instantiate, and the names that it
//! may refer to.
//!
//! Scopes nest like blocks. The declarations and imports of a scope are visible in all scopes inside it. Values are
//! not, with one exception: the template of a `foreach` sees all values that the `foreach` itself sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::graph::{Declare, Graph};

/// Declarations of a scope, by label.
pub(crate) type Declares = BTreeMap<Arc<str>, Arc<Declare>>;

/// The construct that a scope belongs to.
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

/// A scope, with a link to the enclosing scope.
pub(crate) struct Env<'a> {
    /// The scope that encloses this one.
    pub(crate) parent: Option<&'a Env<'a>>,
    /// The construct that the scope belongs to.
    pub(crate) kind: ScopeKind,
    /// The declarations in the scope.
    pub(crate) declares: &'a Declares,
    /// Labels of the imports in the scope.
    pub(crate) imports: &'a BTreeSet<Arc<str>>,
    /// The nodes of the scope; `None` until they are known.
    pub(crate) graph: Option<&'a Graph>,
    /// In the template of a `foreach`: the name of the variable that holds the current item.
    pub(crate) variable: Option<Arc<str>>,
}

/// The meaning of a block's name.
pub(crate) enum Instantiated {
    /// A declaration, and the number of scopes between it and the block.
    Declare(Arc<Declare>, usize),
    /// A declaration of an import: its namespace, its name, and the number of scopes between the import and the block.
    Imported(Arc<str>, Arc<str>, usize),
    /// The first part is the name of a declaration or an import, but the whole name has the wrong number of parts.
    Misused(Misuse),
    /// The name refers neither to a declaration nor to an import.
    Nothing,
}

/// The reason why a name does not fit a declaration or an import.
pub(crate) enum Misuse {
    /// `a.b` where `a` is a declaration.
    DeclareWithDots,
    /// `a` where `a` is an import.
    NamespaceAlone,
}

impl<'a> Env<'a> {
    /// Returns the scope `level` steps further out.
    pub(crate) fn ancestor(&'a self, level: usize) -> Option<&'a Env<'a>> {
        let mut current = self;
        for _ in 0..level {
            current = current.parent?;
        }
        Some(current)
    }

    /// Iterates over this scope and the enclosing ones, with their distances.
    pub(crate) fn outward(&'a self) -> impl Iterator<Item = (usize, &'a Env<'a>)> {
        std::iter::successors(Some(self), |env| env.parent).enumerate()
    }

    /// Resolves the name of a block. Declarations and imports take precedence over components of the program, as in
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

    /// Returns the names of the declarations that can be instantiated here, without imports.
    pub(crate) fn declared_names(&self) -> Vec<&str> {
        self.outward()
            .flat_map(|(_, env)| env.declares.keys().map(AsRef::as_ref))
            .collect()
    }
}
