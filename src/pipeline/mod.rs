//! Trees to running components: the graph, its evaluation, reload, health.

pub mod component;
