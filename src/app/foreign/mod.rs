//! Converts configurations of conprof, Parca and Prometheus, and manifests that run kube-profefe or Coroot's agents, to
//! Alloy text.
//!
//! In: YAML. Out: equivalent components, and notes on keys that have no effect here. If a key changes which profiles
//! are collected but cannot be expressed in Alloy's language, it is a problem. Each note and problem contains the path
//! of its key. The conversion makes no network requests and does not open files that the configuration names.

mod agents;
mod blocks;
mod findings;
mod format;
mod job;
mod kinds;
mod manifest;
mod text;
mod yaml;

use std::path::Path;

use serde_json::{Map, Value};

use crate::app::foreign::findings::Findings;
pub(crate) use crate::app::foreign::format::Format;
use crate::app::foreign::job::Jobs;
use crate::app::foreign::text::Writer;
use alluvium_lang::Diagnostics;

/// Maximum size of a configuration, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Default URL that profiles are pushed to: an Alluvium server on this machine.
const DEFAULT_URL: &str = "http://localhost:4040";

/// Options of a conversion.
#[derive(Debug, Clone)]
pub(crate) struct Conversion {
    /// Format of the configuration to convert.
    pub(crate) format: Format,
    /// URL of the server that profiles are pushed to.
    pub(crate) push_url: String,
    /// How problems are handled.
    pub(crate) problems: Problems,
}

/// How a key that cannot be expressed in Alloy's language is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problems {
    /// The conversion fails and reports all problems.
    Refuse,
    /// The key is left out and recorded as a note.
    Note,
}

/// The result of a conversion.
#[derive(Debug)]
pub(crate) struct Converted {
    /// The configuration as formatted Alloy text.
    pub(crate) text: String,
    /// Keys that were left out or changed, each with its path and the reason.
    pub(crate) notes: Vec<String>,
}

/// Error of a configuration that cannot be converted. It lists all problems, each with the path of its key.
#[derive(Debug, thiserror::Error)]
#[error("cannot convert the {format} configuration {name}:\n  {}", .problems.join("\n  "))]
pub(crate) struct Refused {
    format: Format,
    name: String,
    problems: Vec<String>,
}

impl Conversion {
    /// Builds a conversion from the value of `--config.extra-args`. Blanks separate the arguments. The only argument is
    /// `push-url=URL`.
    pub(crate) fn with_arguments(format: Format, arguments: &str, problems: Problems) -> anyhow::Result<Self> {
        let mut push_url = DEFAULT_URL.to_owned();
        for argument in arguments.split_whitespace() {
            match argument.strip_prefix("push-url=") {
                Some(url) if url::Url::parse(url).is_ok_and(|url| url.has_host()) => url.clone_into(&mut push_url),
                _ => anyhow::bail!(
                    "invalid converter argument `{argument}`: expected `push-url=URL` with an absolute URL"
                ),
            }
        }
        Ok(Self {
            format,
            push_url,
            problems,
        })
    }

    /// Converts the file `name`; relative paths in it are resolved against the folder of the file.
    pub(crate) fn convert(&self, name: &str, yaml: &str) -> Result<Converted, Refused> {
        let refused = |problems| Refused {
            format: self.format,
            name: name.to_owned(),
            problems,
        };
        let mut findings = Findings::default();
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let text = self.text(folder, yaml, &mut findings);
        let text = text.map_err(|error| refused(vec![error.to_string()]))?;
        let Findings { problems, mut notes } = findings;
        match self.problems {
            Problems::Refuse if !problems.is_empty() => return Err(refused(problems)),
            Problems::Refuse => {}
            Problems::Note => notes.extend(problems),
        }
        Ok(Converted { text, notes })
    }

    /// Returns the converted configuration, or an error if the file cannot be converted at all.
    fn text(&self, folder: &Path, yaml: &str, findings: &mut Findings) -> Result<String, FileError> {
        let mut writer = Writer::default();
        match self.format {
            Format::KubeProfefe => agents::kube_profefe(&documents(yaml)?, &mut writer, findings),
            Format::Coroot => agents::coroot(&documents(yaml)?, &mut writer, findings),
            format => Jobs::new(format, folder, &mut writer, findings).convert(&read(yaml)?),
        }
        writer.open("pyroscope.write", Some("default"));
        writer.open("endpoint", None);
        writer.attribute("url", &alluvium_lang::literal::quote(&self.push_url));
        writer.close();
        writer.close();
        alluvium_lang::fmt(&writer.finish()).map_err(FileError::Output)
    }
}

/// The reason why a file cannot be converted at all.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("the file is longer than {} MiB", MAX_BYTES >> 20)]
    TooLong,
    /// The parser of YAML rejects the file.
    #[error(transparent)]
    Yaml(#[from] Box<serde_saphyr::Error>),
    #[error("the file must be a mapping")]
    NotAMapping,
    /// The converter wrote a configuration with syntax errors, which is a mistake in this program.
    #[error("the result is an invalid configuration: please report it")]
    Output(Diagnostics),
}

/// Parses YAML with any number of documents.
fn documents(yaml: &str) -> Result<Vec<Value>, FileError> {
    check_length(yaml)?;
    Ok(yaml::documents(yaml).map_err(Box::new)?)
}

fn check_length(yaml: &str) -> Result<(), FileError> {
    if yaml.len() > MAX_BYTES {
        return Err(FileError::TooLong);
    }
    Ok(())
}

/// Parses the YAML, whose root must be a mapping.
fn read(yaml: &str) -> Result<Map<String, Value>, FileError> {
    check_length(yaml)?;
    match yaml::document(yaml).map_err(Box::new)? {
        Value::Object(root) => Ok(root),
        Value::Null => Ok(Map::new()),
        _ => Err(FileError::NotAMapping),
    }
}

#[cfg(test)]
mod tests;
