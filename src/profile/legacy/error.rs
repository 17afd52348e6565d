//! Errors of reading a textual profile.

/// The reason why a text is not a profile of a known form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LegacyError {
    /// The first line is not the first line of a known kind of profile.
    #[error("the text does not begin like a profile of Go")]
    Header,
    /// A line does not have the expected form.
    #[error("line {0} does not have the form of a {1}")]
    Line(usize, &'static str),
    /// The text exceeds a limit.
    #[error("the text has more than {0} {1}")]
    TooMany(usize, &'static str),
    /// The bytes are not UTF-8 text.
    #[error("the text is not UTF-8")]
    NotText,
}
