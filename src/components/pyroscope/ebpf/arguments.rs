//! Arguments of `pyroscope.ebpf`. Alloy accepts several of these arguments without documenting them.

use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::targets::Targets;
use crate::common::passing::fanout::Receivers;
use alluvium_ebpf::{Budget, Comm, Settings as ProfilerSettings, Style};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{ByteSize, FromValue, Interval, Positive, choices, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_symbols::Demangle;

/// Memory budget in bytes if `memory` is null.
const DEFAULT_MEMORY: u64 = 64 << 20;

arguments! {
    /// Arguments of `pyroscope.ebpf`.
    pub(crate) struct EbpfArguments {
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Processes or containers to profile, with the labels of their profiles.
        targets: Targets = [],
    }
    shared { options: EbpfOptions }
}

arguments! {
    /// All arguments except targets and receivers. If one of these arguments changes, the component stops the profiler
    /// and starts it again.
    pub(crate) struct EbpfOptions {
        /// Mount point of the BPF file system. Accepted without an effect.
        bpf_fs_root: Arc<str> = "/sys/fs/bpf/",
        /// Duration of one profile.
        collect_interval: Interval = "15s",
        /// Where the thread name is stored: none, label, stackframe or both.
        comm: Option<CommArgument> = "none",
        /// Level of detail of demangled C++ and Rust names: none, simplified, templates or full.
        demangle: DemangleArgument = "none",
        /// If true, stacks include kernel frames.
        kernel_frames: bool = true,
        /// If true, profiling starts only when there is a target.
        lazy_mode: bool = false,
        /// If true, the BPF program for probes is loaded even without a probe. Accepted without an effect.
        load_probe: bool = false,
        /// If true, the version of the kernel is not checked. Accepted without an effect.
        no_kernel_version_check: bool = false,
        /// If true, the process context that OpenTelemetry's instrumentation leaves in memory is read. Accepted without
        /// an effect.
        obi_process_context_enabled: bool = true,
        /// Share of off-CPU events to record, from 0 (none) to 1 (all). Accepted without an effect.
        off_cpu_threshold: Share = 0,
        /// If true, samples get the process id as a label.
        pid_label: bool = false,
        /// Probes whose calls are sampled: `kprobe:SYMBOL`, `kretprobe:SYMBOL`, `uprobe:PATH:SYMBOL` or
        /// `uretprobe:PATH:SYMBOL`. Accepted without an effect.
        probe_links: Vec<Probe> = [],
        /// If true, frames without a name are kept with their addresses. Accepted without an effect.
        reporter_unsymbolized_stubs: bool = false,
        /// Number of samples per second on each CPU.
        sample_rate: Positive = 19,
        /// Folder of the cache of function names. Accepted without an effect.
        symb_cache_path: Arc<str> = "/tmp/symb-cache",
        /// Number of files in the cache of function names. Accepted without an effect.
        symb_cache_size: i64 = 2048,
        /// If true, processes that belong to no target are not profiled.
        targets_only: bool = true,
        /// If true, the profiler logs more. Accepted without an effect.
        verbose_mode: bool = false,
    }
    blocks {
        /// Limits for the CPU time and the memory of profiling (not in Alloy).
        budget: BudgetArguments,
        /// Symbolization of native functions. Accepted without an effect.
        debug_info: DebugInfo,
    }
    shared { languages: Languages, deprecated: Deprecated }
}

arguments! {
    /// Switches for the symbolization of single languages.
    pub(crate) struct Languages {
        /// If true, .NET functions are symbolized. Accepted without an effect.
        dotnet_enabled: bool = true,
        /// If true, Go functions are symbolized. Accepted without an effect.
        go_enabled: bool = true,
        /// If true, Java functions are symbolized. Accepted without an effect.
        hotspot_enabled: bool = true,
        /// If true, Perl functions are symbolized. Accepted without an effect.
        perl_enabled: bool = true,
        /// If true, PHP functions are symbolized. Accepted without an effect.
        php_enabled: bool = true,
        /// If true, Python functions are symbolized. Accepted without an effect.
        python_enabled: bool = true,
        /// If true, Ruby functions are symbolized. Accepted without an effect.
        ruby_enabled: bool = true,
        /// If true, JavaScript functions are symbolized. Accepted without an effect.
        v8_enabled: bool = true,
    }
}

arguments! {
    /// Arguments that had an effect in earlier versions of Alloy.
    pub(crate) struct Deprecated {
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        build_id_cache_size: Option<i64>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        cache_rounds: Option<i64>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        collect_kernel_profile: Option<bool>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        collect_user_profile: Option<bool>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        container_id_cache_size: Option<u64>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        go_table_fallback: Option<bool>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        pid_cache_size: Option<i64>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        pid_map_size: Option<i64>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        same_file_cache_size: Option<i64>,
        /// Accepted without an effect: an argument of earlier versions of Alloy.
        symbols_map_size: Option<i64>,
        /// Earlier name of probe_links. Accepted without an effect.
        u_probe_links: Option<Vec<Arc<str>>>,
    }
}

arguments! {
    /// The body of `budget { }`.
    pub(crate) struct BudgetArguments {
        /// Maximum CPU usage of profiling, in percent of one CPU. It includes the BPF program in the kernel. Above this
        /// limit the sample rate is lowered, and each sample stands for more time. 0 means no limit.
        cpu_percent: f64 = 2,
        /// Maximum memory of unwind tables, names and buffers, as a number of bytes or a text such as "64MiB". The
        /// least recently used data is evicted. At least 8 MiB.
        memory: Option<ByteSize> = "64MiB",
    }
    check BudgetArguments::check;
}

arguments! {
    /// The body of `debug_info { }`.
    pub(crate) struct DebugInfo {
        /// Number of uploaded files to remember, so that they are not uploaded again.
        cache_size: u64 = 262144,
        /// If true, functions are symbolized on this machine.
        on_target_symbolization: bool = true,
        /// Maximum number of files that wait for an upload.
        queue_size: u64 = 256,
        /// If true, files are uploaded without their code.
        strip_text_section: bool = false,
        /// If true, programs are uploaded to the server, which then symbolizes the functions.
        upload: bool = false,
        /// Number of concurrent uploads.
        worker_num: i64 = 16,
    }
}

/// A share of a whole, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(f64);

impl FromValue for Share {
    const KIND: Kind = Kind::Float;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let share = f64::from_value(name, value)?;
        if !(0.0..=1.0).contains(&share) {
            return Err(wrong(format!("{name} must be from 0 to 1")));
        }
        Ok(Self(share))
    }
}

