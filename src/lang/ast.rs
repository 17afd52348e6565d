//! The syntax tree: a closed set of nodes, each with its place in the text.
//!
//! The tree is a value: it holds no reference to a parser and compares by content. Comments stand beside it, in order, for the printer.

use std::sync::Arc;

use crate::lang::source::{Source, Span};
use crate::lang::token::TokenKind;

/// A parsed file.
#[derive(Debug, Clone)]
pub struct File {
    /// Its text.
    pub source: Source,
    /// Its statements.
    pub body: Vec<Statement>,
    /// Its comments; a group is a run without an empty line or another token between.
    pub comments: Vec<Vec<Span>>,
}

/// A statement of a body.
#[derive(Debug, Clone)]
pub enum Statement {
    /// `name = value`
    Attribute(Attribute),
    /// `name "label" { ... }`
    Block(Block),
}

/// `name = value`
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Its name.
    pub name: Identifier,
    /// Its value.
    pub value: Expression,
}

/// `dotted.name "label" { ... }`
#[derive(Debug, Clone)]
pub struct Block {
    /// Full dotted name.
    pub name: Identifier,
    /// Its label without quotes; an empty label is none.
    pub label: Option<Identifier>,
    /// Place of `{`.
    pub open: usize,
    /// Its statements.
    pub body: Vec<Statement>,
    /// Place of `}`.
    pub close: usize,
}

/// A name and its place.
#[derive(Debug, Clone)]
pub struct Identifier {
    /// The name.
    pub name: Arc<str>,
    /// Its place (with quotes, where it was quoted).
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Its place.
    pub span: Span,
    /// Height of the tree below, bounded by the parser so that recursion over a tree is safe.
    pub height: u16,
}

/// Kinds of expressions.
#[derive(Debug, Clone)]
pub enum ExpressionKind {
    /// A number, string, bool or null as written.
    Literal {
        /// [`TokenKind::Number`], `Float`, `String`, `Bool` or `Null`.
        kind: TokenKind,
        /// The text with its quotes.
        text: Arc<str>,
    },
    /// A name.
    Identifier(Arc<str>),
    /// `[a, b]`
    Array(Vec<Expression>),
    /// `{ a = 1, b = 2 }`
    Object(Vec<Field>),
    /// `value.name`
    Access {
        /// What is accessed.
        value: Box<Expression>,
        /// The field.
        name: Identifier,
    },
    /// `value[index]`
    Index {
        /// What is indexed.
        value: Box<Expression>,
        /// Place of `[`.
        open: usize,
        /// The index.
        index: Box<Expression>,
    },
    /// `callee(arguments)`
    Call {
        /// What is called.
        callee: Box<Expression>,
        /// Place of `(`.
        open: usize,
        /// The arguments.
        arguments: Vec<Expression>,
    },
    /// `!value` or `-value`
    Unary {
        /// [`TokenKind::Not`] or `Subtract`.
        operator: TokenKind,
        /// The operand.
        value: Box<Expression>,
    },
    /// `left + right`
    Binary {
        /// The operator.
        operator: TokenKind,
        /// Its place.
        at: usize,
        /// Left operand.
        left: Box<Expression>,
        /// Right operand.
        right: Box<Expression>,
    },
    /// `(inner)`
    Paren(Box<Expression>),
}

/// A field of an object literal.
#[derive(Debug, Clone)]
pub struct Field {
    /// Key without quotes; escapes in it are not processed.
    pub name: Identifier,
    /// True when the key was written in quotes.
    pub quoted: bool,
    /// Its value.
    pub value: Expression,
}

impl Statement {
    /// Its place.
    pub fn span(&self) -> Span {
        match self {
            Self::Attribute(attribute) => attribute.span(),
            Self::Block(block) => block.span(),
        }
    }
}

impl Attribute {
    /// From the name to the end of the value.
    pub fn span(&self) -> Span {
        self.name.span.to(self.value.span)
    }
}

impl Block {
    /// The whole block.
    pub fn span(&self) -> Span {
        Span::new(self.name.span.start, self.close + 1)
    }

    /// Name and label, without the body: the part that messages point at.
    pub fn header(&self) -> Span {
        self.label
            .as_ref()
            .map_or(self.name.span, |label| self.name.span.to(label.span))
    }

    /// Id of the block: its name, and its label if it has one.
    pub fn id(&self) -> String {
        match &self.label {
            Some(label) => format!("{}.{}", self.name.name, label.name),
            None => self.name.name.to_string(),
        }
    }
}

/// Trees are equal when they mean the same: places and comments do not count.
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
        use ExpressionKind as Kind;
        match (&self.kind, &other.kind) {
            (
                Kind::Literal { kind, text },
                Kind::Literal {
                    kind: kind2,
                    text: text2,
                },
            ) => kind == kind2 && text == text2,
            (Kind::Identifier(left), Kind::Identifier(right)) => left == right,
            (Kind::Array(left), Kind::Array(right)) => left == right,
            (Kind::Object(left), Kind::Object(right)) => left == right,
            (
                Kind::Access { value, name },
                Kind::Access {
                    value: value2,
                    name: name2,
                },
            ) => value == value2 && name == name2,
            (
                Kind::Index { value, index, .. },
                Kind::Index {
                    value: value2,
                    index: index2,
                    ..
                },
            ) => value == value2 && index == index2,
            (
                Kind::Call { callee, arguments, .. },
                Kind::Call {
                    callee: callee2,
                    arguments: arguments2,
                    ..
                },
            ) => callee == callee2 && arguments == arguments2,
            (
                Kind::Unary { operator, value },
                Kind::Unary {
                    operator: operator2,
                    value: value2,
                },
            ) => operator == operator2 && value == value2,
            (
                Kind::Binary {
                    operator, left, right, ..
                },
                Kind::Binary {
                    operator: operator2,
                    left: left2,
                    right: right2,
                    ..
                },
            ) => operator == operator2 && left == left2 && right == right2,
            (Kind::Paren(left), Kind::Paren(right)) => left == right,
            _ => false,
        }
    }
}
