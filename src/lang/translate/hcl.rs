//! A tree as HCL text; the formatter of HCL does the layout.

use std::fmt::Write as _;

use super::comments::Comments;
use super::{binding, over_lines, refuse};
use crate::lang::ast::{Block, Expression, ExpressionKind, Field, File, Statement};
use crate::lang::diagnostic::Diagnostics;
use crate::lang::eval::{literal, traversal, unquote};
use crate::lang::hcl::{POWER, holds_components};
use crate::lang::source::{Source, Span};
use crate::lang::token::TokenKind;
use crate::lang::value::{Number, Value};

/// The text of a file.
pub fn write(file: &File) -> Result<String, Diagnostics> {
    let mut writer = Writer {
        source: &file.source,
        comments: Comments::new(file),
        out: String::new(),
    };
    writer.body(&file.body, true)?;
    let rest = writer.comments.before(usize::MAX);
    writer.out.push_str(&rest);
    Ok(writer.out)
}

/// Precedences of HCL, which tells equality from order.
fn precedence(operator: TokenKind) -> u8 {
    match operator {
        TokenKind::Or => 1,
        TokenKind::And => 2,
        TokenKind::Equal | TokenKind::NotEqual => 3,
        TokenKind::Less | TokenKind::LessEqual | TokenKind::Greater | TokenKind::GreaterEqual => 4,
        TokenKind::Add | TokenKind::Subtract => 5,
        TokenKind::Multiply | TokenKind::Divide | TokenKind::Modulo => 6,
        // Written as a call.
        _ => 100,
    }
}

struct Writer<'a> {
    source: &'a Source,
    comments: Comments<'a>,
    out: String,
}

