//! Prints a tree as canonical text: the output of `alluvium fmt`, which is byte for byte the output of `alloy fmt`.
//!
//! A walk over the tree sends names, operators and white space to an [`emitter::Emitter`], which inserts comments at
//! their positions. Its output contains symbolic tab stops, which [`columns`] aligns. Only three things differ from
//! Alloy on purpose. The inside of a string is never changed (Alloy expands tabs in raw strings and trims their lines).
//! An object key is printed as it was written. A call without arguments over two lines gets no comma.

mod columns;
mod emitter;

use crate::ast::{Attribute, Block, Expression, ExpressionKind, Field, File, Statement};
use crate::source::Source;
use crate::token::TokenKind;
use emitter::{Emitter, Space};

/// Returns the canonical text of a file that was parsed without errors. Ends with exactly one newline.
pub fn print(file: &File) -> String {
    let mut printer = Printer {
        source: &file.source,
        out: Emitter::new(&file.source, &file.comments),
    };
    printer.statements(&file.body);
    let mut text = columns::align(&printer.out.finish());
    text.push('\n');
    text
}

struct Printer<'a> {
    source: &'a Source,
    out: Emitter<'a>,
}

impl Printer<'_> {
    fn line(&self, offset: usize) -> usize {
        self.source.line(offset)
    }

    fn statements(&mut self, statements: &[Statement]) {
        let mut previous: Option<&Statement> = None;
        for statement in statements {
            // A block always gets an empty line before it. Between attributes, the author's empty lines become one.
            let blank = previous.is_some_and(|previous| {
                matches!(statement, Statement::Block(_))
                    || self.line(statement.span().start) > self.line(previous.span().end - 1) + 1
            });
            if blank {
                self.out.space(Space::Break);
            }
            match statement {
                Statement::Attribute(attribute) => self.attribute(attribute),
                Statement::Block(block) => self.block(block),
            }
            // A statement that spans several lines ends the run of aligned lines.
            let span = statement.span();
            let single = self.line(span.start) == self.line(span.end - 1);
            self.out.space(if single { Space::Newline } else { Space::Break });
            previous = Some(statement);
        }
    }

    fn attribute(&mut self, attribute: &Attribute) {
        self.out.move_to(attribute.name.span.start);
        self.out.text(&attribute.name.name);
        self.assignment(&attribute.value);
    }

    fn assignment(&mut self, value: &Expression) {
        self.out.space(Space::Stop);
        self.out.token(TokenKind::Assign);
        self.out.space(Space::Blank);
        self.expression(value);
    }

    fn block(&mut self, block: &Block) {
        self.out.move_to(block.name.span.start);
        self.out.text(&block.name.name);
        if let Some(label) = &block.label {
            self.out.space(Space::Blank);
            self.out.move_to(label.span.start);
            self.out.literal(&format!("\"{}\"", label.name), TokenKind::String);
        }
        self.out.space(Space::Blank);
        self.out.move_to(block.open);
        self.out.token(TokenKind::LeftCurly);
        self.out.space(Space::Indent);
        if block.body.is_empty() {
            self.out.space(Space::Blank);
        } else {
            self.out.space(Space::Break);
            self.statements(&block.body);
        }
        self.out.space(Space::Unindent);
        self.out.move_to(block.close);
        self.out.token(TokenKind::RightCurly);
    }

    fn expression(&mut self, expression: &Expression) {
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Literal { kind, text } => {
                self.out.move_to(span.start);
                self.out.literal(text, *kind);
            }
            ExpressionKind::Identifier(name) => {
                self.out.move_to(span.start);
                self.out.text(name);
            }
            ExpressionKind::Array(items) => self.array(items, span.start, span.end - 1),
            ExpressionKind::Object(fields) => self.object(fields, span.start, span.end - 1),
            ExpressionKind::Access { value, name } => {
                self.expression(value);
                self.out.token(TokenKind::Dot);
                self.out.text(&name.name);
            }
            ExpressionKind::Index { value, open, index } => {
                self.expression(value);
                self.out.move_to(*open);
                self.out.token(TokenKind::LeftBracket);
                self.expression(index);
                self.out.move_to(span.end - 1);
                self.out.token(TokenKind::RightBracket);
            }
            ExpressionKind::Call {
                callee,
                open,
                arguments,
            } => self.call(callee, *open, arguments, span.end - 1),
            ExpressionKind::Unary { operator, value } => {
                self.out.move_to(span.start);
                self.out.token(*operator);
                self.expression(value);
            }
            ExpressionKind::Binary {
                operator,
                operator_offset,
                left,
                right,
            } => {
                self.expression(left);
                self.out.space(Space::Blank);
                self.out.move_to(*operator_offset);
                self.out.token(*operator);
                self.out.space(Space::Blank);
                self.expression(right);
            }
            ExpressionKind::Paren(inner) => {
                self.out.token(TokenKind::LeftParen);
                self.expression(inner);
                self.out.token(TokenKind::RightParen);
            }
        }
    }

    /// Prints a list. Elements that began on their own lines stay on their own lines, indented once.
    fn array(&mut self, items: &[Expression], open: usize, close: usize) {
        self.out.move_to(open);
        self.out.token(TokenKind::LeftBracket);
        let mut previous = open;
        for (index, item) in items.iter().enumerate() {
            let own_line = self.line(previous) != self.line(item.span.start);
            if own_line {
                // Indent first, so that comments before the new line are indented as well.
                self.out.space(Space::Indent);
                self.out.space(Space::Break);
            } else if index > 0 {
                self.out.space(Space::Blank);
            }
            previous = item.span.end - 1;
            self.expression(item);
            if index + 1 < items.len() {
                self.out.token(TokenKind::Comma);
            }
            if own_line {
                self.out.space(Space::Unindent);
            }
        }
        if !items.is_empty() && self.line(previous) != self.line(close) {
            self.out.token(TokenKind::Comma);
            self.out.space(Space::Indent);
            self.out.space(Space::Break);
            self.out.space(Space::Unindent);
        }
        self.out.move_to(close);
        self.out.token(TokenKind::RightBracket);
    }

    fn object(&mut self, fields: &[Field], open: usize, close: usize) {
        self.out.move_to(open);
        self.out.token(TokenKind::LeftCurly);
        self.out.space(Space::Indent);
        let mut previous = open;
        for (index, field) in fields.iter().enumerate() {
            if self.line(previous) != self.line(field.name.span.start) {
                // Fields are aligned with the previous field if its value is on one line.
                let aligned = index > 0 && {
                    let value = fields[index - 1].value.span;
                    self.line(value.start) == self.line(value.end - 1)
                };
                self.out.space(if aligned { Space::Newline } else { Space::Break });
            } else if index > 0 {
                self.out.space(Space::Blank);
            }
            previous = field.name.span.end - 1;
            self.out.move_to(field.name.span.start);
            self.key(field);
            self.assignment(&field.value);
            if index + 1 < fields.len() {
                self.out.token(TokenKind::Comma);
            }
        }
        if !fields.is_empty() && self.line(previous) != self.line(close) {
            self.out.token(TokenKind::Comma);
            self.out.space(Space::Break);
        }
        self.out.space(Space::Unindent);
        self.out.move_to(close);
        self.out.token(TokenKind::RightCurly);
    }

    fn key(&mut self, field: &Field) {
        let name = &field.name.name;
        if !field.is_quoted {
            self.out.text(name);
        } else if name.contains(['"', '\\', '\n', '\r', '\t']) {
            self.out.literal(self.source.slice(field.name.span), TokenKind::String);
        } else {
            self.out.literal(&format!("\"{name}\""), TokenKind::String);
        }
    }

    fn call(&mut self, callee: &Expression, open: usize, arguments: &[Expression], close: usize) {
        self.expression(callee);
        self.out.token(TokenKind::LeftParen);
        let mut previous = open;
        for (index, argument) in arguments.iter().enumerate() {
            let own_line = self.line(previous) != self.line(argument.span.start);
            if own_line {
                self.out.space(Space::Break);
                self.out.space(Space::Indent);
            }
            self.expression(argument);
            previous = argument.span.end - 1;
            if index + 1 < arguments.len() {
                self.out.token(TokenKind::Comma);
                self.out.space(Space::Blank);
            }
            if own_line {
                self.out.space(Space::Unindent);
            }
        }
        if self.line(previous) != self.line(close) {
            // If a call without arguments spans two lines, Alloy prints a comma, and its output does not parse.
            if !arguments.is_empty() {
                self.out.token(TokenKind::Comma);
            }
            self.out.space(Space::Break);
        }
        self.out.token(TokenKind::RightParen);
    }
}
