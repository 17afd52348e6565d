//! Parses a JSONPath into steps, and the filters in it into conditions.
//!
//! Operators of a filter `[?(...)]`, weakest first: `||`, `&&`, comparisons (`== != < <= > >= =~`, `in`, `has`,
//! `empty`), `+ -`, `* /`, and `!` before a value. Operands are numbers, quoted strings, `/regex/`, `true`, `false`,
//! `null`, lists, parentheses, and paths from the element (`@`) or the document (`$`). If a path in a filter has
//! several matches, its value is the first one.

use alluvium_base::re2::Expression;
use serde_json::Value as Json;

use super::path::{Filter, Selector, Step};
use super::path_error::{MAX_DEPTH, PathError};

/// Parses a JSONPath, such as `$.a[0]`, into its steps.
pub(super) fn parse(path: &str) -> Result<Vec<Step>, PathError> {
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    let mut steps = Vec::new();
    let mut first = true;
    while !rest.is_empty() {
        let is_recursive = rest.starts_with("..");
        let bare = first && !rest.starts_with(['.', '[']);
        first = false;
        rest = if is_recursive {
            &rest[2..]
        } else {
            rest.strip_prefix('.').unwrap_or(rest)
        };
        let selectors = if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner).ok_or_else(|| PathError::OpenBracket(path.to_owned()))?;
            rest = &inner[end + 1..];
            union(&inner[..end])?
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = &rest[..end];
            rest = &rest[end..];
            if name.is_empty() && !bare {
                return Err(PathError::NoName(path.to_owned()));
            }
            if let Some(character) = name.chars().find(|character| name != "*" && !is_bare(*character)) {
                return Err(PathError::Character {
                    character,
                    path: path.to_owned(),
                    name: name.to_owned(),
                });
            }
            vec![if name == "*" {
                Selector::All
            } else {
                Selector::Name(name.to_owned())
            }]
        };
        steps.push(Step {
            is_recursive,
            selectors,
        });
    }
    Ok(steps)
}

/// True for characters that a name may contain without brackets and quotes, as in Alloy's JSONPath.
fn is_bare(character: char) -> bool {
    character.is_ascii_alphanumeric() || !character.is_ascii() || "_#%:;?^{|}~".contains(character)
}

/// Returns the offset of the closing `]`. Skips quoted texts and nested brackets.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0usize;
    for (offset, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, ']') => return Some(offset),
            _ => {}
        }
    }
    None
}

fn union(text: &str) -> Result<Vec<Selector>, PathError> {
    let text = text.trim();
    if let Some(condition) = text.strip_prefix('?') {
        return Ok(vec![Selector::Filter(Box::new(filter(condition)?))]);
    }
    if text.starts_with('(') {
        return Err(PathError::Script(text.to_owned()));
    }
    if let Some(name) = quoted(text) {
        return Ok(vec![Selector::Name(name.to_owned())]);
    }
    text.split(',')
        .map(|part| {
            let part = part.trim();
            if part == "*" {
                return Ok(Selector::All);
            }
            if let Some(name) = quoted(part) {
                return Ok(Selector::Name(name.to_owned()));
            }
            let number = |text: &str| match text.trim() {
                "" => Ok(None),
                text => text
                    .parse::<i64>()
                    .map(Some)
                    .map_err(|_| PathError::Selector(part.to_owned())),
            };
            let bounds: Vec<&str> = part.split(':').collect();
            match bounds.as_slice() {
                [index] => number(index)?.map(Selector::Index).ok_or(PathError::NoIndex),
                [start, end] => Ok(Selector::Slice(number(start)?, number(end)?, 1)),
                [start, end, stride] => Ok(Selector::Slice(
                    number(start)?,
                    number(end)?,
                    number(stride)?.unwrap_or(1),
                )),
                _ => Err(PathError::Slice(part.to_owned())),
            }
        })
        .collect()
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].iter().find_map(|quote| {
        let inner = text.strip_prefix(*quote)?.strip_suffix(*quote)?;
        (!inner.contains(*quote)).then_some(inner)
    })
}

/// Parses a condition, the text between `?` and the closing bracket.
fn filter(text: &str) -> Result<Filter, PathError> {
    let mut parser = Parser { rest: text, depth: 0 };
    let filter = parser.binary(0)?;
    match parser.rest.trim() {
        "" => Ok(filter),
        rest => Err(PathError::Rest(rest.to_owned())),
    }
}

/// Operators by precedence, weakest first. If one operator is a prefix of another, such as `<` of `<=`, the longer one
/// comes first, because the first match is used.
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
    fn binary(&mut self, level: usize) -> Result<Filter, PathError> {
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

    fn operand(&mut self) -> Result<Filter, PathError> {
        self.rest = self.rest.trim_start();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PathError::TooDeep);
        }
        let operand = self.primary();
        self.depth -= 1;
        operand
    }

    fn primary(&mut self) -> Result<Filter, PathError> {
        let Some(first) = self.rest.chars().next() else {
            return Err(PathError::NoValue);
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
                let steps = parse(&format!("${}", &self.rest[1..end]))?;
                self.rest = &self.rest[end..];
                Ok(Filter::Path(first == '$', steps))
            }
            '\'' | '"' | '/' => {
                let inner = &self.rest[1..];
                let end = closing_quote(inner, first).ok_or(PathError::OpenQuote(first))?;
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
                    .map_or(self.rest.len(), |(offset, _)| offset);
                let word = &self.rest[..end];
                let value = serde_json::from_str::<Json>(word)
                    .ok()
                    .filter(|value| !value.is_string())
                    .ok_or_else(|| PathError::Value(word.to_owned()))?;
                self.rest = &self.rest[end..];
                Ok(Filter::Value(value))
            }
        }
    }

    fn expect(&mut self, bracket: char) -> Result<(), PathError> {
        match self.rest.trim_start().strip_prefix(bracket) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(PathError::NoBracket(bracket)),
        }
    }
}

fn compile(pattern: &str) -> Result<Expression, PathError> {
    Expression::search(pattern).map_err(|source| PathError::Regex {
        pattern: pattern.to_owned(),
        source,
    })
}

/// Returns the offset at which a path that starts with `@` or `$` ends.
fn path_end(text: &str) -> usize {
    let mut depth = 0usize;
    let mut quote = None;
    for (offset, letter) in text.char_indices().skip(1) {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') if depth > 0 => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, _) if depth > 0 => {}
            (None, '.' | '_' | '*') => {}
            (None, letter) if letter.is_alphanumeric() => {}
            _ => return offset,
        }
    }
    text.len()
}

/// Returns the offset of the closing quote. A backslash escapes the next character.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (offset, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return Some(offset),
            _ => {}
        }
    }
    None
}

/// Removes each backslash before the quote character. Outside of regular expressions, `\\` also becomes `\`.
fn unescaped(text: &str, quote: char) -> String {
    let text = text.replace(&format!("\\{quote}"), &quote.to_string());
    if quote == '/' { text } else { text.replace("\\\\", "\\") }
}
