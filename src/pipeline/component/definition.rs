//! A kind of component, as data: its name, its arguments and exports, its checks, and how an instance is built.
//!
//! A check needs nothing else of a component: it reads the schema, runs [`Definition::validate`], and never builds.

use std::sync::Arc;

use crate::lang::schema::{Arguments, Attribute, Schema};
use crate::pipeline::component::contract::{Component, ComponentError, Context};

/// How settled a component is; `--stability.level` decides which may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// May change or go.
    Experimental,
    /// Complete, may still change.
    PublicPreview,
    /// Stable.
    GenerallyAvailable,
}

impl Stability {
    /// The level as the flag writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Experimental => "experimental",
            Self::PublicPreview => "public-preview",
            Self::GenerallyAvailable => "generally-available",
        }
    }
}

/// Builds an instance with its first arguments, already validated. It has set its first exports through the context
/// when it returns, if it has any at that time.
pub type Build = fn(Context, Arguments) -> Result<Arc<dyn Component>, ComponentError>;

/// A kind of component. One constant for each, listed sorted in `components::all`.
#[derive(Debug)]
pub struct Definition {
    /// Full name: `pyroscope.scrape`.
    pub name: &'static str,
    /// How settled it is.
    pub stability: Stability,
    /// Its arguments.
    pub arguments: &'static Schema,
    /// Its exports: name, type and meaning (`required` and `default` have no meaning here).
    pub exports: &'static [Attribute],
    /// Checks that go beyond the schema, without side effects: the first error by attribute name, or by "" for the
    /// whole.
    pub validate: fn(&Arguments) -> Result<(), ArgumentError>,
    /// Builds an instance; `None` for a component that the language knows and that cannot run yet: its arguments are
    /// checked and its exports typed as ever, and a configuration that is to run with it is refused by name.
    pub build: Option<Build>,
    /// First paragraph of the reference page.
    pub doc: &'static str,
}

impl Definition {
    /// What is said of a component that cannot run yet.
    pub(crate) fn not_built(&self) -> String {
        format!("component \"{}\" is known to Alluvium but not built yet", self.name)
    }
}

/// An argument's value is not acceptable.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ArgumentError {
    /// Path of the attribute or block at fault: `regex`, `rule[2].action`, `endpoint[0].url`; empty for the whole body.
    pub path: String,
    /// What is wrong and what would be right, lower case.
    pub message: String,
}
