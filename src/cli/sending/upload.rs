//! `alluvium upload`, also `alluvium import`: sends profile files to a server, one push for each file.
//!
//! The format of each file is recognized by its content. The file is read and checked before it is sent, so that an
//! error names the file. If the server refuses a file, the other files are still sent. A terminal shows a progress bar.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::common::flag_error::FlagError;
use crate::cli::common::remote::{ServerArgs, call_error};
use crate::cli::common::{content, folder, output, plain, time};
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::pprof::{self, Profile};
use alluvium_profile::{Labels, RawProfile, format};
use alluvium_wire::files::{self, FileFormat, ImportedProfile};
use alluvium_wire::push::PushClient;

/// Maximum uncompressed size of a file: 256 MiB. The server has its own, smaller limit.
const MAX_FILE_BYTES: usize = 256 << 20;
/// Number of concurrent uploads.
const IN_FLIGHT: usize = 4;

/// Arguments of `alluvium upload`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium upload cpu.pb.gz --label service_name=shop --label region=eu\n  \
                        alluvium upload profiles/ perf.txt app.cpuprofile --label service_name=shop\n  \
                        alluvium upload profiles/*.pb.gz --label service_name=shop --override-timestamp now-5m"
)]
pub struct UploadArgs {
    /// Profile files, gzip-compressed or not, and folders of them.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Name of the profiles (`__name__`): process_cpu, memory, ... Defaults to a name that follows from the sample
    /// types.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Label of the series; may be repeated. `service_name` defaults to the program that the profile names, or else to
    /// the name of the file.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,
    /// Time of the profiles, instead of their own time: `now`, `now-5m`, RFC 3339, or a Unix time. Profiles without a
    /// time get the current time.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "now")]
    pub override_timestamp: Option<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The result for one file of the command line.
#[derive(Debug)]
pub struct Sent {
    pub path: PathBuf,
    /// For each profile of the file, a line that describes the profile; or the reason why the file was not uploaded.
    pub result: anyhow::Result<Vec<String>>,
}

/// Sends the files. Returns an error if the server did not accept all files.
#[expect(clippy::print_stderr, reason = "says which files were refused")]
pub async fn run(mut args: UploadArgs) -> anyhow::Result<()> {
    args.files = folder::files(&args.files)?;
    // The bar is hidden when standard error is not a terminal.
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {wide_msg}")?;
    let bar = ProgressBar::new(args.files.len() as u64).with_style(style);
    let (mut refused, mut print_result) = (0, Ok(()));
    upload(&args, |sent| {
        let path = plain::line(&sent.path.display().to_string());
        bar.set_message(path.clone());
        bar.suspend(|| match &sent.result {
            Ok(lines) => {
                let lines = lines.iter().map(|line| format!("{path}: {}\n", plain::line(line)));
                let written = output::write(lines.collect::<String>().as_bytes());
                if print_result.is_ok() {
                    print_result = written;
                }
            }
            Err(error) => {
                refused += 1;
                eprintln!("{path}: {}", plain::lines(&format!("{error:#}")));
            }
        });
        bar.inc(1);
    })
    .await?;
    bar.finish_and_clear();
    let count = args.files.len();
    let summary = format!("uploaded {} of {count} files to {}\n", count - refused, args.server.url);
    print_result.and_then(|()| output::write(summary.as_bytes()))?;
    if refused > 0 {
        bail!("{refused} of {count} files were refused");
    }
    Ok(())
}

/// Sends the files, and calls `report` for each file when its result is known.
pub async fn upload(args: &UploadArgs, mut report: impl FnMut(Sent)) -> anyhow::Result<()> {
    let now_ms = time::now_ms();
    let time_nanos = match &args.override_timestamp {
        Some(text) => {
            let ms = time::parse(text, now_ms).context("--override-timestamp")?;
            Time::Fixed(ms.saturating_mul(1_000_000))
        }
        None => Time::OwnOr(now_ms.saturating_mul(1_000_000)),
    };
    let client = PushClient::new(args.server.caller().await?);
    let sends = args.files.iter().map(|path| {
        let client = &client;
        async move {
            let sent = async {
                let content = content::read(path, MAX_FILE_BYTES).await?;
                let (profiles, lines) = prepare(path, &content, args, time_nanos)?;
                client.push(&profiles).await.map_err(call_error)?;
                anyhow::Ok(lines)
            };
            Sent {
                result: sent.await,
                path: path.clone(),
            }
        }
    });
    let mut results = futures::stream::iter(sends).buffer_unordered(IN_FLIGHT);
    while let Some(sent) = results.next().await {
        report(sent);
    }
    Ok(())
}

/// Time of the profiles, in Unix nanoseconds.
#[derive(Debug, Clone, Copy)]
enum Time {
    /// This time replaces the profile's own time.
    Fixed(i64),
    /// The profile keeps its own time. A profile without a time gets this time.
    OwnOr(i64),
}

/// Reads a file and adds labels. Returns the profiles, and for each profile a line that describes the profile.
fn prepare(
    path: &Path,
    content: &Bytes,
    args: &UploadArgs,
    time: Time,
) -> anyhow::Result<(Vec<RawProfile>, Vec<String>)> {
    let imported = files::read(content, MAX_FILE_BYTES)?;
    let (mut profiles, mut lines) = (Vec::new(), Vec::new());
    for mut profile in imported.profiles {
        let labels = labels(path, &profile, args.name.as_deref(), &args.labels)?;
        lines.push(line(imported.format, &profile));
        let own = profile.columns.get().time_nanos;
        let time_nanos = match time {
            Time::Fixed(time) => time,
            Time::OwnOr(time) if own == 0 => time,
            Time::OwnOr(_) => own,
        };
        if time_nanos != own {
            profile.columns.change(|profile| profile.time_nanos = time_nanos);
            profile.pprof = None;
        }
        let encoded = || pprof::gzip(&pprof::encode(profile.columns.get())).into();
        profiles.push(RawProfile {
            labels,
            id: uuid::Uuid::new_v4().to_string().into(),
            pprof: profile.pprof.clone().unwrap_or_else(encoded),
        });
    }
    Ok((profiles, lines))
}

/// Returns the labels of a profile of the file at `path`.
pub(in crate::cli) fn labels(
    path: &Path,
    profile: &ImportedProfile,
    name: Option<&str>,
    extra_labels: &[(String, String)],
) -> anyhow::Result<Labels> {
    let columns = profile.columns.get();
    let name = match (name, profile.name.as_str()) {
        (Some(name), _) => name,
        (None, "") => name_of(columns)?,
        (None, name) => name,
    };
    // In pprof the first binary is the program. In other formats the binaries have no defined order.
    let program = columns.mappings.first().filter(|_| profile.pprof.is_some());
    let program = program.map_or("", |mapping| mapping.file);
    let program = program.rsplit('/').next().unwrap_or(program);
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let service = match program {
        "" => file.split('.').next().unwrap_or_default(),
        program => program,
    };
    let pairs = profile.labels.iter().chain(extra_labels);
    let pairs = pairs.map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(Labels::from_pairs(
        [(SERVICE_NAME, service)]
            .into_iter()
            .chain(pairs)
            .chain([(PROFILE_NAME, name)]),
    ))
}

/// Describes a profile: format, number of samples, and the sum of each sample type.
fn line(format: FileFormat, profile: &ImportedProfile) -> String {
    let profile = profile.columns.get();
    let width = profile.sample_types.len().max(1);
    let totals = profile.sample_types.iter().enumerate().map(|(index, kind)| {
        let values = profile.values.iter().skip(index).step_by(width);
        let total = values.fold(0, |total: i64, value| total.saturating_add(*value));
        format!("{} in {} {}", kind.kind, kind.unit, format::value(total, kind.unit))
    });
    let totals: Vec<String> = totals.collect();
    format!("{format}, {} samples, {}", profile.sample_count(), totals.join(", "))
}

/// Returns the name of a profile from its sample types, by the rules of `/ingest`. If a type is `wall`, the name is
/// `wall`. Otherwise the first type of a CPU, memory, mutex, block or goroutine profile determines the name. If there
/// is no such type, the name is the last type.
fn name_of<'a>(profile: &Profile<'a>) -> anyhow::Result<&'a str> {
    let kinds = || profile.sample_types.iter().map(|kind| kind.kind);
    if kinds().any(|kind| kind == "wall") {
        return Ok("wall");
    }
    if kinds().eq(["contentions", "delay"]) {
        bail!("cannot tell Go's mutex and block profiles apart: add --name mutex or --name block");
    }
    let profile_name = |kind: &str| {
        let has = |part: &str| kind.contains(part);
        Some(match kind {
            _ if has("cpu") => "process_cpu",
            _ if has("alloc_") || has("inuse_") || matches!(kind, "space" | "objects") => "memory",
            _ if has("mutex_") => "mutex",
            _ if has("block_") => "block",
            _ if has("goroutine") => "goroutine",
            _ => return None,
        })
    };
    Ok(kinds()
        .find_map(profile_name)
        .or_else(|| kinds().next_back())
        .unwrap_or_default())
}

fn parse_label(text: &str) -> Result<(String, String), FlagError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(FlagError::Label),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        upload: UploadArgs,
    }

    fn args(words: &[&str]) -> UploadArgs {
        Command::try_parse_from(["upload", "x.pb.gz"].iter().chain(words))
            .unwrap()
            .upload
    }

    fn fixture(name: &str) -> Bytes {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/integration/fixtures/pprof/");
        std::fs::read(format!("{folder}{name}")).unwrap().into()
    }

    /// Returns labels and bytes of the only profile of a file.
    fn one(name: &str, content: Bytes, args: &UploadArgs, time: Time) -> anyhow::Result<RawProfile> {
        let (mut profiles, _) = prepare(Path::new(name), &content, args, time)?;
        assert_eq!(profiles.len(), 1);
        Ok(profiles.remove(0))
    }

    #[test]
    fn name_and_service_are_told_from_the_profile_unless_given() {
        let own = Time::OwnOr(1);
        let cpu = fixture("go-cpu.pb.gz");
        let profile = one("x.pb.gz", cpu.clone(), &args(&[]), own).unwrap();
        assert_eq!(
            profile.labels.to_string(),
            r#"{__name__="process_cpu", service_name="busy"}"#
        );
        assert_eq!(profile.pprof, cpu);
        let options = args(&["--name", "x", "--label", "service_name=shop", "--label", "a=b=c"]);
        let profile = one("x.pb.gz", cpu, &options, own).unwrap();
        assert_eq!(
            profile.labels.to_string(),
            r#"{__name__="x", a="b=c", service_name="shop"}"#
        );
        let heap = one("x.pb.gz", fixture("go-allocs.pb.gz"), &args(&[]), own).unwrap();
        assert_eq!(heap.labels.get(PROFILE_NAME), Some("memory"));
        let error = one("x.pb.gz", fixture("go-mutex.pb.gz"), &args(&[]), own).unwrap_err();
        assert!(error.to_string().contains("--name mutex"), "{error}");
    }

    #[test]
    fn a_file_of_another_format_is_named_after_itself_and_said_what_it_is() {
        let folded = Bytes::from_static(b"main;work 3\nmain 1\n");
        let (profiles, lines) = prepare(Path::new("a/shop.folded"), &folded, &args(&[]), Time::OwnOr(9)).unwrap();
        assert_eq!(lines, ["folded stacks, 2 samples, samples in count 4"]);
        assert_eq!(
            profiles[0].labels.to_string(),
            r#"{__name__="process_cpu", service_name="shop"}"#
        );
        let plain = pprof::gunzip(&profiles[0].pprof, 1 << 20).unwrap();
        assert_eq!(pprof::decode(&plain).unwrap().time_nanos, 9);
    }

    #[test]
    fn the_time_is_overridden_and_nothing_else() {
        let cpu = fixture("go-cpu.pb.gz");
        let changed = one("x.pb.gz", cpu.clone(), &args(&[]), Time::Fixed(5)).unwrap();
        let (before, after) = (
            pprof::gunzip(&cpu, 1 << 20).unwrap(),
            pprof::gunzip(&changed.pprof, 1 << 20).unwrap(),
        );
        let mut before = pprof::decode(&before).unwrap();
        before.time_nanos = 5;
        assert_eq!(pprof::decode(&after).unwrap(), before);
    }

    #[test]
    fn what_is_no_profile_is_refused_before_it_is_sent() {
        let error = one("x.pb.gz", Bytes::from_static(b"<html>"), &args(&[]), Time::Fixed(5)).unwrap_err();
        assert!(
            error.to_string().starts_with("this is HTML, which is not supported"),
            "{error}"
        );
        assert!(parse_label("novalue").is_err());
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_does_not_stop_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.pb.gz");
        std::fs::write(&text, "text").unwrap();
        let mut args = args(&["--url", "http://127.0.0.1:1"]);
        args.files = vec![folder.path().join("missing"), text];
        let mut refused = Vec::new();
        upload(&args, |sent| refused.extend(sent.result.err())).await.unwrap();
        let mut refused: Vec<String> = refused.iter().map(|error| format!("{error:#}")).collect();
        refused.sort();
        assert_eq!(refused.len(), 2);
        assert!(refused[0].starts_with("cannot read the file"), "{refused:?}");
        assert!(
            refused[1].starts_with("the format of this file is unknown"),
            "{refused:?}"
        );
    }
}
