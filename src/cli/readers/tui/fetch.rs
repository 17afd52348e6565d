//! Source of pictures: a server that is queried repeatedly, or files.
//!
//! In: flags. Out: pictures and the available profile types. A source stores only the query, not the profiles.

use std::path::PathBuf;

use anyhow::Context;
use tokio::task::JoinError;

use crate::cli::common::plain;
use crate::cli::common::remote::{QueryArgs, Question, ServerArgs, call_error};
use crate::cli::common::time;
use crate::cli::common::time::{RangeArgs, now_ms};
use crate::cli::readers::source;
use crate::cli::readers::source::{Loaded, SourceArgs};
use crate::cli::readers::tui::picture::Picture;
use alluvium_profile::selector::{self, Matcher};
use alluvium_profile::{ProfileType, format};

/// The query, without the profile type.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Server {
        server: ServerArgs,
        range: RangeArgs,
        matchers: Vec<Matcher>,
    },
    Files(Vec<PathBuf>),
}

impl Source {
    /// Returns the source that the flags name, and the type of the first picture. If the flags name a server but no
    /// type, the type is CPU time or, without CPU profiles, the first type that the server lists. If the flags name
    /// files but no type, the type is `None`.
    pub(super) async fn open(args: SourceArgs) -> anyhow::Result<(Self, Option<String>)> {
        let SourceArgs { query, files, server } = args;
        if !files.is_empty() {
            return Ok((Self::Files(files), query.selector));
        }
        let query = if query.has_type()? {
            query
        } else {
            let (start, end) = query.range.range(now_ms())?;
            let types = types(&server, start, end).await?;
            let is_cpu = |kind: &&ProfileType| kind.name == "process_cpu" && kind.sample_type == "cpu";
            let chosen = types.iter().find(is_cpu).or(types.first());
            let chosen = chosen.with_context(|| {
                let [start, end] = [start, end].map(time::format);
                format!("no profiles from {start} until {end}")
            })?;
            QueryArgs {
                profile_type: Some(chosen.to_string()),
                ..query
            }
        };
        let question = query.question(now_ms())?;
        let source = Self::Server {
            server,
            range: query.range,
            matchers: question.matchers,
        };
        Ok((source, Some(question.profile_type.to_string())))
    }

    /// Returns the part of the title after the profile type.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Server { matchers, .. } => plain::line(&selector::format(matchers)),
            Self::Files(files) => {
                let names = files.iter().map(|path| {
                    let name = path.file_name().unwrap_or(path.as_os_str());
                    name.to_string_lossy().into_owned()
                });
                plain::line(&format!(" {}", names.collect::<Vec<_>>().join(", ")))
            }
        }
    }

    /// Returns true if new data may arrive without user action.
    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Computes the current picture of a type.
    pub(super) async fn picture(self, kind: Option<String>) -> anyhow::Result<Picture> {
        let (loaded, kind, time) = match self {
            Self::Server {
                server,
                range,
                matchers,
            } => {
                let kind = kind.context("no profile type is given")?;
                let (start_ms, end_ms) = range.range(now_ms())?;
                let question = Question {
                    profile_type: kind.parse().with_context(|| format!("invalid profile type `{kind}`"))?,
                    matchers,
                    start_ms,
                    end_ms,
                };
                let loaded = source::of_server(&server, &question).await?;
                let [start, end] = [start_ms, end_ms].map(time::format);
                (loaded, Some(kind), format!("{start} to {end}"))
            }
            Self::Files(files) => {
                let files = source::read_files(&files).await?;
                let first = source::type_names(&files).first().map(ToString::to_string);
                let kind = kind.or(first.filter(|_| !source::have_default(&files)));
                let loaded = source::one_of(files, kind.as_deref())?;
                let time = recording_time(&loaded);
                (loaded, None, time)
            }
        };
        let drawn = tokio::task::spawn_blocking(move || Picture::of(&loaded, kind, time));
        joined(drawn.await)
    }

    /// Returns the available profile types.
    pub(super) async fn types(self) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Server { server, range, .. } => {
                let (start, end) = range.range(now_ms())?;
                let types = types(&server, start, end).await?;
                let mut names: Vec<String> = types.iter().map(ToString::to_string).collect();
                names.sort();
                Ok(names)
            }
            Self::Files(files) => {
                let files = source::read_files(&files).await?;
                Ok(source::type_names(&files).iter().map(ToString::to_string).collect())
            }
        }
    }
}

