//! The results of Go 1.26 for 200 expressions and texts, and random expressions, for which the parser must not panic.

use proptest::prelude::*;

use crate::re2::Expression;
use crate::re2::error::Re2Error;

/// An expression and the result of Go's `regexp`.
enum Row {
    /// An expression, the error with which Go rejects it, and the part of the expression that the error shows.
    Wrong(&'static str, &'static str, &'static str),
    /// An expression, a text, and the results of Go: whether `^(?s:expression)$` matches the text, whether the
    /// expression matches a part of the text, and the groups of the anchored match.
    Right(&'static str, &'static str, bool, bool, &'static [Option<&'static str>]),
}

impl Row {
    const fn wrong(pattern: &'static str, kind: &'static str, part: &'static str) -> Self {
        Self::Wrong(pattern, kind, part)
    }

    const fn right(
        pattern: &'static str,
        text: &'static str,
        is_whole: bool,
        is_part: bool,
        groups: &'static [Option<&'static str>],
    ) -> Self {
        Self::Right(pattern, text, is_whole, is_part, groups)
    }
}

#[test]
fn expressions_mean_what_they_mean_to_go() {
    for row in ROWS {
        match row {
            Row::Wrong(pattern, expected, expected_part) => {
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
            Row::Right(pattern, text, is_whole, is_part, groups) => {
                let search = Expression::search(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
                assert_eq!(search.is_match(text), *is_part, "{pattern} in {text:?}");
                for whole in [Expression::anchored(pattern), Expression::matcher(pattern, 1 << 20)] {
                    let whole = whole.unwrap_or_else(|error| panic!("{pattern}: {error}"));
                    assert_eq!(whole.is_match(text), *is_whole, "{pattern} of {text:?}");
                    let found = whole.groups(text);
                    assert_eq!(found.is_some(), *is_whole);
                    for (index, group) in groups.iter().enumerate() {
                        let text = found.as_ref().map(|found| found.get(index + 1));
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
            let found = expression.is_match(&text);
            prop_assert_eq!(expression.groups(&text).is_some(), found);
        }
        let quoted = Expression::anchored(&format!(r"\Q{}\E", text.replace("\\E", ""))).unwrap();
        prop_assert!(quoted.is_match(&text.replace("\\E", "")));
    }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row::right("/conversations/{id}", "/conversations/{id}", true, true, &[]),
    Row::right("/conversations/\\{id\\}", "/conversations/{id}", true, true, &[]),
    Row::right("(/c/{id}|/u/{id})", "/u/{id}", true, true, &[Some("/u/{id}")]),
    Row::right(".*{id}", "/x/{id}", true, true, &[]),
    Row::right("\\Q/c/{id}\\E", "/c/{id}", true, true, &[]),
    Row::right("\\Qa.b\\E+", "a.bb", true, true, &[]),
    Row::right("\\Q\\E", "", true, true, &[]),
    Row::right("\\Qa\\Eb\\Qc\\E", "abc", true, true, &[]),
    Row::right("a\\Q*+?\\Eb", "a*+?b", true, true, &[]),
    Row::right("Vec\\<u8\\>", "Vec<u8>", true, true, &[]),
    Row::right("[a&&b]+", "a&b", true, true, &[]),
    Row::right("[a~~b]", "~", true, true, &[]),
    Row::wrong("[a--b]+", "invalid character class range", "a--"),
    Row::right("[+--]+", "+,-", true, true, &[]),
    Row::right("[--/]", ".", true, true, &[]),
    Row::right("caf\\w", "caf\u{e9}", false, false, &[]),
    Row::right("caf\\w", "cafe", true, true, &[]),
    Row::right("\\d", "\u{663}", false, false, &[]),
    Row::right("\\d", "3", true, true, &[]),
    Row::right("a\\sb", "a\u{a0}b", false, false, &[]),
    Row::right("a\\sb", "a b", true, true, &[]),
    Row::right("a\\sb", "a\u{b}b", false, false, &[]),
    Row::right("a\\Wb", "a&b", true, true, &[]),
    Row::right("a\\Wb", "a\u{e9}b", true, true, &[]),
    Row::right("[\\s]", "\u{b}", false, false, &[]),
    Row::right("[[:space:]]", "\u{b}", true, true, &[]),
    Row::right("[[]", "[", true, true, &[]),
    Row::right("[]a]+", "]a", true, true, &[]),
    Row::right("[^]a]", "b", true, true, &[]),
    Row::right("[^]a]", "]", false, false, &[]),
    Row::right("[a]]", "a]", true, true, &[]),
    Row::right("[[:alpha:]]+", "abc", true, true, &[]),
    Row::right("[[:alpha:]]+", "1", false, false, &[]),
    Row::right("[[:^alpha:]]", "1", true, true, &[]),
    Row::right("[[:^alpha:]]", "a", false, false, &[]),
    Row::right("[[:word:]]", "_", true, true, &[]),
    Row::wrong("[[:foo:]]", "invalid character class range", "[:foo:]"),
    Row::right("[[:alpha]", "a", true, true, &[]),
    Row::right("[[:alpha]", ":", true, true, &[]),
    Row::right("[[:alpha:]x]", "x", true, true, &[]),
    Row::right("[:alpha:]", "a", true, true, &[]),
    Row::right("[:alpha:]", ":", true, true, &[]),
    Row::right("[:alpha:]", "z", false, false, &[]),
    Row::right("\\057x", "/x", true, true, &[]),
    Row::right("\\101", "A", true, true, &[]),
    Row::wrong("\\1", "invalid escape sequence", "\\1"),
    Row::wrong("\\8", "invalid escape sequence", "\\8"),
    Row::right("\\08", "\u{0}8", true, true, &[]),
    Row::right("\\377", "\u{ff}", true, true, &[]),
    Row::right("\\0", "\u{0}", true, true, &[]),
    Row::right("\\012", "\n", true, true, &[]),
    Row::right("\\x41", "A", true, true, &[]),
    Row::right("\\x{1F600}", "\u{1f600}", true, true, &[]),
    Row::wrong("\\x4", "invalid escape sequence", "\\x4"),
    Row::wrong("\\x{}", "invalid escape sequence", "\\x{}"),
    Row::wrong("\\x{110000}", "invalid escape sequence", "\\x{110000"),
    Row::right("\\x{d800}", "a", false, false, &[]),
    Row::right("[\\x{d7ff}-\\x{e000}]", "\u{e000}", true, true, &[]),
    Row::right("[\\x{d7ff}-\\x{e000}]", "a", false, false, &[]),
    Row::right("\\p{Greek}+", "\u{3b1}\u{3b2}", true, true, &[]),
    Row::right("\\p{^Greek}", "a", true, true, &[]),
    Row::right("\\p{^Greek}", "\u{3b1}", false, false, &[]),
    Row::right("\\P{Greek}", "a", true, true, &[]),
    Row::right("\\P{^Greek}", "\u{3b1}", true, true, &[]),
    Row::right("\\pL+", "ab\u{e9}", true, true, &[]),
    Row::right("\\PL", "1", true, true, &[]),
    Row::right("\\pN", "\u{663}", true, true, &[]),
    Row::right("\\p{Lu}", "A", true, true, &[]),
    Row::right("\\p{Lu}", "a", false, false, &[]),
    Row::right("(?i)\\p{Lu}", "a", true, true, &[]),
    Row::wrong("\\p{Foo}", "invalid character class range", "\\p{Foo}"),
    Row::wrong("\\p{Alphabetic}", "invalid character class range", "\\p{Alphabetic}"),
    Row::wrong("\\p{Script=Greek}", "invalid character class range", "\\p{Script=Greek}"),
    Row::wrong("\\pX", "invalid character class range", "\\pX"),
    Row::wrong("\\p", "invalid character class range", "\\p"),
    Row::wrong("\\p{", "invalid character class range", "\\p{"),
    Row::right("[\\p{Greek}\\d]+", "\u{3b1}1", true, true, &[]),
    Row::right("\\p{Any}", "a", true, true, &[]),
    Row::right("\\p{Letter}", "a", true, true, &[]),
    Row::right("\\p{lowercase_letter}", "a", true, true, &[]),
    Row::wrong("\\p{IsGreek}", "invalid character class range", "\\p{IsGreek}"),
    Row::right("[^\\p{Greek}]", "a", true, true, &[]),
    Row::right("(?i)abc", "ABC", true, true, &[]),
    Row::right("(?i)abc", "abc", true, true, &[]),
    Row::right("(?i)K", "\u{212a}", true, true, &[]),
    Row::right("(?i)[a-z]+", "ABC\u{17f}", true, true, &[]),
    Row::right("(?i)\\w", "\u{17f}", true, true, &[]),
    Row::right("(?i)\\W", "\u{17f}", false, false, &[]),
    Row::right("(?i)[^k]", "\u{212a}", false, false, &[]),
    Row::right("(?i)[^k]", "x", true, true, &[]),
    Row::right("(?i:a)b", "Ab", true, true, &[]),
    Row::right("(?i:a)b", "AB", false, false, &[]),
    Row::right("a(?i)b", "aB", true, true, &[]),
    Row::right("a(?i)b", "AB", false, false, &[]),
    Row::right("(a(?i)b)c", "aBc", true, true, &[Some("aB")]),
    Row::right("(a(?i)b)c", "aBC", false, false, &[]),
    Row::right("(?i)\u{3c3}", "\u{3c2}", true, true, &[]),
    Row::right("(?i)\u{3c3}", "\u{3a3}", true, true, &[]),
    Row::right("(?i)\u{df}", "\u{1e9e}", true, true, &[]),
    Row::right("(?-i)a", "a", true, true, &[]),
    Row::right("(?i-i)a", "A", false, false, &[]),
    Row::wrong("(?-)a", "invalid or unsupported Perl syntax", "(?-)"),
    Row::right("(?)a", "a", true, true, &[]),
    Row::wrong("(?i-)a", "invalid or unsupported Perl syntax", "(?i-)"),
    Row::right("(?im-sU:a)", "A", true, true, &[]),
    Row::wrong("(?i--s)a", "invalid or unsupported Perl syntax", "(?i--"),
    Row::wrong("(?x)a", "invalid or unsupported Perl syntax", "(?x"),
    Row::wrong("(?u)a", "invalid or unsupported Perl syntax", "(?u"),
    Row::right("a.b", "a\nb", true, false, &[]),
    Row::right("a.b", "acb", true, true, &[]),
    Row::right("(?s)a.b", "a\nb", true, true, &[]),
    Row::right("(?s-s)a.b", "a\nb", false, false, &[]),
    Row::right("(?-s)a.b", "a\nb", false, false, &[]),
    Row::right("(?m)^b$", "a\nb\nc", false, true, &[]),
    Row::right("^b$", "a\nb", false, false, &[]),
    Row::right("^b$", "b", true, true, &[]),
    Row::right("(?m)a$", "a\n", false, true, &[]),
    Row::right("a$", "a\n", false, false, &[]),
    Row::right("a\\z", "a", true, true, &[]),
    Row::wrong("a\\Z", "invalid escape sequence", "\\Z"),
    Row::right("\\Aa", "a", true, true, &[]),
    Row::right("\\Aa", "ba", false, false, &[]),
    Row::right("^*", "a", false, true, &[]),
    Row::right("$?a", "a", true, true, &[]),
    Row::right("(^)*", "a", false, true, &[]),
    Row::right("\\b+a", "a", true, true, &[]),
    Row::right("\\ba\\b", "a b", false, true, &[]),
    Row::right("\\ba\\b", "\u{e9}a", false, true, &[]),
    Row::right("a\\B", "ab", false, true, &[]),
    Row::right("a\\B", "a\u{e9}", false, false, &[]),
    Row::right("\\B", "", true, true, &[]),
    Row::right("\\B", "\u{e9}", false, true, &[]),
    Row::right("\\B", "a\u{e9}a", false, false, &[]),
    Row::right("\\B", "ab", false, true, &[]),
    Row::right("\\b", "\u{e9}", false, false, &[]),
    Row::wrong("[\\b]", "invalid escape sequence", "\\b"),
    Row::wrong("\\C", "invalid escape sequence", "\\C"),
    Row::wrong("\\E", "invalid escape sequence", "\\E"),
    Row::wrong("\\q", "invalid escape sequence", "\\q"),
    Row::right("\\_", "_", true, true, &[]),
    Row::right("\\-", "-", true, true, &[]),
    Row::right("\\/", "/", true, true, &[]),
    Row::wrong("\\\u{e9}", "invalid escape sequence", "\\\u{e9}"),
    Row::wrong("a\\", "trailing backslash at end of expression", ""),
    Row::right("\\a\\f\\t\\n\\r\\v", "\u{7}\u{c}\t\n\r\u{b}", true, true, &[]),
    Row::right("[\\a-\\r]", "\n", true, true, &[]),
    Row::wrong("\\e", "invalid escape sequence", "\\e"),
    Row::right("\\ ", "  ", false, true, &[]),
    Row::right("a{2}", "aa", true, true, &[]),
    Row::right("a{2}", "a", false, false, &[]),
    Row::right("a{1,}", "aaa", true, true, &[]),
    Row::right("a{,2}", "a{,2}", true, true, &[]),
    Row::wrong("a{2,1}", "invalid repeat count", "{2,1}"),
    Row::wrong("a{1001}", "invalid repeat count", "{1001}"),
    Row::right("a{1000}", "a", false, false, &[]),
    Row::right("a{01}", "a{01}", true, true, &[]),
    Row::right("a{01}", "a", false, false, &[]),
    Row::right("a{1", "a{1", true, true, &[]),
    Row::right("{a}", "{a}", true, true, &[]),
    Row::wrong("{1}", "missing argument to repetition operator", "{1}"),
    Row::wrong("{1}", "missing argument to repetition operator", "{1}"),
    Row::right("a{}", "a{}", true, true, &[]),
    Row::right("a{ 1}", "a{ 1}", true, true, &[]),
    Row::wrong("a{1}{2}", "invalid nested repetition operator", "{1}{2}"),
    Row::right("(?:a{2}){3}", "aaaaaa", true, true, &[]),
    Row::wrong("(a{100}){11}", "invalid repeat count", "{11}"),
    Row::right("((a{10}){10}){10}", "a", false, false, &[]),
    Row::wrong("((a{10}){10}){11}", "invalid repeat count", "{11}"),
    Row::right("a{0}", "", true, true, &[]),
    Row::right("a{0}", "a", false, true, &[]),
    Row::right("(a{0}){1000}", "", true, true, &[Some("")]),
    Row::right("(a*){1000}", "a", true, true, &[Some("")]),
    Row::wrong("a{999999999999}", "invalid repeat count", "{999999999999}"),
    Row::wrong("(a{2,}){501}", "invalid repeat count", "{501}"),
    Row::right("x{0,}", "xx", true, true, &[]),
    Row::right("(?:(?:a{0,1}){1000}){1}", "a", true, true, &[]),
    Row::wrong("a**", "invalid nested repetition operator", "**"),
    Row::wrong("a*+", "invalid nested repetition operator", "*+"),
    Row::right("a*?", "aa", true, true, &[]),
    Row::wrong("a*??", "invalid nested repetition operator", "*??"),
    Row::wrong("a+*", "invalid nested repetition operator", "+*"),
    Row::right("(a*)*", "aa", true, true, &[Some("aa")]),
    Row::right("(?:a*)+", "aa", true, true, &[]),
    Row::wrong("*a", "missing argument to repetition operator", "*"),
    Row::wrong("(*)", "missing argument to repetition operator", "*"),
    Row::wrong("a|*", "missing argument to repetition operator", "*"),
    Row::wrong("(?i)*", "missing argument to repetition operator", "*"),
    Row::right("a(?i)*", "aa", true, true, &[]),
    Row::right("a(?i)*", "AA", false, true, &[]),
    Row::right("a*(?i)*", "aa", true, true, &[]),
    Row::right("(?:)*", "", true, true, &[]),
    Row::right("|a", "a", true, true, &[]),
    Row::right("|a", "", true, true, &[]),
    Row::right("a|", "a", true, true, &[]),
    Row::right("a|", "", true, true, &[]),
    Row::right("()", "", true, true, &[Some("")]),
    Row::right("(|a)*", "aa", true, true, &[Some("a")]),
    Row::right("(|a)+", "aa", true, true, &[Some("a")]),
    Row::right("a||b", "", true, true, &[]),
    Row::wrong("(a", "missing closing )", "(a"),
    Row::wrong("a)", "unexpected )", "a)"),
    Row::wrong("(?:a", "missing closing )", "(?:a"),
    Row::right("(?P<n>a)(?P<n>b)", "ab", true, true, &[Some("a"), Some("b")]),
    Row::right("(?P<n>a)", "a", true, true, &[Some("a")]),
    Row::right("(?<n>a)", "a", true, true, &[Some("a")]),
    Row::wrong("(?P<>a)", "invalid named capture", "(?P<>"),
    Row::wrong("(?P<n m>a)", "invalid named capture", "(?P<n m>"),
    Row::right("(?P<1>a)", "a", true, true, &[Some("a")]),
    Row::wrong("(?P<n", "invalid named capture", "(?P<n"),
    Row::wrong("(?P=n)", "invalid or unsupported Perl syntax", "(?P"),
    Row::wrong("(?P>n)", "invalid or unsupported Perl syntax", "(?P"),
    Row::wrong("(?=a)", "invalid or unsupported Perl syntax", "(?="),
    Row::wrong("(?!a)", "invalid or unsupported Perl syntax", "(?!"),
    Row::wrong("(?<=a)", "invalid named capture", "(?<=a)"),
    Row::wrong("(?<!a)", "invalid named capture", "(?<!a)"),
    Row::wrong("(?#c)a", "invalid or unsupported Perl syntax", "(?#"),
    Row::wrong("(?", "invalid or unsupported Perl syntax", "(?"),
    Row::wrong("(?i", "invalid or unsupported Perl syntax", "(?i"),
    Row::wrong("(?'n'a)", "invalid or unsupported Perl syntax", "(?'"),
    Row::wrong("(?P<\u{e9}>a)", "invalid named capture", "(?P<\u{e9}>"),
    Row::right("(a)|(b)", "b", true, true, &[None, Some("b")]),
    Row::right("(a)|(b)", "a", true, true, &[Some("a"), None]),
    Row::right("(a+)(b)?(c)", "aac", true, true, &[Some("aa"), None, Some("c")]),
    Row::right("(a+)(b)?(c)", "abc", true, true, &[Some("a"), Some("b"), Some("c")]),
    Row::right("(a|ab)(c|bcd)", "abcd", true, true, &[Some("a"), Some("bcd")]),
    Row::right("(a*?)(a*)", "aaa", true, true, &[Some(""), Some("aaa")]),
    Row::right("(?U)(a*)(a*)", "aaa", true, true, &[Some(""), Some("aaa")]),
    Row::right("(?U)(a*?)(a*)", "aaa", true, true, &[Some("aaa"), Some("")]),
    Row::right("(?:(a)|b)*", "ab", true, true, &[Some("a")]),
    Row::right("(?:(a)|b)*", "ba", true, true, &[Some("a")]),
    Row::right("((a)|(b))*", "ab", true, true, &[Some("b"), Some("a"), Some("b")]),
    Row::right("(.*)-(.*)", "a-b-c", true, true, &[Some("a-b"), Some("c")]),
    Row::right("(.+?)[.](.*)", "a.b.c", true, true, &[Some("a"), Some("b.c")]),
    Row::right("([^:]+)(?::\\d+)?;(\\d+)", "h:1;2", true, true, &[Some("h"), Some("2")]),
    Row::right("([^:]+)(?::\\d+)?;(\\d+)", "h;2", true, true, &[Some("h"), Some("2")]),
    Row::right("([^:]+)(?::\\d+)?;(\\d+)", "h:;2", false, false, &[]),
    Row::wrong("[z-a]", "invalid character class range", "z-a"),
    Row::wrong("[a-z", "missing closing ]", "[a-z"),
    Row::wrong("[", "missing closing ]", "["),
    Row::wrong("[^", "missing closing ]", "[^"),
    Row::wrong("[]", "missing closing ]", "[]"),
    Row::wrong("[a-\\d]", "invalid escape sequence", "\\d"),
    Row::right("[\\d-z]+", "5-z", true, true, &[]),
    Row::right("[a-]", "-", true, true, &[]),
    Row::right("[-a]", "-", true, true, &[]),
    Row::right("[a-z-9]+", "b-9", true, true, &[]),
    Row::right("[^a]", "\n", true, true, &[]),
    Row::right("[^a]", "a", false, false, &[]),
    Row::right("[^\\x00-\\x{10FFFF}]", "a", false, false, &[]),
    Row::right("[[:digit:]-z]+", "1-z", true, true, &[]),
    Row::right("[a\\]]+", "a]", true, true, &[]),
    Row::right("[\\^a]", "^", true, true, &[]),
    Row::right("[a^]", "^", true, true, &[]),
    Row::right("[.]", ".", true, true, &[]),
    Row::right("[.]", "a", false, false, &[]),
    Row::right("[$|]+", "|$", true, true, &[]),
    Row::right("[\\pL\\-]+", "a-", true, true, &[]),
];
