//! Any text is HCL or refused; what is HCL is formatted for good and means the same; what either syntax converts into the other means the same, and converts
//! back.
//!
//! Seeds: `fuzz/seed.sh`, as for `language`.

#![no_main]

use alluvium::lang::translate::{to_alloy, to_hcl};
use alluvium::lang::{Source, fmt_named, parse, same};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (file, found) = parse(&Source::new("x.hcl", text));
    let _ = found.render(false);
    if !found.has_errors() {
        let formatted = fmt_named("x.hcl", text).expect("what parses is formatted");
        let (again, found) = parse(&Source::new("x.hcl", formatted.as_str()));
        assert!(!found.has_errors() && file == again, "formatting changed the meaning");
        assert_eq!(fmt_named("x.hcl", &formatted).ok(), Some(formatted));
        if let Ok(alloy) = to_alloy("x.hcl", text) {
            assert!(same(&file, &parse(&Source::new("x.alloy", alloy.as_str())).0));
        }
    }
    if let Ok(hcl) = to_hcl("x.alloy", text) {
        let alloy = to_alloy("x.hcl", &hcl).expect("what was converted converts back");
        let (there, _) = parse(&Source::new("x.alloy", text));
        let (back, _) = parse(&Source::new("x.alloy", alloy.as_str()));
        assert!(same(&there, &back), "conversion changed the meaning");
    }
});
