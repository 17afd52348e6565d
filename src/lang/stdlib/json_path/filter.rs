//! The condition of a filter `[?(...)]`: parsed once, asked for every element.
//!
//! Operators, weakest first: `||`, `&&`, comparisons (`== != < <= > >= =~`, `in`, `has`, `empty`), `+ -`, `* /`, and `!` before a value. Operands are
//! paths from the element (`@`) or the document (`$`), which give their first match, numbers, quoted strings, `/regex/`, `true`, `false`, `null`, lists and
//! parentheses. Values of types that an operator does not take make a comparison false, as in the library that Alloy uses.

use regex::Regex;
use serde_json::Value as Json;

use super::{Step, apply};

/// Deepest nesting of parentheses and negations.
const MAX_DEPTH: usize = 50;

/// A condition.
#[derive(Debug)]
pub enum Filter {
    Value(Json),
    Pattern(Regex),
    List(Vec<Filter>),
    /// A path, from the document when true.
    Path(bool, Vec<Step>),
    Not(Box<Filter>),
    Binary(&'static str, Box<Filter>, Box<Filter>),
}

/// What an operand is for one element.
enum Operand<'a> {
    Nothing,
    One(std::borrow::Cow<'a, Json>),
}

impl Filter {
    /// Reads a condition, the text between `?` and the closing bracket.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text, depth: 0 };
        let filter = parser.binary(0)?;
        match parser.rest.trim() {
            "" => Ok(filter),
            rest => Err(format!("unexpected `{rest}` in a filter")),
        }
    }

    /// Whether an element of a document passes. A path alone asks whether it leads to something.
    pub fn accepts(&self, element: &Json, document: &Json) -> bool {
        match self {
            Self::Path(..) => matches!(self.value(element, document), Operand::One(_)),
            _ => matches!(self.value(element, document), Operand::One(value) if *value == Json::Bool(true)),
        }
    }

    fn value<'a>(&'a self, element: &'a Json, document: &'a Json) -> Operand<'a> {
        use std::borrow::Cow;
        match self {
            Self::Value(value) => Operand::One(Cow::Borrowed(value)),
            Self::Pattern(pattern) => Operand::One(Cow::Owned(pattern.as_str().into())),
            Self::List(items) => {
                let items = items.iter().map(|item| match item.value(element, document) {
                    Operand::One(value) => value.into_owned(),
                    Operand::Nothing => Json::Null,
                });
                Operand::One(Cow::Owned(items.collect()))
            }
            Self::Path(from_document, steps) => {
                let start = if *from_document { document } else { element };
                match apply(start, document, steps).first() {
                    Some(found) => Operand::One(Cow::Borrowed(*found)),
                    None => Operand::Nothing,
                }
            }
            Self::Not(inner) => Operand::One(Cow::Owned(Json::Bool(!inner.accepts(element, document)))),
            Self::Binary(operator, left, right) => {
                Operand::One(Cow::Owned(binary(operator, left, right, element, document)))
            }
        }
    }
}

fn binary(operator: &str, left: &Filter, right: &Filter, element: &Json, document: &Json) -> Json {
    match operator {
        "&&" => return Json::Bool(left.accepts(element, document) && right.accepts(element, document)),
        "||" => return Json::Bool(left.accepts(element, document) || right.accepts(element, document)),
        _ => {}
    }
    let (left_value, right_value) = (left.value(element, document), right.value(element, document));
    let (left_value, right_value) = match (&left_value, &right_value) {
        (Operand::One(left), Operand::One(right)) => (left.as_ref(), right.as_ref()),
        // Nothing is unlike everything.
        (Operand::Nothing, Operand::Nothing) => return Json::Bool(operator == "=="),
        (Operand::Nothing, Operand::One(wanted)) if operator == "has" => {
            return Json::Bool(wanted.as_bool() == Some(false));
        }
        _ => return Json::Bool(operator == "!="),
    };
    let ordering = match (left_value, right_value) {
        (Json::Number(left), Json::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Json::String(left), Json::String(right)) => Some(left.cmp(right)),
        _ => None,
    };
    let same = match (left_value, right_value) {
        (Json::Number(_), Json::Number(_)) => ordering.is_some_and(std::cmp::Ordering::is_eq),
        (left, right) => left == right,
    };
    Json::Bool(match operator {
        "==" => same,
        "!=" => !same,
        "<" => ordering.is_some_and(std::cmp::Ordering::is_lt),
        "<=" => ordering.is_some_and(std::cmp::Ordering::is_le),
        ">" => ordering.is_some_and(std::cmp::Ordering::is_gt),
        ">=" => ordering.is_some_and(std::cmp::Ordering::is_ge),
        "in" => right_value.as_array().is_some_and(|items| items.contains(left_value)),
        "has" => right_value.as_bool() == Some(true),
        "empty" => right_value.as_bool() == Some(is_empty(left_value)),
        "=~" => match (right, left_value.as_str()) {
            (Filter::Pattern(pattern), Some(text)) => pattern.is_match(text),
            _ => false,
        },
        _ => return arithmetic(operator, left_value, right_value),
    })
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::String(text) => text.is_empty(),
        _ => false,
    }
}

