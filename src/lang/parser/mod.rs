//! Parses tokens to a tree: recursive descent with one token of lookahead, precedence climbing for operators.
//!
//! After an error the parser continues with the next statement, so that one run reports several errors. Only the first
//! error of a line is kept, since the other errors usually follow from it. A tree with errors may be displayed, but not
//! run.

mod expressions;

pub(crate) use expressions::precedence_of;

use std::sync::Arc;

use hashbrown::HashSet;

use crate::ast::{Attribute, Block, Expression, File, Identifier, Statement};
use crate::codes::{self, Code};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::scanner::{Scanner, is_identifier};
use crate::source::{Source, Span};
use crate::token::{Token, TokenKind};

/// Maximum nesting of expressions and blocks. It limits the recursion of all code that walks a tree. Real
/// configurations stay below 20.
pub(crate) const MAX_DEPTH: u16 = 200;
/// Token texts longer than this are not interned.
const MAX_SHARED: usize = 64;

/// Parses a whole file to its end.
pub(super) fn parse(source: &Source) -> (File, Diagnostics) {
    let mut parser = Parser::new(source);
    let body = parser.body(TokenKind::EndOfFile);
    let comments = std::mem::take(&mut parser.comments);
    let file = File {
        source: source.clone(),
        body,
        comments,
    };
    (file, parser.finish())
}

/// Parses a text that consists of one expression, such as a default value.
pub fn parse_expression(source: &Source) -> (Expression, Diagnostics) {
    let mut parser = Parser::new(source);
    let expression = parser.expression();
    if parser.token.kind == TokenKind::Terminator {
        parser.next();
    }
    if parser.token.kind != TokenKind::EndOfFile {
        parser.report_unexpected("end of the expression");
    }
    (expression, parser.finish())
}

struct Parser<'a> {
    source: &'a Source,
    scanner: Scanner<'a>,
    token: Token,
    comments: Vec<Vec<Span>>,
    diagnostics: Diagnostics,
    /// Line of the last error.
    error_line: usize,
    depth: u16,
    /// True once the text nests too deeply: nothing more is parsed or reported.
    has_given_up: bool,
    /// Interned texts of tokens, each once.
    texts: HashSet<Arc<str>>,
}

impl<'a> Parser<'a> {
    fn new(source: &'a Source) -> Self {
        let mut parser = Self {
            source,
            scanner: Scanner::new(source),
            token: Token {
                kind: TokenKind::EndOfFile,
                span: Span::default(),
            },
            comments: Vec::new(),
            diagnostics: Diagnostics::new(),
            error_line: 0,
            depth: 0,
            has_given_up: false,
            texts: HashSet::new(),
        };
        parser.next();
        parser
    }

    /// Returns all diagnostics, sorted by position. Parse errors on a line with a scanner error are dropped, since they
    /// follow from the scanner error.
    fn finish(self) -> Diagnostics {
        let mut diagnostics = self.scanner.into_diagnostics();
        let lines: Vec<usize> = diagnostics
            .iter()
            .map(|diagnostic| self.source.line(diagnostic.span.start))
            .collect();
        for diagnostic in self.diagnostics {
            if !lines.contains(&self.source.line(diagnostic.span.start)) {
                diagnostics.push(diagnostic);
            }
        }
        diagnostics.sort();
        diagnostics
    }

    fn next(&mut self) {
        self.token = self.scanner.scan();
        while self.token.kind == TokenKind::Comment {
            self.comment_group();
        }
    }

    fn comment_group(&mut self) {
        let mut group = Vec::new();
        let mut last_line = self.source.line(self.token.span.start);
        while self.token.kind == TokenKind::Comment && self.source.line(self.token.span.start) <= last_line + 1 {
            last_line = self.source.line(self.token.span.end);
            group.push(self.token.span);
            self.token = self.scanner.scan();
        }
        self.comments.push(group);
    }

