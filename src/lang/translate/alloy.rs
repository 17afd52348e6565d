//! Writes a tree as Alloy text; `fmt` does the layout.

use super::writer::{Output, Writer, refuse};
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
    const UNARY_OPERAND: u8 = 50;

    fn precedence(operator: TokenKind) -> u8 {
        precedence_of(operator)
    }

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
            return Err(refuse(self.0.source, field.name.span, "Alloy does not allow this key"));
        }
        Ok(())
    }

    fn literal(&mut self, kind: TokenKind, text: &str, _span: Span) -> Result<(), Diagnostics> {
        let unquoted = (kind == TokenKind::String).then(|| unquote(text)).flatten();
        match unquoted {
            Some(value) => self.push(&quote_lines(&value)),
            None => self.push(text),
        }
        Ok(())
    }

    fn name(&mut self, name: &str, _span: Span) -> Result<(), Diagnostics> {
        self.push(name);
        Ok(())
    }

    fn operand(&mut self, value: &Expression) -> Result<(), Diagnostics> {
        self.expression(value, 100)
    }

    fn dot_operand(&mut self, value: &Expression) -> Result<(), Diagnostics> {
        self.operand(value)?;
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
        Ok(())
    }

    fn callee(&mut self, callee: &Expression) -> Result<(), Diagnostics> {
        self.expression(callee, 100)
    }

    fn binary(&mut self, operator: TokenKind, left: &Expression, right: &Expression) -> Result<(), Diagnostics> {
        let own_precedence = precedence_of(operator);
        let right_to_left = operator == TokenKind::Power;
        self.expression(left, own_precedence + u8::from(right_to_left))?;
        self.push(&format!(" {} ", operator.text()));
        self.expression(right, own_precedence + u8::from(!right_to_left))
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
