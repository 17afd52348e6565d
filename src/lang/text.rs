//! Decodes the bytes of a configuration as UTF-8.

use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::source::{Source, Span};

/// Returns the text of a file, or an error at the first byte that is not UTF-8. `path` names the file in diagnostics.
pub fn decode_text(path: &str, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let length = error.utf8_error().error_len().unwrap_or(1);
        let byte = error.as_bytes().get(start).copied().unwrap_or_default();
        // The source is shown with replacement characters; offsets before the error stay valid.
        let source = Source::new(path, String::from_utf8_lossy(error.as_bytes()));
        let message = format!("the text is not UTF-8: bad byte 0x{byte:02x} at offset {start}");
        Diagnostic::error(
            codes::NOT_UTF8,
            &source,
            Span::new(start, start + length.max('\u{fffd}'.len_utf8())),
            message,
        )
        .hint("save the file as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_byte_is_shown_in_its_line() {
        let error = decode_text("x.alloy", b"a = 1\nb = \"\xf8\"\n".to_vec()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "x.alloy:2:6: the text is not UTF-8: bad byte 0xf8 at offset 11"
        );
        assert!(error.render().contains("b = \""));
        assert!(decode_text("x", "\u{e9}".into()).is_ok());
    }
}