    fn is_at(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    fn at_end_or(&self, kind: TokenKind) -> bool {
        self.is_at(kind) || self.is_at(TokenKind::EndOfFile)
    }

    fn text(&mut self, span: Span) -> Arc<str> {
        let text = self.source.slice(span);
        self.shared(text)
    }

    /// Interns a text, since names and short values occur repeatedly.
    fn shared(&mut self, text: &str) -> Arc<str> {
        if text.len() > MAX_SHARED {
            return text.into();
        }
        if let Some(shared) = self.texts.get(text) {
            shared.clone()
        } else {
            let text: Arc<str> = text.into();
            self.texts.insert(text.clone());
            text
        }
    }

    fn report(&mut self, code: Code, span: Span, message: impl Into<String>, hint: Option<&str>) {
        let line = self.source.line(span.start);
        if line == self.error_line || self.has_given_up {
            return;
        }
        self.error_line = line;
        self.diagnostics
            .push(Diagnostic::error(code, self.source, span, message).maybe_hint(hint.map(str::to_owned)));
    }

    fn report_unexpected(&mut self, expected: &str) {
        let message = format!("expected {expected}, got {}", self.token.kind);
        self.report(codes::EXPECTED_TOKEN, self.token.span, message, None);
    }

    /// Consumes the current token, which should be a `kind`; reports an error if it is not.
    fn expect(&mut self, kind: TokenKind) -> Token {
        let token = self.token;
        if token.kind != kind {
            self.report_unexpected(&kind.to_string());
        }
        self.next();
        token
    }

    fn skip_to(&mut self, kinds: &[TokenKind]) {
        while !self.is_at(TokenKind::EndOfFile) && !kinds.contains(&self.token.kind) {
            self.next();
        }
    }

    /// Skips to the terminator that ends the current statement, across all bracketed text.
    fn skip_statement(&mut self) {
        let (mut curly, mut round, mut square) = (0i64, 0i64, 0i64);
        while !self.is_at(TokenKind::EndOfFile) {
            match self.token.kind {
                TokenKind::LeftCurly => curly += 1,
                TokenKind::RightCurly => curly -= 1,
                TokenKind::LeftParen => round += 1,
                TokenKind::RightParen => round -= 1,
                TokenKind::LeftBracket => square += 1,
                TokenKind::RightBracket => square -= 1,
                TokenKind::Terminator if curly <= 0 && round <= 0 && square <= 0 => return,
                _ => {}
            }
            self.next();
        }
    }

    // === Statements ===

    fn body(&mut self, end_kind: TokenKind) -> Vec<Statement> {
        let mut body = Vec::new();
        while !self.at_end_or(end_kind) {
            if let Some(statement) = self.statement() {
                body.push(statement);
            }
            if self.is_at(end_kind) {
                break;
            }
            if !self.is_at(TokenKind::Terminator) {
                self.report_unexpected("end of line");
                self.skip_statement();
            }
            self.next();
        }
        body
    }

    fn statement(&mut self) -> Option<Statement> {
        if !self.is_at(TokenKind::Identifier) {
            let message = format!("expected the name of an attribute or a block, got {}", self.token.kind);
            self.report(codes::EXPECTED_STATEMENT, self.token.span, message, None);
            // Consume at least one token, so that a stray closing bracket cannot cause an endless loop.
            if self.is_at(TokenKind::LeftCurly) {
                self.skip_statement();
                return None;
            }
            self.next();
            self.skip_to(&[TokenKind::Identifier]);
            return self.is_at(TokenKind::Identifier).then(|| self.statement()).flatten();
        }
        let (name, parts) = self.block_name();
        let label = self.label();
        match self.token.kind {
            TokenKind::Assign => Some(Statement::Attribute(self.attribute(name, parts, label))),
            TokenKind::LeftCurly => self.block(name, label.flatten()).map(Statement::Block),
            kind => {
                let (message, hint) = if parts == 1 && label.is_none() {
                    (
                        format!("expected attribute assignment or block body, got {kind}"),
                        "write `name = value` or `name { ... }`",
                    )
                } else {
                    (
                        format!("expected block body, got {kind}"),
                        "the `{` of a block must be on the line of its name",
                    )
                };
                let hint = if self.bracket_below() {
                    "the `{` of a block must be on the line of its name"
                } else {
                    hint
                };
                self.report(codes::EXPECTED_STATEMENT, self.token.span, message, Some(hint));
                if self.bracket_below() {
                    // The intention is clear, so continue, to report errors inside the block.
                    self.next();
                    return self.block(name, label.flatten()).map(Statement::Block);
                }
                self.skip_statement();
                None
            }
        }
    }

    /// True at the end of a line if the next line begins with `{`.
    fn bracket_below(&self) -> bool {
        let rest = self.source.text().get(self.token.span.start..).unwrap_or_default();
        self.is_at(TokenKind::Terminator) && rest.trim_start().starts_with('{')
    }

    /// Parses `identifier { "." identifier }`; returns the name and the number of its parts.
    fn block_name(&mut self) -> (Identifier, usize) {
        let mut parts = vec![self.text(self.token.span)];
        let mut span = self.token.span;
        self.next();
        while self.is_at(TokenKind::Dot) {
            self.next();
            if !self.is_at(TokenKind::Identifier) {
                self.report_unexpected("identifier");
                if self.at_end_or(TokenKind::Terminator) {
                    break;
                }
            }
            parts.push(self.text(self.token.span));
            span = span.to(self.token.span);
            self.next();
        }
        let name = if parts.len() == 1 {
            parts[0].clone()
        } else {
            let text = self.source.slice(span);
            // White space around the dots is not part of the name.
            if text.len() == parts.iter().map(|part| part.len() + 1).sum::<usize>() - 1 {
                self.shared(text)
            } else {
                parts.join(".").into()
            }
        };
        (Identifier { name, span }, parts.len())
    }

    /// Parses the label after a name. Returns `None` without a label, and `Some(None)` for an empty label. For a label
    /// that is not in double quotes, reports an error and returns `Some(None)`.
    fn label(&mut self) -> Option<Option<Identifier>> {
        if !self.is_at(TokenKind::String) {
            return None;
        }
        let span = self.token.span;
        let text = self.source.slice(span);
        self.next();
        let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
            let message = format!("expected block label to be a double quoted string, but got {text}");
            self.report(codes::BAD_LABEL, span, message, None);
            return Some(None);
        };
        if inner.is_empty() {
            return Some(None);
        }
        if !is_identifier(inner) {
            let message = format!("expected block label to be a valid identifier, but got {text}");
            let hint = Some("use letters, digits and `_`, and begin with a letter or `_`");
            self.report(codes::BAD_LABEL, span, message, hint);
        }
        Some(Some(Identifier {
            name: self.shared(inner),
            span,
        }))
    }

