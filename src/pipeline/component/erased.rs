//! Definitions and components with their argument types erased, for the list of components and the engine.
//!
//! The type is erased and restored in this file: a definition creates the typed value once, [`ValidArguments`] keeps
//! it, and the component receives it at its build and at every update.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::component::contract::{Component, ComponentError, Context};
use crate::component::definition::{Definition, Stability};
use crate::component::live::LiveHandle;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::argument_error::ArgumentErrors;
use alluvium_lang::body::FromBody;
use alluvium_lang::schema::{Arguments, Attribute, Schema};
use alluvium_lang::value::Value;
use alluvium_telemetry::metrics::Scope;

/// A kind of component with an erased argument type.
pub trait AnyDefinition: fmt::Debug + Send + Sync {
    /// Full name, such as `pyroscope.scrape`.
    fn name(&self) -> &'static str;

    /// Stability of the arguments and the behaviour.
    fn stability(&self) -> Stability;

    /// Schema of the component's block.
    fn arguments(&self) -> &'static Schema;

    /// Exports of the component: name, type and description.
    fn exports(&self) -> &'static [Attribute];

    /// Registers the component's metrics, so that the reference page can list them.
    fn register_metrics(&self, scope: &Scope);

    /// First paragraph of the reference page.
    fn doc(&self) -> &'static str;

    /// False for a component that is known but cannot run yet.
    fn can_run(&self) -> bool;

    /// Converts arguments that fit the schema to the typed value, or returns all errors. Pure.
    fn validate(&self, values: Arguments) -> Result<ValidArguments, ArgumentErrors>;

    /// Builds an instance with arguments that this definition validated.
    fn build(&self, context: Context, arguments: &ValidArguments) -> Result<Arc<dyn AnyComponent>, ComponentError>;

    /// Returns the message for a component that cannot run yet.
    fn not_built(&self) -> String {
        format!("component \"{}\" cannot run in this version of Alluvium", self.name())
    }
}

/// Arguments that a definition has validated: the evaluated values, and the typed value made from them.
#[derive(Clone)]
pub struct ValidArguments {
    values: Arguments,
    typed: Arc<dyn Any + Send + Sync>,
}

impl ValidArguments {
    /// Returns the evaluated values, for comparison and display.
    pub fn values(&self) -> &Arguments {
        &self.values
    }

    /// Returns the typed value; fails for arguments of another kind of component.
    fn typed<A: Send + Sync + 'static>(&self) -> Result<Arc<A>, ComponentError> {
        let typed = self.typed.clone().downcast::<A>();
        typed.map_err(|_| ComponentError("the arguments are those of another component".to_owned()))
    }
}

/// A built component with an erased argument type, as the engine runs it. The methods are those of [`Component`].
pub trait AnyComponent: Send + Sync {
    /// Applies arguments that the component's definition has validated, see [`Component::update`].
    fn update(&self, arguments: &ValidArguments) -> Result<(), ComponentError>;

    /// Runs the component, see [`Component::run`].
    fn run(&self, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>>;

    /// Returns the component's state for display, see [`Component::debug_info`].
    fn debug_info(&self) -> Value;

    /// Handles a request to the component, see [`Component::serve`].
    fn serve(&self, request: http::Request<Bytes>) -> Option<BoxFuture<'static, http::Response<Bytes>>>;

    /// True if the component holds an exclusive resource, see [`Component::is_exclusive`].
    fn is_exclusive(&self) -> bool;

    /// True if `run` only waits for the shutdown, see [`Component::is_passive`].
    fn is_passive(&self) -> bool;

    /// Sends the current state to a newly opened live view, see [`Component::show_live`].
    fn show_live(&self, arguments: &ValidArguments, live: &LiveHandle);
}

/// A component with a known argument type, which the engine uses with the type erased.
struct Typed<A: 'static>(Arc<dyn Component<A>>);

impl<A: Send + Sync + 'static> AnyComponent for Typed<A> {
    fn update(&self, arguments: &ValidArguments) -> Result<(), ComponentError> {
        self.0.update(arguments.typed()?)
    }

    fn run(&self, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        self.0.clone().run(shutdown)
    }

    fn debug_info(&self) -> Value {
        self.0.debug_info()
    }

    fn serve(&self, request: http::Request<Bytes>) -> Option<BoxFuture<'static, http::Response<Bytes>>> {
        self.0.serve(request)
    }

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }

    fn is_passive(&self) -> bool {
        self.0.is_passive()
    }

    fn show_live(&self, arguments: &ValidArguments, live: &LiveHandle) {
        if let Ok(typed) = arguments.typed() {
            self.0.show_live(&typed, live);
        }
    }
}

impl<A: FromBody + fmt::Debug + Send + Sync + 'static> AnyDefinition for Definition<A> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn stability(&self) -> Stability {
        self.stability
    }

    fn arguments(&self) -> &'static Schema {
        A::SCHEMA
    }

    fn exports(&self) -> &'static [Attribute] {
        self.exports
    }

    fn register_metrics(&self, scope: &Scope) {
        (self.metrics)(scope);
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn can_run(&self) -> bool {
        self.build.is_some()
    }

    fn validate(&self, values: Arguments) -> Result<ValidArguments, ArgumentErrors> {
        let typed = self.read(&values)?;
        Ok(ValidArguments { values, typed })
    }

    fn build(&self, context: Context, arguments: &ValidArguments) -> Result<Arc<dyn AnyComponent>, ComponentError> {
        let build = self.build.ok_or_else(|| ComponentError(self.not_built()))?;
        let component = build(context, arguments.typed()?)?;
        Ok(Arc::new(Typed(component)))
    }
}
