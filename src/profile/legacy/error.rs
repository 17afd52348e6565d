//! Why a text is no profile.

/// A text is no such profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LegacyError {
    /// The first line is that of no profile.
    #[error("the text does not begin as a profile of Go does")]
    Header,
    /// A line does not have its form.
    #[error("line {0} has not the form of a {1}")]
    Line(usize, &'static str),
    /// More of something than a text may have.
    #[error("the text has more than {0} {1}")]
    TooMany(usize, &'static str),
    /// The bytes are no text at all.
    #[error("the text is not UTF-8")]
    NotText,
}
