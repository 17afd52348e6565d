//! Arguments of `pyroscope.ebpf`. Several of them are in Alloy's code but not in its documentation.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::arguments::targets::Targets;
use crate::components::common::passing::fanout::Receivers;
use crate::ebpf::{Budget, Comm, Settings as ProfilerSettings, Style};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{ByteSize, FromValue, Interval, Positive, choose, wrong};
use crate::lang::body::arguments;
use crate::lang::schema::Kind;
use crate::lang::value::Value;
use crate::symbols::Demangle;

/// Bytes of the budget when `memory` is null.
const DEFAULT_MEMORY: u64 = 64 << 20;

arguments! {
    /// Arguments of `pyroscope.ebpf`.
    pub(crate) struct EbpfArguments {
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Processes or containers to profile, with the labels that their profiles get.
        targets: Targets = [],
    }
    shared { options: EbpfOptions }
}

arguments! {
    /// Everything but targets and receivers: what a session of the profiler cannot take while it runs.
    pub(crate) struct EbpfOptions {
        /// Folder where the BPF file system is mounted.
        bpf_fs_root: Arc<str> = "/sys/fs/bpf/",
        /// Time that one profile covers.
        collect_interval: Interval = "15s",
        /// Where the name of the thread goes: none, label, stackframe or both.
        comm: Option<Comm> = "none",
        /// How much of a C++ or Rust name is written out: none, simplified, templates or full.
        demangle: Demangle = "none",
        /// Whether stacks go on into the kernel.
        kernel_frames: bool = true,
        /// Whether profiling begins only when there is a target.
        lazy_mode: bool = false,
        /// Whether the program for probes is loaded although no probe is given.
        load_probe: bool = false,
        /// Whether a kernel that is too old is tried all the same.
        no_kernel_version_check: bool = false,
        /// Whether the process context that OpenTelemetry's instrumentation leaves in memory is read.
        obi_process_context_enabled: bool = true,
        /// Share of the times off the CPU that are recorded, from 0 (none) to 1 (all).
        off_cpu_threshold: Share = 0,
        /// Whether samples get the process number as a label.
        pid_label: bool = false,
        /// Probes whose calls are sampled: `kprobe:SYMBOL`, `kretprobe:SYMBOL`, `uprobe:PATH:SYMBOL` or
        /// `uretprobe:PATH:SYMBOL`.
        probe_links: Vec<Probe> = [],
        /// Whether frames without a name are kept, with their addresses.
        reporter_unsymbolized_stubs: bool = false,
        /// Samples a second and CPU.
        sample_rate: Positive = 19,
        /// Folder of the cache of function names.
        symb_cache_path: Arc<str> = "/tmp/symb-cache",
        /// Files that the cache of names holds.
        symb_cache_size: i64 = 2048,
        /// Whether processes that belong to no target are left out.
        targets_only: bool = true,
        /// Whether the profiler logs more.
        verbose_mode: bool = false,
    }
    blocks {
        /// What profiling may take of the machine (not in Alloy).
        budget: BudgetArguments,
        /// Where native functions get their names.
        debug_info: DebugInfo,
    }
    shared { languages: Languages, deprecated: Deprecated }
}

arguments! {
    /// Which languages get names for the functions that their runtimes make.
    pub(crate) struct Languages {
        /// Whether functions of .NET get their names.
        dotnet_enabled: bool = true,
        /// Whether functions of Go get their names.
        go_enabled: bool = true,
        /// Whether functions of Java get their names.
        hotspot_enabled: bool = true,
        /// Whether functions of Perl get their names.
        perl_enabled: bool = true,
        /// Whether functions of PHP get their names.
        php_enabled: bool = true,
        /// Whether functions of Python get their names.
        python_enabled: bool = true,
        /// Whether functions of Ruby get their names.
        ruby_enabled: bool = true,
        /// Whether functions of JavaScript get their names.
        v8_enabled: bool = true,
    }
}

arguments! {
    /// Arguments that earlier versions of Alloy acted on.
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
        /// Earlier name of probe_links, to which it is added.
        u_probe_links: Option<Vec<Arc<str>>>,
    }
}

arguments! {
    /// The body of `budget { }`.
    pub(crate) struct BudgetArguments {
        /// Percent of one CPU, in the kernel and here; above it the rate is lowered and each sample counts for more. 0:
        /// no bound.
        cpu_percent: f64 = 2,
        /// Bytes of tables, names and buffers; what was used longest ago is thrown away. At least 8 MiB. A number or a
        /// text such as "64MiB".
        memory: Option<ByteSize> = "64MiB",
    }
    check BudgetArguments::check;
}

arguments! {
    /// The body of `debug_info { }`.
    pub(crate) struct DebugInfo {
        /// Files of which is remembered that they were sent.
        cache_size: u64 = 262144,
        /// Whether functions get their names on this machine.
        on_target_symbolization: bool = true,
        /// Files that may wait to be sent.
        queue_size: u64 = 256,
        /// Whether files are sent without their code.
        strip_text_section: bool = false,
        /// Whether programs are sent to the server, which then names the functions.
        upload: bool = false,
        /// Files that are sent at once.
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

/// A place in the kernel or in a program where calls are sampled.
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

impl FromValue for Comm {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let choices = [
            ("none", Self::None),
            ("label", Self::Label),
            ("stackframe", Self::Frame),
            ("both", Self::Both),
        ];
        choose(name, value, &choices)
    }
}

impl FromValue for Demangle {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let choices = [
            ("none", Self::None),
            ("simplified", Self::Simplified),
            ("templates", Self::Templates),
            ("full", Self::Full),
        ];
        choose(name, value, &choices)
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
        if self.memory() < Budget::SMALLEST as u64 {
            return Err(ArgumentError::new("memory", "memory must be at least 8MiB"));
        }
        Ok(())
    }
}

impl EbpfOptions {
    /// The settings of the profiler.
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

    /// The style in which profiles are written.
    pub(crate) fn style(&self) -> Style {
        Style {
            demangle: self.demangle,
            comm: self.comm(),
            pid_label: self.pid_label,
            process_frame: false,
        }
    }

    /// Time that one profile covers.
    pub(crate) fn interval(&self) -> Duration {
        self.collect_interval.get()
    }

    /// Names of arguments that are set and have no effect yet.
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

    /// An empty text means none, as in Alloy.
    fn comm(&self) -> Comm {
        self.comm.unwrap_or_default()
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