/// A function whose calls are sampled. The function belongs to the kernel or to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe(Arc<str>);

impl FromValue for Probe {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let link = Arc::<str>::from_value(name, value)?;
        if !is_probe(&link) {
            return Err(wrong(format!(
                "`{link}` must be kprobe:SYMBOL, kretprobe:SYMBOL, uprobe:PATH:SYMBOL or uretprobe:PATH:SYMBOL"
            )));
        }
        Ok(Self(link))
    }
}

choices! {
    /// Value of the argument `comm`.
    pub(crate) enum CommArgument {
        None = "none",
        Label = "label",
        Frame = "stackframe",
        Both = "both",
    }
}

impl From<CommArgument> for Comm {
    fn from(argument: CommArgument) -> Self {
        match argument {
            CommArgument::None => Self::None,
            CommArgument::Label => Self::Label,
            CommArgument::Frame => Self::Frame,
            CommArgument::Both => Self::Both,
        }
    }
}

choices! {
    /// Value of the argument `demangle`.
    pub(crate) enum DemangleArgument {
        None = "none",
        Simplified = "simplified",
        Templates = "templates",
        Full = "full",
    }
}

impl From<DemangleArgument> for Demangle {
    fn from(argument: DemangleArgument) -> Self {
        match argument {
            DemangleArgument::None => Self::None,
            DemangleArgument::Simplified => Self::Simplified,
            DemangleArgument::Templates => Self::Templates,
            DemangleArgument::Full => Self::Full,
        }
    }
}

impl BudgetArguments {
    fn memory(&self) -> u64 {
        self.memory.map_or(DEFAULT_MEMORY, ByteSize::get)
    }

    fn check(&self) -> Result<(), ArgumentError> {
        if !self.cpu_percent.is_finite() || self.cpu_percent < 0.0 {
            return Err(ArgumentError::new("cpu_percent", "cpu_percent must not be negative"));
        }
        if self.memory() < Budget::MIN_BYTES as u64 {
            return Err(ArgumentError::new("memory", "memory must be at least 8MiB"));
        }
        Ok(())
    }
}

impl EbpfOptions {
    /// Returns the settings of the profiler.
    pub(crate) fn profiler(&self) -> ProfilerSettings {
        let percent = self.budget.cpu_percent;
        ProfilerSettings {
            hertz: u32::try_from(self.sample_rate.get()).unwrap_or(u32::MAX),
            kernel_stacks: self.kernel_frames,
            comm: self.comm() != Comm::None,
            budget: Budget::new(usize::try_from(self.budget.memory()).unwrap_or(usize::MAX)),
            cpu_limit: (percent > 0.0).then_some(percent / 100.0),
            ..ProfilerSettings::default()
        }
    }

    /// Returns the style of the profiles: the form of the names, and the places of thread names and process ids.
    pub(crate) fn style(&self) -> Style {
        Style {
            demangle: self.demangle.into(),
            comm: self.comm(),
            pid_label: self.pid_label,
            process_frame: false,
        }
    }

    /// Returns the duration of one profile.
    pub(crate) fn interval(&self) -> Duration {
        self.collect_interval.get()
    }

    /// Returns the names of arguments that are set but have no effect yet.
    pub(crate) fn without_effect(&self) -> Vec<&'static str> {
        let set = [
            ("off_cpu_threshold", self.off_cpu_threshold.0 > 0.0),
            ("probe_links", !self.probe_links.is_empty()),
            (
                "u_probe_links",
                self.deprecated
                    .u_probe_links
                    .as_ref()
                    .is_some_and(|links| !links.is_empty()),
            ),
            ("debug_info.upload", self.debug_info.upload),
        ];
        set.into_iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(name, _)| name)
            .collect()
    }

    /// Returns the form in which profiles store the thread name. An empty text means `none`, as in Alloy.
    fn comm(&self) -> Comm {
        self.comm.map(Comm::from).unwrap_or_default()
    }
}

fn is_probe(link: &str) -> bool {
    let parts: Vec<&str> = link.split(':').collect();
    let filled = parts.iter().all(|part| !part.is_empty());
    filled
        && match parts.as_slice() {
            ["kprobe" | "kretprobe", rest @ ..] => rest.len() == 1,
            ["uprobe" | "uretprobe", rest @ ..] => rest.len() >= 2,
            _ => false,
        }
}
