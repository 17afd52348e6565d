//! The source of the profile that a command reads: a server's stored profiles, or files of any format.
//!
//! In: flags. Out: [`Loaded`], one profile and the requested sample type.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;

use crate::cli::common::content;
use crate::cli::common::remote::{QueryArgs, Question, ServerArgs, call_error};
use crate::cli::common::time::now_ms;
use alluvium_profile::combine::{combine, finer, in_unit};
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{self, Profile, ValueType};
use alluvium_wire::files::{self, ImportedProfile};

/// Maximum uncompressed size of a file: 1 GiB.
pub(in crate::cli) const MAX_FILE_BYTES: usize = 1 << 30;

/// Flags that select the profile to read.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    #[command(flatten)]
    pub query: QueryArgs,
    /// Read this file, of any format that `import` supports, instead of querying a server; may be repeated. SELECTOR
    /// is then the sample type, such as `cpu` or `alloc_space`.
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// A profile that was read, with the requested sample type.
pub(in crate::cli) struct Loaded {
    columns: Columns,
    value: usize,
}

impl Loaded {
    /// Returns the profile with its samples.
    pub(in crate::cli) fn profile(&self) -> &Profile<'_> {
        self.columns.get()
    }

    /// Returns the index of the requested sample type.
    pub(in crate::cli) fn value(&self) -> usize {
        self.value
    }

    /// Returns the requested sample type.
    pub(in crate::cli) fn kind(&self) -> ValueType<'_> {
        let types = &self.profile().sample_types;
        types.get(self.value).copied().unwrap_or_default()
    }

    /// Converts the values of both profiles to the finer of their units. Returns an error if their types differ.
    pub(super) fn alike(&mut self, other: &mut Self) -> anyhow::Result<()> {
        let (own, others) = (self.kind(), other.kind());
        if own == others {
            return Ok(());
        }
        let unit = Some(own.kind).filter(|kind| *kind == others.kind);
        let unit = unit.and_then(|kind| finer(kind, own.unit, others.unit).ok());
        let unit = unit.map(str::to_owned).with_context(|| {
            format!(
                "{} in {} cannot be compared with {} in {}",
                own.kind, own.unit, others.kind, others.unit
            )
        })?;
        for loaded in [self, other] {
            if loaded.kind().unit != unit {
                let converted = in_unit(loaded.profile(), loaded.value, &unit)?;
                loaded.columns = Columns::copied(converted);
            }
        }
        Ok(())
    }
}

impl SourceArgs {
    /// Reads the profile from the files, or from the server if there are no files. If the server has no samples, the
    /// error repeats the query.
    pub(in crate::cli) async fn load(&self) -> anyhow::Result<Loaded> {
        if self.files.is_empty() {
            return self.stored().await;
        }
        let files = read_files(&self.files).await?;
        one_of(files, self.query.selector.as_deref())
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

/// Returns the merged profile of a server for a query.
pub(super) async fn of_server(server: &ServerArgs, question: &Question) -> anyhow::Result<Loaded> {
    let client = server.querier().await?;
    let bytes = client.merge_profile(question.selection()).await.map_err(call_error)?;
    let columns = merged(bytes, question)?;
    let profile = columns.get();
    // If the response has only one type, it is the requested type, whatever the server calls it.
    let value = match profile.sample_types.len() {
        1 => 0,
        _ => sample_type(profile, &question.profile_type.sample_type)?,
    };
    Ok(Loaded { columns, value })
}

pub(super) struct ReadFile {
    path: PathBuf,
    profiles: Vec<ImportedProfile>,
}

/// Reads files of any format, in the order of the paths.
pub(super) async fn read_files(paths: &[PathBuf]) -> anyhow::Result<Vec<ReadFile>> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let (path, profiles) = (path.clone(), read_file(path).await?);
        files.push(ReadFile { path, profiles });
    }
    Ok(files)
}

