//! A report of one profile: its places as a table, or each place with its callers and callees. Depending on the option
//! `grouping`, a place is a function, a line, a file, an address or a package.

use alluvium_base::re2::Expression;

use crate::pprof::Profile;
use crate::report::graph::{Graph, Order, Samples, Trim, TrimmedGraph};
use crate::report::head::Head;
use crate::report::options::Options;
use crate::report::row_source::RowSources;
use crate::report::{filter, text};

/// The reason why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// No row has a name that matches the regular expression.
    #[error("no matches found for regexp: {0}")]
    NoMatch(String),
}

/// A profile that is ready for reports.
pub struct Report<'a> {
    samples: Samples<'a>,
    head: Head,
    order: Order,
    trim: Trim,
    unmatched: Vec<&'static str>,
}

impl<'a> Report<'a> {
    /// Creates a report of the sample type with the index `value`. The profile must have this type.
    pub fn new(mut profile: Profile<'a>, value: usize, options: &Options) -> Self {
        filter::drop_frames(&mut profile);
        // Shares refer to all samples, including samples that are not shown.
        let head = Head::new(&profile, value, options);
        let unmatched = options.focus.apply(&mut profile);
        let sources = RowSources::new(&profile, options.grouping);
        let samples = Samples {
            profile,
            value,
            sources,
        };
        Self {
            samples,
            head,
            order: options.order,
            trim: options.trim,
            unmatched,
        }
    }

    /// Returns the names of the flags (`focus`, `ignore`) whose expression matches no frame.
    pub fn unmatched(&self) -> &[&'static str] {
        &self.unmatched
    }

    /// Formats one line per place: flat value with its share of the total, sum of these shares so far, cumulative value
    /// with its share, and name.
    pub fn top(&self) -> String {
        text::top(&self.head, &self.samples, &self.trimmed(self.trim), self.trim)
    }

    /// Formats each place between its callers and its callees.
    pub fn tree(&self) -> String {
        let trimmed = self.trimmed(self.trim);
        text::tree(&self.head, &self.samples, &trimmed, self.trim, |_| true).0
    }

    /// Formats each place whose name matches `pattern` between its callers and its callees. Small places are not
    /// omitted.
    pub fn peek(&self, pattern: &Expression) -> Result<String, ReportError> {
        let trimmed = self.trimmed(Trim::NONE);
        let is_wanted = |name: &str| pattern.is_match(name);
        match text::tree(&self.head, &self.samples, &trimmed, Trim::NONE, is_wanted) {
            (_, 0) => Err(ReportError::NoMatch(pattern.as_str().to_owned())),
            (text, _) => Ok(text),
        }
    }

    fn trimmed(&self, trim: Trim) -> TrimmedGraph {
        Graph::trimmed(&self.samples, self.order, trim)
    }
}
