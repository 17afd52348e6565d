//! Arguments of `pyroscope.ebpf`. Alloy accepts several of these arguments without documenting them.
//!
//! A value that would change the profiles but is not supported is refused. Arguments whose values change nothing are
//! declared so, and cause a warning.

use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::targets::Targets;
use crate::common::passing::fanout::Receivers;
use alluvium_ebpf::{Budget, Comm, Settings as ProfilerSettings, Style};
use alluvium_lang::argument_error::{ArgumentError, ArgumentErrors};
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
        /// Mount point of the BPF file system.
        #[no_effect = "the profiler needs no BPF file system"]
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
        /// If true, the BPF program for probes is loaded even without a probe.
        #[no_effect = "probes are not supported"]
        load_probe: bool = false,
        /// If true, the version of the kernel is not checked.
        #[no_effect = "the profiler tests the features of the kernel, not its version"]
        no_kernel_version_check: bool = false,
        /// If true, the process context that OpenTelemetry's instrumentation leaves in memory is read.
        #[no_effect = "the profiler does not read this context"]
        obi_process_context_enabled: bool = true,
        /// Share of off-CPU events to record, from 0 (none) to 1 (all). Off-CPU profiling is not supported: only 0 is
        /// accepted.
        off_cpu_threshold: Share = 0,
        /// If true, samples get the process id as a label.
        pid_label: bool = false,
        /// Probes whose calls are sampled: `kprobe:SYMBOL`, `kretprobe:SYMBOL`, `uprobe:PATH:SYMBOL` or
        /// `uretprobe:PATH:SYMBOL`. Probes are not supported: only an empty list is accepted.
        probe_links: Vec<Probe> = [],
        /// If true, a frame without a name is shown with its address.
        #[no_effect = "a frame without a name is always shown with its address"]
        reporter_unsymbolized_stubs: bool = false,
        /// Number of samples per second on each CPU.
        sample_rate: Positive = 19,
        /// Folder of the cache of function names.
        #[no_effect = "function names are cached in memory, within budget.memory"]
        symb_cache_path: Arc<str> = "/tmp/symb-cache",
        /// Number of files in the cache of function names.
        #[no_effect = "function names are cached in memory, within budget.memory"]
        symb_cache_size: i64 = 2048,
        /// If true, processes that belong to no target are not profiled.
        targets_only: bool = true,
        /// If true, the profiler logs more.
        #[no_effect = "the block logging sets the level of the log"]
        verbose_mode: bool = false,
    }
    blocks {
        /// Limits for the CPU time and the memory of profiling (not in Alloy).
        budget: BudgetArguments,
        /// Symbolization of native functions on the server. `on_target_symbolization = false` is not supported.
        #[no_effect = "functions are symbolized on this machine, and no file is uploaded"]
        debug_info: DebugInfo,
    }
    shared { languages: Languages, deprecated: Deprecated }
    check EbpfOptions::check;
}

arguments! {
    /// Switches for the symbolization of single languages.
    pub(crate) struct Languages {
        /// If true, .NET functions are symbolized. `false` is not supported.
        dotnet_enabled: bool = true,
        /// If true, Go functions are symbolized. `false` is not supported.
        go_enabled: bool = true,
        /// If true, Java functions are symbolized. `false` is not supported.
        hotspot_enabled: bool = true,
        /// If true, Perl functions are symbolized.
        #[no_effect = "frames of the Perl interpreter are shown instead of Perl functions"]
        perl_enabled: bool = true,
        /// If true, PHP functions are symbolized.
        #[no_effect = "frames of the PHP interpreter are shown instead of PHP functions"]
        php_enabled: bool = true,
        /// If true, Python functions are symbolized. `false` is not supported.
        python_enabled: bool = true,
        /// If true, Ruby functions are symbolized.
        #[no_effect = "frames of the Ruby interpreter are shown instead of Ruby functions"]
        ruby_enabled: bool = true,
        /// If true, JavaScript functions are symbolized. `false` is not supported.
        v8_enabled: bool = true,
    }
}

