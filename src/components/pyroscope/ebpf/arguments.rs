//! Arguments of `pyroscope.ebpf`. Several of them are not in Alloy's documentation but in its program.

use std::time::Duration;

use crate::components::common::checks;
use crate::components::common::targets::Target;
use crate::ebpf::{Budget, Comm, Settings as ProfilerSettings, Style};
use crate::lang::schema::{Arguments, Attribute, Block, Kind, RECEIVERS, Schema, TARGETS, attributes};
use crate::pipeline::component::ArgumentError;
use crate::symbols::Demangle;

/// The schema.
pub const SCHEMA: Schema = Schema {
    attributes: attributes!(SETTINGS, LANGUAGES, DEPRECATED),
    blocks: &[
        Block::implied(
            "budget",
            &BUDGET,
            "What profiling may take of the machine (not in Alloy).",
        ),
        Block::implied("debug_info", &DEBUG_INFO, "Where native functions get their names."),
    ],
};

const BUDGET: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "cpu_percent",
            Kind::Float,
            "2",
            "Percent of one CPU, in the kernel and here; above it the rate is lowered and each sample counts for more. 0: no bound.",
        ),
        Attribute::with_default(
            "memory",
            Kind::Any,
            "\"64MiB\"",
            "Bytes of tables, names and buffers; what was used longest ago is thrown away. At least 8 MiB. A number or a text such as \"64MiB\".",
        ),
    ],
    blocks: &[],
};

const SETTINGS: &[Attribute] = &[
    Attribute::with_default(
        "bpf_fs_root",
        Kind::String,
        "\"/sys/fs/bpf/\"",
        "Folder where the BPF file system is mounted.",
    ),
    Attribute::with_default(
        "collect_interval",
        Kind::Duration,
        "\"15s\"",
        "Time that one profile covers.",
    ),
    Attribute::with_default(
        "comm",
        Kind::String,
        "\"none\"",
        "Where the name of the thread goes: none, label, stackframe or both.",
    ),
    Attribute::with_default(
        "demangle",
        Kind::String,
        "\"none\"",
        "How much of a C++ or Rust name is written out: none, simplified, templates or full.",
    ),
    Attribute::required("forward_to", RECEIVERS, "Receivers of the profiles."),
    Attribute::with_default(
        "kernel_frames",
        Kind::Bool,
        "true",
        "Whether stacks go on into the kernel.",
    ),
    Attribute::with_default(
        "lazy_mode",
        Kind::Bool,
        "false",
        "Whether profiling begins only when there is a target.",
    ),
    Attribute::with_default(
        "load_probe",
        Kind::Bool,
        "false",
        "Whether the program for probes is loaded although no probe is given.",
    ),
    Attribute::with_default(
        "no_kernel_version_check",
        Kind::Bool,
        "false",
        "Whether a kernel that is too old is tried all the same.",
    ),
    Attribute::with_default(
        "obi_process_context_enabled",
        Kind::Bool,
        "true",
        "Whether the process context that OpenTelemetry's instrumentation leaves in memory is read.",
    ),
    Attribute::with_default(
        "off_cpu_threshold",
        Kind::Float,
        "0",
        "Share of the times off the CPU that are recorded, from 0 (none) to 1 (all).",
    ),
    Attribute::with_default(
        "pid_label",
        Kind::Bool,
        "false",
        "Whether samples get the process number as a label.",
    ),
    Attribute::with_default(
        "probe_links",
        Kind::List(&Kind::String),
        "[]",
        "Probes whose calls are sampled: `kprobe:SYMBOL`, `kretprobe:SYMBOL`, `uprobe:PATH:SYMBOL` or `uretprobe:PATH:SYMBOL`.",
    ),
    Attribute::with_default(
        "reporter_unsymbolized_stubs",
        Kind::Bool,
        "false",
        "Whether frames without a name are kept, with their addresses.",
    ),
    Attribute::with_default("sample_rate", Kind::Int, "19", "Samples a second and CPU."),
    Attribute::with_default(
        "symb_cache_path",
        Kind::String,
        "\"/tmp/symb-cache\"",
        "Folder of the cache of function names.",
    ),
    Attribute::with_default("symb_cache_size", Kind::Int, "2048", "Files in that cache."),
    Attribute::with_default(
        "targets",
        TARGETS,
        "[]",
        "Processes or containers to profile, with the labels that their profiles get.",
    ),
    Attribute::with_default(
        "targets_only",
        Kind::Bool,
        "true",
        "Whether processes that belong to no target are left out.",
    ),
    Attribute::with_default("verbose_mode", Kind::Bool, "false", "Whether the profiler logs more."),
];

