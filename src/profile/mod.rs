//! Profiles in memory, as all stages of the program share them.
//!
//! Components pass on a profile as [`RawProfile`]: labels and one shared buffer of the original pprof bytes. Only
//! stages that need the contents decode them ([`pprof`]). A profile received in another format is already decoded:
//! [`DecodedProfile`]. This layer does no I/O, uses no serde, and does not depend on tables or protocols.

pub(crate) mod call_tree;
pub mod combine;
pub(crate) mod decoded;
pub mod delta;
pub mod flamegraph;
pub mod fleet;
pub(crate) mod format;
pub(crate) mod ids;
pub mod jfr;
pub(crate) mod labels;
pub mod legacy;
pub(crate) mod package;
pub mod pprof;
pub(crate) mod profile_type;
pub(crate) mod raw;
pub(crate) mod record;
pub(crate) mod relabel;
pub mod report;
pub mod selector;
pub mod sink;
pub mod synthetic;
pub(crate) mod tenant;
pub(crate) mod time;
pub mod top;
pub mod upload;

pub(crate) use decoded::DecodedProfile;
pub use ids::{SeriesId, StackId};
pub use labels::Labels;
pub(crate) use profile_type::ProfileType;
pub use profile_type::ProfileTypeId;
pub use raw::RawProfile;
pub use sink::{ProfileSink, RefusedProfile, SinkError, SinkErrorKind};
pub(crate) use tenant::TenantError;
pub use tenant::{TenantId, Tenants};
pub use time::TimeSpan;
