//! Reports in text as `go tool pprof` prints them: `-top`, `-tree`, `-peek` and `-list`.
//!
//! In: a profile, the sample type, and options. Out: text that equals the output of `go tool pprof` to the byte, except
//! for the differences listed in `docs/reference/compatibility.md`. The algorithms are the same as in pprof's packages
//! `report`, `graph` and `measurement`, because the functions that a report drops influence the numbers of the other
//! functions.

mod difference;
mod filter;
mod graph;
mod head;
mod listing;
mod options;
mod paths;
mod printed;
mod row_source;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod units;

pub use difference::{Difference, Side};
pub use filter::Focus;
pub use graph::{Order, Trim};
pub use listing::Listing;
pub use options::Options;
pub use paths::SourcePaths;
pub use paths::{clean, folders};
pub use printed::{Report, ReportError};
pub use row_source::Grouping;
