//! `alluvium store`: checks, measures, repairs, merges and cleans a data folder without a server, and deletes profiles
//! from it.
//!
//! `check`, `stats` and `backup` change nothing and may run beside a server. The other commands need exclusive access
//! and fail with a message if a server uses the folder.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::cli::common::storage::StorageSource;
use crate::cli::common::{output, table, time};
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::maintenance::{Report, Work};
use crate::store::tables::bucket::BucketOptions;
use crate::store::tables::root::DataLocation;
use crate::store::tools::backup;
use crate::store::tools::findings::Checked;
use crate::store::tools::inspect;
use crate::store::tools::inspect::{Size, Stats};
use crate::store::tools::repair;
use crate::store::tools::repair::Action;
use crate::store::{Store, StoreConfig};
use alluvium_base::duration;
use alluvium_profile::{TenantId, TimeSpan};
use alluvium_telemetry::metrics::Scope;

/// Time limit of the flush that closes the store, for commands that write.
const CLOSE: Duration = Duration::from_mins(1);
/// Interval that disables scheduled maintenance, so that only the work of the command is done.
const NEVER: Duration = Duration::from_hours(8760);

/// Arguments of `alluvium store`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  alluvium store check /var/lib/alluvium")]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
    /// Output format of the result.
    #[arg(long, global = true, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Check the folder for damaged, missing and unneeded files. Fails if profiles are damaged. Changes nothing.
    Check(Folder),
    /// Remove unfinished writes, correct the logs of the tables, and put damaged records back into the log if this
    /// program can read them. Loses nothing and reports its changes.
    Repair {
        #[command(flatten)]
        folder: Folder,
        /// Accept that parts of the tables or of the log are missing. A server refuses to start on such a folder.
        /// With this flag, the repair marks the folder as complete, so a server starts with the remaining data.
        #[arg(long)]
        accept_loss: bool,
    },
    /// Copy the folder and check the copy; a server may write to the folder meanwhile. Tables in a bucket are not
    /// copied.
    Backup {
        #[command(flatten)]
        folder: Folder,
        /// Folder of the copy, which must not exist.
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
    /// Print sizes: tables, days, merge levels, bytes per value. Changes nothing.
    Stats(Folder),
    /// Merge all files that can be merged.
    Compact(Folder),
    /// Delete files that were removed from their table at least --grace ago.
    Vacuum {
        #[command(flatten)]
        folder: Folder,
        /// Grace period. Readers that opened the table before a file was removed may still need the file.
        #[arg(long, value_name = "DURATION", default_value = "1h")]
        grace: String,
    },
    /// Delete the profiles that match a selector.
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
struct Folder {
    /// The data folder of a server.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The bucket of the tables, as configured for the server.
    #[command(flatten)]
    storage: StorageSource,
}

#[derive(Debug, Args)]
struct DeleteArgs {
    #[command(flatten)]
    folder: Folder,
    /// Profiles to delete: `{label="value"}`, or `TYPE{label="value"}` with the id of a profile type; `{}` for all
    /// profiles.
    #[arg(long)]
    selector: String,
    /// Tenant whose profiles are deleted.
    #[arg(long, default_value_t = TenantId::anonymous())]
    tenant: TenantId,
    /// Start of the time range: `now-1h`, `2026-01-31T10:00:00Z`, `2026-01-31`, or a Unix time.
    #[arg(long, value_name = "TIME", default_value = "0")]
    from: String,
    /// End of the time range, not included, in the same forms as the start.
    #[arg(long, value_name = "TIME", default_value = "now")]
    to: String,
}

impl Folder {
    fn location<'a>(&'a self, bucket: Option<&'a BucketOptions>) -> DataLocation<'a> {
        DataLocation { dir: &self.dir, bucket }
    }
}

pub(in crate::cli) async fn run(args: StoreArgs) -> anyhow::Result<ExitCode> {
    let print = |answer: &Value, text: String| match args.format {
        Format::Json => output::write(format!("{answer:#}\n").as_bytes()),
        Format::Table => output::write(text.as_bytes()),
    };
    match args.command {
        StoreCommand::Check(folder) => {
            let bucket = folder.storage.bucket()?;
            let checked = inspect::check(folder.location(bucket.as_ref()))?;
            let answer = checked_json(&checked);
            print(&answer, checked_text(&checked, &answer)?)?;
            return Ok(if checked.has_errors() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            });
        }
        StoreCommand::Repair { folder, accept_loss } => {
            let bucket = folder.storage.bucket()?;
            let actions = repair::repair(folder.location(bucket.as_ref()), accept_loss)?;
            let checked = inspect::check(folder.location(bucket.as_ref()))?;
            let answer = json!({ "actions": actions_json(&actions), "left": checked_json(&checked) });
            let actions_text = if actions.is_empty() {
                "nothing to repair\n".to_owned()
            } else {
                table::from_json(answer["actions"].to_string().as_bytes())?
            };
            print(&answer, actions_text + &checked_text(&checked, &answer["left"])?)?;
            return Ok(if checked.has_errors() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            });
        }
        StoreCommand::Backup { folder, to } => {
            let bucket = folder.storage.bucket()?;
            let copied = backup::backup(folder.location(bucket.as_ref()), &to)?;
            // The tables in a bucket are not copied, and continue to change.
            let checked = match bucket {
                Some(_) => None,
                None => Some(inspect::check(&to)?),
            };
            let mut answer = json!({
                "segments": copied.segments,
                "files": copied.files,
                "bytes": copied.bytes,
                "attempts": copied.attempts,
            });
            let mut text = table::from_json(json!([answer]).to_string().as_bytes())?;
            match &checked {
                Some(checked) => {
                    answer["check"] = checked_json(checked);
                    text += &checked_text(checked, &answer["check"])?;
                }
                None => text += "the copy does not contain the tables, which are in the bucket\n",
            }
            print(&answer, text)?;
            if checked.is_some_and(|checked| checked.has_errors()) {
                return Ok(ExitCode::FAILURE);
            }
        }
        StoreCommand::Stats(folder) => {
            let bucket = folder.storage.bucket()?;
            let stats = inspect::stats(folder.location(bucket.as_ref()))?;
            let answer = stats_json(&stats);
            print(&answer, stats_text(&stats, &answer)?)?;
        }
        StoreCommand::Compact(folder) => {
            let report = maintain(&folder, Work::Compact).await?;
            print_report(&report, print)?;
        }
        StoreCommand::Vacuum { folder, grace } => {
            let grace = duration::parse(&grace).context("--grace")?;
            let report = maintain(&folder, Work::Vacuum(grace)).await?;
            print_report(&report, print)?;
        }
        StoreCommand::Delete(args) => {
            let now_ms = time::now_ms();
            let micros = |text: &str, flag: &'static str| {
                time::parse(text, now_ms)
                    .map(|ms| ms.saturating_mul(1000))
                    .context(flag)
            };
            let span = TimeSpan::new(micros(&args.from, "--from")?, micros(&args.to, "--to")?);
            let deletion = Deletion::new(args.tenant, args.selector, span);
            deletion.check()?;
            let report = maintain(&args.folder, Work::Delete(deletion)).await?;
            print_report(&report, print)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the folder with exclusive access and runs the work.
async fn maintain(folder: &Folder, work: Work) -> anyhow::Result<Report> {
    let dir = &folder.dir;
    // A mistyped path must not create a new data folder.
    std::fs::read_dir(dir).with_context(|| format!("cannot read the data folder {}", dir.display()))?;
    let mut config = StoreConfig::new(dir);
    config.maintenance.interval = NEVER;
    config.bucket = folder.storage.bucket()?;
    let store: Arc<Store> = tokio::task::spawn_blocking(move || Store::open(config, &Scope::new()))
        .await
        .context("cannot open the store")??;
    let report = store.maintain(work).await;
    let closed = store.close(CLOSE).await;
    let report = report?;
    closed?;
    Ok(report)
}

fn print_report(report: &Report, print: impl Fn(&Value, String) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let vacuumed = &report.vacuumed;
    let answer = json!({
        "jobs": report.jobs,
        "files_in": report.files_in,
        "files_out": report.files_out,
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "rows_in": report.rows_in,
        "rows_out": report.rows_out,
        "deleted_files": vacuumed.files,
        "deleted_bytes": vacuumed.bytes,
        "deleted_log_entries": vacuumed.entries,
        "waiting_files": vacuumed.waiting,
    });
    let text = table::from_json(json!([answer]).to_string().as_bytes())?;
    print(&answer, text)
}

fn checked_json(checked: &Checked) -> Value {
    let findings = checked.findings.iter().map(|finding| {
        json!({
            "severity": finding.severity.as_str(),
            "kind": finding.kind,
            "path": finding.path,
            "detail": finding.detail,
        })
    });
    json!({
        "findings": findings.collect::<Vec<_>>(),
        "segments": checked.segments,
        "records": checked.records,
        "files": checked.files,
        "bytes": checked.bytes,
    })
}

fn checked_text(checked: &Checked, answer: &Value) -> anyhow::Result<String> {
    let read = format!(
        "read {} files ({} bytes) and {} records in {} segments of the log\n",
        checked.files, checked.bytes, checked.records, checked.segments
    );
    if checked.findings.is_empty() {
        return Ok(format!("no findings\n{read}"));
    }
    Ok(table::from_json(answer["findings"].to_string().as_bytes())? + &read)
}

fn actions_json(actions: &[Action]) -> Value {
    actions
        .iter()
        .map(|action| json!({ "path": action.path, "done": action.done }))
        .collect()
}

fn size_json(size: &Size) -> Value {
    json!({ "files": size.files, "rows": size.rows, "bytes": size.bytes })
}

fn sizes_json<'a>(sizes: impl Iterator<Item = (String, &'a Size)>) -> serde_json::Map<String, Value> {
    sizes.map(|(name, size)| (name, size_json(size))).collect()
}

