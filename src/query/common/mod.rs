//! Types that the whole query layer shares: queries and results as plain values, errors, streams and cancellation.
//!
//! In: nothing from the other folders of the layer. Out: types that every other folder of the layer imports.

pub(in crate::query) mod blocking;
pub(in crate::query) mod checked;
pub(in crate::query) mod columns;
pub(in crate::query) mod error;
pub(in crate::query) mod frame_filter;
pub(in crate::query) mod sql_result;
pub(in crate::query) mod stream;
pub(in crate::query) mod time;
pub(in crate::query) mod types;
