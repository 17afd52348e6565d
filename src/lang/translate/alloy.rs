//! Writes a tree as Alloy text; `fmt` does the layout.

use super::writer::{Output, Writer, binding, refuse};
use crate::ast::{Attribute, Block, Expression, ExpressionKind, Field, File};
use crate::diagnostic::Diagnostics;
use crate::eval::unquote;
use crate::hcl::BlockContext;
use crate::literal::quote_lines;
use crate::parser::precedence_of;
use crate::scanner::{is_identifier, tokens};
use crate::source::{Source, Span};
use crate::token::TokenKind;

/// Returns the text of a file in Alloy's syntax.
pub(super) fn write(file: &File) -> Result<String, Diagnostics> {
    Alloy(Output::new(file)).file(&file.body)
}

struct Alloy<'a>(Output<'a>);

impl<'a> Writer<'a> for Alloy<'a> {
    const FIELD_COMMAS: bool = true;

    fn page(&mut self) -> &mut Output<'a> {
        &mut self.0
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<(), Diagnostics> {
        self.push(&attribute.name.name);
        self.push(" = ");
        self.expression(&attribute.value, 0)
    }

    fn header(&mut self, block: &Block, _context: BlockContext) -> Result<(), Diagnostics> {
        self.push(&block.name.name);
        if let Some(label) = &block.label {
            self.push(&format!(" \"{}\"", label.name));
        }
        Ok(())
    }

    fn key(&mut self, field: &Field) -> Result<(), Diagnostics> {
        let name = &*field.name.name;
        // The text between the quotes is the key; its escapes are not processed.
        let forms = [format!("\"{name}\""), format!("`{name}`")];
        if !field.is_quoted && is_identifier(name) {
            self.push(name);
        } else if let Some(form) = forms.iter().find(|form| is_one_string(form)) {
            self.push(form);
        } else {
            return Err(refuse(self.0.source, field.name.span, "Alloy cannot write this key"));
        }
        Ok(())
    }

    fn expression(&mut self, expression: &Expression, min: u8) -> Result<(), Diagnostics> {
        let wrapped = binding(expression, precedence_of) < min;
        if wrapped {
            self.push("(");
        }
        match &expression.kind {
            ExpressionKind::Literal { kind, text } => match kind {
                TokenKind::String => match unquote(text) {
                    Some(value) => self.push(&quote_lines(&value)),
                    None => self.push(text),
                },
                _ => self.push(text),
            },
            ExpressionKind::Identifier(name) => self.push(name),
            ExpressionKind::Array(items) => self.array(items, expression.span)?,
            ExpressionKind::Object(fields) => self.object(fields, expression.span)?,
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
                    self.push(" ");
                }
                self.push(".");
                self.push(&name.name);
            }
            ExpressionKind::Index { value, index, .. } => {
                self.expression(value, 100)?;
                self.push("[");
                self.expression(index, 0)?;
                self.push("]");
            }
            ExpressionKind::Call {
                callee,
                open,
                arguments,
            } => {
                self.expression(callee, 100)?;
                self.arguments(arguments, Span::new(*open, expression.span.end))?;
            }
            ExpressionKind::Unary { operator, value } => {
                self.push(operator.text());
                self.expression(value, 50)?;
            }
            ExpressionKind::Binary {
                operator, left, right, ..
            } => {
                let own = precedence_of(*operator);
                let right_to_left = *operator == TokenKind::Power;
                self.expression(left, own + u8::from(right_to_left))?;
                self.push(&format!(" {} ", operator.text()));
                self.expression(right, own + u8::from(!right_to_left))?;
            }
            ExpressionKind::Paren(inner) => {
                self.push("(");
                self.expression(inner, 0)?;
                self.push(")");
            }
        }
        if wrapped {
            self.push(")");
        }
        Ok(())
    }
}

impl Alloy<'_> {
    fn push(&mut self, text: &str) {
        self.0.out.push_str(text);
    }
}

/// True for a text that is a single string.
fn is_one_string(text: &str) -> bool {
    let (tokens, diagnostics) = tokens(&Source::new("key", text));
    !diagnostics.has_errors()
        && tokens
            .first()
            .is_some_and(|token| token.kind == TokenKind::String && token.span == Span::new(0, text.len()))
}
