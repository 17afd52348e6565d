//! Tokens to a tree: recursive descent with one token of look-ahead, precedence climbing for operators.
//!
//! The parser goes on after an error at the next statement, so that one run shows several; only the first error of a line is kept, since
//! the others are mostly its echo. A tree that came with errors is good for showing, not for running.

use std::sync::Arc;

use crate::lang::ast::{Attribute, Block, Expression, ExpressionKind, Field, File, Identifier, Statement};
use crate::lang::codes::{self, Code};
use crate::lang::diagnostic::{Diagnostic, Diagnostics};
use crate::lang::scanner::{Scanner, is_identifier};
use crate::lang::source::{Source, Span};
use crate::lang::token::{Token, TokenKind};

/// Deepest nesting of expressions and blocks. It bounds the recursion of everything that walks a tree; people stay below 20.
pub const MAX_DEPTH: u16 = 200;

/// Parses a whole file.
pub fn parse(source: &Source) -> (File, Diagnostics) {
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

/// Parses a text that is one expression, such as a default value.
pub fn parse_expression(source: &Source) -> (Expression, Diagnostics) {
    let mut parser = Parser::new(source);
    let expression = parser.expression();
    if parser.token.kind == TokenKind::Terminator {
        parser.next();
    }
    if parser.token.kind != TokenKind::EndOfFile {
        parser.expected("end of the expression");
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
        };
        parser.next();
        parser
    }

    /// All diagnostics by position. An error of the grammar on a line with an error of the scanner is its echo.
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

    fn at(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    fn at_end_or(&self, kind: TokenKind) -> bool {
        self.at(kind) || self.at(TokenKind::EndOfFile)
    }

    fn text(&self, span: Span) -> Arc<str> {
        self.source.slice(span).into()
    }

    fn report(&mut self, code: Code, span: Span, message: impl Into<String>, hint: Option<&str>) {
        let line = self.source.line(span.start);
        if line == self.error_line {
            return;
        }
        self.error_line = line;
        self.diagnostics
            .push(Diagnostic::error(code, self.source, span, message).maybe_hint(hint.map(str::to_owned)));
    }

    fn expected(&mut self, what: &str) {
        let message = format!("expected {what}, got {}", self.token.kind);
        self.report(codes::EXPECTED_TOKEN, self.token.span, message, None);
    }

    /// Takes the current token, which should be a `kind`; says so when it is not.
    fn expect(&mut self, kind: TokenKind) -> Token {
        let token = self.token;
        if token.kind != kind {
            self.expected(&kind.to_string());
        }
        self.next();
        token
    }

    fn skip_to(&mut self, kinds: &[TokenKind]) {
        while !self.at(TokenKind::EndOfFile) && !kinds.contains(&self.token.kind) {
            self.next();
        }
    }

    /// Goes to the terminator that ends the current statement, over everything in brackets.
    fn skip_statement(&mut self) {
        let (mut curly, mut round, mut square) = (0i64, 0i64, 0i64);
        while !self.at(TokenKind::EndOfFile) {
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

    fn body(&mut self, until: TokenKind) -> Vec<Statement> {
        let mut body = Vec::new();
        while !self.at_end_or(until) {
            if let Some(statement) = self.statement() {
                body.push(statement);
            }
            if self.at(until) {
                break;
            }
            if !self.at(TokenKind::Terminator) {
                self.expected("end of line");
                self.skip_statement();
            }
            self.next();
        }
        body
    }

    fn statement(&mut self) -> Option<Statement> {
        if !self.at(TokenKind::Identifier) {
            let message = format!("expected the name of an attribute or a block, got {}", self.token.kind);
            self.report(codes::EXPECTED_STATEMENT, self.token.span, message, None);
            // Something has to be taken, or a stray closing bracket would stay for ever.
            self.next();
            self.skip_to(&[TokenKind::Identifier]);
            return self.at(TokenKind::Identifier).then(|| self.statement()).flatten();
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
                        "the `{` of a block stands on the line of its name",
                    )
                };
                self.report(codes::EXPECTED_STATEMENT, self.token.span, message, Some(hint));
                self.skip_statement();
                None
            }
        }
    }

    /// `identifier { "." identifier }` and the count of its parts.
    fn block_name(&mut self) -> (Identifier, usize) {
        let mut parts = vec![self.text(self.token.span)];
        let mut span = self.token.span;
        self.next();
        while self.at(TokenKind::Dot) {
            self.next();
            if !self.at(TokenKind::Identifier) {
                self.expected("identifier");
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
            parts.join(".").into()
        };
        (Identifier { name, span }, parts.len())
    }

    /// The label after a name: `None` when there is none, `Some(None)` for one that was reported or is empty.
    fn label(&mut self) -> Option<Option<Identifier>> {
        if !self.at(TokenKind::String) {
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
            let hint = Some("letters, digits and `_`, not starting with a digit");
            self.report(codes::BAD_LABEL, span, message, hint);
        }
        Some(Some(Identifier {
            name: inner.into(),
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
        let unclosed = self.at(TokenKind::EndOfFile);
        let close = self.token.span.start;
        if unclosed {
            // The end of the file says nothing; the opening bracket does.
            let message = "block is never closed".to_owned();
            self.report(
                codes::EXPECTED_TOKEN,
                name.span.to(Span::new(open, open + 1)),
                message,
                Some("add `}` on a line of its own"),
            );
        } else {
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

    // === Expressions ===

    fn expression(&mut self) -> Expression {
        if self.depth >= MAX_DEPTH {
            return self.too_deep();
        }
        self.depth += 1;
        let expression = self.binary(1);
        self.depth -= 1;
        expression
    }

    /// Gives up on the statement.
    fn too_deep(&mut self) -> Expression {
        let span = self.token.span;
        let message = format!("nested more than {MAX_DEPTH} deep");
        self.report(codes::TOO_DEEP, span, message, None);
        self.skip_statement();
        null(span)
    }

    /// Left-associative operators of at least `lowest` precedence.
    fn binary(&mut self, lowest: u8) -> Expression {
        let mut left = self.power();
        loop {
            let Token { kind, span } = self.token;
            let precedence = precedence(kind);
            if precedence < lowest || precedence == 0 {
                return left;
            }
            self.next();
            let right = self.binary(precedence + 1);
            left = self.joined(kind, span.start, left, right);
        }
    }

    /// `^` is right-associative; unary operators bind tighter.
    fn power(&mut self) -> Expression {
        let left = self.unary();
        if !self.at(TokenKind::Power) {
            return left;
        }
        let at = self.token.span.start;
        if self.depth >= MAX_DEPTH {
            return self.too_deep();
        }
        self.depth += 1;
        self.next();
        let right = self.power();
        self.depth -= 1;
        self.joined(TokenKind::Power, at, left, right)
    }

    fn joined(&mut self, operator: TokenKind, at: usize, left: Expression, right: Expression) -> Expression {
        let span = left.span.to(right.span);
        let height = left.height.max(right.height);
        self.tall(
            ExpressionKind::Binary {
                operator,
                at,
                left: Box::new(left),
                right: Box::new(right),
            },
            span,
            height,
        )
    }

    /// A node over children of `height`; refuses to grow beyond [`MAX_DEPTH`].
    fn tall(&mut self, kind: ExpressionKind, span: Span, height: u16) -> Expression {
        if height >= MAX_DEPTH {
            return self.too_deep();
        }
        Expression {
            kind,
            span,
            height: height + 1,
        }
    }

    fn unary(&mut self) -> Expression {
        let Token { kind, span } = self.token;
        if !matches!(kind, TokenKind::Not | TokenKind::Subtract) {
            return self.postfix();
        }
        if self.depth >= MAX_DEPTH {
            return self.too_deep();
        }
        self.next();
        self.depth += 1;
        let value = self.unary();
        self.depth -= 1;
        let (span, height) = (span.to(value.span), value.height);
        self.tall(
            ExpressionKind::Unary {
                operator: kind,
                value: Box::new(value),
            },
            span,
            height,
        )
    }

    fn postfix(&mut self) -> Expression {
        let mut value = self.primary();
        loop {
            let Token { kind, span } = self.token;
            let (start, height) = (value.span.start, value.height);
            value = match kind {
                TokenKind::Dot => {
                    self.next();
                    let token = self.expect(TokenKind::Identifier);
                    let name = Identifier {
                        name: self.text(token.span),
                        span: token.span,
                    };
                    let kind = ExpressionKind::Access {
                        value: Box::new(value),
                        name,
                    };
                    self.tall(kind, Span::new(start, token.span.end), height)
                }
                TokenKind::LeftBracket => {
                    self.next();
                    let index = self.expression();
                    let end = self.expect(TokenKind::RightBracket).span.end;
                    let height = height.max(index.height);
                    let kind = ExpressionKind::Index {
                        value: Box::new(value),
                        open: span.start,
                        index: Box::new(index),
                    };
                    self.tall(kind, Span::new(start, end), height)
                }
                TokenKind::LeftParen => {
                    self.next();
                    let arguments = self.list(TokenKind::RightParen);
                    let end = self.expect(TokenKind::RightParen).span.end;
                    let height = arguments.iter().map(|item| item.height).max().unwrap_or(0).max(height);
                    let kind = ExpressionKind::Call {
                        callee: Box::new(value),
                        open: span.start,
                        arguments,
                    };
                    self.tall(kind, Span::new(start, end), height)
                }
                TokenKind::String | TokenKind::LeftCurly => return self.block_as_expression(value),
                _ => return value,
            };
        }
    }

    /// Somebody assigned a block to an attribute: read it as one to say so.
    fn block_as_expression(&mut self, value: Expression) -> Expression {
        if self.at(TokenKind::String) {
            self.next();
        }
        if !self.at(TokenKind::LeftCurly) || self.depth >= MAX_DEPTH {
            self.expected("end of line");
            self.skip_statement();
            return value;
        }
        let span = value.span.to(self.token.span);
        self.report(
            codes::BLOCK_AS_EXPRESSION,
            span,
            "cannot use a block as an expression",
            Some("write the block as a statement of its own, or quote the value"),
        );
        self.next();
        self.depth += 1;
        self.body(TokenKind::RightCurly);
        self.depth -= 1;
        if self.at(TokenKind::RightCurly) {
            self.next();
        } else {
            self.skip_statement();
        }
        value
    }

    fn primary(&mut self) -> Expression {
        let Token { kind, span } = self.token;
        match kind {
            TokenKind::Identifier => {
                let name = self.text(span);
                self.next();
                leaf(ExpressionKind::Identifier(name), span)
            }
            TokenKind::String | TokenKind::Number | TokenKind::Float | TokenKind::Bool | TokenKind::Null => {
                let text = self.text(span);
                self.next();
                leaf(ExpressionKind::Literal { kind, text }, span)
            }
            TokenKind::LeftParen => {
                self.next();
                let inner = self.expression();
                let end = self.expect(TokenKind::RightParen).span.end;
                let height = inner.height;
                self.tall(
                    ExpressionKind::Paren(Box::new(inner)),
                    Span::new(span.start, end),
                    height,
                )
            }
            TokenKind::LeftBracket => {
                self.next();
                let items = self.list(TokenKind::RightBracket);
                let end = self.expect(TokenKind::RightBracket).span.end;
                let height = items.iter().map(|item| item.height).max().unwrap_or(0);
                self.tall(ExpressionKind::Array(items), Span::new(span.start, end), height)
            }
            TokenKind::LeftCurly => {
                self.next();
                let fields = self.fields();
                let end = self.expect(TokenKind::RightCurly).span.end;
                let height = fields.iter().map(|field| field.value.height).max().unwrap_or(0);
                self.tall(ExpressionKind::Object(fields), Span::new(span.start, end), height)
            }
            _ => {
                let message = format!("expected expression, got {kind}");
                self.report(codes::EXPECTED_EXPRESSION, span, message, None);
                self.skip_to(&[
                    TokenKind::Terminator,
                    TokenKind::RightParen,
                    TokenKind::RightCurly,
                    TokenKind::RightBracket,
                    TokenKind::Comma,
                ]);
                null(span)
            }
        }
    }

    fn list(&mut self, until: TokenKind) -> Vec<Expression> {
        let mut items = Vec::new();
        while !self.at_end_or(until) {
            items.push(self.expression());
            self.comma(until, "expression list");
        }
        items
    }

    fn fields(&mut self) -> Vec<Field> {
        let mut fields = Vec::new();
        while !self.at_end_or(TokenKind::RightCurly) {
            fields.push(self.field());
            self.comma(TokenKind::RightCurly, "field list");
        }
        fields
    }

    fn comma(&mut self, until: TokenKind, list: &str) {
        if self.at_end_or(until) {
            return;
        }
        if !self.at(TokenKind::Comma) {
            let (message, hint) = (
                format!("missing `,` in {list}"),
                if self.at(TokenKind::Terminator) {
                    "a comma is needed before a new line, also after the last element"
                } else {
                    "separate elements by commas"
                },
            );
            self.report(codes::MISSING_COMMA, self.token.span, message, Some(hint));
        }
        self.next();
    }

    fn field(&mut self) -> Field {
        let Token { kind, span } = self.token;
        let text = self.source.slice(span);
        let (name, quoted) = match kind {
            TokenKind::Identifier => (text, false),
            TokenKind::String => {
                let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
                (inner, true)
            }
            _ => {
                let message = format!("expected field name (string or identifier), got {kind}");
                self.report(codes::EXPECTED_TOKEN, span, message, None);
                ("", false)
            }
        };
        let name = Identifier {
            name: name.into(),
            span,
        };
        if matches!(kind, TokenKind::Identifier | TokenKind::String) {
            self.next();
        } else {
            self.skip_to(&[TokenKind::Assign, TokenKind::Terminator, TokenKind::RightCurly]);
        }
        if self.at(TokenKind::Assign) {
            self.next();
        } else {
            let message = format!("expected `=` after the field name, got {}", self.token.kind);
            self.report(codes::EXPECTED_TOKEN, self.token.span, message, None);
            if self.at(TokenKind::Illegal) {
                self.next();
            }
        }
        let value = self.expression();
        Field { name, quoted, value }
    }
}

const fn precedence(kind: TokenKind) -> u8 {
    match kind {
        TokenKind::Or => 1,
        TokenKind::And => 2,
        TokenKind::Equal
        | TokenKind::NotEqual
        | TokenKind::Less
        | TokenKind::LessEqual
        | TokenKind::Greater
        | TokenKind::GreaterEqual => 3,
        TokenKind::Add | TokenKind::Subtract => 4,
        TokenKind::Multiply | TokenKind::Divide | TokenKind::Modulo => 5,
        // `^` is taken by `power` before a loop sees it.
        _ => 0,
    }
}

const fn leaf(kind: ExpressionKind, span: Span) -> Expression {
    Expression { kind, span, height: 1 }
}

/// Stands where an expression should be.
fn null(span: Span) -> Expression {
    leaf(
        ExpressionKind::Literal {
            kind: TokenKind::Null,
            text: "null".into(),
        },
        span,
    )
}