const fn language(name: &'static str, doc: &'static str) -> Attribute {
    Attribute::with_default(name, Kind::Bool, "true", doc)
}

const LANGUAGES: &[Attribute] = &[
    language("dotnet_enabled", "Whether functions of .NET get their names."),
    language("go_enabled", "Whether functions of Go get their names."),
    language("hotspot_enabled", "Whether functions of Java get their names."),
    language("perl_enabled", "Whether functions of Perl get their names."),
    language("php_enabled", "Whether functions of PHP get their names."),
    language("python_enabled", "Whether functions of Python get their names."),
    language("ruby_enabled", "Whether functions of Ruby get their names."),
    language("v8_enabled", "Whether functions of JavaScript get their names."),
];

const DEPRECATED_DOC: &str = "Accepted without an effect: an argument of earlier versions of Alloy.";

const DEPRECATED: &[Attribute] = &[
    Attribute::optional("build_id_cache_size", Kind::Int, DEPRECATED_DOC),
    Attribute::optional("cache_rounds", Kind::Int, DEPRECATED_DOC),
    Attribute::optional("collect_kernel_profile", Kind::Bool, DEPRECATED_DOC),
    Attribute::optional("collect_user_profile", Kind::Bool, DEPRECATED_DOC),
    Attribute::optional("container_id_cache_size", Kind::Uint, DEPRECATED_DOC),
    Attribute::optional("go_table_fallback", Kind::Bool, DEPRECATED_DOC),
    Attribute::optional("pid_cache_size", Kind::Int, DEPRECATED_DOC),
    Attribute::optional("pid_map_size", Kind::Int, DEPRECATED_DOC),
    Attribute::optional("same_file_cache_size", Kind::Int, DEPRECATED_DOC),
    Attribute::optional("symbols_map_size", Kind::Int, DEPRECATED_DOC),
    Attribute::optional(
        "u_probe_links",
        Kind::List(&Kind::String),
        "Earlier name of probe_links, to which it is added.",
    ),
];

const DEBUG_INFO: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "cache_size",
            Kind::Uint,
            "262144",
            "Files of which is remembered that they were sent.",
        ),
        Attribute::with_default(
            "on_target_symbolization",
            Kind::Bool,
            "true",
            "Whether functions get their names on this machine.",
        ),
        Attribute::with_default("queue_size", Kind::Uint, "256", "Files that may wait to be sent."),
        Attribute::with_default(
            "strip_text_section",
            Kind::Bool,
            "false",
            "Whether files are sent without their code.",
        ),
        Attribute::with_default(
            "upload",
            Kind::Bool,
            "false",
            "Whether programs are sent to the server, which then names the functions.",
        ),
        Attribute::with_default("worker_num", Kind::Int, "16", "Files that are sent at once."),
    ],
    blocks: &[],
};

/// Bytes of the budget when none are given.
const DEFAULT_MEMORY: u64 = 64 << 20;

