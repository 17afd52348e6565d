//! The components, one folder each: the path is the name.
//!
//! [`ALL`] is the one list of them. Components do not import each other; what they share is in [`common`]. Deleting a folder and its
//! line here removes a component.

use crate::components::discovery::{file as discovery_file, relabel as discovery_relabel};
use crate::components::pyroscope::{
    relabel as pyroscope_relabel, scrape as pyroscope_scrape, write as pyroscope_write,
};
use crate::pipeline::component::Definition;

pub mod common;
pub mod discovery;
pub mod pyroscope;

/// Every component, sorted by name.
pub const ALL: &[&Definition] = &[
    &discovery_file::DEFINITION,
    &discovery_relabel::DEFINITION,
    &pyroscope_relabel::DEFINITION,
    &pyroscope_scrape::DEFINITION,
    &pyroscope_write::DEFINITION,
];

/// The component called `name`.
pub fn find(name: &str) -> Option<&'static Definition> {
    ALL.iter().copied().find(|definition| definition.name == name)
}

#[cfg(test)]
mod tests;