    fn attribute(&mut self, name: Identifier, parts: usize, label: Option<Option<Identifier>>) -> Attribute {
        if parts != 1 {
            let message = "attribute names may only consist of a single identifier with no `.`";
            self.report(codes::BAD_ATTRIBUTE_NAME, name.span, message, None);
        } else if label.is_some() {
            let message = "attribute names may not have labels";
            self.report(codes::BAD_ATTRIBUTE_NAME, name.span, message, None);
        }
        self.next();
        let value = self.expression();
        Attribute { name, value }
    }

    fn block(&mut self, name: Identifier, label: Option<Identifier>) -> Option<Block> {
        if self.depth >= MAX_DEPTH {
            self.too_deep();
            return None;
        }
        let open = self.token.span.start;
        self.next();
        self.depth += 1;
        let body = self.body(TokenKind::RightCurly);
        self.depth -= 1;
        let unclosed = self.is_at(TokenKind::EndOfFile);
        let close = self.token.span.start;
        if unclosed && !self.has_given_up {
            // Report the error at the opening bracket. The end of the file would not show which block is not closed.
            let message = "block is never closed".to_owned();
            self.report(
                codes::EXPECTED_TOKEN,
                name.span.to(Span::new(open, open + 1)),
                message,
                Some("add `}` on a line of its own"),
            );
        } else if !unclosed {
            self.expect(TokenKind::RightCurly);
        }
        Some(Block {
            name,
            label,
            open,
            body,
            close,
        })
    }
}
