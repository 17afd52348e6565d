//! Label selectors as in PromQL: `{service_name="shop", region=~"eu-.*"}`, and queries `TYPE{...}`.
//!
//! In: text. Out: matchers, or an error with the offset of the invalid byte. A missing label has the empty value.
//! Regular expressions are anchored at both ends, and `.` also matches line ends, as in Prometheus. Regular expressions
//! have Go's syntax. The caller applies the matchers to labels.

use std::fmt;

use crate::labels::{Labels, PROFILE_NAME};
use crate::profile_type::ProfileType;
use alluvium_base::re2::{Expression, Re2Error};

/// Maximum size in bytes of a compiled regular expression, and also of the automaton that is built while it runs. The
/// expressions come from users, so their memory must be bounded.
const REGEX_SIZE_LIMIT: usize = 1 << 20;
/// Maximum length of a selector in bytes.
pub(crate) const MAX_BYTES: usize = 64 << 10;
/// Maximum number of matchers of a selector.
pub(crate) const MAX_MATCHERS: usize = 32;

/// The comparison of a matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// `=`: the label has the value of the matcher.
    Equal,
    /// `!=`: the label has another value than the matcher.
    NotEqual,
    /// `=~`: the whole value of the label matches the regular expression of the matcher.
    Regex,
    /// `!~`: the whole value of the label does not match the regular expression of the matcher.
    NotRegex,
}

/// One condition on one label.
#[derive(Debug, Clone)]
pub struct Matcher {
    name: String,
    operator: MatchOp,
    value: String,
    regex: Option<Expression>,
}

/// The text is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector at byte {position}: {message}")]
pub struct SelectorError {
    /// Offset in the text, in bytes.
    pub position: usize,
    /// Description of the problem, in lower case.
    pub message: String,
}

/// Parses `{a="b", c!="d", e=~"f", g!~"h"}`. A name before the brace is a matcher on `__name__`. `{}` matches
/// everything. The empty text is an error.
pub fn parse(text: &str) -> Result<Vec<Matcher>, SelectorError> {
    check_bytes(text.len())?;
    let mut parser = Parser { text, position: 0 };
    parser.skip_space();
    let mut matchers = Vec::new();
    let name = parser.take_while(|c| is_name(c) || c == ':');
    if !name.is_empty() {
        matchers.push(Parser::matcher(0, PROFILE_NAME, MatchOp::Equal, name.to_owned())?);
        parser.skip_space();
        if parser.rest().is_empty() {
            return Ok(matchers);
        }
    }
    parser.braces(&mut matchers)?;
    Ok(matchers)
}

/// Parses `TYPE{...}`, where TYPE is the five-part id of a profile type. Without braces there are no conditions.
pub fn parse_query(text: &str) -> Result<(ProfileType, Vec<Matcher>), SelectorError> {
    check_bytes(text.len())?;
    let open = text.find('{').unwrap_or(text.len());
    let (id, selector) = text.split_at(open);
    let profile_type = id.trim().parse().map_err(|error| SelectorError {
        position: 0,
        message: format!("{error}"),
    })?;
    let mut matchers = Vec::new();
    if !selector.is_empty() {
        let mut parser = Parser { text, position: open };
        parser.braces(&mut matchers)?;
    }
    Ok((profile_type, matchers))
}

/// Fails for a selector of more than [`MAX_BYTES`] bytes. [`parse`] checks this itself. Call this function if several
/// selectors are combined into one.
pub fn check_bytes(bytes: usize) -> Result<(), SelectorError> {
    if bytes > MAX_BYTES {
        return Err(SelectorError {
            position: MAX_BYTES,
            message: format!("the selector has {bytes} bytes, the limit is {MAX_BYTES}"),
        });
    }
    Ok(())
}

/// Fails for more than [`MAX_MATCHERS`] matchers. [`parse`] checks this itself. Call this function if several
/// selectors are combined into one.
pub fn check_count(matchers: usize) -> Result<(), SelectorError> {
    if matchers > MAX_MATCHERS {
        return Err(SelectorError {
            position: 0,
            message: format!("the selector has {matchers} or more matchers, the limit is {MAX_MATCHERS}"),
        });
    }
    Ok(())
}

