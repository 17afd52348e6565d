//! Components that make, change or send profiles.

pub mod relabel;
pub mod scrape;
pub mod write;
