//! `string.format`: the verbs of Go's `fmt` that make sense for values of the language.
//!
//! The function supports `%v %s %q %d %b %o %x %X %c %U %T %e %f %g %t %%` with the flags `- + 0 space #`, width and
//! precision (also `*`), and operands chosen by number (`%[2]s`). For a missing or unsuitable operand the output
//! contains the same error text as in Go (`%!d(string=a)`), because an error could break existing configurations. A
//! text that contains a secret is a secret (in Alloy it is a plain string, which the web page and the logs show).

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use super::arguments::{fail, text};
use super::encoding::holds_secret;
use crate::convert::{format_number, value_name};
use crate::value::{FunctionError, Number, Value};

#[derive(Default)]
struct Verb {
    is_left_aligned: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Maximum width and precision; a larger value is an error.
const MAX_WIDTH: usize = 10_000;

pub(super) fn format(arguments: &[Value]) -> Result<Value, FunctionError> {
    let layout = text(arguments, 0)?;
    let mut state = State {
        letters: layout.chars().peekable(),
        operands: arguments.get(1..).unwrap_or_default(),
        next: 0,
        reordered: false,
    };
    let mut out = String::new();
    while let Some(letter) = state.letters.next() {
        if letter == '%' {
            state.verb(&mut out)?;
        } else {
            out.push(letter);
        }
    }
    let left = state.operands.get(state.next..).unwrap_or_default();
    if !left.is_empty() && !state.reordered {
        let extra: Vec<String> = left
            .iter()
            .map(|operand| match operand {
                Value::Null => "<nil>".to_owned(),
                _ => format!("{}={}", go_type(operand), plain(operand)),
            })
            .collect();
        out.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    Ok(if state.operands.iter().any(holds_secret) {
        Value::Secret(out.into())
    } else {
        Value::string(out)
    })
}

struct State<'a> {
    letters: Peekable<Chars<'a>>,
    operands: &'a [Value],
    /// Index of the next operand.
    next: usize,
    /// True once an operand was chosen by its number: unused operands are then not reported.
    reordered: bool,
}

impl State<'_> {
    /// Formats the verb after a `%`.
    fn verb(&mut self, out: &mut String) -> Result<(), FunctionError> {
        let mut verb = Verb::default();
        while let Some(flag) = self.letters.peek() {
            match flag {
                '-' => verb.is_left_aligned = true,
                '+' => verb.plus = true,
                ' ' => verb.space = true,
                '0' => verb.zero = true,
                '#' => verb.alternate = true,
                _ => break,
            }
            self.letters.next();
        }
        self.choose();
        verb.width = self.number(out)?.unwrap_or(0);
        if self.letters.next_if_eq(&'.').is_some() {
            self.choose();
            verb.precision = Some(self.number(out)?.unwrap_or(0));
        }
        self.choose();
        let Some(kind) = self.letters.next() else {
            out.push_str("%!(NOVERB)");
            return Ok(());
        };
        if kind == '%' {
            out.push('%');
            return Ok(());
        }
        let Some(operand) = self.operands.get(self.next) else {
            let why = if self.reordered { "BADINDEX" } else { "MISSING" };
            out.push_str(&format!("%!{kind}({why})"));
            return Ok(());
        };
        self.next += 1;
        out.push_str(&verb.show(kind, operand));
        Ok(())
    }

    /// Parses `[2]`, the number of the next operand.
    fn choose(&mut self) {
        let mut ahead = self.letters.clone();
        if ahead.next() != Some('[') {
            return;
        }
        let digits: String = ahead.by_ref().take_while(|letter| *letter != ']').collect();
        if let Ok(number) = digits.parse::<usize>()
            && number > 0
        {
            self.letters = ahead;
            self.next = number - 1;
            self.reordered = true;
        }
    }

    /// Parses a width or a precision; for `*`, the next operand is its value.
    fn number(&mut self, out: &mut String) -> Result<Option<usize>, FunctionError> {
        let too_wide = || fail(0, format!("the maximum width or precision is {MAX_WIDTH}"));
        if self.letters.next_if_eq(&'*').is_some() {
            let operand = self.operands.get(self.next);
            self.next += 1;
            return if let Some(Value::Number(Number::Int(value))) = operand {
                match usize::try_from(*value) {
                    Ok(value) if value > MAX_WIDTH => Err(too_wide()),
                    value => Ok(value.ok()),
                }
            } else {
                out.push_str("%!(BADWIDTH)");
                Ok(None)
            };
        }
        let mut value = None;
        while let Some(digit) = self.letters.peek().and_then(|letter| letter.to_digit(10)) {
            let next = value.unwrap_or(0) * 10 + digit as usize;
            if next > MAX_WIDTH {
                return Err(too_wide());
            }
            value = Some(next);
            self.letters.next();
        }
        Ok(value)
    }
}

/// Returns the Go name of a value's type, which `fmt` writes for unsuitable operands.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(Number::Int(_)) => "int",
        Value::Number(Number::Uint(_)) => "uint64",
        Value::Number(Number::Float(_)) => "float64",
        Value::String(_) => "string",
        Value::Secret(_) => "alloytypes.Secret",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Function(_) => "value.RawFunction",
        Value::Capsule(capsule) => capsule.kind(),
    }
}

