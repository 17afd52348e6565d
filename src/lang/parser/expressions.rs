//! Parses expressions: precedence climbing for operators, then unary, postfix and primary expressions.

use super::{MAX_DEPTH, Parser};
use crate::ast::{Expression, ExpressionKind, Field, Identifier};
use crate::codes;
use crate::source::Span;
use crate::token::{Token, TokenKind};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Expression {
        if self.depth >= MAX_DEPTH {
            return self.too_deep();
        }
        self.depth += 1;
        let expression = self.binary(1);
        self.depth -= 1;
        expression
    }

    /// Reports that the text nests too deeply and stops parsing: further reports would not help.
    pub(super) fn too_deep(&mut self) -> Expression {
        let span = self.token.span;
        let message = format!("expressions or blocks are nested more than {MAX_DEPTH} levels deep");
        self.report(codes::TOO_DEEP, span, message, None);
        self.has_given_up = true;
        self.skip_to(&[]);
        null(span)
    }

    /// Parses left-associative operators of at least `lowest` precedence.
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

    /// Parses `^`, which is right-associative; unary operators bind tighter.
    fn power(&mut self) -> Expression {
        let left = self.unary();
        if !self.is_at(TokenKind::Power) {
            return left;
        }
        let operator_offset = self.token.span.start;
        if self.depth >= MAX_DEPTH {
            return self.too_deep();
        }
        self.depth += 1;
        self.next();
        let right = self.power();
        self.depth -= 1;
        self.joined(TokenKind::Power, operator_offset, left, right)
    }

    fn joined(
        &mut self,
        operator: TokenKind,
        operator_offset: usize,
        left: Expression,
        right: Expression,
    ) -> Expression {
        let span = left.span.to(right.span);
        let height = left.height.max(right.height);
        self.tall(
            ExpressionKind::Binary {
                operator,
                operator_offset,
                left: Box::new(left),
                right: Box::new(right),
            },
            span,
            height,
        )
    }

    /// Creates a node. `height` is the height of its highest child. Reports an error beyond [`MAX_DEPTH`].
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
                    let end = self.close(TokenKind::RightBracket, span.start);
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
                    let end = self.close(TokenKind::RightParen, span.start);
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

    /// Parses a block that is assigned to an attribute, to report a clear error.
    fn block_as_expression(&mut self, value: Expression) -> Expression {
        if self.is_at(TokenKind::String) {
            self.next();
        }
        if !self.is_at(TokenKind::LeftCurly) || self.depth >= MAX_DEPTH {
            self.report_unexpected("end of line");
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
        if self.is_at(TokenKind::RightCurly) {
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
                let end = self.close(TokenKind::RightParen, span.start);
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
                let end = self.close(TokenKind::RightBracket, span.start);
                let height = items.iter().map(|item| item.height).max().unwrap_or(0);
                self.tall(ExpressionKind::Array(items), Span::new(span.start, end), height)
            }
            TokenKind::LeftCurly => {
                self.next();
                let fields = self.fields();
                let end = self.close(TokenKind::RightCurly, span.start);
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

    fn list(&mut self, end_kind: TokenKind) -> Vec<Expression> {
        let mut items = Vec::new();
        while !self.at_end_or(end_kind) && !self.at_other_end(end_kind) {
            items.push(self.expression());
            if self.at_other_end(end_kind) {
                break;
            }
            self.comma(end_kind, "expression list");
        }
        items
    }

    fn fields(&mut self) -> Vec<Field> {
        let mut fields = Vec::new();
        while !self.at_end_or(TokenKind::RightCurly) && !self.at_other_end(TokenKind::RightCurly) {
            fields.push(self.field());
            if self.at_other_end(TokenKind::RightCurly) {
                break;
            }
            self.comma(TokenKind::RightCurly, "field list");
        }
        fields
    }

    /// True if the current token is a closing bracket other than `end_kind`. Such a bracket closes an enclosing
    /// construct, so `end_kind` is missing. At the end of a line, the next character that is not white space is checked
    /// instead of the token.
    fn at_other_end(&self, end_kind: TokenKind) -> bool {
        let closes = |kind| {
            kind != end_kind
                && matches!(
                    kind,
                    TokenKind::RightParen | TokenKind::RightBracket | TokenKind::RightCurly
                )
        };
        if !self.is_at(TokenKind::Terminator) {
            return closes(self.token.kind);
        }
        let rest = self.source.text().get(self.token.span.start..).unwrap_or_default();
        match rest.trim_start().bytes().next() {
            Some(b')') => closes(TokenKind::RightParen),
            Some(b']') => closes(TokenKind::RightBracket),
            Some(b'}') => closes(TokenKind::RightCurly),
            _ => false,
        }
    }

    /// Consumes the bracket `kind`, which closes the bracket at the offset `open`, and returns its end. If another
    /// token is found, reports the missing bracket, and consumes the token unless it closes an enclosing construct.
    fn close(&mut self, kind: TokenKind, open: usize) -> usize {
        let Token { kind: token_kind, span } = self.token;
        if token_kind == kind {
            self.next();
            return span.end;
        }
        let message = format!("expected {kind}, got {token_kind}");
        let (line, column) = self.source.position(open);
        let hint = format!("{kind} must close the bracket at {line}:{column}");
        self.report(codes::EXPECTED_TOKEN, span, message, Some(&hint));
        if !self.at_other_end(kind) {
            self.next();
        }
        span.end
    }

    fn comma(&mut self, end_kind: TokenKind, list: &str) {
        if self.at_end_or(end_kind) {
            return;
        }
        if !self.is_at(TokenKind::Comma) {
            let (message, hint) = (
                format!("missing `,` in {list}"),
                if self.is_at(TokenKind::Terminator) {
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
        let (name, is_quoted) = match kind {
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
            name: self.shared(name),
            span,
        };
        if matches!(kind, TokenKind::Identifier | TokenKind::String) {
            self.next();
        } else {
            self.skip_to(&[TokenKind::Assign, TokenKind::Terminator, TokenKind::RightCurly]);
        }
        if self.is_at(TokenKind::Assign) {
            self.next();
        } else {
            let message = format!("expected `=` after the field name, got {}", self.token.kind);
            self.report(codes::EXPECTED_TOKEN, self.token.span, message, None);
            if self.is_at(TokenKind::Illegal) {
                self.next();
            }
        }
        let value = self.expression();
        Field { name, is_quoted, value }
    }
}

/// Returns the precedence of a binary operator. An operator of higher precedence binds tighter.
pub(crate) const fn precedence_of(kind: TokenKind) -> u8 {
    match kind {
        TokenKind::Power => 6,
        kind => precedence(kind),
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
        // `power` handles `^`, so the loop in `binary` never sees it.
        _ => 0,
    }
}

const fn leaf(kind: ExpressionKind, span: Span) -> Expression {
    Expression { kind, span, height: 1 }
}

/// Creates a placeholder for a missing expression.
fn null(span: Span) -> Expression {
    leaf(
        ExpressionKind::Literal {
            kind: TokenKind::Null,
            text: "null".into(),
        },
        span,
    )
}
