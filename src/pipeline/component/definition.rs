//! The definition of a kind of component, as data: its name, arguments, exports and checks, and the function that
//! builds an instance.
//!
//! A [`Definition`] has the type of its arguments as a parameter; [`AnyDefinition`](super::AnyDefinition) erases it.

use std::sync::Arc;

use crate::component::contract::{Component, ComponentError, Context};
use alluvium_lang::argument_error::ArgumentErrors;
use alluvium_lang::body::FromBody;
use alluvium_lang::schema::{Arguments, Attribute};
use alluvium_telemetry::metrics::Scope;

/// Stability of a component; `--stability.level` sets the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// May change or disappear in any release.
    Experimental,
    /// Complete, but may still change.
    PublicPreview,
    /// Changes only with a new major release.
    GenerallyAvailable,
}

impl Stability {
    /// Returns the level as written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Experimental => "experimental",
            Self::PublicPreview => "public-preview",
            Self::GenerallyAvailable => "generally-available",
        }
    }
}

/// Builds an instance with its first arguments. If the exports are already known, the function sets them through the
/// context before it returns.
pub(crate) type Build<A> = fn(Context, Arc<A>) -> Result<Arc<dyn Component<A>>, ComponentError>;

/// A kind of component with arguments of type `A`. Each is a constant; `components::ALL` lists them, sorted by
/// name.
#[derive(Debug)]
pub struct Definition<A: 'static> {
    /// Full name, such as `pyroscope.scrape`.
    pub name: &'static str,
    /// Stability of the arguments and the behaviour.
    pub stability: Stability,
    /// Exports of the component: name, type and description (`required` and `default` have no meaning here).
    pub exports: &'static [Attribute],
    /// Registers the metrics of the component, so that the reference page can list them.
    pub metrics: fn(&Scope),
    /// Builds an instance. `None` for a component that is known but cannot run yet: its arguments are checked and its
    /// exports have types as usual, but a configuration that uses it cannot run.
    pub build: Option<Build<A>>,
    /// First paragraph of the reference page.
    pub doc: &'static str,
}

/// The metrics function of a component without metrics.
pub fn no_metrics(_scope: &Scope) {}

impl<A: FromBody + Send + Sync + 'static> Definition<A> {
    /// Converts arguments that fit the schema to the typed value.
    pub fn read(&self, values: &Arguments) -> Result<Arc<A>, ArgumentErrors> {
        A::from_body(values).map(Arc::new)
    }
}
