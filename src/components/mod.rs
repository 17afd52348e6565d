//! The components, one folder each: the path is the name.
//!
//! [`ALL`] is the one list of them. Components do not import each other; what they share is in [`common`]. Deleting a folder and its
//! line here removes a component.

use crate::pipeline::component::Definition;

pub mod common;
pub mod discovery;
pub mod pyroscope;

/// Every component, sorted by name.
pub const ALL: &[&Definition] = &[
    &discovery::file::DEFINITION,
    &discovery::relabel::DEFINITION,
    &self::pyroscope::relabel::DEFINITION,
    &self::pyroscope::scrape::DEFINITION,
    &self::pyroscope::write::DEFINITION,
];

/// The component called `name`.
pub fn find(name: &str) -> Option<&'static Definition> {
    ALL.iter().copied().find(|definition| definition.name == name)
}

#[cfg(test)]
mod tests;
