//! Components that make, change or send profiles.
