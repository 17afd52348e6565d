//! Environment variables, which clouds use to pass credentials.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

type Read = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Reads the environment variables of the process, or the variables that a test sets.
#[derive(Clone)]
pub(crate) struct Environment(Arc<Read>);

impl Environment {
    /// Returns the variables of this process.
    pub(crate) fn of_process() -> Self {
        Self(Arc::new(|name| std::env::var(name).ok()))
    }

    /// Returns the value of a variable; `None` if the variable is missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// Returns a path below the home folder; `None` if there is no home folder.
    pub(crate) fn at_home(&self, path: &str) -> Option<PathBuf> {
        self.get("HOME").map(|home| PathBuf::from(home).join(path))
    }
}

/// Prints no variables, because they contain secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Environment")
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(Arc::new(move |name| {
            let variable = variables.iter().find(|(other, _)| other == name);
            variable.map(|(_, value)| value.clone())
        }))
    }
}
