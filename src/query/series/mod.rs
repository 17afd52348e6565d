//! Selects series and profiles.
//!
//! In: matchers and a time range. Out: ids of series, label names and values, profile types, and stored profiles.

pub(in crate::query) mod moments;
pub(in crate::query) mod selection;
pub(in crate::query) mod stored_profiles;
