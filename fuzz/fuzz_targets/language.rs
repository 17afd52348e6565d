//! Any bytes are a configuration or diagnostics that can be shown; what is formatted means the same and is formatted for good; whatever parses is checked
//! and, taken as an expression, evaluated.
//!
//! Seeds: `fuzz/seed.sh` cuts the cases of `integration/lang` into files.

#![no_main]

use alluvium::components;
use alluvium::lang::eval::{NoScope, evaluate};
use alluvium::lang::{Source, decode_text, fmt_named, parse, parse_expression};
use alluvium::pipeline::component::Stability;
use alluvium::pipeline::validate;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = match decode_text("x.alloy", data.to_vec()) {
        Ok(text) => text,
        Err(diagnostic) => {
            let _ = diagnostic.render(true);
            return;
        }
    };
    let source = Source::new("x.alloy", text.as_str());
    let (file, diagnostics) = parse(&source);
    let _ = (diagnostics.render(false), diagnostics.to_json());
    match fmt_named("x.alloy", &text) {
        Ok(formatted) => {
            let (again, found) = parse(&Source::new("x.alloy", formatted.as_str()));
            assert!(!found.has_errors(), "the formatted text does not parse");
            assert!(file == again, "formatting changed the meaning");
            assert_eq!(fmt_named("x.alloy", &formatted).ok(), Some(formatted));
        }
        Err(found) => assert!(found.has_errors() && diagnostics.has_errors()),
    }
    let _ = validate(&[("x.alloy".to_owned(), text)], components::ALL, Stability::Experimental).render(false);
    let (expression, found) = parse_expression(&source);
    if !found.has_errors() {
        let _ = evaluate(&source, &expression, &NoScope);
    }
});
