//! Scans text to tokens, with terminator insertion as in Go.
//!
//! Scanning never fails as a whole: invalid text is reported and becomes [`TokenKind::Illegal`]. Comments are tokens,
//! so that the printer can put them back. The rules are the same as in Alloy's scanner; Alloy's language reference
//! describes them.

use crate::codes::{self, Code};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Source, Span};
use crate::token::{Token, TokenKind};

/// Returns the tokens of a text and its errors. Comments and terminators are tokens, the end of the file is not.
pub fn tokens(source: &Source) -> (Vec<Token>, Diagnostics) {
    let mut scanner = Scanner::new(source);
    let mut tokens = Vec::new();
    loop {
        let token = scanner.scan();
        if token.kind == TokenKind::EndOfFile {
            return (tokens, scanner.into_diagnostics());
        }
        tokens.push(token);
    }
}

/// Reads tokens one by one; after the end it always returns [`TokenKind::EndOfFile`].
pub(crate) struct Scanner<'a> {
    source: &'a Source,
    text: &'a str,
    offset: usize,
    /// True if the last token can end a statement, so that the next newline is a terminator.
    insert_terminator: bool,
    /// True if the text contains a NUL or a byte order mark: strings and comments are then searched for them.
    has_invalid_characters: bool,
    diagnostics: Diagnostics,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner at the start of `source`; it skips a byte order mark there.
    pub(super) fn new(source: &'a Source) -> Self {
        let text = source.text();
        Self {
            source,
            text,
            offset: if text.starts_with('\u{feff}') { 3 } else { 0 },
            insert_terminator: false,
            has_invalid_characters: memchr::memchr(0, text.as_bytes()).is_some()
                || text.trim_start_matches('\u{feff}').contains('\u{feff}'),
            diagnostics: Diagnostics::new(),
        }
    }

    /// Returns the errors in the text read so far.
    pub(crate) fn into_diagnostics(self) -> Diagnostics {
        self.diagnostics
    }

    /// Returns the next token; after the end, always the end of the file.
    pub(super) fn scan(&mut self) -> Token {
        self.skip_blanks();
        let start = self.offset;
        let Some(first) = self.advance() else {
            let kind = if std::mem::take(&mut self.insert_terminator) {
                TokenKind::Terminator
            } else {
                TokenKind::EndOfFile
            };
            return self.token(kind, start);
        };
        let kind = match first {
            '\n' => {
                self.insert_terminator = false;
                return self.token(TokenKind::Terminator, start);
            }
            '/' if matches!(self.peek(), Some('/' | '*')) => {
                if self.insert_terminator && self.comment_ends_line(start) {
                    self.offset = start;
                    self.insert_terminator = false;
                    return Token {
                        kind: TokenKind::Terminator,
                        span: Span::new(start, start),
                    };
                }
                self.offset = start;
                self.comment();
                TokenKind::Comment
            }
            letter if is_letter(letter) => self.word(start),
            digit if digit.is_ascii_digit() => self.number(start),
            '.' if self.peek().is_some_and(|next| next.is_ascii_digit()) => self.number(start),
            '"' => {
                self.string(start, '"');
                TokenKind::String
            }
            '`' => {
                self.raw_string(start);
                TokenKind::String
            }
            '\'' => {
                self.report(
                    codes::ILLEGAL_CHARACTER,
                    start,
                    "illegal single-quoted string; use double quotes",
                );
                self.string(start, '\'');
                self.insert_terminator = true;
                return self.token(TokenKind::Illegal, start);
            }
            '|' => self.pair('|', TokenKind::Or),
            '&' => self.pair('&', TokenKind::And),
            '!' => self.with_equal(TokenKind::Not, TokenKind::NotEqual),
            '=' => self.with_equal(TokenKind::Assign, TokenKind::Equal),
            '<' => self.with_equal(TokenKind::Less, TokenKind::LessEqual),
            '>' => self.with_equal(TokenKind::Greater, TokenKind::GreaterEqual),
            '+' => TokenKind::Add,
            '-' => TokenKind::Subtract,
            '*' => TokenKind::Multiply,
            '/' => TokenKind::Divide,
            '%' => TokenKind::Modulo,
            '^' => TokenKind::Power,
            '{' => TokenKind::LeftCurly,
            '}' => TokenKind::RightCurly,
            '(' => TokenKind::LeftParen,
            ')' => TokenKind::RightParen,
            '[' => TokenKind::LeftBracket,
            ']' => TokenKind::RightBracket,
            ',' => TokenKind::Comma,
            '.' => TokenKind::Dot,
            other => {
                let message = match other {
                    '\0' => "illegal character NUL".to_owned(),
                    '\u{feff}' => "illegal byte order mark".to_owned(),
                    ';' => "illegal character `;`; statements end with a new line".to_owned(),
                    ':' => "illegal character `:`; attributes and fields take `=`".to_owned(),
                    other => format!("illegal character {other:?}"),
                };
                self.report(codes::ILLEGAL_CHARACTER, start, message);
                // An illegal character does not change `insert_terminator`.
                return self.token(TokenKind::Illegal, start);
            }
        };
        self.insert_terminator = kind.ends_statement();
        self.token(kind, start)
    }

    fn token(&mut self, kind: TokenKind, start: usize) -> Token {
        if self.has_invalid_characters && matches!(kind, TokenKind::String | TokenKind::Comment) {
            self.report_invalid_characters(start);
        }
        Token {
            kind,
            span: Span::new(start, self.offset),
        }
    }

    /// Reports NULs and byte order marks inside a string or a comment, where they are errors as well.
    fn report_invalid_characters(&mut self, start: usize) {
        let inside = self.text.get(start..self.offset).unwrap_or_default();
        for (offset, letter) in inside.char_indices() {
            let name = match letter {
                '\0' => "NUL",
                '\u{feff}' => "byte order mark",
                _ => continue,
            };
            let span = Span::new(start + offset, start + offset + letter.len_utf8());
            let message = format!("illegal character {name}");
            self.diagnostics
                .push(Diagnostic::error(codes::ILLEGAL_CHARACTER, self.source, span, message));
        }
    }

    fn report(&mut self, code: Code, start: usize, message: impl Into<String>) {
        let end = self.offset.max(start);
        self.diagnostics
            .push(Diagnostic::error(code, self.source, Span::new(start, end), message));
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.offset += next.len_utf8();
        Some(next)
    }

    fn skip_while(&mut self, accept: impl Fn(char) -> bool) -> usize {
        let rest = self.rest();
        let length = rest.find(|letter| !accept(letter)).unwrap_or(rest.len());
        self.offset += length;
        length
    }

    fn skip_blanks(&mut self) {
        let newline = !self.insert_terminator;
        self.skip_while(|letter| matches!(letter, ' ' | '\t' | '\r') || (newline && letter == '\n'));
    }

    fn word(&mut self, start: usize) -> TokenKind {
        self.skip_while(|letter| is_letter(letter) || is_digit(letter));
        match &self.text[start..self.offset] {
            "true" | "false" => TokenKind::Bool,
            "null" => TokenKind::Null,
            _ => TokenKind::Identifier,
        }
    }

    fn number(&mut self, start: usize) -> TokenKind {
        self.offset = start;
        let mut kind = TokenKind::Number;
        self.skip_while(|letter| letter.is_ascii_digit());
        if self.peek() == Some('.') {
            kind = TokenKind::Float;
            self.advance();
            self.skip_while(|letter| letter.is_ascii_digit());
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            kind = TokenKind::Float;
            self.advance();
            if matches!(self.peek(), Some('+' | '-')) {
                self.advance();
            }
            if self.skip_while(|letter| letter.is_ascii_digit()) == 0 {
                self.report(codes::BAD_NUMBER, start, "exponent has no digits");
            }
        }
        kind
    }

    fn string(&mut self, start: usize, quote: char) {
        loop {
            match self.peek() {
                None | Some('\n') => {
                    self.report(codes::UNTERMINATED_STRING, start, "string literal not terminated");
                    return;
                }
                Some('\\') => {
                    self.advance();
                    self.escape();
                }
                Some(letter) => {
                    self.advance();
                    if letter == quote {
                        return;
                    }
                }
            }
        }
    }

    fn raw_string(&mut self, start: usize) {
        let rest = self.rest();
        if let Some(length) = memchr::memchr(b'`', rest.as_bytes()) {
            self.offset += length + 1;
        } else {
            self.offset = self.text.len();
            self.report(codes::UNTERMINATED_STRING, start, "string literal not terminated");
        }
    }

    /// Scans an escape after its backslash. Stops before an invalid character.
    fn escape(&mut self) {
        let start = self.offset;
        let (digits, base, max) = match self.peek() {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' | '"') => {
                self.advance();
                return;
            }
            Some('0'..='7') => (3, 8, 255),
            Some('x') => (2, 16, 255),
            Some('u') => (4, 16, 0x0010_ffff),
            Some('U') => (8, 16, 0x0010_ffff),
            Some(_) => {
                self.report(codes::BAD_ESCAPE, start, "unknown escape sequence");
                return;
            }
            None => return,
        };
        if base == 16 {
            self.advance();
        }
        let mut value = 0u64;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|letter| letter.to_digit(base)) else {
                let message = match self.peek() {
                    Some(letter) => format!("illegal character {letter:?} in escape sequence"),
                    None => "escape sequence not terminated".to_owned(),
                };
                self.report(codes::BAD_ESCAPE, start, message);
                return;
            };
            value = value * u64::from(base) + u64::from(digit);
            self.advance();
        }
        if value > max || (0xd800..0xe000).contains(&value) {
            self.report(
                codes::BAD_ESCAPE,
                start,
                "escape sequence is not a valid Unicode code point",
            );
        }
    }

    /// Scans a comment, from its first slash. The newline that ends a line comment is not part of it.
    fn comment(&mut self) {
        let start = self.offset;
        let rest = self.rest();
        if rest.starts_with("//") {
            self.offset = self.source.line_end(start);
            return;
        }
        if let Some(length) = rest.get(2..).and_then(|body| body.find("*/")) {
            self.offset += length + 4;
        } else {
            self.offset = self.text.len();
            self.report(codes::UNTERMINATED_COMMENT, start, "block comment not terminated");
        }
    }

    /// True if only comments are between `start` (a comment) and the end of its line, or if one of them contains the
    /// end of the line.
    fn comment_ends_line(&self, start: usize) -> bool {
        let mut rest = self.text.get(start..).unwrap_or_default();
        loop {
            if rest.starts_with("//") {
                return true;
            }
            let Some(body) = rest.strip_prefix("/*") else {
                return rest.is_empty() || rest.starts_with('\n');
            };
            let Some(length) = body.find("*/") else { return true };
            if body[..length].contains('\n') {
                return true;
            }
            rest = body[length + 2..].trim_start_matches([' ', '\t', '\r']);
        }
    }

    fn pair(&mut self, second: char, kind: TokenKind) -> TokenKind {
        if self.peek() == Some(second) {
            self.advance();
        } else {
            let start = self.offset.saturating_sub(1);
            self.report(
                codes::ILLEGAL_CHARACTER,
                start,
                format!("missing second `{second}` in `{}`", kind.text()),
            );
        }
        kind
    }

    fn with_equal(&mut self, plain_kind: TokenKind, compound_kind: TokenKind) -> TokenKind {
        if self.peek() == Some('=') {
            self.advance();
            compound_kind
        } else {
            plain_kind
        }
    }
}

/// True for a text that can name an attribute or a block label.
pub fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(is_letter)
        && letters.all(|letter| is_letter(letter) || is_digit(letter))
        && !matches!(text, "true" | "false" | "null")
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_' || (!letter.is_ascii() && letter.is_alphabetic())
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit() || (!letter.is_ascii() && letter.is_numeric())
}