arguments! {
    /// Arguments that had an effect in earlier versions of Alloy.
    pub(crate) struct Deprecated {
        /// Size of a cache in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        build_id_cache_size: Option<i64>,
        /// Lifetime of cache entries in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        cache_rounds: Option<i64>,
        /// If false, stacks do not include kernel frames. Deprecated in favour of kernel_frames.
        collect_kernel_profile: Option<bool>,
        /// If false, stacks do not include frames of user space. `false` is not supported.
        collect_user_profile: Option<bool>,
        /// Size of a cache in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        container_id_cache_size: Option<u64>,
        /// Use of the function table of Go in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        go_table_fallback: Option<bool>,
        /// Size of a cache in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        pid_cache_size: Option<i64>,
        /// Size of a BPF map in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        pid_map_size: Option<i64>,
        /// Size of a cache in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        same_file_cache_size: Option<i64>,
        /// Size of a BPF map in earlier versions of Alloy.
        #[no_effect = "Alloy deprecated it, and ignores it as well"]
        symbols_map_size: Option<i64>,
        /// Earlier name of probe_links. Probes are not supported: only an empty list is accepted.
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
            kernel_stacks: self.kernel_frames && self.deprecated.collect_kernel_profile != Some(false),
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

    /// Refuses values that would change the profiles but are not supported.
    fn check(&self) -> Result<(), ArgumentErrors> {
        let refused: Vec<ArgumentError> = self
            .unsupported()
            .into_iter()
            .filter(|(_, is_set, _)| *is_set)
            .map(|(name, _, reason)| ArgumentError::new(name, format!("this value is not supported: {reason}")))
            .collect();
        if refused.is_empty() {
            Ok(())
        } else {
            Err(ArgumentErrors(refused))
        }
    }

    /// Returns arguments with unsupported values: the name, whether the argument has such a value, and the reason.
    fn unsupported(&self) -> [(&'static str, bool, &'static str); 10] {
        const GENERATED: &str = "functions in perf maps and jitdump files are symbolized, whatever their language";
        const PROBES: &str = "the profiler has no probes";
        let (languages, deprecated) = (&self.languages, &self.deprecated);
        let has_old_probes = deprecated.u_probe_links.as_ref().is_some_and(|links| !links.is_empty());
        let on_target = self.debug_info.on_target_symbolization;
        [
            (
                "off_cpu_threshold",
                self.off_cpu_threshold.0 > 0.0,
                "the profiler samples running threads only",
            ),
            ("probe_links", !self.probe_links.is_empty(), PROBES),
            ("u_probe_links", has_old_probes, PROBES),
            (
                "debug_info.on_target_symbolization",
                !on_target,
                "functions are always symbolized on this machine",
            ),
            (
                "collect_user_profile",
                deprecated.collect_user_profile == Some(false),
                "stacks of user space are always recorded",
            ),
            ("dotnet_enabled", !languages.dotnet_enabled, GENERATED),
            (
                "go_enabled",
                !languages.go_enabled,
                "Go functions are always symbolized from the function table of Go",
            ),
            ("hotspot_enabled", !languages.hotspot_enabled, GENERATED),
            ("python_enabled", !languages.python_enabled, GENERATED),
            ("v8_enabled", !languages.v8_enabled, GENERATED),
        ]
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

#[cfg(test)]
mod tests {
    use alluvium_lang::value::Number;

    use super::*;
    use crate::common::testing::{Body, receivers};
    use crate::pyroscope::ebpf::DEFINITION;

    fn read(body: Body) -> Result<Arc<EbpfArguments>, String> {
        body.with("forward_to", receivers([])).read(&DEFINITION)
    }

    fn flag(name: &'static str, is_set: bool) -> Body {
        Body::new().with(name, Value::Bool(is_set))
    }

    #[test]
    fn collect_kernel_profile_removes_kernel_stacks_like_kernel_frames() {
        let has_kernel_stacks = |body| read(body).unwrap().options.profiler().kernel_stacks;
        assert!(has_kernel_stacks(Body::new()));
        assert!(has_kernel_stacks(flag("collect_kernel_profile", true)));
        assert!(!has_kernel_stacks(flag("collect_kernel_profile", false)));
        assert!(!has_kernel_stacks(flag("kernel_frames", false)));
        let both = flag("kernel_frames", false).with("collect_kernel_profile", Value::Bool(true));
        assert!(!has_kernel_stacks(both));
    }

    #[test]
    fn values_that_would_change_the_profiles_are_refused_by_name() {
        for name in [
            "collect_user_profile",
            "dotnet_enabled",
            "go_enabled",
            "hotspot_enabled",
            "python_enabled",
            "v8_enabled",
        ] {
            read(flag(name, true)).unwrap();
            let error = read(flag(name, false)).unwrap_err();
            let start = format!("{name}: this value is not supported: ");
            assert!(error.starts_with(&start), "{error}");
        }
        let probes = || Value::array([Value::string("kprobe:do_sys_open")]);
        for (body, name) in [
            (Body::new().with("probe_links", probes()), "probe_links"),
            (Body::new().with("u_probe_links", probes()), "u_probe_links"),
            (
                Body::new().with("off_cpu_threshold", Value::Number(Number::Float(0.1))),
                "off_cpu_threshold",
            ),
            (
                Body::new().block("debug_info", flag("on_target_symbolization", false)),
                "debug_info.on_target_symbolization",
            ),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.starts_with(&format!("{name}: this value")), "{error}");
        }
        let none = Value::array([]);
        let body = Body::new()
            .with("probe_links", none.clone())
            .with("u_probe_links", none);
        read(body).unwrap();
    }

    #[test]
    fn arguments_that_change_nothing_are_accepted_with_any_value() {
        for name in [
            "perl_enabled",
            "php_enabled",
            "ruby_enabled",
            "load_probe",
            "verbose_mode",
        ] {
            read(flag(name, true)).unwrap();
            read(flag(name, false)).unwrap();
        }
        read(Body::new().block("debug_info", flag("upload", true))).unwrap();
    }
}
