//! Tokens of the language.

use std::fmt;

use crate::source::Span;

/// A token and its position in the source, which contains the token's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The kind of this token, without its text.
    pub kind: TokenKind,
    /// The range of bytes that it covers.
    pub span: Span,
}

/// The kinds of tokens that the scanner distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Invalid text that has been reported already; the parser skips it.
    Illegal,
    EndOfFile,
    Comment,
    /// End of a statement: a newline, or the end of the file, after a token that can end a statement.
    Terminator,
    Identifier,
    Number,
    Float,
    String,
    Bool,
    Null,
    Or,
    And,
    Not,
    Assign,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    LeftCurly,
    RightCurly,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    Comma,
    Dot,
}

impl TokenKind {
    /// Returns the text of a token with a fixed text, or a description of any other token.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Illegal => "illegal character",
            Self::EndOfFile => "end of file",
            Self::Comment => "comment",
            Self::Terminator => "end of line",
            Self::Identifier => "identifier",
            Self::Number => "number",
            Self::Float => "float",
            Self::String => "string",
            Self::Bool => "bool",
            Self::Null => "null",
            Self::Or => "||",
            Self::And => "&&",
            Self::Not => "!",
            Self::Assign => "=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Power => "^",
            Self::LeftCurly => "{",
            Self::RightCurly => "}",
            Self::LeftParen => "(",
            Self::RightParen => ")",
            Self::LeftBracket => "[",
            Self::RightBracket => "]",
            Self::Comma => ",",
            Self::Dot => ".",
        }
    }

    /// True if a newline after this token ends the statement.
    pub(crate) const fn ends_statement(self) -> bool {
        matches!(
            self,
            Self::Identifier
                | Self::Number
                | Self::Float
                | Self::String
                | Self::Bool
                | Self::Null
                | Self::RightCurly
                | Self::RightParen
                | Self::RightBracket
        )
    }
}

/// Prints fixed texts in quotes.
impl fmt::Display for TokenKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Illegal
            | Self::EndOfFile
            | Self::Comment
            | Self::Terminator
            | Self::Identifier
            | Self::Number
            | Self::Float
            | Self::String
            | Self::Bool
            | Self::Null => out.write_str(self.text()),
            _ => write!(out, "`{}`", self.text()),
        }
    }
}