/// Returns the profiles of a file.
pub(in crate::cli) async fn read_file(path: &Path) -> anyhow::Result<Vec<ImportedProfile>> {
    let in_file = || path.display().to_string();
    let bytes = content::read(path, MAX_FILE_BYTES).await.with_context(in_file)?;
    Ok(files::read(&bytes, MAX_FILE_BYTES).with_context(in_file)?.profiles)
}

/// Decodes the merged profile of a response. If it has no samples, the error repeats the query.
pub(super) fn merged(bytes: Bytes, question: &Question) -> anyhow::Result<Columns> {
    // Pyroscope responds to a query without matching data with an empty message.
    if bytes.is_empty() {
        return Err(question.nothing_found());
    }
    let columns = match Columns::read(bytes, |bytes| pprof::decode(bytes)) {
        Ok(columns) => columns,
        Err(error) if error.kind == pprof::DecodeErrorKind::NoSampleTypes => return Err(question.nothing_found()),
        Err(error) => return Err(error).context("the server's response is not a profile"),
    };
    if columns.get().sample_count() == 0 {
        return Err(question.nothing_found());
    }
    Ok(columns)
}

/// Returns the names of the sample types that every file has, sorted and distinct.
pub(super) fn type_names(files: &[ReadFile]) -> Vec<&str> {
    let mut names: Vec<&str> = files.first().map(ReadFile::type_names).unwrap_or_default();
    names.retain(|name| files.iter().all(|file| file.has(name)));
    names
}

/// Returns true if the files determine the default sample type: each file has one profile, or all profiles have the
/// same types.
pub(super) fn have_default(files: &[ReadFile]) -> bool {
    let mut all = files.iter().flat_map(|file| &file.profiles);
    let first = all.next().map(types);
    files.iter().all(|file| file.profiles.len() == 1) || all.all(|other| Some(types(other)) == first)
}

/// Merges the profiles that have the sample type `name`; every file must contain such a profile. Without a name, merges
/// all profiles if the files determine a default sample type.
pub(super) fn one_of(mut files: Vec<ReadFile>, name: Option<&str>) -> anyhow::Result<Loaded> {
    if let Some(name) = name {
        for file in &mut files {
            if !file.has(name) {
                let (path, type_names) = (file.path.display(), file.type_names().join(", "));
                bail!("{path}: it has no sample type `{name}`, only {type_names}");
            }
            file.profiles.retain(|profile| has(profile, name));
        }
    } else if !have_default(&files) {
        let names: BTreeSet<&str> = files.iter().flat_map(ReadFile::type_names).collect();
        bail!(
            "no sample type is given; the files have {}",
            Vec::from_iter(names).join(", ")
        );
    }
    let mut profiles: Vec<ImportedProfile> = files.into_iter().flat_map(|file| file.profiles).collect();
    let columns = if profiles.len() == 1 {
        profiles.remove(0).columns
    } else {
        let all: Vec<&Profile<'_>> = profiles.iter().map(|profile| profile.columns.get()).collect();
        let merged = combine(&all).context("the profiles cannot be merged")?;
        Columns::copied(merged.context("there is no profile")?)
    };
    let value = match name {
        Some(name) => sample_type(columns.get(), name)?,
        None => columns.get().default_value(),
    };
    Ok(Loaded { columns, value })
}

impl ReadFile {
    fn type_names(&self) -> Vec<&str> {
        let all = self.profiles.iter().flat_map(types).map(|kind| kind.kind);
        let names: BTreeSet<&str> = all.collect();
        names.into_iter().collect()
    }

    fn has(&self, name: &str) -> bool {
        self.profiles.iter().any(|profile| has(profile, name))
    }
}

fn has(profile: &ImportedProfile, name: &str) -> bool {
    types(profile).iter().any(|kind| kind.kind == name)
}

fn types(profile: &ImportedProfile) -> &[ValueType<'_>] {
    &profile.columns.get().sample_types
}

