//! Makes text safe for a terminal.
//!
//! Text from a profile, a file or a server may contain escape sequences, line ends, or characters that change the
//! direction of all text after them.

/// The replacement for each character that a terminal would interpret as a command instead of showing it.
const REPLACEMENT: char = '\u{fffd}';

/// Returns a single-line text in which every control character is replaced.
pub(in crate::cli) fn line(text: &str) -> String {
    let shown = |c: char| if is_command(c) { REPLACEMENT } else { c };
    text.chars().map(shown).collect()
}

/// Returns a text in which every control character is replaced, except line feeds and tabs.
pub(in crate::cli) fn lines(text: &str) -> String {
    let is_ours = |c: char| matches!(c, '\n' | '\t');
    let shown = |c: char| if is_command(c) && !is_ours(c) { REPLACEMENT } else { c };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

/// Returns true for control characters, changes of direction, and invisible characters.
fn is_command(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    c.is_control() || is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_commands_the_terminal() {
        assert_eq!(
            line("a\u{1b}[31mb\r\n\u{9b}2J\u{7f}"),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}\u{fffd}2J\u{fffd}"
        );
        assert_eq!(line("user\u{202e}gnp.exe\u{2066}"), "user\u{fffd}gnp.exe\u{fffd}");
        // Letters of right-to-left scripts stay.
        assert_eq!(line("\u{5d0}\u{5d1}.\u{645}"), "\u{5d0}\u{5d1}.\u{645}");
        assert_eq!(lines("a\tb\r\n\u{1b}[2Jc\r"), "a\tb\n\u{fffd}[2Jc\u{fffd}");
    }
}