fn arithmetic(operator: &str, left: &Json, right: &Json) -> Json {
    if let (Json::String(left), Json::String(right), "+") = (left, right, operator) {
        return format!("{left}{right}").into();
    }
    let (Some(left), Some(right)) = (left.as_f64(), right.as_f64()) else {
        return Json::Null;
    };
    let result = match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        _ => left / right,
    };
    // Division by zero has no value.
    serde_json::Number::from_f64(result).map_or(Json::Null, Json::Number)
}

/// Operators by precedence, longer ones before their beginnings.
const LEVELS: [&[&str]; 5] = [
    &["||"],
    &["&&"],
    &["==", "!=", "<=", ">=", "=~", "<", ">", "in ", "has ", "empty "],
    &["+", "-"],
    &["*", "/"],
];

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn binary(&mut self, level: usize) -> Result<Filter, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.operand();
        };
        let mut left = self.binary(level + 1)?;
        loop {
            self.rest = self.rest.trim_start();
            let Some(operator) = operators.iter().find(|operator| self.rest.starts_with(**operator)) else {
                return Ok(left);
            };
            self.rest = &self.rest[operator.len()..];
            let mut right = self.binary(level + 1)?;
            if *operator == "=~"
                && let Filter::Value(Json::String(pattern)) = &right
            {
                right = Filter::Pattern(compile(pattern)?);
            }
            left = Filter::Binary(operator.trim_end(), Box::new(left), Box::new(right));
        }
    }

    fn operand(&mut self) -> Result<Filter, String> {
        self.rest = self.rest.trim_start();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("a filter nests more than {MAX_DEPTH} deep"));
        }
        let operand = self.primary();
        self.depth -= 1;
        operand
    }

    fn primary(&mut self) -> Result<Filter, String> {
        let Some(first) = self.rest.chars().next() else {
            return Err("a filter ends where a value is expected".to_owned());
        };
        match first {
            '!' => {
                self.rest = &self.rest[1..];
                Ok(Filter::Not(Box::new(self.operand()?)))
            }
            '(' => {
                self.rest = &self.rest[1..];
                let inner = self.binary(0)?;
                self.expect(')')?;
                Ok(inner)
            }
            '[' => {
                self.rest = &self.rest[1..];
                let mut items = Vec::new();
                while !self.rest.trim_start().starts_with(']') {
                    items.push(self.binary(0)?);
                    self.rest = self.rest.trim_start();
                    match self.rest.strip_prefix(',') {
                        Some(rest) => self.rest = rest,
                        None => break,
                    }
                }
                self.expect(']')?;
                Ok(Filter::List(items))
            }
            '@' | '$' => {
                let end = path_end(self.rest);
                let steps = super::parse(&format!("${}", &self.rest[1..end]))?;
                self.rest = &self.rest[end..];
                Ok(Filter::Path(first == '$', steps))
            }
            '\'' | '"' | '/' => {
                let inner = &self.rest[1..];
                let end = closing(inner, first).ok_or_else(|| format!("{first} without its end in a filter"))?;
                let text = unescaped(&inner[..end], first);
                self.rest = &inner[end + 1..];
                if first == '/' {
                    return compile(&text).map(Filter::Pattern);
                }
                Ok(Filter::Value(text.into()))
            }
            _ => {
                let end = self
                    .rest
                    .char_indices()
                    .skip(1)
                    .find(|(_, letter)| !letter.is_ascii_alphanumeric() && *letter != '.')
                    .map_or(self.rest.len(), |(at, _)| at);
                let word = &self.rest[..end];
                let value = serde_json::from_str::<Json>(word)
                    .ok()
                    .filter(|value| !value.is_string())
                    .ok_or_else(|| format!("`{word}` is not a value in a filter"))?;
                self.rest = &self.rest[end..];
                Ok(Filter::Value(value))
            }
        }
    }

    fn expect(&mut self, bracket: char) -> Result<(), String> {
        match self.rest.trim_start().strip_prefix(bracket) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(format!("`{bracket}` is missing in a filter")),
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|_| format!("`{pattern}` is not a regular expression"))
}

/// Where a path that starts with `@` or `$` ends.
fn path_end(text: &str) -> usize {
    let mut depth = 0usize;
    let mut quote = None;
    for (at, letter) in text.char_indices().skip(1) {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') if depth > 0 => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, _) if depth > 0 => {}
            (None, '.' | '_' | '*') => {}
            (None, letter) if letter.is_alphanumeric() => {}
            _ => return at,
        }
    }
    text.len()
}

/// Offset of the closing quote; a backslash takes the next character.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return Some(at),
            _ => {}
        }
    }
    None
}

/// Backslashes before the quote are for the quote; in a regular expression all others are its own.
fn unescaped(text: &str, quote: char) -> String {
    let text = text.replace(&format!("\\{quote}"), &quote.to_string());
    if quote == '/' { text } else { text.replace("\\\\", "\\") }
}