impl Writer<'_> {
    fn body(&mut self, body: &[Statement], components: bool) -> Result<(), Diagnostics> {
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
            let mut heredoc = None;
            match statement {
                Statement::Attribute(attribute) => {
                    self.name(&attribute.name.name, attribute.name.span)?;
                    self.out.push_str(" = ");
                    let start = self.out.len();
                    if self.value(&attribute.value)? {
                        heredoc = Some((start, &attribute.value));
                    }
                }
                Statement::Block(block) => self.block(block, components)?,
            }
            let behind = self.comments.behind(span.end);
            // The word that ends a heredoc stands alone on its line: with a comment behind it the text is one string.
            if let Some((start, value)) = heredoc
                && !behind.is_empty()
            {
                self.out.truncate(start);
                self.expression(value, 0)?;
            }
            self.out.push_str(&behind);
            self.out.push('\n');
            last_line = Some(self.source.line(span.end.saturating_sub(1)));
        }
        Ok(())
    }

    fn block(&mut self, block: &Block, components: bool) -> Result<(), Diagnostics> {
        let mut parts = block.name.name.split('.');
        self.name(parts.next().unwrap_or_default(), block.name.span)?;
        let mut labels: Vec<&str> = parts.collect();
        match &block.label {
            // Inside of a component one label alone would be a part of the name.
            Some(label) => {
                if labels.is_empty() && !components {
                    labels.push("");
                }
                labels.push(&label.name);
            }
            // And where labels are labels an empty one says that there is none.
            None if !labels.is_empty() && (components || labels.len() > 1) => labels.push(""),
            None => {}
        }
        for label in labels {
            let _ = write!(self.out, " \"{label}\"");
        }
        self.out.push_str(" {");
        let behind = self.comments.behind(block.open + 1);
        self.out.push_str(&behind);
        let before = self.out.len();
        self.out.push('\n');
        self.body(&block.body, holds_components(components, &block.name.name))?;
        let rest = self.comments.before(block.close);
        self.out.push_str(&rest);
        if self.out.len() == before + 1 && behind.is_empty() {
            self.out.pop();
        }
        self.out.push('}');
        Ok(())
    }

    fn name(&mut self, name: &str, span: Span) -> Result<(), Diagnostics> {
        if hcl_edit::Ident::try_new(name).is_err() {
            return Err(refuse(
                self.source,
                span,
                format!("`{name}` is not an identifier of HCL"),
            ));
        }
        self.out.push_str(name);
        Ok(())
    }

    /// The value of an attribute: text of several lines becomes a heredoc, which is answered with true.
    fn value(&mut self, expression: &Expression) -> Result<bool, Diagnostics> {
        if let ExpressionKind::Literal {
            kind: TokenKind::String,
            text,
        } = &expression.kind
            && let Some(value) = unquote(text)
            && value.ends_with('\n')
            && value.lines().count() > 1
            && value
                .chars()
                .all(|letter| !letter.is_control() || matches!(letter, '\n' | '\t'))
        {
            let words = (0..).map(|number| {
                if number == 0 {
                    "EOT".to_owned()
                } else {
                    format!("EOT{number}")
                }
            });
            if let Some(word) = words
                .take(100)
                .find(|word| value.lines().all(|line| line.trim() != word))
            {
                let value = value.replace("${", "$${").replace("%{", "%%{");
                let _ = write!(self.out, "<<{word}\n{value}{word}");
                return Ok(true);
            }
        }
        self.expression(expression, 0)?;
        Ok(false)
    }

    fn expression(&mut self, expression: &Expression, least: u8) -> Result<(), Diagnostics> {
        let wrapped = binding(expression, precedence) < least;
        if wrapped {
            self.out.push('(');
        }
        match &expression.kind {
            ExpressionKind::Literal { kind, text } => self.literal(*kind, text, expression.span)?,
            ExpressionKind::Identifier(name) => self.name(name, expression.span)?,
            ExpressionKind::Array(items) => {
                let spans: Vec<Span> = items.iter().map(|item| item.span).collect();
                self.list(['[', ']'], true, expression.span, &spans, |writer, at| {
                    writer.expression(&items[at], 0)
                })?;
            }
            ExpressionKind::Object(fields) => {
                let spans: Vec<Span> = fields
                    .iter()
                    .map(|field| field.name.span.to(field.value.span))
                    .collect();
                self.list(['{', '}'], false, expression.span, &spans, |writer, at| {
                    writer.field(&fields[at])
                })?;
            }
            ExpressionKind::Access { value, name } => {
                self.operand(value)?;
                self.out.push('.');
                self.name(&name.name, name.span)?;
            }
            ExpressionKind::Index { value, index, .. } => {
                self.operand(value)?;
                self.out.push('[');
                self.expression(index, 0)?;
                self.out.push(']');
            }
            ExpressionKind::Call {
                callee,
                open,
                arguments,
            } => {
                let names = traversal(callee);
                if names.is_empty() {
                    return Err(refuse(
                        self.source,
                        callee.span,
                        "HCL calls functions by name only, not what an expression gives",
                    ));
                }
                for (at, name) in names.iter().enumerate() {
                    if at > 0 {
                        self.out.push_str("::");
                    }
                    self.name(&name.name, name.span)?;
                }
                let spans: Vec<Span> = arguments.iter().map(|argument| argument.span).collect();
                let whole = Span::new(*open, expression.span.end);
                self.list(['(', ')'], true, whole, &spans, |writer, at| {
                    writer.expression(&arguments[at], 0)
                })?;
            }
            ExpressionKind::Unary { operator, value } => {
                self.out.push_str(operator.text());
                // `--a` is nothing in HCL, and `-1` a number.
                self.expression(value, 51)?;
            }
            ExpressionKind::Binary {
                operator: TokenKind::Power,
                left,
                right,
                ..
            } => {
                let _ = write!(self.out, "{POWER}(");
                self.expression(left, 0)?;
                self.out.push_str(", ");
                self.expression(right, 0)?;
                self.out.push(')');
            }
            ExpressionKind::Binary {
                operator, left, right, ..
            } => {
                let own = precedence(*operator);
                self.expression(left, own)?;
                let _ = write!(self.out, " {} ", operator.text());
                self.expression(right, own + 1)?;
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

    /// What a dot or an index follows: literals take parentheses.
    fn operand(&mut self, value: &Expression) -> Result<(), Diagnostics> {
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
        self.out.push('(');
        self.expression(value, 0)?;
        self.out.push(')');
        Ok(())
    }

    fn literal(&mut self, kind: TokenKind, text: &str, span: Span) -> Result<(), Diagnostics> {
        match (kind, literal(kind, text)) {
            (TokenKind::String, Some(Value::String(value))) => self.out.push_str(&quote(&value)),
            (TokenKind::Number | TokenKind::Float, Some(Value::Number(number))) => match number {
                Number::Int(value) => {
                    let _ = write!(self.out, "{value}");
                }
                Number::Uint(value) => {
                    let _ = write!(self.out, "{value}");
                }
                // With a point or an exponent, so that it stays a float.
                Number::Float(value) => {
                    let _ = write!(self.out, "{value:?}");
                }
            },
            (TokenKind::Bool | TokenKind::Null, _) => self.out.push_str(text),
            _ => {
                return Err(refuse(
                    self.source,
                    span,
                    "this literal has no value and so no other spelling",
                ));
            }
        }
        Ok(())
    }

    /// Elements of an object on lines of their own need no commas.
    fn list(
        &mut self,
        [open, close]: [char; 2],
        commas: bool,
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
            if (lines && commas) || (!lines && at + 1 < items.len()) {
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
        let word = hcl_edit::Ident::try_new(name).is_ok() && !matches!(name, "for" | "true" | "false" | "null");
        if !field.quoted && word {
            self.out.push_str(name);
        } else {
            self.out.push_str(&quote(name));
        }
        self.out.push_str(" = ");
        self.expression(&field.value, 0)
    }
}

/// A string of HCL; what would be a template is escaped.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_control() || letter == '\u{feff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out.replace("${", "$${").replace("%{", "%%{")
}
