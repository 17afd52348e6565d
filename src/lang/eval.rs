//! Evaluates expressions.
//!
//! A [`Scope`] resolves the names in an expression; names that it does not contain are looked up in the standard
//! library. The first error ends the evaluation and points at the invalid part. Arithmetic follows Go: numbers are
//! signed, unsigned or floating-point, integers wrap on overflow, and the quotient of two integers is an integer.

use std::sync::Arc;

use crate::ast::{Expression, ExpressionKind, Identifier};
use crate::codes::{self, Code};
use crate::convert::value_name;
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::{Source, Span};
use crate::stdlib;
use crate::token::TokenKind;
use crate::value::{Fields, Number, Value};

/// Names that expressions may refer to.
pub trait Scope {
    /// Looks up a path such as `a`, `b`, `c` for `a.b.c`. Returns the value of the path or of one of its prefixes, and
    /// the number of parts in that prefix.
    fn lookup(&self, path: &[&str]) -> Option<(Value, usize)>;
}

/// An empty scope: only the standard library is available.
pub struct NoScope;

impl Scope for NoScope {
    fn lookup(&self, _: &[&str]) -> Option<(Value, usize)> {
        None
    }
}

/// Evaluates an expression of `source`.
pub fn evaluate(source: &Source, expression: &Expression, scope: &dyn Scope) -> Result<Value, Diagnostic> {
    Evaluator { source, scope }.expression(expression)
}

/// Returns the names of an expression that is a chain of names: `a`, `b` and `c` for `a.b.c`. Returns an empty list for
/// any other expression.
pub fn traversal(expression: &Expression) -> Vec<Identifier> {
    let mut names = Vec::new();
    let mut current = expression;
    loop {
        match &current.kind {
            ExpressionKind::Access { value, name } => {
                names.push(name.clone());
                current = value;
            }
            ExpressionKind::Identifier(name) => {
                names.push(Identifier {
                    name: name.clone(),
                    span: current.span,
                });
                names.reverse();
                return names;
            }
            _ => return Vec::new(),
        }
    }
}

/// Returns the value of a quoted string literal; `None` if its escapes produce invalid UTF-8.
pub fn unquote(text: &str) -> Option<String> {
    if let Some(raw) = text.strip_prefix('`') {
        return Some(raw.strip_suffix('`').unwrap_or(raw).replace('\r', ""));
    }
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(position) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..position]);
        rest = rest.get(position + 1..)?;
        let mut letters = rest.chars();
        let letter = letters.next()?;
        let (base, digits, byte) = match letter {
            'x' => (16, 2, true),
            'u' => (16, 4, false),
            'U' => (16, 8, false),
            '0'..='7' => (8, 3, true),
            _ => {
                bytes.push(match letter {
                    'a' => 7,
                    'b' => 8,
                    'f' => 12,
                    'n' => b'\n',
                    'r' => b'\r',
                    't' => b'\t',
                    'v' => 11,
                    '\\' => b'\\',
                    '"' => b'"',
                    _ => return None,
                });
                rest = letters.as_str();
                continue;
            }
        };
        let number = if base == 16 { letters.as_str() } else { rest };
        let value = u32::from_str_radix(number.get(..digits)?, base).ok()?;
        if byte {
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
        }
        rest = number.get(digits..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

struct Evaluator<'a> {
    source: &'a Source,
    scope: &'a dyn Scope,
}

