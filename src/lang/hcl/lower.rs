//! Converts the tree of `hcl-edit` to the tree of [`crate::ast`].
//!
//! A construct either has the same meaning in both languages or is reported. Literals become texts in Alloy syntax,
//! since the tree stores literals as texts.

use std::ops::Range;
use std::sync::Arc;

use hcl_edit::expr::{self, BinaryOperator, Expression as Hcl, ObjectKey, TraversalOperator, UnaryOperator};
use hcl_edit::structure::{self, BlockLabel, Structure};
use hcl_edit::template::{Element, Template};
use hcl_edit::{Span as _, Spanned};

use super::spelling::{BlockContext, POWER_FUNCTION};
use super::tokens;
use crate::ast::{Attribute, Block, Expression, ExpressionKind, Field, File, Identifier, Statement};
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::literal;
use crate::parser::MAX_DEPTH;
use crate::scanner::is_identifier;
use crate::source::{Source, Span};
use crate::token::TokenKind;

/// Converts a body that was parsed from `source`, beginning at the byte offset `start`.
pub(crate) fn lower(source: &Source, start: usize, body: &structure::Body) -> (File, Diagnostics) {
    let mut lowerer = Lowerer {
        source,
        start,
        diagnostics: Diagnostics::new(),
    };
    let body = lowerer.body(body, BlockContext::Components);
    let file = File {
        source: source.clone(),
        body,
        comments: tokens::comment_groups(source),
    };
    lowerer.diagnostics.sort();
    (file, lowerer.diagnostics)
}

struct Lowerer<'a> {
    source: &'a Source,
    start: usize,
    diagnostics: Diagnostics,
}