impl Verb {
    fn show(&self, kind: char, operand: &Value) -> String {
        match (kind, operand) {
            ('v', Value::Array(_) | Value::Object(_)) => self.pad(&plain(operand)),
            ('T', _) => self.pad(go_type(operand)),
            // Each element is formatted separately.
            (_, Value::Array(items)) => {
                let items: Vec<String> = items.iter().map(|item| self.part(kind, item)).collect();
                format!("[{}]", items.join(" "))
            }
            (_, Value::Object(fields)) => {
                let name = |key: &Arc<str>| self.show(kind, &Value::String(key.clone()));
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value)| format!("{}:{}", name(key), self.part(kind, value)))
                    .collect();
                format!("map[{}]", fields.join(" "))
            }
            _ => self.simple(kind, operand).unwrap_or_else(|| match operand {
                Value::Null => format!("%!{kind}(<nil>)"),
                _ => format!("%!{kind}({}={})", go_type(operand), plain(operand)),
            }),
        }
    }

    /// Formats an element of a list or an object, where every verb accepts null.
    fn part(&self, kind: char, value: &Value) -> String {
        match value {
            Value::Null => "<nil>".to_owned(),
            _ => self.show(kind, value),
        }
    }

    /// Formats a scalar value; `None` if the verb does not accept it.
    fn simple(&self, kind: char, operand: &Value) -> Option<String> {
        let number = match operand {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        let integer = match number {
            Some(Number::Int(value)) => Some((Sign::of(value as f64), value.unsigned_abs())),
            Some(Number::Uint(value)) => Some((Sign::Plus, value)),
            _ => None,
        };
        let float = match number {
            Some(Number::Float(value)) => Some(value),
            _ => None,
        };
        let words = match operand {
            Value::String(text) | Value::Secret(text) => Some(text),
            _ => None,
        };
        Some(match kind {
            'U' => self.pad(&format!("U+{:04X}", integer?.1)),
            'v' if float.is_none() => self.pad(&plain(operand)),
            's' => self.pad(&self.truncate(words?)),
            'q' => self.pad(&format!("{:?}", self.truncate(words?))),
            't' if matches!(operand, Value::Bool(_)) => self.pad(&plain(operand)),
            'd' => self.signed(integer?, |value| value.to_string()),
            'b' => self.signed(integer?, |value| format!("{value:b}")),
            'o' => self.signed(integer?, |value| format!("{value:o}")),
            'x' | 'X' => {
                let cased = |digits: String| if kind == 'X' { digits.to_uppercase() } else { digits };
                match (integer, words) {
                    (Some(integer), _) if self.alternate => self.signed(integer, |value| cased(format!("{value:#x}"))),
                    (Some(integer), _) => self.signed(integer, |value| cased(format!("{value:x}"))),
                    (_, Some(words)) => self.pad(&cased(words.bytes().map(|byte| format!("{byte:02x}")).collect())),
                    _ => return None,
                }
            }
            'c' => self.pad(&char::from_u32(u32::try_from(integer?.1).ok()?)?.to_string()),
            'f' | 'F' => self.signed_float(float?, |value| format!("{value:.*}", self.precision.unwrap_or(6))),
            'e' | 'E' => self.signed_float(float?, |value| exponent(value, self.precision.unwrap_or(6))),
            'g' | 'G' | 'v' => self.signed_float(float?, shortest),
            _ => return None,
        })
    }

    fn truncate(&self, text: &str) -> String {
        text.chars().take(self.precision.unwrap_or(usize::MAX)).collect()
    }

    fn signed(&self, (sign, value): (Sign, u64), digits: impl Fn(u64) -> String) -> String {
        self.number(sign, &digits(value))
    }

    fn signed_float(&self, value: f64, digits: impl Fn(f64) -> String) -> String {
        if !value.is_finite() {
            return self.pad(non_finite_name(value));
        }
        self.number(Sign::of(value), &digits(value.abs()))
    }

    fn number(&self, sign: Sign, digits: &str) -> String {
        let sign = match sign {
            Sign::Minus => "-",
            Sign::Plus if self.plus => "+",
            Sign::Plus if self.space => " ",
            Sign::Plus => "",
        };
        if self.zero && !self.is_left_aligned {
            let width = self.width.saturating_sub(sign.len());
            return format!("{sign}{digits:0>width$}");
        }
        self.pad(&format!("{sign}{digits}"))
    }

    fn pad(&self, text: &str) -> String {
        let width = self.width;
        if self.is_left_aligned {
            format!("{text:<width$}")
        } else {
            format!("{text:>width$}")
        }
    }
}

#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

impl Sign {
    fn of(value: f64) -> Self {
        if value.is_sign_negative() {
            Self::Minus
        } else {
            Self::Plus
        }
    }
}

/// Formats like Go, with a sign and at least two digits in the exponent: `1.500000e+00`.
fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text,
    }
}

/// Returns Go's names of infinities and NaN.
fn non_finite_name(value: f64) -> &'static str {
    match value {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "+Inf",
        _ => "-Inf",
    }
}

/// Formats in the shortest form, like Go's `%v`. Numbers below 0.0001, and numbers of a million or more, are written
/// with an exponent.
fn shortest(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e6).contains(&value) && value.is_finite() {
        let text = format!("{value:e}");
        if let Some((digits, power)) = text.split_once('e') {
            let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
            return format!("{digits}e{sign}{power:0>2}");
        }
    }
    value.to_string()
}

/// Formats any value like `%v`: lists as `[a b]`, objects as `map[k:v]`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(Number::Float(value)) if !value.is_finite() => non_finite_name(*value).to_owned(),
        Value::Number(Number::Float(value)) => {
            let sign = if value.is_sign_negative() { "-" } else { "" };
            format!("{sign}{}", shortest(value.abs()))
        }
        Value::Number(number) => format_number(*number),
        Value::String(text) | Value::Secret(text) => text.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Function(_) | Value::Capsule(_) => value_name(value),
    }
}