/// Checks beyond the schema.
pub fn check(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::positive(arguments, "", "collect_interval")?;
    if arguments.int("sample_rate") <= 0 {
        return Err(checks::error("sample_rate", "sample_rate must be greater than 0"));
    }
    if !(0.0..=1.0).contains(&arguments.float("off_cpu_threshold")) {
        return Err(checks::error(
            "off_cpu_threshold",
            "off_cpu_threshold must be from 0 to 1",
        ));
    }
    if let Some(budget) = arguments.block("budget") {
        let percent = budget.float("cpu_percent");
        if !percent.is_finite() || percent < 0.0 {
            return Err(checks::error("budget.cpu_percent", "cpu_percent must not be negative"));
        }
        if checks::bytes(budget, "memory", DEFAULT_MEMORY, "budget.")? < Budget::SMALLEST as u64 {
            return Err(checks::error("budget.memory", "memory must be at least 8MiB"));
        }
    }
    // An empty text means none, as in Alloy.
    if !arguments.string("comm").is_empty() {
        checks::choice(arguments, "", "comm", &["none", "label", "stackframe", "both"])?;
    }
    checks::choice(arguments, "", "demangle", &["none", "simplified", "templates", "full"])?;
    for (index, link) in arguments.strings("probe_links").iter().enumerate() {
        if !is_probe(link) {
            let message = format!(
                "`{link}` must be kprobe:SYMBOL, kretprobe:SYMBOL, uprobe:PATH:SYMBOL or uretprobe:PATH:SYMBOL"
            );
            return Err(checks::error(format!("probe_links[{index}]"), message));
        }
    }
    Ok(())
}

/// The arguments as values.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the profiler works.
    pub profiler: ProfilerSettings,
    /// How its profiles are written.
    pub style: Style,
    /// Time that one profile covers.
    pub interval: Duration,
    /// Processes and containers with the labels of their profiles.
    pub targets: Vec<Target>,
    /// Leave out processes without a target.
    pub targets_only: bool,
    /// Profile only while there are targets.
    pub lazy: bool,
    /// Arguments that are set and have no effect yet.
    pub without_effect: Vec<&'static str>,
}

impl From<&Arguments> for Settings {
    fn from(arguments: &Arguments) -> Self {
        let comm = match arguments.string("comm").as_ref() {
            "label" => Comm::Label,
            "stackframe" => Comm::Frame,
            "both" => Comm::Both,
            _ => Comm::None,
        };
        let mut without_effect = Vec::new();
        if arguments.float("off_cpu_threshold") > 0.0 {
            without_effect.push("off_cpu_threshold");
        }
        for name in ["probe_links", "u_probe_links"] {
            if !arguments.strings(name).is_empty() {
                without_effect.push(name);
            }
        }
        if arguments.block("debug_info").is_some_and(|block| block.bool("upload")) {
            without_effect.push("debug_info.upload");
        }
        let budget = arguments.block("budget");
        let percent = budget.map_or(0.0, |budget| budget.float("cpu_percent"));
        let memory = budget
            .and_then(|budget| checks::bytes(budget, "memory", DEFAULT_MEMORY, "").ok())
            .unwrap_or(DEFAULT_MEMORY);
        Self {
            profiler: ProfilerSettings {
                hertz: u32::try_from(arguments.int("sample_rate")).unwrap_or(u32::MAX),
                kernel_stacks: arguments.bool("kernel_frames"),
                comm: comm != Comm::None,
                budget: Budget::new(usize::try_from(memory).unwrap_or(usize::MAX)),
                cpu_limit: (percent > 0.0).then_some(percent / 100.0),
                ..ProfilerSettings::default()
            },
            style: Style {
                demangle: Demangle::parse(&arguments.string("demangle")).unwrap_or_default(),
                comm,
                pid_label: arguments.bool("pid_label"),
                process_frame: false,
            },
            interval: arguments.duration("collect_interval"),
            targets: arguments.targets("targets"),
            targets_only: arguments.bool("targets_only"),
            lazy: arguments.bool("lazy_mode"),
            without_effect,
        }
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
