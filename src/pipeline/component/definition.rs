//! A kind of component, as data: its name, its arguments and exports, its checks, and how an instance is built.
//!
//! A [`Definition`] names the type of its arguments; [`AnyDefinition`](super::AnyDefinition) is the same without it.

use std::sync::Arc;

use crate::lang::argument_error::ArgumentErrors;
use crate::lang::body::FromBody;
use crate::lang::schema::{Arguments, Attribute};
use crate::pipeline::component::contract::{Component, ComponentError, Context};
use crate::telemetry::metrics::Scope;

/// How settled a component is; `--stability.level` decides which may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// May change in any release, or go.
    Experimental,
    /// Complete, may still change.
    PublicPreview,
    /// Changes only with a new major release.
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

/// Builds an instance with its first arguments. It has set its first exports through the context when it returns, if it
/// has any at that time.
pub(crate) type Build<A> = fn(Context, Arc<A>) -> Result<Arc<dyn Component<A>>, ComponentError>;

/// A kind of component whose arguments are an `A`. One constant for each, listed sorted in `components::ALL`.
#[derive(Debug)]
pub struct Definition<A: 'static> {
    /// Full name: `pyroscope.scrape`.
    pub name: &'static str,
    /// How settled its arguments and behaviour are.
    pub stability: Stability,
    /// Its exports: name, type and meaning (`required` and `default` have no meaning here).
    pub exports: &'static [Attribute],
    /// Registers its metrics, for the reference page to list them.
    pub metrics: fn(&Scope),
    /// Builds an instance; `None` for a component that the language knows and that cannot run yet: its arguments are
    /// checked and its exports typed as ever, and a configuration that is to run with it is refused by name.
    pub build: Option<Build<A>>,
    /// First paragraph of the reference page.
    pub doc: &'static str,
}

/// For a definition whose component has no metrics.
pub fn no_metrics(_scope: &Scope) {}

impl<A: FromBody + Send + Sync + 'static> Definition<A> {
    /// Makes the typed value of arguments that fit the schema.
    pub fn read(&self, values: &Arguments) -> Result<Arc<A>, ArgumentErrors> {
        A::from_body(values).map(Arc::new)
    }
}