impl Evaluator<'_> {
    fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.source, span, message)
    }

    fn expression(&self, expression: &Expression) -> Result<Value, Diagnostic> {
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Literal { kind, text } => literal(*kind, text)
                .ok_or_else(|| self.error(codes::BAD_LITERAL, span, format!("{text} cannot be represented"))),
            ExpressionKind::Identifier(_) => self.names(&traversal(expression)),
            ExpressionKind::Array(items) => items
                .iter()
                .map(|item| self.expression(item))
                .collect::<Result<Arc<[Value]>, _>>()
                .map(Value::Array),
            ExpressionKind::Object(fields) => fields
                .iter()
                .map(|field| Ok((field.name.name.clone(), self.expression(&field.value)?)))
                .collect::<Result<Fields, _>>()
                .map(|fields| Value::Object(Arc::new(fields))),
            ExpressionKind::Access { value, name } => {
                let names = traversal(expression);
                if names.is_empty() {
                    let value = self.expression(value)?;
                    self.field(&value, name)
                } else {
                    self.names(&names)
                }
            }
            ExpressionKind::Index { value, index, .. } => {
                let container = self.expression(value)?;
                let key = self.expression(index)?;
                self.index(&container, value.span, &key, index.span)
            }
            ExpressionKind::Call { callee, arguments, .. } => {
                let function = match self.expression(callee)? {
                    Value::Function(function) => function,
                    other => {
                        let message = format!("expected function, got {}", value_name(&other));
                        return Err(self.error(codes::NOT_CALLABLE, callee.span, message));
                    }
                };
                let values = arguments
                    .iter()
                    .map(|argument| self.expression(argument))
                    .collect::<Result<Vec<_>, _>>()?;
                (function.call)(&values).map_err(|error| {
                    let error_span = error
                        .argument
                        .and_then(|index| arguments.get(index))
                        .map_or(span, |argument| argument.span);
                    self.error(
                        codes::FUNCTION_FAILED,
                        error_span,
                        format!("{}: {}", function.name, error.message),
                    )
                })
            }
            ExpressionKind::Unary { operator, value } => {
                let operand = self.expression(value)?;
                match (operator, &operand) {
                    (TokenKind::Not, Value::Bool(value)) => Ok(Value::Bool(!value)),
                    (TokenKind::Subtract, Value::Number(number)) => Ok(Value::Number(match *number {
                        Number::Int(value) => Number::Int(value.wrapping_neg()),
                        Number::Uint(value) => Number::Int(value.cast_signed().wrapping_neg()),
                        Number::Float(value) => Number::Float(-value),
                    })),
                    _ => {
                        let expected = if *operator == TokenKind::Not { "bool" } else { "number" };
                        let message = format!("{operator} needs a {expected}, got {}", value_name(&operand));
                        Err(self.error(codes::WRONG_OPERAND, value.span, message))
                    }
                }
            }
            ExpressionKind::Binary {
                operator, left, right, ..
            } => {
                let left_value = self.expression(left)?;
                let right_value = self.expression(right)?;
                binary(*operator, &left_value, &right_value).map_err(|failure| match failure {
                    Failure::Left(message) => self.error(codes::WRONG_OPERAND, left.span, message),
                    Failure::Right(message) => self.error(codes::WRONG_OPERAND, right.span, message),
                    Failure::Zero => self.error(codes::DIVISION_BY_ZERO, right.span, "division by zero"),
                })
            }
            ExpressionKind::Paren(inner) => self.expression(inner),
        }
    }

    fn names(&self, names: &[Identifier]) -> Result<Value, Diagnostic> {
        let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
        let binding = self.scope.lookup(&path).or_else(|| stdlib::lookup(&path));
        let Some((mut value, used)) = binding else {
            let Some(first) = names.first() else {
                return Ok(Value::Null);
            };
            let message = format!("identifier \"{}\" does not exist", first.name);
            let hint = nearest(&first.name, stdlib::names()).map(|name| format!("did you mean `{name}`?"));
            return Err(self
                .error(codes::UNKNOWN_IDENTIFIER, first.span, message)
                .maybe_hint(hint));
        };
        for name in names.get(used..).unwrap_or_default() {
            value = self.field(&value, name)?;
        }
        Ok(value)
    }

    fn field(&self, value: &Value, name: &Identifier) -> Result<Value, Diagnostic> {
        field(self.source, value, name)
    }

    fn index(&self, container: &Value, container_span: Span, key: &Value, key_span: Span) -> Result<Value, Diagnostic> {
        match (container, key) {
            (Value::Array(items), Value::Number(number)) => {
                let index = match *number {
                    Number::Int(value) => usize::try_from(value).ok(),
                    Number::Uint(value) => usize::try_from(value).ok(),
                    Number::Float(value) => (value >= 0.0).then_some(value as usize),
                };
                index.and_then(|index| items.get(index)).cloned().ok_or_else(|| {
                    let message = format!(
                        "index {} is out of range of array with length {}",
                        crate::convert::format_number(*number),
                        items.len()
                    );
                    self.error(codes::BAD_INDEX, key_span, message)
                })
            }
            (Value::Array(_), other) => {
                let message = format!("expected number, got {}", value_name(other));
                Err(self.error(codes::BAD_INDEX, key_span, message))
            }
            // An index with a missing key returns null; a dot with a missing key is an error.
            (Value::Object(fields), Value::String(key)) => Ok(fields.get(key).cloned().unwrap_or_default()),
            (Value::Object(_), other) => {
                let message = format!("expected string, got {}", value_name(other));
                Err(self.error(codes::BAD_INDEX, key_span, message))
            }
            (other, _) => {
                let message = format!("expected object or array, got {}", value_name(other));
                Err(self.error(codes::BAD_INDEX, container_span, message))
            }
        }
    }
}

