//! The reason why a text is not a path. A path is never a secret, so an error may show the
//! invalid part.

use alluvium_base::re2::Re2Error;

/// Maximum nesting of parentheses and negations.
pub(super) const MAX_DEPTH: usize = 50;

/// The reason why a text is not a path.
#[derive(Debug, thiserror::Error)]
pub(super) enum PathError {
    #[error("`[` is not closed in path `{0}`")]
    OpenBracket(String),
    #[error("a name is missing in path `{0}`")]
    NoName(String),
    /// A name without quotes contains a character that needs quotes.
    #[error("`{character}` is not allowed in an unquoted name in path `{path}`: write ['{name}']")]
    Character {
        character: char,
        path: String,
        name: String,
    },
    #[error("scripts (`[{0}]`) are not supported; write a filter or an index")]
    Script(String),
    #[error("`[{0}]` is not an index, a slice or a quoted name")]
    Selector(String),
    #[error("an index is missing between `[` and `]`")]
    NoIndex,
    /// The brackets contain more than two colons.
    #[error("`[{0}]` is not a slice")]
    Slice(String),
    /// A filter continues after its condition.
    #[error("unexpected `{0}` in a filter")]
    Rest(String),
    #[error("a filter nests more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("a filter ends where a value is expected")]
    NoValue,
    #[error("`{0}` is not closed in a filter")]
    OpenQuote(char),
    #[error("`{0}` is not a value in a filter")]
    Value(String),
    #[error("`{0}` is missing in a filter")]
    NoBracket(char),
    #[error("`{pattern}` is not a regular expression")]
    Regex { pattern: String, source: Re2Error },
}
