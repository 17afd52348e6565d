//! Compares the meaning of two trees. Redundant parentheses, the notation of literals, and quotes of keys do not count.
//!
//! The conversion between the two syntaxes checks its results with this module.

use crate::lang::ast::{Expression, ExpressionKind as Kind, File, Statement};
use crate::lang::eval::literal;

/// True if two files have the same meaning.
pub fn same(left: &File, right: &File) -> bool {
    bodies(&left.body, &right.body)
}

fn bodies(left: &[Statement], right: &[Statement]) -> bool {
    all(left, right, |left, right| match (left, right) {
        (Statement::Attribute(left), Statement::Attribute(right)) => {
            left.name == right.name && expressions(&left.value, &right.value)
        }
        (Statement::Block(left), Statement::Block(right)) => {
            left.name == right.name && left.label == right.label && bodies(&left.body, &right.body)
        }
        _ => false,
    })
}

fn expressions(left: &Expression, right: &Expression) -> bool {
    match (&bare(left).kind, &bare(right).kind) {
        (
            Kind::Literal { kind, text },
            Kind::Literal {
                kind: kind2,
                text: text2,
            },
        ) => {
            match (literal(*kind, text), literal(*kind2, text2)) {
                (Some(left), Some(right)) => {
                    std::mem::discriminant(&left) == std::mem::discriminant(&right) && left == right
                }
                // Neither is representable: compare the texts.
                (None, None) => kind == kind2 && text == text2,
                _ => false,
            }
        }
        (Kind::Identifier(left), Kind::Identifier(right)) => left == right,
        (Kind::Array(left), Kind::Array(right)) => all(left, right, expressions),
        (Kind::Object(left), Kind::Object(right)) => all(left, right, |left, right| {
            left.name == right.name && expressions(&left.value, &right.value)
        }),
        (
            Kind::Access { value, name },
            Kind::Access {
                value: value2,
                name: name2,
            },
        ) => name == name2 && expressions(value, value2),
        (
            Kind::Index { value, index, .. },
            Kind::Index {
                value: value2,
                index: index2,
                ..
            },
        ) => expressions(value, value2) && expressions(index, index2),
        (
            Kind::Call { callee, arguments, .. },
            Kind::Call {
                callee: callee2,
                arguments: arguments2,
                ..
            },
        ) => expressions(callee, callee2) && all(arguments, arguments2, expressions),
        (
            Kind::Unary { operator, value },
            Kind::Unary {
                operator: operator2,
                value: value2,
            },
        ) => operator == operator2 && expressions(value, value2),
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
        ) => operator == operator2 && expressions(left, left2) && expressions(right, right2),
        _ => false,
    }
}

fn bare(expression: &Expression) -> &Expression {
    let mut expression = expression;
    while let Kind::Paren(inner) = &expression.kind {
        expression = inner;
    }
    expression
}

fn all<T>(left: &[T], right: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
}
