//! A complete discovery component: its arguments, one function that lists targets, and its definition.
//!
//! `CONTRIBUTING.md` shows the code of this component, which is not in `crate::ALL`. The tests check that this code is
//! enough to run the component and to generate its reference page.

use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_lang::attribute::{Interval, NotEmpty};
use alluvium_lang::body::arguments;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{AnyDefinition, ComponentError, Context, Definition, HealthState};

// example: begin
arguments! {
    /// Arguments of `discovery.example`.
    pub(crate) struct ExampleArguments {
        /// Hosts to profile, each with its port.
        hosts: NotEmpty<Vec<Arc<str>>>,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "30s",
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<ExampleArguments> =
    polled::definition::<Example>("discovery.example", "`discovery.example` makes a target of each host.");

struct Example(ExampleArguments);

impl Discovery for Example {
    type Arguments = ExampleArguments;

    fn new(arguments: &ExampleArguments, _context: &Context) -> Result<Self, ComponentError> {
        Ok(Self(arguments.clone()))
    }

    fn interval(&self) -> Duration {
        self.0.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let target = |host: &Arc<str>| Target::from([("__address__".into(), host.clone())]);
        Ok(self.0.hosts.0.iter().map(target).collect())
    }
}
// example: end

fn hosts(names: &[&str]) -> Body {
    Body::new().with("hosts", Value::array(names.iter().copied().map(Value::string)))
}

#[tokio::test]
async fn a_discovery_is_its_arguments_and_one_function() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.example.test", folder.path());
    assert_eq!(
        hosts(&[]).read(&DEFINITION).unwrap_err(),
        "hosts: hosts must not be empty"
    );
    let running = Running::start(&DEFINITION, &recorder, &hosts(&["a:1", "b:2"]));
    let exported = || recorder.exported_targets("targets").join(" ");
    eventually("two targets", || exported() == "{__address__=a:1} {__address__=b:2}").await;
    let arguments = hosts(&["c:3"]).arguments(&DEFINITION);
    running.component.update(arguments).unwrap();
    eventually("the new target", || exported() == "{__address__=c:3}").await;
    assert_eq!(recorder.health(), (HealthState::Healthy, "1 targets found".to_owned()));
    running.stop().await;
}

#[test]
fn the_engine_and_the_reference_know_it_by_its_definition_alone() {
    let definition: &dyn AnyDefinition = &DEFINITION;
    let names: Vec<_> = definition.arguments().attributes.iter().map(|own| own.name).collect();
    assert_eq!(names, ["hosts", "refresh_interval"]);
    assert!(definition.can_run() && definition.exports().len() == 1);
    let page = super::reference::tables(definition);
    for part in [
        "| `hosts` | list(string) | required |",
        "| `targets` |",
        "`discovery_targets` | gauge |",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn contributing_shows_the_example_as_it_is_compiled() {
    let source = include_str!("example.rs");
    let (_, rest) = source.split_once("// example: begin\n").unwrap();
    let (example, _) = rest.split_once("// example: end\n").unwrap();
    let page = include_str!("../../../CONTRIBUTING.md");
    assert!(
        page.contains(example),
        "CONTRIBUTING.md shows another example than {}",
        file!()
    );
}
