//! Types that all folders of `src/store` share: errors, table schemas, clocks, metrics, and faults that tests inject.
//!
//! In: nothing from the other folders. Out: types that every other folder imports.

pub(crate) mod clock;
mod disk_wait;
pub(in crate::store) mod error;
pub(in crate::store) mod expected_clock;
pub mod fault;
pub(in crate::store) mod lifecycle;
pub(in crate::store) mod metrics;
pub mod schema;