/// Returns the field of a value that `.name` selects.
pub fn field(source: &Source, value: &Value, name: &Identifier) -> Result<Value, Diagnostic> {
    let Value::Object(fields) = value else {
        let message = format!("cannot access field `{}` of a {}", name.name, value_name(value));
        return Err(Diagnostic::error(codes::UNKNOWN_FIELD, source, name.span, message));
    };
    fields.get(&name.name).cloned().ok_or_else(|| {
        let names = || fields.keys().map(AsRef::as_ref);
        let hint = match nearest(&name.name, names()) {
            Some(candidate) => Some(format!("did you mean `{candidate}`?")),
            None if (1..=12).contains(&fields.len()) => {
                let all: Vec<&str> = names().collect();
                Some(format!("available fields: {}", all.join(", ")))
            }
            None => None,
        };
        Diagnostic::error(
            codes::UNKNOWN_FIELD,
            source,
            name.span,
            format!("field \"{}\" does not exist", name.name),
        )
        .maybe_hint(hint)
    })
}

/// Returns the value of a literal; `None` if no type can represent it.
pub(crate) fn literal(kind: TokenKind, text: &str) -> Option<Value> {
    Some(match kind {
        TokenKind::Number => Value::Number(integer(text)?),
        TokenKind::Float => Value::Number(Number::Float(
            text.parse().ok().filter(|value: &f64| value.is_finite())?,
        )),
        TokenKind::String => Value::string(unquote(text)?),
        TokenKind::Bool => Value::Bool(text == "true"),
        _ => Value::Null,
    })
}

/// Parses digits. As in Alloy, a leading zero means octal (`010` is 8). A number that is not valid octal (`08` is 8.0),
/// or that needs more than 64 bits, becomes floating-point.
fn integer(text: &str) -> Option<Number> {
    let octal = text.len() > 1 && text.starts_with('0');
    let base = if octal { 8 } else { 10 };
    if let Ok(value) = i64::from_str_radix(text, base) {
        return Some(Number::Int(value));
    }
    if let Ok(value) = u64::from_str_radix(text, base) {
        return Some(Number::Uint(value));
    }
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(Number::Float)
}

enum Failure {
    Left(String),
    Right(String),
    Zero,
}

fn binary(operator: TokenKind, left: &Value, right: &Value) -> Result<Value, Failure> {
    match operator {
        TokenKind::Equal => return Ok(Value::Bool(equal(left, right))),
        TokenKind::NotEqual => return Ok(Value::Bool(!equal(left, right))),
        _ => {}
    }
    let expected = match operator {
        TokenKind::Or | TokenKind::And => "bool",
        TokenKind::Add => "number, string or secret",
        TokenKind::Less | TokenKind::LessEqual | TokenKind::Greater | TokenKind::GreaterEqual => "number or string",
        _ => "number",
    };
    let fits = |value: &Value| match value {
        Value::Bool(_) => expected == "bool",
        Value::Number(_) => expected.starts_with("number"),
        Value::String(_) => expected.contains("string"),
        Value::Secret(_) => expected.contains("secret"),
        _ => false,
    };
    let refusal = |value: &Value| format!("{operator} needs {expected}, got {}", value_name(value));
    if !fits(left) {
        return Err(Failure::Left(refusal(left)));
    }
    if !fits(right) {
        return Err(Failure::Right(refusal(right)));
    }
    Ok(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Value::Bool(match operator {
            TokenKind::And => *left && *right,
            _ => *left || *right,
        }),
        (Value::Number(left), Value::Number(right)) => return arithmetic(operator, *left, *right),
        (Value::String(left), Value::String(right)) => match operator {
            TokenKind::Add => Value::string(format!("{left}{right}")),
            TokenKind::Less => Value::Bool(left < right),
            TokenKind::LessEqual => Value::Bool(left <= right),
            TokenKind::Greater => Value::Bool(left > right),
            _ => Value::Bool(left >= right),
        },
        // Concatenation with a secret yields a secret.
        (Value::Secret(left), Value::String(right) | Value::Secret(right))
        | (Value::String(left), Value::Secret(right)) => Value::Secret(format!("{left}{right}").into()),
        (left, right) => {
            let message = format!("expected {}, got {}", value_name(left), value_name(right));
            return Err(Failure::Right(message));
        }
    })
}