/// Formats matchers as a selector that [`parse`] accepts.
pub fn format(matchers: &[Matcher]) -> String {
    let parts: Vec<String> = matchers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", parts.join(", "))
}

impl Matcher {
    /// Creates a matcher. Fails if `op` needs a regular expression and `value` is not a valid regular expression.
    pub fn new(name: impl Into<String>, op: MatchOp, value: impl Into<String>) -> Result<Self, Re2Error> {
        let value = value.into();
        let regex = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => Some(Expression::matcher(&value, REGEX_SIZE_LIMIT)?),
        };
        Ok(Self {
            name: name.into(),
            operator: op,
            value,
            regex,
        })
    }

    /// Returns the name of the compared label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value or the regular expression as written.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns true if a label with this value matches. An empty value means that there is no such label.
    pub fn matches_value(&self, value: &str) -> bool {
        let regex = |value| self.regex.as_ref().is_some_and(|regex| regex.is_match(value));
        match self.operator {
            MatchOp::Equal => self.value == value,
            MatchOp::NotEqual => self.value != value,
            MatchOp::Regex => regex(value),
            MatchOp::NotRegex => !regex(value),
        }
    }

    /// Returns true if `labels` match.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.matches_value(labels.get(&self.name).unwrap_or(""))
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.operator, &self.value) == (&other.name, other.operator, &other.value)
    }
}

impl Eq for Matcher {}

impl MatchOp {
    /// Returns the operator as written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Regex => "=~",
            Self::NotRegex => "!~",
        }
    }
}

impl fmt::Display for MatchOp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Formats the matcher as `name="value"`, and quotes the name if necessary.
impl fmt::Display for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.name.starts_with(is_name_start) && self.name.chars().all(is_name);
        if plain {
            out.write_str(&self.name)?;
        } else {
            quote(&self.name, out)?;
        }
        out.write_str(self.operator.as_str())?;
        quote(&self.value, out)
    }
}

