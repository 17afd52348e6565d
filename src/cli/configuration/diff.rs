//! Unified differences between two texts, line by line, for `alluvium fmt --diff`.

use std::time::Duration;

use similar::TextDiff;

/// Time limit for finding the shortest difference; after this limit the result is correct but may be longer.
const TIME: Duration = Duration::from_secs(1);

/// Returns the difference in the unified format, with three lines of context; empty for equal texts.
pub(crate) fn unified(path: &str, old: &str, new: &str) -> String {
    TextDiff::configure()
        .timeout(TIME)
        .diff_lines(old, new)
        .unified_diff()
        .header(path, &format!("{path} (formatted)"))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_with_three_lines_around_them() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old
            .replace("\n5\n", "\nfive\n")
            .replace("\n18\n", "\n")
            .replace("20\n", "20");
        let expected = "--- x\n+++ x (formatted)\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -15,6 +15,5 @@\
            \n 15\n 16\n 17\n-18\n 19\n-20\n+20\n\\ No newline at end of file\n";
        assert_eq!(unified("x", &old, &new), expected);
        assert_eq!(unified("x", &old, &old), "");
        assert_eq!(unified("x", "", "a\n"), "--- x\n+++ x (formatted)\n@@ -0,0 +1 @@\n+a\n");
    }
}