/// Equality in the language: functions are never equal, and a secret equals a string with the same text.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Function(_), _) | (_, Value::Function(_)) => false,
        (Value::Secret(left), Value::String(right)) | (Value::String(left), Value::Secret(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right.iter()).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|((key, left), (other, right))| key == other && equal(left, right))
        }
        _ => left == right,
    }
}

fn arithmetic(operator: TokenKind, left: Number, right: Number) -> Result<Value, Failure> {
    let divides = matches!(operator, TokenKind::Divide | TokenKind::Modulo);
    if divides && right.as_f64() == 0.0 {
        return Err(Failure::Zero);
    }
    let comparison = |ordering: Option<std::cmp::Ordering>| match operator {
        TokenKind::Less => Some(ordering.is_some_and(std::cmp::Ordering::is_lt)),
        TokenKind::LessEqual => Some(ordering.is_some_and(std::cmp::Ordering::is_le)),
        TokenKind::Greater => Some(ordering.is_some_and(std::cmp::Ordering::is_gt)),
        TokenKind::GreaterEqual => Some(ordering.is_some_and(std::cmp::Ordering::is_ge)),
        _ => None,
    };
    // If only one operand is floating-point, the other converts to floating point. If one operand is signed and the
    // other unsigned, the unsigned operand converts to signed.
    let (result, truth) = match (left, right) {
        (Number::Uint(left), Number::Uint(right)) => (
            Number::Uint(match operator {
                TokenKind::Add => left.wrapping_add(right),
                TokenKind::Subtract => left.wrapping_sub(right),
                TokenKind::Multiply => left.wrapping_mul(right),
                TokenKind::Divide => left / right,
                TokenKind::Modulo => left % right,
                _ => integer_power(left, right, u64::wrapping_mul, 1),
            }),
            comparison(left.partial_cmp(&right)),
        ),
        (Number::Float(_), _) | (_, Number::Float(_)) => {
            let (left, right) = (left.as_f64(), right.as_f64());
            (
                Number::Float(match operator {
                    TokenKind::Add => left + right,
                    TokenKind::Subtract => left - right,
                    TokenKind::Multiply => left * right,
                    TokenKind::Divide => left / right,
                    TokenKind::Modulo => left % right,
                    _ => left.powf(right),
                }),
                comparison(left.partial_cmp(&right)),
            )
        }
        (left, right) => {
            let signed = |number| match number {
                Number::Int(value) => value,
                Number::Uint(value) => value.cast_signed(),
                Number::Float(value) => value as i64,
            };
            let (left, right) = (signed(left), signed(right));
            (
                Number::Int(match operator {
                    TokenKind::Add => left.wrapping_add(right),
                    TokenKind::Subtract => left.wrapping_sub(right),
                    TokenKind::Multiply => left.wrapping_mul(right),
                    TokenKind::Divide => left.wrapping_div(right),
                    TokenKind::Modulo => left.wrapping_rem(right),
                    // Alloy multiplies in a loop, which a negative exponent skips: the result is the base.
                    _ if right < 0 => left,
                    _ => integer_power(left, right.cast_unsigned(), i64::wrapping_mul, 1),
                }),
                comparison(left.partial_cmp(&right)),
            )
        }
    };
    Ok(truth.map_or(Value::Number(result), Value::Bool))
}

/// Computes a power by squaring; wraps like repeated multiplication.
fn integer_power<T: Copy>(mut base: T, mut exponent: u64, multiply: fn(T, T) -> T, one: T) -> T {
    let mut result = one;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}
