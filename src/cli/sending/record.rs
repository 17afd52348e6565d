//! `alluvium record`: profiles a command, a process or the whole machine from the terminal, as `perf record` does.
//!
//! The command needs no server and no configuration: the profiler of `pyroscope.ebpf` runs in this process, and one
//! file is written atomically at the end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use clap::Args;

use crate::cli::common::flag_error::FlagError;
use crate::cli::common::{output, plain};
use alluvium_base::duration;
use alluvium_ebpf::{
    Budget, Choice, Engine, NameCache, Namer, Omission, Opener, ProcessInfo, Profiler, Refusal, Scope, Settings, Span,
    Stacks, Style, Window,
};
use alluvium_profile::flamegraph::{SvgOptions, Tree, svg};
use alluvium_profile::pprof;
use alluvium_profile::top::TopTable;
use alluvium_symbols::Demangle;
use alluvium_unwind::Stop;

/// Arguments of `alluvium record`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium record -- make -j2\n  alluvium record --pid 1234 -d 30s -o busy.svg\n  \
                        alluvium record --all -d 10s -o machine.pb.gz && go tool pprof -http : machine.pb.gz"
)]
pub struct RecordArgs {
    /// Profile this process and the processes that it starts.
    #[arg(short, long, conflicts_with_all = ["all", "command"])]
    pub pid: Option<u32>,
    /// Profile the whole machine.
    #[arg(short, long, conflicts_with = "command")]
    pub all: bool,
    /// Length of the recording, as in `30s` or `1m30s`. By default, the recording lasts until the command or process
    /// ends, or until Ctrl-C.
    #[arg(short, long, value_parser = duration::parse)]
    pub duration: Option<Duration>,
    /// File to write: `.pb.gz` (pprof), `.pb`, `.svg` (flame graph) or `.folded` (one stack per line); `-` writes
    /// `.folded` to standard output.
    #[arg(short, long, value_name = "FILE", default_value = "profile.pb.gz")]
    pub output: PathBuf,
    /// Number of ticks per second of busy time on each CPU.
    #[arg(
        short = 'F', long, value_name = "HERTZ", default_value_t = 99,
        value_parser = clap::value_parser!(u32).range(1..=10000)
    )]
    pub frequency: u32,
    /// Omit kernel stacks from the profile.
    #[arg(long)]
    pub no_kernel: bool,
    /// Form of C++ and Rust names: none, simplified, templates or full.
    #[arg(long, default_value = "templates", value_parser = parse_demangle)]
    pub demangle: Demangle,
    /// Maximum CPU usage of profiling, in percent of one CPU. Above this limit, the profiler lowers the frequency, and
    /// each sample stands for more time.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub cpu_budget: Option<f64>,
    /// Maximum memory of unwind tables, names and buffers, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..))]
    pub memory_budget: u32,
    /// Record stacks with perf events, without a BPF program. The command does so even without this flag if the kernel
    /// refuses BPF programs.
    #[arg(long)]
    pub no_bpf: bool,
    /// Number of rows of the table that is printed at the end; 0 for none.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
    /// The command to run and profile.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn parse_demangle(text: &str) -> Result<Demangle, FlagError> {
    Demangle::parse(text).ok_or(FlagError::Demangle)
}

fn parse_percent(text: &str) -> Result<f64, FlagError> {
    text.parse()
        .ok()
        .filter(|percent: &f64| percent.is_finite() && *percent > 0.0)
        .ok_or(FlagError::Percent)
}

/// Interval between two checks for the end of the recording.
const POLL: Duration = Duration::from_millis(100);

/// Records and writes the file. If the exit status of the profiled command is not 0, returns an error that reports it.
#[expect(
    clippy::print_stderr,
    reason = "the summary is for people; standard output may be the file"
)]
pub(crate) async fn run(args: RecordArgs) -> anyhow::Result<()> {
    if args.pid.is_none() && !args.all && args.command.is_empty() {
        bail!("nothing to record: give a command after `--`, or --pid, or --all");
    }
    let form = Form::of(&args.output)?;
    let stop = tokio_util::sync::CancellationToken::new();
    let interrupt = tokio::spawn({
        let stop = stop.clone();
        async move {
            // Without a handler, Ctrl-C would lose the recording.
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.cancel();
            }
        }
    });
    let (bytes, summary) = tokio::task::spawn_blocking(move || record(&args, form, &stop).map(|result| (result, args)))
        .await
        .context("the recording thread failed")?
        .map(|((bytes, summary), args)| ((bytes, args.output), summary))?;
    interrupt.abort();
    let (bytes, path) = bytes;
    if form == Form::FoldedToOutput {
        output::write_text(&bytes)?;
    } else {
        output::write_file(&path, &bytes)?;
    }
    eprint!("{}", plain::lines(&summary.text));
    if form != Form::FoldedToOutput {
        eprintln!("wrote {}", path.display());
    }
    match summary.failed {
        Some(status) => Err(anyhow!("the command ended with {status}")),
        None => Ok(()),
    }
}