impl Lowerer<'_> {
    fn span(&self, range: Option<Range<usize>>) -> Span {
        let range = range.unwrap_or_default();
        Span::new(self.start + range.start, self.start + range.end)
    }

    fn refuse(&mut self, span: Span, message: impl Into<String>, hint: &str) {
        let diagnostic = Diagnostic::error(codes::HCL_WITHOUT_EQUAL, self.source, span, message);
        self.diagnostics.push(diagnostic.hint(hint));
    }

    // === Statements ===

    fn body(&mut self, body: &structure::Body, context: BlockContext) -> Vec<Statement> {
        body.iter()
            .map(|structure| match structure {
                Structure::Attribute(attribute) => Statement::Attribute(Attribute {
                    name: self.identifier(attribute.key.as_str(), attribute.key.span()),
                    value: self.expression(&attribute.value),
                }),
                Structure::Block(block) => Statement::Block(self.block(block, context)),
            })
            .collect()
    }

    fn identifier(&mut self, name: &str, range: Option<Range<usize>>) -> Identifier {
        let span = self.span(range);
        if !is_identifier(name) {
            let message = format!("`{name}` is not an identifier of Alloy");
            self.refuse(
                span,
                message,
                "use letters, digits and `_`, and begin with a letter or `_`",
            );
        }
        Identifier {
            name: name.into(),
            span,
        }
    }

    fn block(&mut self, block: &structure::Block, context: BlockContext) -> Block {
        let block_span = self.span(block.span());
        let mut name = self.identifier(block.ident.as_str(), block.ident.span());
        let mut parts = vec![name.name.to_string()];
        let labels: Vec<Identifier> = block.labels.iter().map(|label| self.label(label)).collect();
        // The last HCL label is the label of the block, and the others are parts of its name. Inside a component, a
        // single HCL label is a part of the name, too.
        let has_label = context == BlockContext::Components || labels.len() > 1;
        let (inner, last) = match labels.split_last() {
            Some((last, inner)) if has_label => (inner, Some(last.clone())),
            _ => (labels.as_slice(), None),
        };
        for part in inner.iter().filter(|part| !part.name.is_empty()) {
            parts.push(part.name.to_string());
            name.span = name.span.to(part.span);
        }
        let header_end = labels.last().map_or(name.span.end, |label| label.span.end);
        let text = self.source.text();
        let open = text
            .get(header_end..)
            .and_then(|rest| rest.find('{'))
            .map_or(header_end, |offset| header_end + offset);
        name.name = parts.join(".").into();
        let inner_context = context.inner(&name.name);
        Block {
            label: last.filter(|label| !label.name.is_empty()),
            open,
            body: self.body(&block.body, inner_context),
            close: block_span.end.saturating_sub(1),
            name,
        }
    }

    fn label(&mut self, label: &BlockLabel) -> Identifier {
        let range = label.span();
        match label.as_str() {
            "" => Identifier {
                name: "".into(),
                span: self.span(range),
            },
            text => self.identifier(text, range),
        }
    }

    // === Expressions ===

    fn expression(&mut self, expression: &Hcl) -> Expression {
        let span = self.span(expression.span());
        match expression {
            Hcl::Null(_) => leaf(TokenKind::Null, "null", span),
            Hcl::Bool(value) => leaf(TokenKind::Bool, if **value { "true" } else { "false" }, span),
            Hcl::Number(_) => self.number(span),
            Hcl::String(text) => string(text, span),
            Hcl::StringTemplate(template) => self.template(template, span),
            Hcl::HeredocTemplate(heredoc) => self.template(&heredoc.template, span),
            Hcl::Array(items) => {
                let items: Vec<Expression> = items.iter().map(|item| self.expression(item)).collect();
                let height = max_height(&items);
                self.node(ExpressionKind::Array(items), span, height)
            }
            Hcl::Object(object) => {
                let fields: Vec<Field> = object
                    .iter()
                    .map(|(key, value)| {
                        let (name, is_quoted) = self.key(key);
                        Field {
                            name,
                            is_quoted,
                            value: self.expression(value.expr()),
                        }
                    })
                    .collect();
                let height = fields.iter().map(|field| field.value.height).max().unwrap_or(0);
                self.node(ExpressionKind::Object(fields), span, height)
            }
            Hcl::Parenthesis(inner) => {
                let inner = self.expression(inner.inner());
                let height = inner.height;
                self.node(ExpressionKind::Paren(Box::new(inner)), span, height)
            }
            Hcl::Variable(name) => {
                let name = self.identifier(name.as_str(), name.span());
                self.node(ExpressionKind::Identifier(name.name), span, 0)
            }
            Hcl::FuncCall(call) => self.call(call, span),
            Hcl::Traversal(traversal) => self.traversal(traversal, span),
            Hcl::UnaryOp(operation) => {
                let operator = match operation.operator.value() {
                    UnaryOperator::Neg => TokenKind::Subtract,
                    UnaryOperator::Not => TokenKind::Not,
                };
                let value = self.expression(&operation.expr);
                let height = value.height;
                let kind = ExpressionKind::Unary {
                    operator,
                    value: Box::new(value),
                };
                self.node(kind, span, height)
            }
            Hcl::BinaryOp(operation) => {
                let left = self.expression(&operation.lhs_expr);
                let right = self.expression(&operation.rhs_expr);
                let operator_offset = self.span(operation.operator.span()).start;
                self.binary(
                    operator(*operation.operator.value()),
                    operator_offset,
                    left,
                    right,
                    span,
                )
            }
            Hcl::Conditional(_) => {
                self.refuse(
                    span,
                    "a conditional has no equivalent in Alloy",
                    "decide in the tool that writes the file, or use `coalesce`",
                );
                null(span)
            }
            Hcl::ForExpr(_) => {
                self.refuse(
                    span,
                    "a `for` expression has no equivalent in Alloy",
                    "use a `foreach` block, or write the list out",
                );
                null(span)
            }
        }
    }

    fn node(&mut self, kind: ExpressionKind, span: Span, height: u16) -> Expression {
        if height >= MAX_DEPTH {
            let message = format!("expressions or blocks are nested more than {MAX_DEPTH} levels deep");
            self.diagnostics
                .push(Diagnostic::error(codes::TOO_DEEP, self.source, span, message));
            return null(span);
        }
        Expression {
            kind,
            span,
            height: height + 1,
        }
    }

    /// Keeps the digits of a number, without leading zeros, which would make it octal in Alloy.
    fn number(&mut self, span: Span) -> Expression {
        let text = self.source.slice(span);
        let (negative, digits) = text
            .strip_prefix('-')
            .map_or((false, text), |digits| (true, digits.trim_start()));
        let kind = if digits.contains(['.', 'e', 'E']) {
            TokenKind::Float
        } else {
            TokenKind::Number
        };
        let literal = digits.trim_start_matches('0');
        let literal = if literal.starts_with(|letter: char| letter.is_ascii_digit()) {
            literal.to_owned()
        } else {
            format!("0{literal}")
        };
        if !negative {
            return leaf(kind, &literal, span);
        }
        let inner = leaf(kind, &literal, Span::new(span.end - digits.len(), span.end));
        let kind = ExpressionKind::Unary {
            operator: TokenKind::Subtract,
            value: Box::new(inner),
        };
        self.node(kind, span, 1)
    }

    /// Converts a template to the concatenation of its parts, which must be strings. A single part is used directly.
    fn template(&mut self, template: &Template, template_span: Span) -> Expression {
        let mut parts: Vec<Expression> = Vec::new();
        for element in template {
            match element {
                Element::Literal(text) => {
                    let span = self.span(Spanned::span(text));
                    parts.push(string(text, span));
                }
                Element::Interpolation(interpolation) => parts.push(self.expression(&interpolation.expr)),
                Element::Directive(_) => {
                    let span = self.span(element.span());
                    self.refuse(
                        span,
                        "a template directive has no equivalent in Alloy",
                        "write the text out, or use a `foreach` block",
                    );
                }
            }
        }
        let mut parts = parts.into_iter();
        let Some(mut joined) = parts.next() else {
            return string("", template_span);
        };
        let is_single = parts.len() == 0;
        for part in parts {
            let operator_offset = part.span.start;
            joined = self.binary(TokenKind::Add, operator_offset, joined, part, template_span);
        }
        if is_single {
            joined.span = template_span;
        }
        joined
    }

    fn key(&mut self, key: &ObjectKey) -> (Identifier, bool) {
        let (name, range): (Arc<str>, _) = match key {
            ObjectKey::Ident(name) => (name.as_str().into(), name.span()),
            ObjectKey::Expression(Hcl::String(text)) => (text.as_str().into(), text.span()),
            ObjectKey::Expression(Hcl::Parenthesis(inner)) if inner.inner().is_str() => {
                (inner.inner().as_str().unwrap_or_default().into(), inner.span())
            }
            ObjectKey::Expression(Hcl::Number(number)) => {
                let span = self.span(number.span());
                (self.source.slice(span).into(), number.span())
            }
            ObjectKey::Expression(other) => {
                let span = self.span(other.span());
                self.refuse(
                    span,
                    "the key of a field must be a name or a plain string",
                    "Alloy does not evaluate keys",
                );
                ("".into(), other.span())
            }
        };
        let is_quoted = !matches!(key, ObjectKey::Ident(_)) || !is_identifier(&name);
        let span = self.span(range);
        (Identifier { name, span }, is_quoted)
    }

    fn call(&mut self, call: &expr::FuncCall, span: Span) -> Expression {
        if call.args.expand_final() {
            self.refuse(
                span,
                "`...` in a call has no equivalent in Alloy",
                "write the arguments out",
            );
        }
        let name = &call.name;
        let mut arguments: Vec<Expression> = call.args.iter().map(|argument| self.expression(argument)).collect();
        if name.namespace.is_empty() && name.name.as_str() == POWER_FUNCTION && arguments.len() == 2 {
            let operator_offset = self.span(name.name.span()).start;
            if let (Some(right), Some(left)) = (arguments.pop(), arguments.pop()) {
                return self.binary(TokenKind::Power, operator_offset, left, right, span);
            }
        }
        let mut names = name.namespace.iter().chain(std::iter::once(&name.name));
        let mut callee = null(span);
        if let Some(first) = names.next() {
            let first = self.identifier(first.as_str(), first.span());
            callee = self.node(ExpressionKind::Identifier(first.name), first.span, 0);
        }
        for part in names {
            let name = self.identifier(part.as_str(), part.span());
            callee = self.access(callee, name);
        }
        let open = self.source.text()[callee.span.end..].find('(').unwrap_or(0) + callee.span.end;
        let height = max_height(&arguments).max(callee.height);
        let kind = ExpressionKind::Call {
            callee: Box::new(callee),
            open,
            arguments,
        };
        self.node(kind, span, height)
    }

    fn access(&mut self, value: Expression, name: Identifier) -> Expression {
        let (span, height) = (value.span.to(name.span), value.height);
        let kind = ExpressionKind::Access {
            value: Box::new(value),
            name,
        };
        self.node(kind, span, height)
    }

    fn traversal(&mut self, traversal: &expr::Traversal, traversal_span: Span) -> Expression {
        let mut value = self.expression(&traversal.expr);
        for operator in &traversal.operators {
            let span = self.span(operator.span());
            value = match operator.value() {
                TraversalOperator::GetAttr(name) => {
                    let name = self.identifier(name.as_str(), name.span());
                    self.access(value, name)
                }
                TraversalOperator::Index(index) => {
                    let index = self.expression(index);
                    self.index(value, index, span)
                }
                TraversalOperator::LegacyIndex(number) => {
                    let span = self.span(number.span());
                    let index = leaf(TokenKind::Number, &number.value().to_string(), span);
                    self.index(value, index, span)
                }
                TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => {
                    self.refuse(
                        span,
                        "a splat has no equivalent in Alloy",
                        "select an element, such as `[0]`",
                    );
                    null(traversal_span)
                }
            };
        }
        value.span = traversal_span;
        value
    }

    fn index(&mut self, value: Expression, index: Expression, operator: Span) -> Expression {
        let (span, height) = (value.span.to(operator), value.height.max(index.height));
        let kind = ExpressionKind::Index {
            value: Box::new(value),
            open: operator.start,
            index: Box::new(index),
        };
        self.node(kind, span, height)
    }

    fn binary(
        &mut self,
        operator: TokenKind,
        operator_offset: usize,
        left: Expression,
        right: Expression,
        span: Span,
    ) -> Expression {
        let height = left.height.max(right.height);
        let kind = ExpressionKind::Binary {
            operator,
            operator_offset,
            left: Box::new(left),
            right: Box::new(right),
        };
        self.node(kind, span, height)
    }
}

