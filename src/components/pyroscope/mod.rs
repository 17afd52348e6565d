//! Components that make, change or send profiles.

pub mod ebpf;
pub mod relabel;
pub mod scrape;
pub mod write;
