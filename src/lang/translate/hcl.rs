//! Writes a tree as HCL text; the HCL formatter does the layout.

use std::fmt::Write as _;

use super::writer::{Output, Writer, refuse};
use crate::ast::{Attribute, Block, Expression, ExpressionKind, Field, File};
use crate::diagnostic::Diagnostics;
use crate::eval::{self, traversal, unquote};
use crate::hcl::{BlockContext, POWER_FUNCTION};
use crate::literal;
use crate::source::Span;
use crate::token::TokenKind;
use crate::value::{Number, Value};

/// Returns the text of a file as HCL.
pub(super) fn write(file: &File) -> Result<String, Diagnostics> {
    Hcl(Output::new(file)).file(&file.body)
}

struct Hcl<'a>(Output<'a>);

impl<'a> Writer<'a> for Hcl<'a> {
    // Fields on separate lines need no commas.
    const FIELD_COMMAS: bool = false;
    // If the operand of a unary operator is itself a unary expression, it gets parentheses. In HCL, `--a` is invalid,
    // and `-1` is a number literal.
    const UNARY_OPERAND: u8 = 51;

    // In HCL, order comparisons bind tighter than equality; in Alloy, both have the same precedence.
    fn precedence(operator: TokenKind) -> u8 {
        match operator {
            TokenKind::Or => 1,
            TokenKind::And => 2,
            TokenKind::Equal | TokenKind::NotEqual => 3,
            TokenKind::Less | TokenKind::LessEqual | TokenKind::Greater | TokenKind::GreaterEqual => 4,
            TokenKind::Add | TokenKind::Subtract => 5,
            TokenKind::Multiply | TokenKind::Divide | TokenKind::Modulo => 6,
            // `^` is written as a call.
            _ => 100,
        }
    }

    fn page(&mut self) -> &mut Output<'a> {
        &mut self.0
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<(), Diagnostics> {
        self.name(&attribute.name.name, attribute.name.span)?;
        self.push(" = ");
        // The closing word of a heredoc must be alone on its line. If a comment follows it, the text is written as
        // a quoted string.
        let is_alone = !self.0.comments.is_behind(attribute.span().end);
        match is_alone.then(|| heredoc(&attribute.value)).flatten() {
            Some(text) => self.push(&text),
            None => self.expression(&attribute.value, 0)?,
        }
        Ok(())
    }

    fn header(&mut self, block: &Block, context: BlockContext) -> Result<(), Diagnostics> {
        let mut parts = block.name.name.split('.');
        self.name(parts.next().unwrap_or_default(), block.name.span)?;
        let mut labels: Vec<&str> = parts.collect();
        match &block.label {
            // Inside a component, a single label would be a part of the name, so an empty label precedes it.
            Some(label) => {
                if labels.is_empty() && context == BlockContext::Arguments {
                    labels.push("");
                }
                labels.push(&label.name);
            }
            // If the last label would be read as the block's own label, an empty label after it shows that the block
            // has no label of its own.
            None if !labels.is_empty() && (context == BlockContext::Components || labels.len() > 1) => labels.push(""),
            None => {}
        }
        for label in labels {
            let _ = write!(self.0.out, " \"{label}\"");
        }
        Ok(())
    }

    fn key(&mut self, field: &Field) -> Result<(), Diagnostics> {
        let name = &*field.name.name;
        let word = hcl_edit::Ident::try_new(name).is_ok() && !matches!(name, "for" | "true" | "false" | "null");
        if !field.is_quoted && word {
            self.push(name);
        } else {
            self.push(&quote(name));
        }
        Ok(())
    }

    fn literal(&mut self, kind: TokenKind, text: &str, span: Span) -> Result<(), Diagnostics> {
        match (kind, eval::literal(kind, text)) {
            (TokenKind::String, Some(Value::String(value))) => self.push(&quote(&value)),
            (TokenKind::Number | TokenKind::Float, Some(Value::Number(number))) => match number {
                Number::Int(value) => {
                    let _ = write!(self.0.out, "{value}");
                }
                Number::Uint(value) => {
                    let _ = write!(self.0.out, "{value}");
                }
                // Use a point or an exponent, so that the number stays a float.
                Number::Float(value) => {
                    let _ = write!(self.0.out, "{value:?}");
                }
            },
            (TokenKind::Bool | TokenKind::Null, _) => self.push(text),
            _ => {
                return Err(refuse(
                    self.0.source,
                    span,
                    "this literal has no value, so it cannot be converted",
                ));
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &str, span: Span) -> Result<(), Diagnostics> {
        if hcl_edit::Ident::try_new(name).is_err() {
            return Err(refuse(
                self.0.source,
                span,
                format!("`{name}` is not an identifier of HCL"),
            ));
        }
        self.push(name);
        Ok(())
    }

    fn operand(&mut self, value: &Expression) -> Result<(), Diagnostics> {
        // A literal or a power gets parentheses before a dot or an index.
        let power = matches!(
            &value.kind,
            ExpressionKind::Binary {
                operator: TokenKind::Power,
                ..
            }
        );
        let plain = !power && !matches!(&value.kind, ExpressionKind::Literal { .. });
        if plain {
            return self.expression(value, 100);
        }
        self.push("(");
        self.expression(value, 0)?;
        self.push(")");
        Ok(())
    }

    fn callee(&mut self, callee: &Expression) -> Result<(), Diagnostics> {
        let names = traversal(callee);
        if names.is_empty() {
            return Err(refuse(
                self.0.source,
                callee.span,
                "HCL calls functions only by name, not the result of an expression",
            ));
        }
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                self.push("::");
            }
            self.name(&name.name, name.span)?;
        }
        Ok(())
    }

    fn binary(&mut self, operator: TokenKind, left: &Expression, right: &Expression) -> Result<(), Diagnostics> {
        if operator == TokenKind::Power {
            let _ = write!(self.0.out, "{POWER_FUNCTION}(");
            self.expression(left, 0)?;
            self.push(", ");
            self.expression(right, 0)?;
            self.push(")");
            return Ok(());
        }
        let own_precedence = Self::precedence(operator);
        self.expression(left, own_precedence)?;
        let _ = write!(self.0.out, " {} ", operator.text());
        self.expression(right, own_precedence + 1)
    }
}

/// Returns a string of several lines as a heredoc; `None` if the expression cannot be written as a heredoc.
fn heredoc(expression: &Expression) -> Option<String> {
    let ExpressionKind::Literal {
        kind: TokenKind::String,
        text,
    } = &expression.kind
    else {
        return None;
    };
    let value = unquote(text)?;
    let plain = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    if !value.ends_with('\n') || value.lines().count() < 2 || !value.chars().all(plain) {
        return None;
    }
    let words = std::iter::once("EOT".to_owned()).chain((1..100).map(|number| format!("EOT{number}")));
    let word = words
        .into_iter()
        .find(|word| value.lines().all(|line| line.trim() != word))?;
    Some(format!("<<{word}\n{}{word}", without_templates(value.clone())))
}

/// Writes a quoted HCL string with escaped template markers.
fn quote(text: &str) -> String {
    without_templates(literal::quote(text))
}

fn without_templates(text: String) -> String {
    text.replace("${", "$${").replace("%{", "%%{")
}
