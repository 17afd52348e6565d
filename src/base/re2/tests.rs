//! The results of Go 1.26 for 200 expressions and texts, and random expressions, for which the parser must not panic.

use proptest::prelude::*;

use crate::re2::Expression;
use crate::re2::error::Re2Error;

/// An expression and the result of Go's `regexp`.
enum Row {
    /// An expression, the error with which Go rejects it, and the part of the expression that the error shows.
    Invalid(&'static str, &'static str, &'static str),
    /// An expression, a text, and the results of Go: whether `^(?s:expression)$` matches the text, whether the
    /// expression matches a part of the text, and the groups of the anchored match.
    Valid(&'static str, &'static str, bool, bool, &'static [Option<&'static str>]),
}

impl Row {
    const fn invalid(pattern: &'static str, kind: &'static str, part: &'static str) -> Self {
        Self::Invalid(pattern, kind, part)
    }

    const fn valid(
        pattern: &'static str,
        text: &'static str,
        is_whole: bool,
        is_part: bool,
        groups: &'static [Option<&'static str>],
    ) -> Self {
        Self::Valid(pattern, text, is_whole, is_part, groups)
    }
}

#[test]
fn expressions_mean_what_they_mean_to_go() {
    for row in ROWS {
        match row {
            Row::Invalid(pattern, expected, expected_part) => {
                let error = Expression::search(pattern).err();
                let Some(Re2Error::Syntax { kind, part }) = error else {
                    panic!("{pattern}: {error:?}, Go says {expected}");
                };
                assert_eq!(
                    (kind.to_string().as_str(), part.as_str()),
                    (*expected, *expected_part),
                    "{pattern}"
                );
                assert!(Expression::anchored(pattern).is_err(), "{pattern}");
            }
            Row::Valid(pattern, text, is_whole, is_part, groups) => {
                let search = Expression::search(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
                assert_eq!(search.is_match(text), *is_part, "{pattern} in {text:?}");
                for anchored in [Expression::anchored(pattern), Expression::matcher(pattern, 1 << 20)] {
                    let anchored = anchored.unwrap_or_else(|error| panic!("{pattern}: {error}"));
                    assert_eq!(anchored.is_match(text), *is_whole, "{pattern} of {text:?}");
                    let matched = anchored.groups(text);
                    assert_eq!(matched.is_some(), *is_whole);
                    for (index, group) in groups.iter().enumerate() {
                        let text = matched.as_ref().map(|matched| matched.get(index + 1));
                        assert_eq!(text, Some(group.unwrap_or_default()), "{pattern}, group {}", index + 1);
                    }
                }
            }
        }
    }
    assert!(ROWS.len() >= 200);
}

#[test]
fn groups_of_one_name_stand_for_the_first_that_took_part() {
    let expression = Expression::anchored("(?P<n>a)|(?<n>b)").unwrap();
    assert_eq!(expression.groups("b").unwrap().named("n"), "b");
    assert_eq!(expression.groups("a").unwrap().named("other"), "");
}

#[test]
fn what_costs_too_much_is_refused() {
    let large = Expression::anchored(r"(\pL{30}){30}").unwrap_err().to_string();
    assert!(large.contains("exceeds the size limit"), "{large}");
    let deep = |count: usize| format!("{}a{}", "(".repeat(count), ")".repeat(count));
    assert!(Expression::search(&deep(240)).unwrap().is_match("a"));
    let error = Expression::search(&deep(5000)).unwrap_err().to_string();
    assert_eq!(error, "expression nests too deeply");
    let open = Expression::search(&"(".repeat(100_000)).unwrap_err().to_string();
    assert!(open.starts_with("missing closing )"), "{open:.60}");
}

proptest! {
    #[test]
    fn no_text_panics_and_quoted_texts_match_themselves(
        pattern in r"[-a-cA-Z0-9\\|()\[\]{}^$.*+?,:<>P=]{0,24}", text in "\\PC{0,12}",
    ) {
        if let Ok(expression) = Expression::search(&pattern) {
            let is_match = expression.is_match(&text);
            prop_assert_eq!(expression.groups(&text).is_some(), is_match);
        }
        let quoted = Expression::anchored(&format!(r"\Q{}\E", text.replace("\\E", ""))).unwrap();
        prop_assert!(quoted.is_match(&text.replace("\\E", "")));
    }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row::valid("/conversations/{id}", "/conversations/{id}", true, true, &[]),
    Row::valid("/conversations/\\{id\\}", "/conversations/{id}", true, true, &[]),
    Row::valid("(/c/{id}|/u/{id})", "/u/{id}", true, true, &[Some("/u/{id}")]),
    Row::valid(".*{id}", "/x/{id}", true, true, &[]),
    Row::valid("\\Q/c/{id}\\E", "/c/{id}", true, true, &[]),
    Row::valid("\\Qa.b\\E+", "a.bb", true, true, &[]),
    Row::valid("\\Q\\E", "", true, true, &[]),
    Row::valid("\\Qa\\Eb\\Qc\\E", "abc", true, true, &[]),
    Row::valid("a\\Q*+?\\Eb", "a*+?b", true, true, &[]),
    Row::valid("Vec\\<u8\\>", "Vec<u8>", true, true, &[]),
    Row::valid("[a&&b]+", "a&b", true, true, &[]),
    Row::valid("[a~~b]", "~", true, true, &[]),
    Row::invalid("[a--b]+", "invalid character class range", "a--"),
    Row::valid("[+--]+", "+,-", true, true, &[]),
    Row::valid("[--/]", ".", true, true, &[]),
    Row::valid("caf\\w", "caf\u{e9}", false, false, &[]),
    Row::valid("caf\\w", "cafe", true, true, &[]),
    Row::valid("\\d", "\u{663}", false, false, &[]),
    Row::valid("\\d", "3", true, true, &[]),
    Row::valid("a\\sb", "a\u{a0}b", false, false, &[]),
    Row::valid("a\\sb", "a b", true, true, &[]),
    Row::valid("a\\sb", "a\u{b}b", false, false, &[]),
    Row::valid("a\\Wb", "a&b", true, true, &[]),
    Row::valid("a\\Wb", "a\u{e9}b", true, true, &[]),
    Row::valid("[\\s]", "\u{b}", false, false, &[]),
    Row::valid("[[:space:]]", "\u{b}", true, true, &[]),
    Row::valid("[[]", "[", true, true, &[]),
    Row::valid("[]a]+", "]a", true, true, &[]),
    Row::valid("[^]a]", "b", true, true, &[]),
    Row::valid("[^]a]", "]", false, false, &[]),
    Row::valid("[a]]", "a]", true, true, &[]),
    Row::valid("[[:alpha:]]+", "abc", true, true, &[]),
    Row::valid("[[:alpha:]]+", "1", false, false, &[]),
    Row::valid("[[:^alpha:]]", "1", true, true, &[]),
    Row::valid("[[:^alpha:]]", "a", false, false, &[]),
    Row::valid("[[:word:]]", "_", true, true, &[]),
    Row::invalid("[[:foo:]]", "invalid character class range", "[:foo:]"),
    Row::valid("[[:alpha]", "a", true, true, &[]),
    Row::valid("[[:alpha]", ":", true, true, &[]),
    Row::valid("[[:alpha:]x]", "x", true, true, &[]),
    Row::valid("[:alpha:]", "a", true, true, &[]),
    Row::valid("[:alpha:]", ":", true, true, &[]),
    Row::valid("[:alpha:]", "z", false, false, &[]),
    Row::valid("\\057x", "/x", true, true, &[]),
    Row::valid("\\101", "A", true, true, &[]),
    Row::invalid("\\1", "invalid escape sequence", "\\1"),
    Row::invalid("\\8", "invalid escape sequence", "\\8"),
    Row::valid("\\08", "\u{0}8", true, true, &[]),
    Row::valid("\\377", "\u{ff}", true, true, &[]),
    Row::valid("\\0", "\u{0}", true, true, &[]),
    Row::valid("\\012", "\n", true, true, &[]),
    Row::valid("\\x41", "A", true, true, &[]),
    Row::valid("\\x{1F600}", "\u{1f600}", true, true, &[]),
    Row::invalid("\\x4", "invalid escape sequence", "\\x4"),
    Row::invalid("\\x{}", "invalid escape sequence", "\\x{}"),
    Row::invalid("\\x{110000}", "invalid escape sequence", "\\x{110000"),
    Row::valid("\\x{d800}", "a", false, false, &[]),
    Row::valid("[\\x{d7ff}-\\x{e000}]", "\u{e000}", true, true, &[]),
    Row::valid("[\\x{d7ff}-\\x{e000}]", "a", false, false, &[]),
    Row::valid("\\p{Greek}+", "\u{3b1}\u{3b2}", true, true, &[]),
    Row::valid("\\p{^Greek}", "a", true, true, &[]),
    Row::valid("\\p{^Greek}", "\u{3b1}", false, false, &[]),
    Row::valid("\\P{Greek}", "a", true, true, &[]),
    Row::valid("\\P{^Greek}", "\u{3b1}", true, true, &[]),
    Row::valid("\\pL+", "ab\u{e9}", true, true, &[]),
    Row::valid("\\PL", "1", true, true, &[]),
    Row::valid("\\pN", "\u{663}", true, true, &[]),
    Row::valid("\\p{Lu}", "A", true, true, &[]),
    Row::valid("\\p{Lu}", "a", false, false, &[]),
    Row::valid("(?i)\\p{Lu}", "a", true, true, &[]),
    Row::invalid("\\p{Foo}", "invalid character class range", "\\p{Foo}"),
    Row::invalid("\\p{Alphabetic}", "invalid character class range", "\\p{Alphabetic}"),
    Row::invalid("\\p{Script=Greek}", "invalid character class range", "\\p{Script=Greek}"),
    Row::invalid("\\pX", "invalid character class range", "\\pX"),
    Row::invalid("\\p", "invalid character class range", "\\p"),
    Row::invalid("\\p{", "invalid character class range", "\\p{"),
    Row::valid("[\\p{Greek}\\d]+", "\u{3b1}1", true, true, &[]),
    Row::valid("\\p{Any}", "a", true, true, &[]),
    Row::valid("\\p{Letter}", "a", true, true, &[]),
    Row::valid("\\p{lowercase_letter}", "a", true, true, &[]),
    Row::invalid("\\p{IsGreek}", "invalid character class range", "\\p{IsGreek}"),
    Row::valid("[^\\p{Greek}]", "a", true, true, &[]),
    Row::valid("(?i)abc", "ABC", true, true, &[]),
    Row::valid("(?i)abc", "abc", true, true, &[]),
    Row::valid("(?i)K", "\u{212a}", true, true, &[]),
    Row::valid("(?i)[a-z]+", "ABC\u{17f}", true, true, &[]),
    Row::valid("(?i)\\w", "\u{17f}", true, true, &[]),
    Row::valid("(?i)\\W", "\u{17f}", false, false, &[]),
    Row::valid("(?i)[^k]", "\u{212a}", false, false, &[]),
    Row::valid("(?i)[^k]", "x", true, true, &[]),
    Row::valid("(?i:a)b", "Ab", true, true, &[]),
    Row::valid("(?i:a)b", "AB", false, false, &[]),
    Row::valid("a(?i)b", "aB", true, true, &[]),
    Row::valid("a(?i)b", "AB", false, false, &[]),
    Row::valid("(a(?i)b)c", "aBc", true, true, &[Some("aB")]),
    Row::valid("(a(?i)b)c", "aBC", false, false, &[]),
    Row::valid("(?i)\u{3c3}", "\u{3c2}", true, true, &[]),
    Row::valid("(?i)\u{3c3}", "\u{3a3}", true, true, &[]),
    Row::valid("(?i)\u{df}", "\u{1e9e}", true, true, &[]),
    Row::valid("(?-i)a", "a", true, true, &[]),
    Row::valid("(?i-i)a", "A", false, false, &[]),
    Row::invalid("(?-)a", "invalid or unsupported Perl syntax", "(?-)"),
    Row::valid("(?)a", "a", true, true, &[]),
    Row::invalid("(?i-)a", "invalid or unsupported Perl syntax", "(?i-)"),
    Row::valid("(?im-sU:a)", "A", true, true, &[]),
    Row::invalid("(?i--s)a", "invalid or unsupported Perl syntax", "(?i--"),
    Row::invalid("(?x)a", "invalid or unsupported Perl syntax", "(?x"),
    Row::invalid("(?u)a", "invalid or unsupported Perl syntax", "(?u"),
    Row::valid("a.b", "a\nb", true, false, &[]),
    Row::valid("a.b", "acb", true, true, &[]),
    Row::valid("(?s)a.b", "a\nb", true, true, &[]),
    Row::valid("(?s-s)a.b", "a\nb", false, false, &[]),
    Row::valid("(?-s)a.b", "a\nb", false, false, &[]),
    Row::valid("(?m)^b$", "a\nb\nc", false, true, &[]),
    Row::valid("^b$", "a\nb", false, false, &[]),
    Row::valid("^b$", "b", true, true, &[]),
    Row::valid("(?m)a$", "a\n", false, true, &[]),
    Row::valid("a$", "a\n", false, false, &[]),
    Row::valid("a\\z", "a", true, true, &[]),
    Row::invalid("a\\Z", "invalid escape sequence", "\\Z"),
    Row::valid("\\Aa", "a", true, true, &[]),
    Row::valid("\\Aa", "ba", false, false, &[]),
    Row::valid("^*", "a", false, true, &[]),
    Row::valid("$?a", "a", true, true, &[]),
    Row::valid("(^)*", "a", false, true, &[]),
    Row::valid("\\b+a", "a", true, true, &[]),
    Row::valid("\\ba\\b", "a b", false, true, &[]),
    Row::valid("\\ba\\b", "\u{e9}a", false, true, &[]),
    Row::valid("a\\B", "ab", false, true, &[]),
    Row::valid("a\\B", "a\u{e9}", false, false, &[]),
    Row::valid("\\B", "", true, true, &[]),
    Row::valid("\\B", "\u{e9}", false, true, &[]),
    Row::valid("\\B", "a\u{e9}a", false, false, &[]),
    Row::valid("\\B", "ab", false, true, &[]),
    Row::valid("\\b", "\u{e9}", false, false, &[]),
    Row::invalid("[\\b]", "invalid escape sequence", "\\b"),
    Row::invalid("\\C", "invalid escape sequence", "\\C"),
    Row::invalid("\\E", "invalid escape sequence", "\\E"),
    Row::invalid("\\q", "invalid escape sequence", "\\q"),
    Row::valid("\\_", "_", true, true, &[]),
    Row::valid("\\-", "-", true, true, &[]),
    Row::valid("\\/", "/", true, true, &[]),
    Row::invalid("\\\u{e9}", "invalid escape sequence", "\\\u{e9}"),
    Row::invalid("a\\", "trailing backslash at end of expression", ""),
    Row::valid("\\a\\f\\t\\n\\r\\v", "\u{7}\u{c}\t\n\r\u{b}", true, true, &[]),
    Row::valid("[\\a-\\r]", "\n", true, true, &[]),
    Row::invalid("\\e", "invalid escape sequence", "\\e"),
    Row::valid("\\ ", "  ", false, true, &[]),
    Row::valid("a{2}", "aa", true, true, &[]),
    Row::valid("a{2}", "a", false, false, &[]),
    Row::valid("a{1,}", "aaa", true, true, &[]),
    Row::valid("a{,2}", "a{,2}", true, true, &[]),
    Row::invalid("a{2,1}", "invalid repeat count", "{2,1}"),
    Row::invalid("a{1001}", "invalid repeat count", "{1001}"),
    Row::valid("a{1000}", "a", false, false, &[]),
    Row::valid("a{01}", "a{01}", true, true, &[]),
    Row::valid("a{01}", "a", false, false, &[]),
    Row::valid("a{1", "a{1", true, true, &[]),
    Row::valid("{a}", "{a}", true, true, &[]),
    Row::invalid("{1}", "missing argument to repetition operator", "{1}"),
    Row::invalid("{1}", "missing argument to repetition operator", "{1}"),
    Row::valid("a{}", "a{}", true, true, &[]),
    Row::valid("a{ 1}", "a{ 1}", true, true, &[]),
    Row::invalid("a{1}{2}", "invalid nested repetition operator", "{1}{2}"),
    Row::valid("(?:a{2}){3}", "aaaaaa", true, true, &[]),
    Row::invalid("(a{100}){11}", "invalid repeat count", "{11}"),
    Row::valid("((a{10}){10}){10}", "a", false, false, &[]),
    Row::invalid("((a{10}){10}){11}", "invalid repeat count", "{11}"),
    Row::valid("a{0}", "", true, true, &[]),
    Row::valid("a{0}", "a", false, true, &[]),
    Row::valid("(a{0}){1000}", "", true, true, &[Some("")]),
    Row::valid("(a*){1000}", "a", true, true, &[Some("")]),
    Row::invalid("a{999999999999}", "invalid repeat count", "{999999999999}"),
    Row::invalid("(a{2,}){501}", "invalid repeat count", "{501}"),
    Row::valid("x{0,}", "xx", true, true, &[]),
    Row::valid("(?:(?:a{0,1}){1000}){1}", "a", true, true, &[]),
    Row::invalid("a**", "invalid nested repetition operator", "**"),
    Row::invalid("a*+", "invalid nested repetition operator", "*+"),
    Row::valid("a*?", "aa", true, true, &[]),
    Row::invalid("a*??", "invalid nested repetition operator", "*??"),
    Row::invalid("a+*", "invalid nested repetition operator", "+*"),
    Row::valid("(a*)*", "aa", true, true, &[Some("aa")]),
    Row::valid("(?:a*)+", "aa", true, true, &[]),
    Row::invalid("*a", "missing argument to repetition operator", "*"),
    Row::invalid("(*)", "missing argument to repetition operator", "*"),
    Row::invalid("a|*", "missing argument to repetition operator", "*"),
    Row::invalid("(?i)*", "missing argument to repetition operator", "*"),
    Row::valid("a(?i)*", "aa", true, true, &[]),
    Row::valid("a(?i)*", "AA", false, true, &[]),
    Row::valid("a*(?i)*", "aa", true, true, &[]),
    Row::valid("(?:)*", "", true, true, &[]),
    Row::valid("|a", "a", true, true, &[]),
    Row::valid("|a", "", true, true, &[]),
    Row::valid("a|", "a", true, true, &[]),
    Row::valid("a|", "", true, true, &[]),
    Row::valid("()", "", true, true, &[Some("")]),
    Row::valid("(|a)*", "aa", true, true, &[Some("a")]),
    Row::valid("(|a)+", "aa", true, true, &[Some("a")]),
    Row::valid("a||b", "", true, true, &[]),
    Row::invalid("(a", "missing closing )", "(a"),
    Row::invalid("a)", "unexpected )", "a)"),
    Row::invalid("(?:a", "missing closing )", "(?:a"),
    Row::valid("(?P<n>a)(?P<n>b)", "ab", true, true, &[Some("a"), Some("b")]),
    Row::valid("(?P<n>a)", "a", true, true, &[Some("a")]),
    Row::valid("(?<n>a)", "a", true, true, &[Some("a")]),
    Row::invalid("(?P<>a)", "invalid named capture", "(?P<>"),
    Row::invalid("(?P<n m>a)", "invalid named capture", "(?P<n m>"),
    Row::valid("(?P<1>a)", "a", true, true, &[Some("a")]),
    Row::invalid("(?P<n", "invalid named capture", "(?P<n"),
    Row::invalid("(?P=n)", "invalid or unsupported Perl syntax", "(?P"),
    Row::invalid("(?P>n)", "invalid or unsupported Perl syntax", "(?P"),
    Row::invalid("(?=a)", "invalid or unsupported Perl syntax", "(?="),
    Row::invalid("(?!a)", "invalid or unsupported Perl syntax", "(?!"),
    Row::invalid("(?<=a)", "invalid named capture", "(?<=a)"),
    Row::invalid("(?<!a)", "invalid named capture", "(?<!a)"),
    Row::invalid("(?#c)a", "invalid or unsupported Perl syntax", "(?#"),
    Row::invalid("(?", "invalid or unsupported Perl syntax", "(?"),
    Row::invalid("(?i", "invalid or unsupported Perl syntax", "(?i"),
    Row::invalid("(?'n'a)", "invalid or unsupported Perl syntax", "(?'"),
    Row::invalid("(?P<\u{e9}>a)", "invalid named capture", "(?P<\u{e9}>"),
    Row::valid("(a)|(b)", "b", true, true, &[None, Some("b")]),
    Row::valid("(a)|(b)", "a", true, true, &[Some("a"), None]),
    Row::valid("(a+)(b)?(c)", "aac", true, true, &[Some("aa"), None, Some("c")]),
    Row::valid("(a+)(b)?(c)", "abc", true, true, &[Some("a"), Some("b"), Some("c")]),
    Row::valid("(a|ab)(c|bcd)", "abcd", true, true, &[Some("a"), Some("bcd")]),
    Row::valid("(a*?)(a*)", "aaa", true, true, &[Some(""), Some("aaa")]),
    Row::valid("(?U)(a*)(a*)", "aaa", true, true, &[Some(""), Some("aaa")]),
    Row::valid("(?U)(a*?)(a*)", "aaa", true, true, &[Some("aaa"), Some("")]),
    Row::valid("(?:(a)|b)*", "ab", true, true, &[Some("a")]),
    Row::valid("(?:(a)|b)*", "ba", true, true, &[Some("a")]),
    Row::valid("((a)|(b))*", "ab", true, true, &[Some("b"), Some("a"), Some("b")]),
    Row::valid("(.*)-(.*)", "a-b-c", true, true, &[Some("a-b"), Some("c")]),
    Row::valid("(.+?)[.](.*)", "a.b.c", true, true, &[Some("a"), Some("b.c")]),
    Row::valid("([^:]+)(?::\\d+)?;(\\d+)", "h:1;2", true, true, &[Some("h"), Some("2")]),
    Row::valid("([^:]+)(?::\\d+)?;(\\d+)", "h;2", true, true, &[Some("h"), Some("2")]),
    Row::valid("([^:]+)(?::\\d+)?;(\\d+)", "h:;2", false, false, &[]),
    Row::invalid("[z-a]", "invalid character class range", "z-a"),
    Row::invalid("[a-z", "missing closing ]", "[a-z"),
    Row::invalid("[", "missing closing ]", "["),
    Row::invalid("[^", "missing closing ]", "[^"),
    Row::invalid("[]", "missing closing ]", "[]"),
    Row::invalid("[a-\\d]", "invalid escape sequence", "\\d"),
    Row::valid("[\\d-z]+", "5-z", true, true, &[]),
    Row::valid("[a-]", "-", true, true, &[]),
    Row::valid("[-a]", "-", true, true, &[]),
    Row::valid("[a-z-9]+", "b-9", true, true, &[]),
    Row::valid("[^a]", "\n", true, true, &[]),
    Row::valid("[^a]", "a", false, false, &[]),
    Row::valid("[^\\x00-\\x{10FFFF}]", "a", false, false, &[]),
    Row::valid("[[:digit:]-z]+", "1-z", true, true, &[]),
    Row::valid("[a\\]]+", "a]", true, true, &[]),
    Row::valid("[\\^a]", "^", true, true, &[]),
    Row::valid("[a^]", "^", true, true, &[]),
    Row::valid("[.]", ".", true, true, &[]),
    Row::valid("[.]", "a", false, false, &[]),
    Row::valid("[$|]+", "|$", true, true, &[]),
    Row::valid("[\\pL\\-]+", "a-", true, true, &[]),
];
