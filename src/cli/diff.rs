//! Unified differences between two texts, line by line, for `alluvium fmt --diff`.
//!
//! Common lines at both ends are skipped and what is between is compared by the longest common subsequence; above a bound it counts as
//! replaced altogether, which is right, only longer to read.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Most cells of the table of common subsequences: 16 MB.
const MAX_CELLS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The difference in the unified form, empty when there is none.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let edits = edits(&old, &new);
    let mut out = String::new();
    let mut at = 0;
    // Positions before each edit.
    let mut places = vec![(0, 0)];
    for edit in &edits {
        let (left, right) = places.last().copied().unwrap_or_default();
        places.push((
            left + usize::from(*edit != Edit::Add),
            right + usize::from(*edit != Edit::Remove),
        ));
    }
    while let Some(first) = (at..edits.len()).find(|index| edits[*index] != Edit::Keep) {
        let start = first.saturating_sub(CONTEXT).max(at);
        let mut last = first;
        while let Some(next) =
            (last + 1..edits.len().min(last + 2 * CONTEXT + 2)).find(|index| edits[*index] != Edit::Keep)
        {
            last = next;
        }
        let end = (last + 1 + CONTEXT).min(edits.len());
        if out.is_empty() {
            let _ = writeln!(out, "--- {path}\n+++ {path} (formatted)");
        }
        let ((left, right), (left_end, right_end)) = (places[start], places[end]);
        let _ = writeln!(
            out,
            "@@ -{} +{} @@",
            range(left, left_end - left),
            range(right, right_end - right)
        );
        for (index, edit) in edits.iter().enumerate().take(end).skip(start) {
            let (left, right) = places[index];
            let (mark, line) = match edit {
                Edit::Keep => (' ', old[left]),
                Edit::Remove => ('-', old[left]),
                Edit::Add => ('+', new[right]),
            };
            out.push(mark);
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
        at = end;
    }
    out
}

fn range(start: usize, count: usize) -> String {
    // An empty range names the line before it.
    let line = if count == 0 { start } else { start + 1 };
    if count == 1 {
        line.to_string()
    } else {
        format!("{line},{count}")
    }
}

fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let head = old.iter().zip(new).take_while(|(left, right)| left == right).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(left, right)| left == right)
        .count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut edits = vec![Edit::Keep; head];
    if (old.len() + 1).saturating_mul(new.len() + 1) > MAX_CELLS {
        edits.extend(std::iter::repeat_n(Edit::Remove, old.len()));
        edits.extend(std::iter::repeat_n(Edit::Add, new.len()));
    } else {
        middle(old, new, &mut edits);
    }
    edits.extend(std::iter::repeat_n(Edit::Keep, tail));
    edits
}

fn middle(old: &[&str], new: &[&str], edits: &mut Vec<Edit>) {
    let width = new.len() + 1;
    // Length of the longest common subsequence of what follows.
    let mut common = vec![0u32; (old.len() + 1) * width];
    for left in (0..old.len()).rev() {
        for right in (0..new.len()).rev() {
            common[left * width + right] = if old[left] == new[right] {
                common[(left + 1) * width + right + 1] + 1
            } else {
                common[(left + 1) * width + right].max(common[left * width + right + 1])
            };
        }
    }
    let (mut left, mut right) = (0, 0);
    while left < old.len() || right < new.len() {
        if left < old.len() && right < new.len() && old[left] == new[right] {
            edits.push(Edit::Keep);
            (left, right) = (left + 1, right + 1);
        } else if right == new.len()
            || (left < old.len() && common[(left + 1) * width + right] >= common[left * width + right + 1])
        {
            edits.push(Edit::Remove);
            left += 1;
        } else {
            edits.push(Edit::Add);
            right += 1;
        }
    }
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
        let want = "--- x\n+++ x (formatted)\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n-20\n+20\n\\ No newline at end of file\n";
        assert_eq!(unified("x", &old, &new), want);
        assert_eq!(unified("x", &old, &old), "");
        assert_eq!(unified("x", "", "a\n"), "--- x\n+++ x (formatted)\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn every_difference_leads_from_one_text_to_the_other() {
        let texts = [
            "",
            "a\n",
            "a\nb\nc\n",
            "c\nb\na\n",
            "a\na\nb\n",
            "b\nx\na\ny\nc\n",
            "a\nb\nc",
        ];
        for old in texts {
            for new in texts {
                let (left, right): (Vec<&str>, Vec<&str>) =
                    (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
                let (mut taken, mut made) = (left.iter(), Vec::new());
                let mut added = right.iter();
                for edit in edits(&left, &right) {
                    match edit {
                        Edit::Keep => {
                            made.push(*taken.next().unwrap());
                            added.next();
                        }
                        Edit::Remove => {
                            taken.next();
                        }
                        Edit::Add => made.push(*added.next().unwrap()),
                    }
                }
                assert_eq!(made.concat(), new);
            }
        }
    }
}
