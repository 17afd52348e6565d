//! Configurations of other profilers and of Prometheus, as Alloy text: conprof's, Parca's, Prometheus' YAML.
//!
//! In: YAML. Out: components that do the same, and notes on what has no meaning here. What would change which profiles
//! are taken and cannot be said is a problem; each has the path of its key. Nothing is asked of the network, and files
//! that the configuration names are not opened.

mod blocks;
mod findings;
mod format;
mod job;
mod kinds;
mod text;

use std::path::Path;

use serde_json::{Map, Value};

use crate::app::foreign::findings::Findings;
pub(crate) use crate::app::foreign::format::Format;
use crate::app::foreign::job::Jobs;
use crate::app::foreign::text::Writer;
use crate::lang;

/// Largest configuration that is read, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Where profiles go when nothing else is said: our server on this machine.
const DEFAULT_URL: &str = "http://localhost:4040";

/// How a configuration is converted.
#[derive(Debug, Clone)]
pub(crate) struct Conversion {
    /// The format that is read.
    pub(crate) format: Format,
    /// URL of the server that profiles are pushed to.
    pub(crate) push_url: String,
    /// What becomes of problems.
    pub(crate) problems: Problems,
}

/// What becomes of a key that cannot be said in Alloy's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problems {
    /// The conversion fails with all of them.
    Refuse,
    /// The key is left out, and a note says so.
    Note,
}

/// A configuration in Alloy's language.
#[derive(Debug)]
pub(crate) struct Converted {
    /// The configuration as Alloy text, formatted.
    pub(crate) text: String,
    /// What was left out, each with the path of its key.
    pub(crate) notes: Vec<String>,
}

/// Why a configuration cannot be converted: every problem, each with the path of its key.
#[derive(Debug, thiserror::Error)]
#[error("cannot convert the {format} configuration {name}:\n  {}", .problems.join("\n  "))]
pub(crate) struct Refused {
    format: Format,
    name: String,
    problems: Vec<String>,
}

impl Conversion {
    /// A conversion by the arguments that a converter gets on the command line (`--config.extra-args`), separated by
    /// blanks: `push-url=URL`.
    pub(crate) fn with_arguments(format: Format, arguments: &str, problems: Problems) -> anyhow::Result<Self> {
        let mut push_url = DEFAULT_URL.to_owned();
        for argument in arguments.split_whitespace() {
            match argument.strip_prefix("push-url=") {
                Some(url) if url::Url::parse(url).is_ok_and(|url| url.has_host()) => url.clone_into(&mut push_url),
                _ => anyhow::bail!("`{argument}` is no argument of the converter; it has: push-url=URL"),
            }
        }
        Ok(Self {
            format,
            push_url,
            problems,
        })
    }

    /// Converts the file `name`; relative paths in it begin at the file's folder.
    pub(crate) fn convert(&self, name: &str, yaml: &str) -> Result<Converted, Refused> {
        let refused = |problems| Refused {
            format: self.format,
            name: name.to_owned(),
            problems,
        };
        let mut found = Findings::default();
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let text = self.text(folder, yaml, &mut found);
        let text = text.map_err(|problem| refused(vec![problem]))?;
        let Findings { problems, mut notes } = found;
        match self.problems {
            Problems::Refuse if !problems.is_empty() => return Err(refused(problems)),
            Problems::Refuse => {}
            Problems::Note => notes.extend(problems),
        }
        Ok(Converted { text, notes })
    }

    /// The configuration as text, or why there is none at all.
    fn text(&self, folder: &Path, yaml: &str, found: &mut Findings) -> Result<String, String> {
        let root = read(yaml)?;
        let mut writer = Writer::default();
        Jobs::new(self.format, folder, &mut writer, found).convert(&root);
        writer.open("pyroscope.write", Some("default"));
        writer.open("endpoint", None);
        writer.attribute("url", &text::quote(&self.push_url));
        writer.close();
        writer.close();
        lang::fmt(&writer.finish()).map_err(|_| "the result is no valid configuration: please report it".to_owned())
    }
}

/// The mapping that a configuration is.
fn read(yaml: &str) -> Result<Map<String, Value>, String> {
    if yaml.len() > MAX_BYTES {
        return Err(format!("the file is longer than {} MiB", MAX_BYTES >> 20));
    }
    match serde_saphyr::from_str(yaml) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("the file must be a mapping".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
