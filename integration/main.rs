//! The integration test binary, with one module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test reports by a panic, its output is for a person, and its requests need no client of ours"
)]

#[cfg(feature = "server")]
mod access;
#[cfg(feature = "server")]
mod azure;
#[cfg(feature = "server")]
mod backup;
#[cfg(unix)]
mod ci;
mod client;
#[cfg(target_os = "linux")]
mod clustering;
mod collector;
#[cfg(all(unix, feature = "server"))]
mod deploy;
#[cfg(all(target_os = "linux", feature = "server"))]
mod descriptors;
#[cfg(feature = "server")]
mod disk;
mod docs;
mod ebpf;
mod ebpf_rights;
mod ebpf_strangers;
#[cfg(feature = "server")]
mod federation;
mod fence;
mod files;
mod files_rbspy;
mod files_samply;
mod files_tools;
#[cfg(feature = "server")]
mod flames;
#[cfg(feature = "server")]
mod flips;
mod fuzzing;
#[cfg(feature = "server")]
mod go_pgo;
#[cfg(feature = "server")]
mod go_target;
#[cfg(feature = "server")]
mod goroutines;
#[cfg(feature = "server")]
mod grpc;
#[cfg(feature = "server")]
mod harness;
#[cfg(feature = "server")]
mod http;
#[cfg(feature = "server")]
mod http_calls;
#[cfg(feature = "server")]
mod http_canary;
#[cfg(feature = "server")]
mod http_formats;
#[cfg(feature = "server")]
mod http_listen;
#[cfg(feature = "server")]
mod http_matrix;
#[cfg(feature = "server")]
mod http_openapi;
#[cfg(feature = "server")]
mod http_profefe;
#[cfg(feature = "server")]
mod http_queries;
#[cfg(feature = "server")]
mod http_render;
#[cfg(feature = "server")]
mod http_services;
#[cfg(feature = "server")]
mod http_store;
#[cfg(feature = "server")]
mod http_times;
mod java;
#[cfg(feature = "server")]
mod kill;
#[cfg(feature = "server")]
mod kill_places;
#[cfg(feature = "server")]
mod known;
mod lang;
#[cfg(feature = "server")]
mod layouts;
#[cfg(all(target_os = "linux", feature = "server"))]
mod memory;
mod metrics;
#[cfg(all(target_os = "linux", feature = "server"))]
mod native_code;
#[cfg(feature = "server")]
mod objects;
#[cfg(feature = "server")]
mod objects_lies;
#[cfg(target_arch = "x86_64")]
mod oracle;
#[cfg(feature = "server")]
mod otlp;
#[cfg(feature = "server")]
mod outage;
#[cfg(feature = "server")]
mod outage_uploads;
#[cfg(all(target_os = "linux", feature = "server"))]
mod outside;
#[cfg(feature = "server")]
mod overrides;
#[cfg(feature = "server")]
mod poison;
mod pprof;
#[cfg(feature = "server")]
mod private_files;
#[cfg_attr(
    not(feature = "server"),
    allow(dead_code, reason = "the build of the collector alone uses only a part of it")
)]
mod program;
#[cfg(feature = "server")]
mod program_use;
#[cfg(feature = "server")]
mod prometheus;
mod protos;
#[cfg(feature = "server")]
mod query;
#[cfg(feature = "server")]
mod readers;
#[cfg(feature = "server")]
mod relabel_rules;
#[cfg(feature = "server")]
mod repeats;
mod reports;
#[cfg(feature = "server")]
mod sdks;
#[cfg(feature = "server")]
mod seaweed;
#[cfg(feature = "server")]
mod shares;
#[cfg(all(target_os = "linux", feature = "server"))]
mod sql_depth;
#[cfg(feature = "server")]
mod store;
#[cfg(feature = "server")]
mod strangers;
mod tidy;
mod tui;
#[cfg(all(target_os = "linux", feature = "server"))]
mod unsynced;
#[cfg(feature = "server")]
mod workload;
