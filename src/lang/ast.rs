//! The syntax tree: a closed set of nodes, each with its position in the text.
//!
//! The tree is a value: it holds no reference to a parser and compares by content. Comments are stored separately, in
//! order, for the printer.

use std::mem::{self, Discriminant};
use std::sync::Arc;

use crate::source::{Source, Span};
use crate::token::TokenKind;

/// A parsed file; incomplete when it has syntax errors.
#[derive(Debug, Clone)]
pub struct File {
    /// The text that the file was parsed from.
    pub source: Source,
    /// The statements of the file, in the order written.
    pub body: Vec<Statement>,
    /// The comments in the file, in groups; an empty line or another token ends a group.
    pub comments: Vec<Vec<Span>>,
}

/// A statement of the body of a file or block.
#[derive(Debug, Clone)]
pub enum Statement {
    /// An attribute: `name = value`.
    Attribute(Attribute),
    /// A block: `name "label" { ... }`.
    Block(Block),
}

/// An attribute: `name = value`.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// The name left of the `=`.
    pub name: Identifier,
    /// The expression right of the `=`.
    pub value: Expression,
}

/// A block: `dotted.name "label" { ... }`.
#[derive(Debug, Clone)]
pub struct Block {
    /// The whole name, with its dots.
    pub name: Identifier,
    /// The label without quotes; `None` if the label is missing or empty.
    pub label: Option<Identifier>,
    /// Byte offset of the opening `{`.
    pub open: usize,
    /// The statements of the block, in the order written.
    pub body: Vec<Statement>,
    /// Byte offset of the closing `}`.
    pub close: usize,
}

/// A name and its position in the text.
#[derive(Debug, Clone)]
pub struct Identifier {
    /// The name, without quotes.
    pub name: Arc<str>,
    /// The position of the name in the text, including quotes.
    pub span: Span,
}

/// An expression and its position in the text.
#[derive(Debug, Clone)]
pub struct Expression {
    /// The kind of the expression, with the operands.
    pub kind: ExpressionKind,
    /// The range of bytes that it covers.
    pub span: Span,
    /// Height of the tree of this expression. The parser limits the height, so that recursion over a tree is safe.
    pub height: u16,
}

/// The kinds of expressions; a closed set.
#[derive(Debug, Clone)]
pub enum ExpressionKind {
    /// A number, string, bool or null as written.
    Literal {
        /// The kind of the literal: [`TokenKind::Number`], `Float`, `String`, `Bool` or `Null`.
        kind: TokenKind,
        /// The text, including quotes.
        text: Arc<str>,
    },
    /// A name by itself: `constants`.
    Identifier(Arc<str>),
    /// A list of values: `[a, b]`.
    Array(Vec<Expression>),
    /// An object: `{ a = 1, b = 2 }`.
    Object(Vec<Field>),
    /// A field of a value: `value.name`.
    Access {
        /// The value that has the field.
        value: Box<Expression>,
        /// The name of the field, after the dot.
        name: Identifier,
    },
    /// An element of a value: `value[index]`.
    Index {
        /// The value that is indexed.
        value: Box<Expression>,
        /// Byte offset of the opening `[`.
        open: usize,
        /// The expression of the index.
        index: Box<Expression>,
    },
    /// A call: `callee(arguments)`.
    Call {
        /// The expression of the function.
        callee: Box<Expression>,
        /// Byte offset of the opening `(`.
        open: usize,
        /// The arguments, in the order written.
        arguments: Vec<Expression>,
    },
    /// A prefix operator: `!value` or `-value`.
    Unary {
        /// The token of the operator: [`TokenKind::Not`] or `Subtract`.
        operator: TokenKind,
        /// The operand of the operator.
        value: Box<Expression>,
    },
    /// An infix operator: `left + right`.
    Binary {
        /// The token of the operator.
        operator: TokenKind,
        /// Byte offset of the operator.
        operator_offset: usize,
        /// The operand on the left of the operator.
        left: Box<Expression>,
        /// The operand on the right of the operator.
        right: Box<Expression>,
    },
    /// An expression in brackets: `(inner)`.
    Paren(Box<Expression>),
}

