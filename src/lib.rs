//! Alluvium: profiles flow down a river and settle in layers.
//!
//! The modules stand in the order in which a profile meets them: configuration text (`lang`) becomes a graph
//! (`pipeline`) of running `components`; a component hands `profile`s to a receiver; `wire` carries them; the `store`
//! keeps them as Parquet in Delta tables; `query` answers questions; `server` gives them URLs. `docs/architecture.md`
//! has the map, and `integration/tidy` holds the direction of imports as data.

#![cfg_attr(
    not(feature = "server"),
    allow(
        dead_code,
        unused_imports,
        reason = "the server uses more of the lower layers: its build shows what is dead"
    )
)]

pub mod base;
pub mod telemetry;

pub mod cluster;

pub mod lang;
pub mod profile;

pub mod pipeline;
pub mod symbols;
pub mod unwind;

pub mod ebpf;

pub mod wire;

pub mod admin;

pub mod components;

#[cfg(feature = "server")]
pub mod query;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod store;

pub mod app;
pub mod cli;
