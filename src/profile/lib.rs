//! Profiles in memory, as all stages of the program share them.
//!
//! Components pass on a profile as [`RawProfile`]: labels and one shared buffer of the original pprof bytes. Only
//! stages that need the contents decode them ([`pprof`]). A profile received in another format is passed on
//! decoded, as a [`DecodedProfile`]. This layer does no I/O, uses no serde, and does not depend on tables or protocols.

pub mod call_tree;
pub mod combine;
pub mod decoded;
pub mod delta;
pub mod flamegraph;
pub mod format;
pub mod ids;
pub mod jfr;
pub mod labels;
pub mod legacy;
pub mod package;
pub mod pprof;
pub mod profile_type;
pub(crate) mod raw;
pub mod record;
pub mod relabel;
pub mod report;
pub mod selector;
pub mod sink;
#[cfg(test)]
#[path = "../testing/synthetic.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the crate `testing` offers the same file to other crates"
)]
mod synthetic;
pub mod tenant;
pub mod time;
pub mod top;
pub mod upload;

pub use decoded::DecodedProfile;
pub use ids::{SeriesId, StackId};
pub use labels::Labels;
pub use profile_type::ProfileType;
pub use profile_type::ProfileTypeId;
pub use raw::RawProfile;
pub use sink::{ProfileSink, RefusedProfile, SinkError, SinkErrorKind};
pub use tenant::TenantError;
pub use tenant::{TenantId, Tenants};
pub use time::TimeSpan;
