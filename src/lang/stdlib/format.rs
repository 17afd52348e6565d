//! `string.format`: the verbs of Go's `fmt` that make sense for values of the language.
//!
//! `%v %s %q %d %b %o %x %X %c %e %f %g %t %%` with the flags `- + 0 space #`, width and precision. What Go writes into the text for a
//! missing or misfit operand (`%!d(string=a)`) is written here too, because configurations may depend on it not being an error.

use super::{fail, text};
use crate::lang::convert::{format_number, value_name};
use crate::lang::value::{FunctionError, Number, Value};

#[derive(Default)]
struct Verb {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Widths beyond this are a mistake, not a layout.
const MAX_WIDTH: usize = 10_000;

pub fn format(arguments: &[Value]) -> Result<Value, FunctionError> {
    let layout = text(arguments, 0)?;
    let mut operands = arguments.iter().skip(1);
    let mut out = String::new();
    let mut letters = layout.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let mut verb = Verb::default();
        while let Some(flag) = letters.peek() {
            match flag {
                '-' => verb.left = true,
                '+' => verb.plus = true,
                ' ' => verb.space = true,
                '0' => verb.zero = true,
                '#' => verb.alternate = true,
                _ => break,
            }
            letters.next();
        }
        let mut number = || -> Result<Option<usize>, FunctionError> {
            let mut value = None;
            while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                let next = value.unwrap_or(0) * 10 + digit as usize;
                if next > MAX_WIDTH {
                    return Err(fail(0, format!("widths end at {MAX_WIDTH}")));
                }
                value = Some(next);
                letters.next();
            }
            Ok(value)
        };
        verb.width = number()?.unwrap_or(0);
        if letters.peek() == Some(&'.') {
            letters.next();
            let mut digits = 0;
            while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                digits = (digits * 10 + digit as usize).min(MAX_WIDTH);
                letters.next();
            }
            verb.precision = Some(digits);
        }
        let Some(kind) = letters.next() else {
            out.push_str("%!(NOVERB)");
            break;
        };
        if kind == '%' {
            out.push('%');
            continue;
        }
        let Some(operand) = operands.next() else {
            out.push_str(&format!("%!{kind}(MISSING)"));
            continue;
        };
        if matches!(operand, Value::Secret(_)) {
            return Err(fail(0, "secrets may not be converted into strings"));
        }
        let shown = verb
            .show(kind, operand)
            .unwrap_or_else(|| format!("%!{kind}({}={})", value_name(operand), plain(operand)));
        out.push_str(&shown);
    }
    let extra: Vec<String> = operands
        .map(|operand| format!("{}={}", value_name(operand), plain(operand)))
        .collect();
    if !extra.is_empty() {
        out.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    Ok(Value::string(out))
}

impl Verb {
    fn show(&self, kind: char, operand: &Value) -> Option<String> {
        let number = match operand {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        let whole = match number {
            Some(Number::Int(value)) => Some((value < 0, value.unsigned_abs())),
            Some(Number::Uint(value)) => Some((false, value)),
            _ => None,
        };
        let float = match number {
            Some(Number::Float(value)) => Some(value),
            _ => None,
        };
        let words = match operand {
            Value::String(text) => Some(text),
            _ => None,
        };
        Some(match kind {
            'v' if float.is_none() => self.pad(&plain(operand)),
            's' => self.pad(&self.cut(words?)),
            'q' => self.pad(&format!("{:?}", self.cut(words?))),
            't' if matches!(operand, Value::Bool(_)) => self.pad(&plain(operand)),
            'd' => self.signed(whole?, |value| value.to_string()),
            'b' => self.signed(whole?, |value| format!("{value:b}")),
            'o' => self.signed(whole?, |value| format!("{value:o}")),
            'x' | 'X' => {
                let upper = kind == 'X';
                match (whole, words) {
                    (Some(whole), _) => self.signed(whole, |value| hex(value, self.alternate, upper)),
                    (_, Some(words)) => {
                        let digits: String = words.bytes().map(|byte| format!("{byte:02x}")).collect();
                        self.pad(&if upper { digits.to_uppercase() } else { digits })
                    }
                    _ => return None,
                }
            }
            'c' => self.pad(&char::from_u32(u32::try_from(whole?.1).ok()?)?.to_string()),
            'f' | 'F' => self.signed_float(float?, |value| format!("{value:.*}", self.precision.unwrap_or(6))),
            'e' | 'E' => self.signed_float(float?, |value| exponent(value, self.precision.unwrap_or(6))),
            'g' | 'G' | 'v' => self.signed_float(float?, shortest),
            _ => return None,
        })
    }

    fn cut(&self, text: &str) -> String {
        text.chars().take(self.precision.unwrap_or(usize::MAX)).collect()
    }

    fn signed(&self, (negative, value): (bool, u64), digits: impl Fn(u64) -> String) -> String {
        self.number(negative, &digits(value))
    }

    fn signed_float(&self, value: f64, digits: impl Fn(f64) -> String) -> String {
        self.number(value.is_sign_negative(), &digits(value.abs()))
    }

    fn number(&self, negative: bool, digits: &str) -> String {
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        if self.zero && !self.left {
            let width = self.width.saturating_sub(sign.len());
            return format!("{sign}{digits:0>width$}");
        }
        self.pad(&format!("{sign}{digits}"))
    }

    fn pad(&self, text: &str) -> String {
        let width = self.width;
        if self.left {
            format!("{text:<width$}")
        } else {
            format!("{text:>width$}")
        }
    }
}

fn hex(value: u64, prefix: bool, upper: bool) -> String {
    match (prefix, upper) {
        (true, false) => format!("{value:#x}"),
        (true, true) => format!("0X{value:X}"),
        (false, false) => format!("{value:x}"),
        (false, true) => format!("{value:X}"),
    }
}

/// `1.500000e+00`: Go writes a sign and two digits.
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

/// Shortest form; an exponent below 1e-4 and from 1e21 on.
fn shortest(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e21).contains(&value) && value.is_finite() {
        let text = format!("{value:e}");
        if let Some((digits, power)) = text.split_once('e') {
            let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
            return format!("{digits}e{sign}{power:0>2}");
        }
    }
    value.to_string()
}

/// `%v` of anything: lists as `[a b]`, objects as `map[k:v]`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(Number::Float(value)) => {
            let sign = if value.is_sign_negative() { "-" } else { "" };
            format!("{sign}{}", shortest(value.abs()))
        }
        Value::Number(number) => format_number(*number),
        Value::String(text) => text.to_string(),
        Value::Secret(_) => "(secret)".to_owned(),
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
