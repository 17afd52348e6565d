//! Shared types of all rooms of the query layer: queries and answers as plain values, errors, streams and cancellation.
//!
//! In: nothing from the other rooms. Out: types that every other room of the layer imports.

pub(in crate::query) mod answer;
pub(in crate::query) mod blocking;
pub(in crate::query) mod checked;
pub(in crate::query) mod columns;
pub(in crate::query) mod error;
pub(in crate::query) mod stream;
pub(in crate::query) mod time;
pub(in crate::query) mod types;