/// Returns the index of a sample type by its name.
fn sample_type(profile: &Profile<'_>, name: &str) -> anyhow::Result<usize> {
    let names: Vec<&str> = profile.sample_types.iter().map(|kind| kind.kind).collect();
    let index = names.iter().position(|kind| *kind == name);
    index.with_context(|| format!("the profile has no sample type `{name}`, only {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use alluvium_profile::pprof::Builder;

    /// Writes a file with a profile that has one sample.
    fn write(folder: &Path, name: &str, types: &[(&str, &str)], values: &[i64]) -> PathBuf {
        let mut builder = Builder::new(Profile {
            sample_types: types.iter().map(|(kind, unit)| ValueType { kind, unit }).collect(),
            ..Profile::default()
        });
        let stack = [builder.named("work")];
        builder.sample(stack, [], values);
        let path = folder.join(name);
        std::fs::write(&path, pprof::gzip(&pprof::encode(&builder.finish()))).unwrap();
        path
    }

    /// Returns the unit and the sum of the values of a type in files.
    async fn total(paths: &[&PathBuf], name: Option<&str>) -> Result<(String, i64), String> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).clone()).collect();
        let files = read_files(&paths).await.unwrap();
        let loaded = one_of(files, name).map_err(|error| format!("{error:#}"))?;
        let (profile, value) = (loaded.profile(), loaded.value());
        let values = (0..profile.sample_count()).map(|sample| profile.values_of(sample)[value]);
        Ok((loaded.kind().unit.to_owned(), values.sum()))
    }

    #[tokio::test]
    async fn files_are_merged_by_the_names_of_their_types_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, types: &[(&str, &str)], values: &[i64]| write(folder.path(), name, types, values);
        let (samples, cpu) = (("samples", "count"), ("cpu", "nanoseconds"));
        let one = file("one", &[samples, cpu], &[7, 70]);
        let other = file("other", &[cpu, samples], &[80, 8]);
        let coarse = file("coarse", &[("cpu", "microseconds")], &[3]);
        let heap = file("heap", &[("alloc_space", "bytes"), ("inuse_space", "bytes")], &[5, 6]);
        let in_use = file("inuse", &[("inuse_space", "bytes")], &[1]);
        let nanos = |value| Ok(("nanoseconds".to_owned(), value));
        assert_eq!(total(&[&one, &other], Some("cpu")).await, nanos(150));
        assert_eq!(total(&[&one, &coarse], Some("cpu")).await, nanos(3070));
        assert_eq!(total(&[&coarse, &one], Some("cpu")).await, nanos(3070));
        assert_eq!(
            total(&[&heap, &in_use], Some("inuse_space")).await,
            Ok(("bytes".to_owned(), 7))
        );
        assert_eq!(total(&[&heap, &in_use], None).await, Ok(("bytes".to_owned(), 7)));
        for (paths, name, expected) in [
            (
                &[&coarse][..],
                Some("inuse_space"),
                "coarse: it has no sample type `inuse_space`, only cpu",
            ),
            (
                &[&one, &heap],
                Some("cpu"),
                "heap: it has no sample type `cpu`, only alloc_space, inuse_space",
            ),
            (
                &[&one, &heap],
                None,
                "the profiles have no sample type in common: one has samples, cpu",
            ),
        ] {
            let error = total(paths, name).await.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn two_sides_of_a_comparison_get_one_unit() {
        let folder = tempfile::tempdir().unwrap();
        let load = async |name: &str, unit: &str, value: i64| {
            let path = write(folder.path(), name, &[("cpu", unit)], &[value]);
            one_of(read_files(&[path]).await.unwrap(), Some("cpu")).unwrap()
        };
        let (mut fine, mut coarse) = (load("fine", "ns", 5).await, load("coarse", "us", 5).await);
        fine.alike(&mut coarse).unwrap();
        assert_eq!((coarse.kind().unit, coarse.profile().values[0]), ("ns", 5000));
        assert_eq!((fine.kind().unit, fine.profile().values[0]), ("ns", 5));
        let error = load("count", "count", 5)
            .await
            .alike(&mut fine)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "cpu in count cannot be compared with cpu in ns");
    }
}
