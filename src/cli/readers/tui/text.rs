//! Text that is cut to the available columns.

use std::borrow::Cow;

use ratatui::text::Span;

/// Returns the width of a text in columns.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        Span::raw(text).width()
    }
}

/// Returns the text in at most `room` columns. A long name that contains a path keeps the part after the last slash,
/// because that part is more specific than the start.
pub(super) fn clip(text: &str, room: usize) -> Cow<'_, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    let file_name = text.rsplit('/').next().filter(|end| !end.is_empty()).unwrap_or(text);
    if width(file_name) <= room {
        return Cow::Borrowed(file_name);
    }
    let dots = if room > 4 { ".." } else { "" };
    let part = start(file_name, room - dots.len());
    Cow::Owned(format!("{part}{dots}"))
}

/// Returns the end of a text in at most `room` columns.
pub(super) fn clip_start(text: &str, room: usize) -> Cow<'_, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    let mut part = "";
    for (offset, _) in text.char_indices().rev() {
        if width(&text[offset..]) + 2 > room {
            break;
        }
        part = &text[offset..];
    }
    Cow::Owned(format!("..{part}"))
}

/// Returns the longest start of a text that fits into `room` columns.
fn start(text: &str, room: usize) -> &str {
    let ends = text.char_indices().map(|(offset, c)| offset + c.len_utf8());
    let fits = |end: &usize| width(&text[..*end]) <= room;
    let end = ends.take_while(fits).last().unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cli::common::plain;

    #[test]
    fn of_a_long_name_the_last_part_is_kept() {
        assert_eq!(clip("github.com/acme/shop.Add", 30), "github.com/acme/shop.Add");
        assert_eq!(clip("github.com/acme/shop.Add", 10), "shop.Add");
        assert_eq!(clip("github.com/acme/shop.Add", 6), "shop..");
        assert_eq!(clip("github.com/acme/shop.Add", 3), "sho");
        assert_eq!(clip("\u{6f22}\u{5b57}\u{6f22}\u{5b57}", 7), "\u{6f22}\u{5b57}..");
        assert_eq!(clip_start("total > main > work", 12), "..ain > work");
    }

    proptest! {
        #[test]
        fn a_text_never_takes_more_than_its_room(text in "\\PC{0,40}", room in 2usize..50) {
            let text = plain::line(&text);
            prop_assert!(width(&clip(&text, room)) <= room);
            prop_assert!(width(&clip_start(&text, room)) <= room);
        }
    }
}
