//! Compares the meaning of two trees; ignores redundant parentheses, the notation of literals, and quotes of keys.
//!
//! The conversion between Alloy syntax and HCL checks its results with this module.

use std::mem;

use crate::ast::{Expression, ExpressionKind, File, Statement};
use crate::eval::literal;
use crate::token::TokenKind;

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
    let (left, right) = (bare(left).parts(), bare(right).parts());
    (left.kind, left.name, left.operator) == (right.kind, right.name, right.operator)
        && literals(left.literal, right.literal)
        && all(&left.operands, &right.operands, |left, right| expressions(left, right))
        && all(left.fields, right.fields, |left, right| {
            left.name == right.name && expressions(&left.value, &right.value)
        })
}

fn literals(left: Option<(TokenKind, &str)>, right: Option<(TokenKind, &str)>) -> bool {
    let value = |(kind, text)| literal(kind, text);
    match (left.and_then(value), right.and_then(value)) {
        (Some(left), Some(right)) => mem::discriminant(&left) == mem::discriminant(&right) && left == right,
        // Neither is a literal, or neither is representable: compare the texts.
        (None, None) => left == right,
        _ => false,
    }
}

fn bare(expression: &Expression) -> &Expression {
    let mut expression = expression;
    while let ExpressionKind::Paren(inner) = &expression.kind {
        expression = inner;
    }
    expression
}

fn all<T>(left: &[T], right: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
}
