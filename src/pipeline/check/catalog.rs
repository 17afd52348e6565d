//! The components that a configuration may use.

use std::collections::HashMap;

use crate::component::AnyDefinition;
use alluvium_lang::schema::Schema;

/// The definitions by name.
pub(crate) struct Catalog {
    by_name: HashMap<&'static str, &'static dyn AnyDefinition>,
}

impl Catalog {
    /// Creates a catalog of these definitions.
    pub(crate) fn new(definitions: &[&'static dyn AnyDefinition]) -> Self {
        let by_name = definitions.iter().map(|definition| (definition.name(), *definition));
        Self {
            by_name: by_name.collect(),
        }
    }

    /// Returns the definition of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static dyn AnyDefinition> {
        self.by_name.get(name).copied()
    }

    /// Returns the schema of HTTP client arguments, which is the schema of the block `client` of `import.http`.
    pub(crate) fn http_client(&self) -> Option<&'static Schema> {
        let fetching = self.find("import.http")?;
        let client = fetching.arguments().blocks.iter().find(|block| block.name == "client");
        client.map(|client| client.schema)
    }

    /// Returns the names of all definitions, sorted.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.by_name.keys().copied().collect();
        names.sort_unstable();
        names
    }
}