/// A field of an object literal.
#[derive(Debug, Clone)]
pub struct Field {
    /// Key without quotes; escapes in it are not processed.
    pub name: Identifier,
    /// True when the key was written in quotes.
    pub is_quoted: bool,
    /// The expression right of the `=`.
    pub value: Expression,
}

impl Statement {
    /// Returns the range of bytes that the statement covers.
    pub fn span(&self) -> Span {
        match self {
            Self::Attribute(attribute) => attribute.span(),
            Self::Block(block) => block.span(),
        }
    }
}

impl Attribute {
    /// Returns the range from the name to the end of the value.
    pub fn span(&self) -> Span {
        self.name.span.to(self.value.span)
    }
}

impl Block {
    /// Returns the range of the whole block.
    pub fn span(&self) -> Span {
        Span::new(self.name.span.start, self.close + 1)
    }

    /// Returns the range of name and label, without the body. Messages about the block point at this range.
    pub fn header(&self) -> Span {
        self.label
            .as_ref()
            .map_or(self.name.span, |label| self.name.span.to(label.span))
    }

    /// Returns the id of the block: its name, and its label if it has one.
    pub fn id(&self) -> String {
        match &self.label {
            Some(label) => format!("{}.{}", self.name.name, label.name),
            None => self.name.name.to_string(),
        }
    }
}

/// Trees are equal if they have the same content. Positions and comments are ignored.
impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Attribute(left), Self::Attribute(right)) => left.name == right.name && left.value == right.value,
            (Self::Block(left), Self::Block(right)) => {
                left.name == right.name && left.label == right.label && left.body == right.body
            }
            _ => false,
        }
    }
}

impl PartialEq for Identifier {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.value == other.value
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

/// The parts of an expression without their positions. A part that this kind of expression does not have is empty.
#[derive(PartialEq)]
pub(super) struct Parts<'a> {
    pub kind: Discriminant<ExpressionKind>,
    /// The kind and the text of a literal.
    pub literal: Option<(TokenKind, &'a str)>,
    /// The name of an identifier, or of the field that is accessed.
    pub name: Option<&'a str>,
    pub operator: Option<TokenKind>,
    /// The expressions directly below this expression, in the order written.
    pub operands: Vec<&'a Expression>,
    /// The fields of an object.
    pub fields: &'a [Field],
}

impl Expression {
    /// Returns the parts of the expression, so that two expressions of any kind are compared in the same way.
    pub(super) fn parts(&self) -> Parts<'_> {
        use ExpressionKind as Kind;
        let mut parts = Parts {
            kind: mem::discriminant(&self.kind),
            literal: None,
            name: None,
            operator: None,
            operands: Vec::new(),
            fields: &[],
        };
        match &self.kind {
            Kind::Literal { kind, text } => parts.literal = Some((*kind, text)),
            Kind::Identifier(name) => parts.name = Some(name),
            Kind::Array(items) => parts.operands.extend(items),
            Kind::Object(fields) => parts.fields = fields,
            Kind::Access { value, name } => {
                parts.name = Some(&name.name);
                parts.operands.push(value);
            }
            Kind::Index { value, index, .. } => parts.operands.extend([&**value, index]),
            Kind::Call { callee, arguments, .. } => {
                parts.operands.push(callee);
                parts.operands.extend(arguments);
            }
            Kind::Unary { operator, value } => {
                parts.operator = Some(*operator);
                parts.operands.push(value);
            }
            Kind::Binary {
                operator, left, right, ..
            } => {
                parts.operator = Some(*operator);
                parts.operands.extend([&**left, right]);
            }
            Kind::Paren(inner) => parts.operands.push(inner),
        }
        parts
    }
}
