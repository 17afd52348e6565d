//! `pyroscope.*`: components that make, receive, change or send profiles.

pub(crate) mod ebpf;
pub(crate) mod enrich;
pub(crate) mod java;
pub(crate) mod receive_http;
pub(crate) mod relabel;
pub(crate) mod scrape;
pub(crate) mod write;