fn stats_json(stats: &Stats) -> Value {
    let days = stats.days.iter().map(|((tenant, day), size)| {
        json!({ "tenant": tenant, "day": day, "files": size.files, "rows": size.rows, "bytes": size.bytes })
    });
    json!({
        "layout_version": stats.layout,
        "bytes_per_value": stats.bytes_per_value(),
        "tables": sizes_json(stats.tables.iter().map(|(name, size)| ((*name).to_owned(), size))),
        "levels": sizes_json(stats.levels.iter().map(|(level, size)| (level.to_string(), size))),
        "days": days.collect::<Vec<_>>(),
        "dead": { "files": stats.dead.files, "bytes": stats.dead.bytes },
        "log": { "segments": stats.log.files, "bytes": stats.log.bytes },
    })
}

fn stats_text(stats: &Stats, answer: &Value) -> anyhow::Result<String> {
    let mut rows: Vec<Value> = Vec::new();
    let mut add = |part: String, size: &Size| {
        let per_row = size.bytes as f64 / size.rows.max(1) as f64;
        rows.push(json!({
            "part": part,
            "files": size.files,
            "rows": size.rows,
            "bytes": size.bytes,
            "bytes_a_row": format!("{per_row:.3}"),
        }));
    };
    for (name, size) in &stats.tables {
        add(format!("table {name}"), size);
    }
    for (level, size) in &stats.levels {
        add(format!("level {level}"), size);
    }
    let mut text = table::from_json(Value::Array(rows).to_string().as_bytes())?;
    text += &table::from_json(answer["days"].to_string().as_bytes())?;
    if let Some(bytes) = stats.bytes_per_value() {
        text += &format!("{bytes:.3} bytes per stored value, including all tables and names\n");
    }
    text += &format!(
        "{} files ({} bytes) wait for their deletion; the log has {} segments ({} bytes)\n",
        stats.dead.files, stats.dead.bytes, stats.log.files, stats.log.bytes
    );
    Ok(text)
}
