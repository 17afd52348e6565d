//! The profile in memory: what every stage after the configuration shares.
//!
//! A profile travels as [`RawProfile`]: labels and one shared buffer of the original pprof bytes. Only who needs the
//! contents decodes them ([`pprof`]). What came in another format is decoded already: [`DecodedProfile`]. No I/O here,
//! no serde, no knowledge of tables or protocols.

pub mod decoded;
pub mod delta;
pub mod flamegraph;
pub mod fleet;
pub mod format;
pub mod ids;
pub mod labels;
pub mod package;
pub mod pprof;
pub mod profile_type;
pub mod raw;
pub mod record;
pub mod selector;
pub mod sink;
pub mod synthetic;
pub mod tenant;
pub mod time;
pub mod top;

pub use decoded::DecodedProfile;
pub use ids::{SeriesId, StackId};
pub use labels::Labels;
pub use profile_type::ProfileType;
pub use raw::RawProfile;
pub use sink::{ProfileSink, SinkError, SinkErrorKind};
pub use tenant::{DEFAULT_TENANT, TenantError, TenantId};
pub use time::TimeSpan;