/// Returns the result of a blocking task. If the blocking task panicked, the caller panics as well: the panic hook has
/// restored the terminal by then, so the command must end.
fn joined<T>(result: Result<T, JoinError>) -> anyhow::Result<T> {
    match result.map_err(JoinError::try_into_panic) {
        Ok(value) => Ok(value),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(error)) => Err(error).context("cannot make a picture of the profile"),
    }
}

async fn types(server: &ServerArgs, start_ms: i64, end_ms: i64) -> anyhow::Result<Vec<ProfileType>> {
    let client = server.querier().await?;
    client.profile_types(start_ms, end_ms).await.map_err(call_error)
}

/// Formats the time and the duration of a file's profile.
fn recording_time(loaded: &Loaded) -> String {
    let profile = loaded.profile();
    let mut parts = Vec::new();
    if profile.time_nanos != 0 {
        parts.push(time::format(profile.time_nanos / 1_000_000));
    }
    if profile.duration_nanos != 0 {
        parts.push(format::value(profile.duration_nanos, "nanoseconds"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::readers::tui::graph::ROOT;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        source: SourceArgs,
    }

    fn args(words: &[&str]) -> SourceArgs {
        Command::try_parse_from([&["tui"], words].concat()).unwrap().source
    }

    const FILE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/integration/fixtures/pprof/go-allocs.pb.gz"
    );

    #[tokio::test]
    async fn a_file_has_types_and_a_picture_of_each() {
        let (source, kind) = Source::open(args(&["--file", FILE])).await.unwrap();
        assert_eq!(
            (source.title().as_str(), kind.as_deref(), source.is_live()),
            (" go-allocs.pb.gz", None, false)
        );
        let types = source.clone().types().await.unwrap();
        assert_eq!(types, ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]);
        let picture = source.clone().picture(None).await.unwrap();
        assert_eq!((picture.kind.as_str(), picture.unit.as_str()), ("alloc_space", "bytes"));
        assert!(picture.time.starts_with("20"), "{}", picture.time);
        let objects = source.clone().picture(Some("alloc_objects".to_owned())).await.unwrap();
        assert_eq!(objects.unit, "count");
        assert_ne!(objects.graph.frame(ROOT).total, picture.graph.frame(ROOT).total);
        let error = source.picture(Some("cpu".to_owned())).await.unwrap_err();
        assert!(error.to_string().contains("no sample type `cpu`"), "{error}");
    }

    #[tokio::test]
    async fn a_panic_of_a_thread_ends_its_task() {
        let thread = tokio::task::spawn_blocking(|| panic!("of a test"));
        let task = tokio::spawn(async { joined::<()>(thread.await) });
        assert!(task.await.unwrap_err().is_panic());
        let handle = tokio::task::spawn_blocking(|| 7);
        assert_eq!(joined(handle.await).unwrap(), 7);
    }

    #[tokio::test]
    async fn files_without_a_type_in_common_are_no_picture() {
        let cpu = FILE.replace("go-allocs", "go-cpu");
        let (source, kind) = Source::open(args(&["--file", FILE, "--file", &cpu])).await.unwrap();
        let error = source.picture(kind).await.map(drop).unwrap_err();
        assert!(format!("{error:#}").contains("no sample type in common"), "{error:#}");
    }

    #[tokio::test]
    async fn a_selector_keeps_its_conditions_when_the_type_changes() {
        let (source, kind) = Source::open(args(&["cpu{service_name=\"shop\"}"])).await.unwrap();
        assert_eq!(kind.as_deref(), Some("process_cpu:cpu:nanoseconds:cpu:nanoseconds"));
        assert_eq!(
            (source.title().as_str(), source.is_live()),
            ("{service_name=\"shop\"}", true)
        );
        assert!(Source::open(args(&["cpu{a}"])).await.is_err());
    }
}