/// Format of the output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    PprofGzip,
    Pprof,
    Svg,
    Folded,
    FoldedToOutput,
}

impl Form {
    fn of(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(if path.as_os_str() == "-" {
            Self::FoldedToOutput
        } else if name.ends_with(".gz") {
            Self::PprofGzip
        } else if name.ends_with(".pb") || name.ends_with(".pprof") {
            Self::Pprof
        } else if name.ends_with(".svg") {
            Self::Svg
        } else if name.ends_with(".folded") || name.ends_with(".collapsed") {
            Self::Folded
        } else {
            bail!("cannot determine the format of {name}: it must end with .pb.gz, .pb, .svg or .folded");
        })
    }
}

struct Summary {
    text: String,
    failed: Option<std::process::ExitStatus>,
}

fn record(
    args: &RecordArgs,
    form: Form,
    stop: &tokio_util::sync::CancellationToken,
) -> anyhow::Result<(Vec<u8>, Summary)> {
    let scope = match args.pid {
        Some(pid) => Scope::Process(pid),
        None if args.all => Scope::All,
        None => Scope::ChildrenOf(std::process::id()),
    };
    if let Some(pid) = args.pid
        && !Path::new(&format!("/proc/{pid}")).exists()
    {
        bail!("there is no process {pid}");
    }
    let profiler = Profiler::start(Settings {
        hertz: args.frequency,
        kernel_stacks: !args.no_kernel,
        scope,
        budget: Budget::new((args.memory_budget as usize) << 20),
        cpu_limit: args.cpu_budget.map(|percent| percent / 100.0),
        engine: if args.no_bpf { Choice::Events } else { Choice::Best },
        ..Settings::default()
    })
    .context("cannot start the profiler")?;
    let engine = profiler.engine().clone();
    let opener = profiler.opener().clone();
    let started = (Instant::now(), SystemTime::now());
    let mut child = start_command(&args.command)?;
    let mut status = None;
    loop {
        std::thread::sleep(POLL);
        if let Some(running) = &mut child
            && let Some(ended) = running.try_wait().context("cannot wait for the command")?
        {
            status = Some(ended);
            break;
        }
        let is_over = args.duration.is_some_and(|duration| started.0.elapsed() >= duration)
            || args.pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if is_over || stop.is_cancelled() {
            break;
        }
    }
    let elapsed = started.0.elapsed();
    let window = profiler.finish()?;
    let span = Span {
        start_nanos: started
            .1
            .duration_since(UNIX_EPOCH)
            .map_or(0, |duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)),
        duration_nanos: i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX),
        period_nanos: window.period_nanos(),
    };
    let bytes = name_all(&window, &opener, span, args);
    let decoded = pprof::decode(&bytes).context("cannot read back the profile")?;
    let mut tree = Tree::by_name();
    tree.insert_profile(&decoded, 0);
    let mut text = account_text(&window, args.frequency, elapsed);
    text.push_str(&refused_text(&opener));
    if let Engine::Events(reason) = &engine {
        text.push_str(&format!("sampled by perf events without a BPF program: {reason}\n"));
    }
    if args.top > 0 && tree.total() > 0 {
        text.push_str(&TopTable::from_tree(&tree).render(args.top, "nanoseconds"));
    }
    let written = match form {
        Form::PprofGzip => pprof::gzip(&bytes).clone(),
        Form::Pprof => bytes,
        Form::Svg => {
            let options = SvgOptions {
                title: &format!("CPU, {} Hz, {:.1} s", args.frequency, elapsed.as_secs_f64()),
                unit: "nanoseconds",
                width: 1600,
            };
            svg(&tree.to_flamegraph(16384), &options).into_bytes()
        }
        Form::Folded | Form::FoldedToOutput => folded(&tree).into_bytes(),
    };
    let failed = status.filter(|status| !status.success());
    Ok((written, Summary { text, failed }))
}