fn quote(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    out.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{:04x}", c as u32)?,
            c => write!(out, "{c}")?,
        }
    }
    out.write_str("\"")
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Dots are accepted, because OpenTelemetry label names contain dots. PromQL requires such names to be quoted.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }

    fn skip_space(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.position += token.len();
        }
        is_next
    }

    fn error_at<T>(position: usize, message: impl Into<String>) -> Result<T, SelectorError> {
        let message = message.into();
        Err(SelectorError { position, message })
    }

    fn expected_error<T>(&self, description: &str) -> Result<T, SelectorError> {
        let next = match self.rest().chars().next() {
            Some(c) => format!("`{c}`"),
            None => "the end".to_owned(),
        };
        Self::error_at(self.position, format!("expected {description}, found {next}"))
    }

    fn matcher(position: usize, name: &str, op: MatchOp, value: String) -> Result<Matcher, SelectorError> {
        Matcher::new(name, op, value)
            .or_else(|error| Self::error_at(position, format!("invalid regular expression: {error}")))
    }

    /// Parses everything from `{` to the end of the text.
    fn braces(&mut self, matchers: &mut Vec<Matcher>) -> Result<(), SelectorError> {
        self.skip_space();
        if !self.take("{") {
            return self.expected_error("`{`");
        }
        loop {
            self.skip_space();
            if self.take("}") {
                break;
            }
            // The number of matchers is checked before the next expression is compiled.
            check_count(matchers.len() + 1)?;
            matchers.push(self.condition()?);
            self.skip_space();
            if !self.take(",") && !self.rest().starts_with('}') {
                return self.expected_error("`,` or `}`");
            }
        }
        self.skip_space();
        if !self.rest().is_empty() {
            return self.expected_error("the end");
        }
        Ok(())
    }

    fn condition(&mut self) -> Result<Matcher, SelectorError> {
        let name = match self.rest().chars().next() {
            Some(c) if is_name_start(c) => self.take_while(is_name).to_owned(),
            Some('"' | '\'' | '`') => self.string()?,
            _ => return self.expected_error("a label name or `}`"),
        };
        self.skip_space();
        // Two-character operators come first, because `=` is a prefix of `=~`.
        let ops = [MatchOp::NotEqual, MatchOp::Regex, MatchOp::NotRegex, MatchOp::Equal];
        let Some(op) = ops.into_iter().find(|op| self.take(op.as_str())) else {
            return self.expected_error("one of `=`, `!=`, `=~`, `!~`");
        };
        self.skip_space();
        let position = self.position;
        let value = self.string()?;
        Self::matcher(position, &name, op, value)
    }

    /// Parses a string in Go's syntax: double or single quotes with escapes, or raw in back quotes.
    fn string(&mut self) -> Result<String, SelectorError> {
        let start = self.position;
        let Some(quote @ ('"' | '\'' | '`')) = self.rest().chars().next() else {
            return self.expected_error("a quoted value");
        };
        self.position += 1;
        let mut bytes = Vec::new();
        loop {
            let run = self.take_while(|c| c != quote && c != '\n' && (c != '\\' || quote == '`'));
            bytes.extend_from_slice(run.as_bytes());
            match self.rest().chars().next() {
                Some(c) if c == quote => {
                    self.position += 1;
                    break;
                }
                Some('\n') if quote == '`' => {
                    self.position += 1;
                    bytes.push(b'\n');
                }
                Some('\\') => self.escape(quote, &mut bytes)?,
                _ => return Self::error_at(start, "string is not closed"),
            }
        }
        String::from_utf8(bytes).or_else(|_| Self::error_at(start, "string is not valid UTF-8"))
    }

    /// Parses `\n`, `\x41`, `\101`, `\u00e9`, `\U0001f600` and similar escapes. `\x` and octal escapes represent single
    /// bytes, as in Go.
    fn escape(&mut self, quote: char, bytes: &mut Vec<u8>) -> Result<(), SelectorError> {
        let start = self.position;
        self.position += 1;
        let Some(c) = self.rest().chars().next() else {
            return Self::error_at(start, "string is not closed");
        };
        let (skip, digits, radix) = match c {
            'x' => (1, 2, 16),
            'u' => (1, 4, 16),
            'U' => (1, 8, 16),
            '0'..='7' => (0, 3, 8),
            _ => {
                let byte = match c {
                    'a' => 0x07,
                    'b' => 0x08,
                    'f' => 0x0c,
                    'n' => b'\n',
                    'r' => b'\r',
                    't' => b'\t',
                    'v' => 0x0b,
                    '\\' => b'\\',
                    c if c == quote => c as u8,
                    _ => return Self::error_at(start, format!("unknown escape `\\{c}`")),
                };
                bytes.push(byte);
                self.position += 1;
                return Ok(());
            }
        };
        self.position += skip;
        let number = self
            .rest()
            .get(..digits)
            .filter(|text| text.chars().all(|digit| digit.is_digit(radix)))
            .and_then(|text| u32::from_str_radix(text, radix).ok());
        let Some(number) = number else {
            return Self::error_at(start, format!("escape needs {digits} digits of base {radix}"));
        };
        self.position += digits;
        if matches!(c, 'u' | 'U') {
            let Some(c) = char::from_u32(number) else {
                return Self::error_at(start, "escape is not a character");
            };
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            let Ok(byte) = u8::try_from(number) else {
                return Self::error_at(start, "escape is larger than a byte");
            };
            bytes.push(byte);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels() -> Labels {
        Labels::from_pairs([("service_name", "shop"), ("region", "eu-1"), ("k8s.pod", "a\nb")])
    }

    fn matches(selector: &str) -> bool {
        parse(selector)
            .unwrap()
            .iter()
            .all(|matcher| matcher.matches(&labels()))
    }

    #[test]
    fn selectors_select() {
        for selector in [
            "{}",
            " { } ",
            r#"{service_name="shop"}"#,
            r#"{service_name="shop", region!="us"}"#,
            r#"{region=~"eu-[0-9]", service_name!~"sh",}"#,
            r#"{missing=""}"#,
            r#"{missing!="x",missing!~".+",missing=~".*"}"#,
            r"{'k8s.pod'='a\nb'}",
            r#"{k8s.pod=~"a.b"}"#,
            r#"{region=~"us|eu-1"}"#,
            r#"{service_name="\x73\150\u006fp"}"#,
            "{service_name=`shop`}",
        ] {
            assert!(matches(selector), "{selector}");
        }
        for selector in [
            r#"{service_name="sho"}"#,
            r#"{region=~"eu"}"#,
            r#"{region=~"us|eu"}"#,
            r#"{service_name!=""   ,  missing!=""}"#,
            r#"shop{region="eu-1"}"#,
        ] {
            assert!(!matches(selector), "{selector}");
        }
    }

    #[test]
    fn regular_expressions_are_those_of_go() {
        for (expression, value, is_match) in [
            ("/conversations/{id}", "/conversations/{id}", true),
            (r"\\Q/c/{id}\\E", "/c/{id}", true),
            (r"Vec\\<u8\\>", "Vec<u8>", true),
            ("[a&&b]+", "a&b", true),
            (r"caf\\w", "caf\u{e9}", false),
            (r"\\057x", "/x", true),
            ("[[]", "[", true),
            ("a.b", "a\nb", true),
        ] {
            let matchers = parse(&format!("{{a=~\"{expression}\"}}")).unwrap();
            assert_eq!(matchers[0].matches_value(value), is_match, "{expression}");
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, position, message) in [
            ("", 0, "expected `{`, found the end"),
            ("{", 1, "expected a label name or `}`, found the end"),
            (r#"{a="b"#, 3, "string is not closed"),
            (r#"{a="b" c="d"}"#, 7, "expected `,` or `}`, found `c`"),
            (r"{a}", 2, "expected one of `=`, `!=`, `=~`, `!~`, found `}`"),
            (r"{a=b}", 3, "expected a quoted value, found `b`"),
            (r#"{1a="b"}"#, 1, "expected a label name or `}`, found `1`"),
            (r"{,}", 1, "expected a label name or `}`, found `,`"),
            (r#"{a="b"} x"#, 8, "expected the end, found `x`"),
            (r#"{a="\q"}"#, 4, "unknown escape `\\q`"),
            (r#"{a="\'"}"#, 4, "unknown escape `\\'`"),
            (r#"{a="\xg0"}"#, 4, "escape needs 2 digits of base 16"),
            (r#"{a="\xff"}"#, 3, "string is not valid UTF-8"),
            (r#"{a="\777"}"#, 4, "escape is larger than a byte"),
            (r#"{a="\ud800"}"#, 4, "escape is not a character"),
            (r#"{a=~"x)(y"}"#, 4, "invalid regular expression: unexpected ): `x)(y`"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.position, error.message.as_str()), (position, message), "{text}");
        }
        let many_matchers = format!("{{{}}}", r#"a="b","#.repeat(MAX_MATCHERS + 1));
        assert!(parse(&many_matchers).unwrap_err().message.contains("the limit is 32"));
        let long_value = format!(r#"{{a="{}"}}"#, "b".repeat(MAX_BYTES));
        assert!(parse(&long_value).unwrap_err().message.contains("the limit is 65536"));
        let repeat_message = parse(r#"{a=~"(a{1000}){1000}"}"#).unwrap_err().message;
        assert!(repeat_message.contains("invalid repeat count"), "{repeat_message}");
        let size_message = parse(r#"{a=~"(\\pL{30}){30}"}"#).unwrap_err().message;
        assert!(size_message.contains("exceeds the size limit"), "{size_message}");
    }

    #[test]
    fn a_query_is_a_type_and_a_selector() {
        let id = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let (profile_type, matchers) = parse_query(&format!(r#"{id}{{service_name="shop"}}"#)).unwrap();
        assert_eq!(profile_type.to_string(), id);
        assert_eq!(format(&matchers), r#"{service_name="shop"}"#);
        assert_eq!(parse_query(id).unwrap().1, []);
        assert_eq!(parse_query(&format!("{id}{{}}")).unwrap().1, []);
        assert_eq!(parse_query("cpu{}").unwrap_err().position, 0);
        assert_eq!(parse_query(&format!("{id}{{a")).unwrap_err().position, id.len() + 2);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(name in ".*", value in ".*", equal in any::<bool>()) {
            let op = if equal { MatchOp::Equal } else { MatchOp::NotEqual };
            let matchers = vec![Matcher::new(name, op, value).unwrap()];
            prop_assert_eq!(parse(&format(&matchers)).unwrap(), matchers);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*", inner in "[a-z=~!\"'`{}\\\\,x0-9]{0,30}") {
            let _ = parse(&text);
            let _ = parse(&format!("{{{inner}}}"));
            let _ = parse_query(&format!("a:b:c:d:e{{{inner}"));
        }
    }
}
