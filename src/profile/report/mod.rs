//! Reports in text as `go tool pprof` prints them: `-top`, `-tree`, `-peek` and `-list`.
//!
//! In: a profile, the sample type, and what is to be shown. Out: text, the same to the byte except for what
//! `docs/reference/compatibility.md` lists. The algorithms are those of its packages `report`, `graph` and
//! `measurement`: what is dropped decides how the rest is counted.

mod difference;
mod filter;
mod graph;
mod head;
mod listing;
mod options;
mod paths;
mod place;
mod printed;
#[cfg(test)]
mod tests;
mod text;
pub(in crate::profile) mod units;

pub use difference::{Difference, Side};
pub use filter::Focus;
pub use graph::{Order, Trim};
pub use listing::Listing;
pub use options::Options;
pub use paths::SourcePaths;
pub(crate) use paths::{clean, folders};
pub use place::Grouping;
pub use printed::{Report, ReportError};
