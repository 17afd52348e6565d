//! A tree as Alloy text; `fmt` does the layout.

use super::comments::Comments;
use super::{binding, over_lines, refuse};
use crate::lang::ast::{Expression, ExpressionKind, Field, File, Statement};
use crate::lang::diagnostic::Diagnostics;
use crate::lang::eval::unquote;
use crate::lang::literal::quote_lines;
use crate::lang::parser::precedence_of;
use crate::lang::scanner::{is_identifier, tokens};
use crate::lang::source::{Source, Span};
use crate::lang::token::TokenKind;

/// The text of a file.
pub fn write(file: &File) -> Result<String, Diagnostics> {
    let mut writer = Writer {
        source: &file.source,
        comments: Comments::new(file),
        out: String::new(),
    };
    writer.body(&file.body)?;
    let rest = writer.comments.before(usize::MAX);
    writer.out.push_str(&rest);
    Ok(writer.out)
}

struct Writer<'a> {
    source: &'a Source,
    comments: Comments<'a>,
    out: String,
}

impl Writer<'_> {
    fn body(&mut self, body: &[Statement]) -> Result<(), Diagnostics> {
        let mut last_line = None;
        for statement in body {
            let span = statement.span();
            let comments = self.comments.before(span.start);
            let first_line = self
                .source
                .line(span.start)
                .saturating_sub(comments.matches('\n').count());
            if last_line.is_some_and(|last| first_line > last + 1) {
                self.out.push('\n');
            }
            self.out.push_str(&comments);
            match statement {
                Statement::Attribute(attribute) => {
                    self.out.push_str(&attribute.name.name);
                    self.out.push_str(" = ");
                    self.expression(&attribute.value, 0)?;
                }
                Statement::Block(block) => {
                    self.out.push_str(&block.name.name);
                    if let Some(label) = &block.label {
                        self.out.push_str(&format!(" \"{}\"", label.name));
                    }
                    self.out.push_str(" {");
                    let behind = self.comments.behind(block.open + 1);
                    self.out.push_str(&behind);
                    self.out.push('\n');
                    self.body(&block.body)?;
                    let rest = self.comments.before(block.close);
                    self.out.push_str(&rest);
                    self.out.push('}');
                }
            }
            let behind = self.comments.behind(span.end);
            self.out.push_str(&behind);
            self.out.push('\n');
            last_line = Some(self.source.line(span.end.saturating_sub(1)));
        }
        Ok(())
    }

    /// An expression where only what binds at least as tightly as `least` may stand without parentheses.
    fn expression(&mut self, expression: &Expression, least: u8) -> Result<(), Diagnostics> {
        let wrapped = binding(expression, precedence_of) < least;
        if wrapped {
            self.out.push('(');
        }
        match &expression.kind {
            ExpressionKind::Literal { kind, text } => match kind {
                TokenKind::String => match unquote(text) {
                    Some(value) => self.out.push_str(&quote_lines(&value)),
                    None => self.out.push_str(text),
                },
                _ => self.out.push_str(text),
            },
            ExpressionKind::Identifier(name) => self.out.push_str(name),
            ExpressionKind::Array(items) => {
                let spans: Vec<Span> = items.iter().map(|item| item.span).collect();
                self.list('[', ']', expression.span, &spans, |writer, at| {
                    writer.expression(&items[at], 0)
                })?;
            }
            ExpressionKind::Object(fields) => {
                let spans: Vec<Span> = fields
                    .iter()
                    .map(|field| field.name.span.to(field.value.span))
                    .collect();
                self.list('{', '}', expression.span, &spans, |writer, at| {
                    writer.field(&fields[at])
                })?;
            }
            ExpressionKind::Access { value, name } => {
                self.expression(value, 100)?;
                // A number and a dot would run together.
                if matches!(
                    &value.kind,
                    ExpressionKind::Literal {
                        kind: TokenKind::Number,
                        ..
                    }
                ) {
                    self.out.push(' ');
                }
                self.out.push('.');
                self.out.push_str(&name.name);
            }
            ExpressionKind::Index { value, index, .. } => {
                self.expression(value, 100)?;
                self.out.push('[');
                self.expression(index, 0)?;
                self.out.push(']');
            }
            ExpressionKind::Call {
                callee,
                open,
                arguments,
            } => {
                self.expression(callee, 100)?;
                let spans: Vec<Span> = arguments.iter().map(|argument| argument.span).collect();
                let whole = Span::new(*open, expression.span.end);
                self.list('(', ')', whole, &spans, |writer, at| {
                    writer.expression(&arguments[at], 0)
                })?;
            }
            ExpressionKind::Unary { operator, value } => {
                self.out.push_str(operator.text());
                self.expression(value, 50)?;
            }
            ExpressionKind::Binary {
                operator, left, right, ..
            } => {
                let own = precedence_of(*operator);
                let right_to_left = *operator == TokenKind::Power;
                self.expression(left, own + u8::from(right_to_left))?;
                self.out.push_str(&format!(" {} ", operator.text()));
                self.expression(right, own + u8::from(!right_to_left))?;
            }
            ExpressionKind::Paren(inner) => {
                self.out.push('(');
                self.expression(inner, 0)?;
                self.out.push(')');
            }
        }
        if wrapped {
            self.out.push(')');
        }
        Ok(())
    }

    fn list(
        &mut self,
        open: char,
        close: char,
        span: Span,
        items: &[Span],
        mut write: impl FnMut(&mut Self, usize) -> Result<(), Diagnostics>,
    ) -> Result<(), Diagnostics> {
        self.out.push(open);
        let lines = over_lines(self.source, span.start, items.first().copied());
        for (at, item) in items.iter().enumerate() {
            if lines {
                if at == 0 {
                    let behind = self.comments.behind(span.start + 1);
                    self.out.push_str(&behind);
                }
                self.out.push('\n');
                let comments = self.comments.before(item.start);
                self.out.push_str(&comments);
            } else if at > 0 {
                self.out.push(' ');
            }
            write(self, at)?;
            if lines || at + 1 < items.len() {
                self.out.push(',');
            }
            if lines {
                let behind = self.comments.behind(item.end);
                self.out.push_str(&behind);
            }
        }
        if lines {
            self.out.push('\n');
            let rest = self.comments.before(span.end.saturating_sub(1));
            self.out.push_str(&rest);
        }
        self.out.push(close);
        Ok(())
    }

    fn field(&mut self, field: &Field) -> Result<(), Diagnostics> {
        let name = &*field.name.name;
        // What stands between the quotes is the key as it is, escapes and all.
        let forms = [format!("\"{name}\""), format!("`{name}`")];
        let key = if !field.quoted && is_identifier(name) {
            name.to_owned()
        } else if let Some(form) = forms.into_iter().find(|form| is_one_string(form)) {
            form
        } else {
            return Err(refuse(self.source, field.name.span, "Alloy cannot write this key"));
        };
        self.out.push_str(&key);
        self.out.push_str(" = ");
        self.expression(&field.value, 0)
    }
}

/// True for a text that is one string and nothing else.
fn is_one_string(text: &str) -> bool {
    let (tokens, diagnostics) = tokens(&Source::new("key", text));
    !diagnostics.has_errors()
        && tokens
            .first()
            .is_some_and(|token| token.kind == TokenKind::String && token.span == Span::new(0, text.len()))
}
