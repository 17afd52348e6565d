//! `alluvium upload`: sends pprof files to a server, one push for each file.
//!
//! Each file is parsed and checked before it is sent, so that an error names the file. Errors of the server are
//! reported too, and the other files are still sent. A progress bar is shown on a terminal.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::remote::{ServerArgs, call_error};
use crate::cli::time;
use crate::profile::labels::{PROFILE_NAME, SERVICE_NAME};
use crate::profile::pprof::{self, Profile};
use crate::profile::{Labels, RawProfile};
use crate::wire::push::PushClient;

/// Maximum uncompressed size of a profile: 256 MiB. The server has its own, smaller limit.
const MAX_PROFILE_BYTES: usize = 256 << 20;
/// Number of concurrent uploads.
const IN_FLIGHT: usize = 4;

/// Arguments of `alluvium upload`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium upload cpu.pb.gz --label service_name=shop --label region=eu\n  \
                        alluvium upload profiles/*.pb.gz --label service_name=shop --override-timestamp now-5m"
)]
pub struct UploadArgs {
    /// pprof files, gzip-compressed or not.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Name of the profiles (`__name__`): process_cpu, memory, ...; by default from the sample types.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Label of the series; may be given many times. `service_name` is the name of the file's program unless it is
    /// among them.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,
    /// Time to give the profiles instead of their own: `now`, `now-5m`, RFC 3339, or a Unix time.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "now")]
    pub override_timestamp: Option<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Sends the files; fails when one was refused.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "says what became of each file")]
pub async fn run(args: UploadArgs) -> anyhow::Result<()> {
    // The bar is hidden when standard error is not a terminal.
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {wide_msg}")?;
    let bar = ProgressBar::new(args.files.len() as u64).with_style(style);
    let refused = upload(&args, |path| {
        bar.set_message(path.display().to_string());
        bar.inc(1);
    })
    .await;
    bar.finish_and_clear();
    let refused = refused?;
    for (path, error) in &refused {
        eprintln!("{}: {error:#}", path.display());
    }
    let count = args.files.len();
    println!(
        "uploaded {} of {count} files to {}",
        count - refused.len(),
        args.server.url
    );
    if !refused.is_empty() {
        bail!("{} of {count} files were refused", refused.len());
    }
    Ok(())
}

/// Sends the files, calls `done` after each, and returns the refused files with the reason, in the order of the
/// arguments.
pub async fn upload(args: &UploadArgs, mut done: impl FnMut(&Path)) -> anyhow::Result<Vec<(PathBuf, anyhow::Error)>> {
    let time_nanos = match &args.override_timestamp {
        Some(text) => {
            let ms = time::parse(text, time::now_ms()).context("--override-timestamp")?;
            Some(ms.saturating_mul(1_000_000))
        }
        None => None,
    };
    let client = PushClient::new(args.server.caller().await?);
    let sends = args.files.iter().enumerate().map(|(index, path)| {
        let client = &client;
        async move {
            let sent = async {
                let packed = tokio::fs::read(path).await.context("cannot read the file")?;
                let profile = prepare(packed.into(), args, time_nanos)?;
                client.push(&[profile]).await.map_err(call_error)?;
                anyhow::Ok(())
            };
            (index, path, sent.await)
        }
    });
    let mut results = futures::stream::iter(sends).buffer_unordered(IN_FLIGHT);
    let mut refused = Vec::new();
    while let Some((index, path, result)) = results.next().await {
        done(path);
        if let Err(error) = result {
            refused.push((index, path.clone(), error));
        }
    }
    refused.sort_by_key(|(index, _, _)| *index);
    Ok(refused.into_iter().map(|(_, path, error)| (path, error)).collect())
}

/// Checks a file's contents and adds labels.
fn prepare(packed: Bytes, args: &UploadArgs, time_nanos: Option<i64>) -> anyhow::Result<RawProfile> {
    let plain = pprof::gunzip(&packed, MAX_PROFILE_BYTES)?;
    let mut profile = pprof::decode(&plain)?;
    let name = match &args.name {
        Some(name) => name.as_str(),
        None => name_of(&profile)?,
    };
    let service = profile.mappings.first().map_or("", |mapping| mapping.file);
    let service = service.rsplit('/').next().unwrap_or(service);
    let given = args.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let labels = Labels::from_pairs(
        [(SERVICE_NAME, service)]
            .into_iter()
            .chain(given)
            .chain([(PROFILE_NAME, name)]),
    );
    let pprof = match time_nanos {
        Some(time_nanos) => {
            profile.time_nanos = time_nanos;
            pprof::gzip(&pprof::encode(&profile)).into()
        }
        None => packed,
    };
    Ok(RawProfile {
        labels,
        id: uuid::Uuid::new_v4().to_string().into(),
        pprof,
    })
}

/// The name of a profile from its sample types, by the rules of `/ingest`: `wall`, else the first type that contains
/// CPU, memory, mutex, block or goroutines, else the last type.
fn name_of<'a>(profile: &Profile<'a>) -> anyhow::Result<&'a str> {
    let kinds = || profile.sample_types.iter().map(|kind| kind.kind);
    if kinds().any(|kind| kind == "wall") {
        return Ok("wall");
    }
    if kinds().eq(["contentions", "delay"]) {
        bail!("Go's mutex and block profiles look alike: add --name mutex or --name block");
    }
    let known = |kind: &str| {
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
        .find_map(known)
        .or_else(|| kinds().next_back())
        .unwrap_or_default())
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
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

    #[test]
    fn name_and_service_are_told_from_the_profile_unless_given() {
        let cpu = fixture("go-cpu.pb.gz");
        let profile = prepare(cpu.clone(), &args(&[]), None).unwrap();
        assert_eq!(
            profile.labels.to_string(),
            r#"{__name__="process_cpu", service_name="busy"}"#
        );
        assert_eq!(profile.pprof, cpu);
        let given = args(&["--name", "x", "--label", "service_name=shop", "--label", "a=b=c"]);
        let profile = prepare(cpu, &given, None).unwrap();
        assert_eq!(
            profile.labels.to_string(),
            r#"{__name__="x", a="b=c", service_name="shop"}"#
        );
        let heap = prepare(fixture("go-allocs.pb.gz"), &args(&[]), None).unwrap();
        assert_eq!(heap.labels.get(PROFILE_NAME), Some("memory"));
        let error = prepare(fixture("go-mutex.pb.gz"), &args(&[]), None).unwrap_err();
        assert!(error.to_string().contains("--name mutex"), "{error}");
    }

    #[test]
    fn the_time_is_overridden_and_nothing_else() {
        let cpu = fixture("go-cpu.pb.gz");
        let changed = prepare(cpu.clone(), &args(&[]), Some(5)).unwrap();
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
        let error = prepare(Bytes::from_static(b"<html>"), &args(&[]), None).unwrap_err();
        assert!(error.to_string().starts_with("malformed profile at byte 1"), "{error}");
        assert!(parse_label("novalue").is_err());
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_does_not_stop_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.pb.gz");
        std::fs::write(&text, "text").unwrap();
        let mut args = args(&["--url", "http://127.0.0.1:1"]);
        args.files = vec![folder.path().join("missing"), text];
        let mut seen = 0;
        let refused = upload(&args, |_| seen += 1).await.unwrap();
        assert_eq!((seen, refused.len()), (2, 2));
        assert!(format!("{:#}", refused[0].1).contains("cannot read the file"));
    }
}