fn operator(operator: BinaryOperator) -> TokenKind {
    match operator {
        BinaryOperator::Eq => TokenKind::Equal,
        BinaryOperator::NotEq => TokenKind::NotEqual,
        BinaryOperator::LessEq => TokenKind::LessEqual,
        BinaryOperator::GreaterEq => TokenKind::GreaterEqual,
        BinaryOperator::Less => TokenKind::Less,
        BinaryOperator::Greater => TokenKind::Greater,
        BinaryOperator::Plus => TokenKind::Add,
        BinaryOperator::Minus => TokenKind::Subtract,
        BinaryOperator::Mul => TokenKind::Multiply,
        BinaryOperator::Div => TokenKind::Divide,
        BinaryOperator::Mod => TokenKind::Modulo,
        BinaryOperator::And => TokenKind::And,
        BinaryOperator::Or => TokenKind::Or,
    }
}

fn max_height(items: &[Expression]) -> u16 {
    items.iter().map(|item| item.height).max().unwrap_or(0)
}

fn string(text: &str, span: Span) -> Expression {
    leaf(TokenKind::String, &literal::quote(text), span)
}

fn leaf(kind: TokenKind, text: &str, span: Span) -> Expression {
    Expression {
        kind: ExpressionKind::Literal {
            kind,
            text: text.into(),
        },
        span,
        height: 1,
    }
}

fn null(span: Span) -> Expression {
    leaf(TokenKind::Null, "null", span)
}
