//! Where readers get their profile from: a server's stored profiles, or files of any format.
//!
//! In: flags. Out: [`Loaded`], one profile and the sample type that was asked for.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;

use crate::cli::content;
use crate::cli::remote::{QueryArgs, Question, ServerArgs, call_error};
use crate::cli::time::now_ms;
use crate::profile::decoded::Columns;
use crate::profile::pprof::{self, Profile, ValueType};
use crate::wire::files::{self, ImportedProfile};
use crate::wire::querier::QuerierClient;

/// Maximum uncompressed size of a file: 1 GiB.
pub(super) const MAX_FILE_BYTES: usize = 1 << 30;

/// Flags that say which profile is read.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    #[command(flatten)]
    pub query: QueryArgs,
    /// Read this file, of any format that `import` knows, instead of asking a server; may be given many times. SELECTOR
    /// is then the sample type, such as `cpu` or `alloc_space`.
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// A profile that was read.
pub(super) struct Loaded {
    columns: Columns,
    value: usize,
}

impl Loaded {
    /// The profile with its samples.
    pub(super) fn profile(&self) -> &Profile<'_> {
        self.columns.get()
    }

    /// Index of the sample type that was asked for.
    pub(super) fn value(&self) -> usize {
        self.value
    }
}

impl SourceArgs {
    /// Reads the profile; one without samples is an error that repeats the question.
    pub(super) async fn load(&self) -> anyhow::Result<Loaded> {
        if self.files.is_empty() {
            return self.stored().await;
        }
        let mut profiles = Vec::new();
        for path in &self.files {
            profiles.extend(read_file(path).await?);
        }
        one_of(profiles, self.query.selector.as_deref())
    }

    async fn stored(&self) -> anyhow::Result<Loaded> {
        if let Some(selector) = &self.query.selector
            && Path::new(selector).is_file()
        {
            bail!("`{selector}` is a file: write --file {selector}");
        }
        of_server(&self.server, &self.query.question(now_ms())?).await
    }
}

/// The merged profile that a server has to a question.
pub(super) async fn of_server(server: &ServerArgs, question: &Question) -> anyhow::Result<Loaded> {
    let client = QuerierClient::new(server.caller().await?);
    let bytes = client.merge_profile(question.selection()).await.map_err(call_error)?;
    let columns = merged(bytes, question)?;
    let value = sample_type(columns.get(), &question.profile_type.sample_type)?;
    Ok(Loaded { columns, value })
}

/// The profiles of a file.
pub(super) async fn read_file(path: &Path) -> anyhow::Result<Vec<ImportedProfile>> {
    let in_file = || path.display().to_string();
    let bytes = content::read(path, MAX_FILE_BYTES).await.with_context(in_file)?;
    Ok(files::read(&bytes, MAX_FILE_BYTES).with_context(in_file)?.profiles)
}

/// The merged profile of an answer; for one without samples an error that repeats the query.
pub(super) fn merged(bytes: Bytes, question: &Question) -> anyhow::Result<Columns> {
    // Pyroscope answers a query without matching data with an empty message.
    if bytes.is_empty() {
        return Err(question.nothing_found());
    }
    let columns = match Columns::read(bytes, |bytes| pprof::decode(bytes)) {
        Ok(columns) => columns,
        Err(error) if error.kind == pprof::DecodeErrorKind::NoSampleTypes => return Err(question.nothing_found()),
        Err(error) => return Err(error).context("the server's answer is no profile"),
    };
    if columns.get().sample_count() == 0 {
        return Err(question.nothing_found());
    }
    Ok(columns)
}

/// The names of the sample types of all profiles, each once, sorted.
pub(super) fn type_names(profiles: &[ImportedProfile]) -> Vec<&str> {
    let all = profiles.iter().flat_map(types).map(|kind| kind.kind);
    let mut names: Vec<&str> = all.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// True when the profiles have the same types, so that there is a default.
pub(super) fn are_alike(profiles: &[ImportedProfile]) -> bool {
    let first = profiles.first().map(types);
    profiles.iter().all(|other| Some(types(other)) == first)
}

/// The profile with the sample type `name`, merged with those of the same types. Without a name it is the default of
/// the first, if all have the same types.
pub(super) fn one_of(mut profiles: Vec<ImportedProfile>, name: Option<&str>) -> anyhow::Result<Loaded> {
    let has = |profile: &ImportedProfile, name: &str| types(profile).iter().any(|kind| kind.kind == name);
    let chosen = match name {
        Some(name) if profiles.len() > 1 => profiles.iter().position(|profile| has(profile, name)),
        None if !are_alike(&profiles) => None,
        _ => Some(0),
    };
    let Some(chosen) = chosen.filter(|chosen| *chosen < profiles.len()) else {
        bail!("which sample type? there are {}", type_names(&profiles).join(", "));
    };
    let profile = profiles[chosen].columns.get();
    let value = match name {
        Some(name) => sample_type(profile, name)?,
        None => profile.default_value(),
    };
    if profiles.len() == 1 {
        let columns = profiles.remove(chosen).columns;
        return Ok(Loaded { columns, value });
    }
    let ordered = profiles[chosen..].iter().chain(&profiles[..chosen]);
    let all: Vec<&Profile<'_>> = ordered.map(|profile| profile.columns.get()).collect();
    let merged = pprof::merge(&all).context("there is no profile")?;
    let columns = Columns::copied(merged);
    Ok(Loaded { columns, value })
}

fn types(profile: &ImportedProfile) -> &[ValueType<'_>] {
    &profile.columns.get().sample_types
}

/// The index of a sample type by name; with a single sample type the name is ignored.
fn sample_type(profile: &Profile<'_>, name: &str) -> anyhow::Result<usize> {
    let names: Vec<&str> = profile.sample_types.iter().map(|kind| kind.kind).collect();
    match names.iter().position(|kind| *kind == name) {
        Some(index) => Ok(index),
        None if names.len() == 1 => Ok(0),
        None => bail!("no sample type `{name}` in the profile, it has {}", names.join(", ")),
    }
}
