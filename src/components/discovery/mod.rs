//! Components that find targets or change them.

pub mod relabel;
