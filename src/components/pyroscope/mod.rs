//! Components that make, change or send profiles.

pub mod write;