fn start_command(command: &[String]) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program)
        .args(arguments)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    Ok(Some(child))
}

fn name_all(window: &Window, opener: &Opener, span: Span, args: &RecordArgs) -> Vec<u8> {
    let mut parts: Vec<(&ProcessInfo, &Stacks)> = window
        .processes
        .values()
        .map(|(process, stacks)| (process.as_ref(), stacks))
        .collect();
    parts.sort_unstable_by_key(|(process, _)| (process.pid, process.start));
    let style = Style {
        demangle: args.demangle,
        process_frame: args.pid.is_none(),
        ..Style::default()
    };
    let mut names = NameCache::new(Budget::new((args.memory_budget as usize) << 20), opener.clone());
    let mut namer = Namer::new(&mut names, style);
    namer.learn_kernel(window);
    namer.learn(parts.iter().map(|(_, stacks)| *stacks), &window.places);
    namer.profile(&parts, &window.places, span)
}

/// Returns a summary: the number of all ticks; how many of them became samples, were lost, were idle, belong to other
/// processes, or were missed; the number of incomplete stacks; and the CPU cost of profiling.
fn account_text(window: &Window, requested_hertz: u32, elapsed: Duration) -> String {
    let accounts = &window.accounts;
    let lost = accounts.ring_full + accounts.malformed;
    let not_looked_at = accounts.ignored + accounts.filtered;
    let incomplete: Vec<(&str, u64)> = Stop::ALL
        .iter()
        .zip(accounts.by_stop)
        .filter(|(stop, count)| !matches!(stop, Stop::End | Stop::NoUser) && *count > 0)
        .map(|(stop, count)| (stop.name(), count))
        .collect();
    let mut text = format!(
        "{} samples of {} ticks in {:.1} s, {lost} lost, {} idle, {not_looked_at} of other processes, {} missed; {} \
         with an incomplete stack",
        window.ticks(),
        accounts.expected,
        elapsed.as_secs_f64(),
        accounts.idle,
        accounts.missed,
        incomplete.iter().map(|(_, count)| count).sum::<u64>(),
    );
    if !incomplete.is_empty() {
        let reasons: Vec<String> = incomplete
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        text.push_str(&format!(" ({})", reasons.join(", ")));
    }
    text.push('\n');
    let cost = |nanos: u64| nanos as f64 / elapsed.as_nanos().max(1) as f64 * 100.0;
    text.push_str(&format!(
        "cost: {:.2} % of a CPU in the kernel, {:.2} % in this process",
        cost(accounts.kernel_nanos),
        cost(accounts.agent_nanos),
    ));
    if window.hertz < requested_hertz {
        text.push_str(&format!(
            "; frequency lowered from {requested_hertz} to {} Hz",
            window.hertz
        ));
    }
    text.push('\n');
    text
}

/// Returns two lines with counts by reason: files of processes that were not read, and parts of files that were left
/// out. A line without counts is omitted.
fn refused_text(opener: &Opener) -> String {
    let refused = Refusal::ALL.map(Refusal::name).into_iter().zip(opener.refused());
    let excesses = Omission::ALL
        .map(Omission::name)
        .into_iter()
        .zip(opener.bounds.omission_counts());
    count_line("files of processes that were not read", refused)
        + &count_line("data left out because a limit was reached", excesses)
}

/// Returns a line with the counts that are not 0, or an empty text if all counts are 0.
fn count_line<'a>(subject: &str, counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let counts: Vec<String> = counts
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if counts.is_empty() {
        return String::new();
    }
    format!("{subject}: {}\n", counts.join(", "))
}

/// Returns the folded format: one stack per line, root first, then its value in nanoseconds. In names, a colon replaces
/// the characters that end a frame or a line.
fn folded(tree: &Tree) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    tree.for_each_stack(|frames, value| {
        let names: Vec<String> = frames
            .iter()
            .map(|frame| frame.function.replace([';', '\n', '\r'], ":"))
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {value}", names.join(";"));
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_testing::tree;

    #[test]
    fn a_name_with_a_line_end_is_one_line_of_folded_text() {
        let tree = tree(&[("main;work\nmain 9", 5)]);
        assert_eq!(folded(&tree), "main;work:main 9 5\n");
    }
}
