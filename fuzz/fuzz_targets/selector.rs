//! Any text is a selector or an error; what is a selector is read back from what it is written as.
//!
//! Queries (`TYPE{...}`) go through the same parser.

#![no_main]

use alluvium::profile::selector;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = selector::parse_query(text);
    let Ok(matchers) = selector::parse(text) else {
        return;
    };
    assert_eq!(selector::parse(&selector::format(&matchers)), Ok(matchers));
});
