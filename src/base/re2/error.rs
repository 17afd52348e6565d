//! Errors about invalid or too large expressions.

/// The reason why an expression is refused. The kinds of syntax errors and their texts are those of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Re2Error {
    /// A part of the expression is invalid.
    #[error("{kind}{}", shown(.part))]
    Syntax {
        /// The kind of mistake, as in Go.
        kind: SyntaxError,
        /// The part of the expression; may be empty.
        part: String,
    },
    /// The compiled program would need too much memory.
    #[error("the compiled regular expression exceeds the size limit of {limit} bytes")]
    TooLarge {
        /// Maximum size of the program in bytes.
        limit: usize,
    },
}

/// Kinds of syntax errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    #[error("invalid character class range")]
    ClassRange,
    #[error("invalid escape sequence")]
    Escape,
    #[error("invalid named capture")]
    NamedCapture,
    #[error("invalid or unsupported Perl syntax")]
    PerlOperator,
    #[error("invalid nested repetition operator")]
    NestedRepetition,
    #[error("invalid repeat count")]
    RepeatCount,
    #[error("missing closing ]")]
    MissingBracket,
    #[error("missing closing )")]
    MissingParenthesis,
    #[error("missing argument to repetition operator")]
    MissingArgument,
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    #[error("unexpected )")]
    UnexpectedParenthesis,
    #[error("expression nests too deeply")]
    TooDeep,
}

impl SyntaxError {
    /// Creates the error about a part of an expression.
    pub(super) fn in_part(self, part: &str) -> Re2Error {
        Re2Error::Syntax {
            kind: self,
            part: part.to_owned(),
        }
    }
}

fn shown(part: &str) -> String {
    if part.is_empty() {
        String::new()
    } else {
        format!(": `{part}`")
    }
}
