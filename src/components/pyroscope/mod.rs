//! Components that make, change or send profiles.

pub mod scrape;
pub mod write;
