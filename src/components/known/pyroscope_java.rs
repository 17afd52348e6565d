//! `pyroscope.java`: profiles of Java processes of this machine, taken with async-profiler.
//!
//! Schema and checks.

use crate::components::common::checks;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, RECEIVERS, Schema, TARGETS};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// `pyroscope.java`
pub const DEFINITION: Definition = Definition {
    name: "pyroscope.java",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default(
                "dist",
                Kind::String,
                "\"\"",
                "Folder of an async-profiler to use instead of the one that comes along.",
            ),
            Attribute::required("forward_to", RECEIVERS, "Receivers of the profiles."),
            Attribute::required(
                "targets",
                TARGETS,
                "Processes to profile; the label __process_pid__ holds the number.",
            ),
            Attribute::with_default(
                "tmp_dir",
                Kind::String,
                "\"/tmp\"",
                "Folder, as the process sees it, for the profiler and its recordings.",
            ),
        ],
        blocks: &[Block::implied(
            "profiling_config",
            &PROFILING_CONFIG,
            "What is recorded of a process.",
        )],
    },
    exports: &[],
    validate: check,
    build: None,
    doc: "`pyroscope.java` profiles the Java processes of this machine with async-profiler.",
};

const PROFILING_CONFIG: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "alloc",
            Kind::String,
            "\"512k\"",
            "Bytes of allocations from one sample to the next; empty records none.",
        ),
        Attribute::with_default("cpu", Kind::Bool, "true", "Whether CPU time is recorded."),
        Attribute::with_default(
            "custom_arguments",
            Kind::List(&Kind::String),
            "[]",
            "Arguments of async-profiler that replace all those above but interval.",
        ),
        Attribute::with_default("event", Kind::String, "\"itimer\"", "Clock of the CPU samples."),
        Attribute::with_default("interval", Kind::Duration, "\"60s\"", "Time that one recording covers."),
        Attribute::with_default(
            "lock",
            Kind::String,
            "\"10ms\"",
            "Wait for locks from which one is recorded; empty records none.",
        ),
        Attribute::with_default("log_level", Kind::String, "\"INFO\"", "What async-profiler logs."),
        Attribute::with_default("per_thread", Kind::Bool, "false", "Whether threads are told apart."),
        Attribute::with_default("quiet", Kind::Bool, "false", "Whether async-profiler logs nothing."),
        Attribute::with_default("sample_rate", Kind::Int, "100", "Samples of CPU time a second."),
        Attribute::with_default(
            "tlab",
            Kind::Bool,
            "false",
            "Whether allocations are sampled by the buffers of threads; needs alloc.",
        ),
    ],
    blocks: &[],
};

fn check(arguments: &Arguments) -> Result<(), ArgumentError> {
    let Some(config) = arguments.block("profiling_config") else {
        return Ok(());
    };
    checks::positive(config, "profiling_config.", "interval")?;
    if config.strings("custom_arguments").is_empty() && config.bool("tlab") && config.string("alloc").is_empty() {
        let message = "profiling_config.tlab requires profiling_config.alloc to be set";
        return Err(checks::error("profiling_config.tlab", message));
    }
    Ok(())
}
