//! Folded stacks, `main;work (app.py:12) 3` on each line: of stackcollapse scripts, py-spy, rbspy, async-profiler.
//!
//! File and line are read where a profiler of a script writes them behind the name.

use crate::profile::call_tree::{CallTree, Calls, Room, Size};
use crate::wire::files::error::FileError;
use crate::wire::files::imported::{FileFormat, ImportedProfile, Meaning};

/// Lines that are looked at to recognise a file.
const LOOKED_AT: usize = 20;

/// True when the first lines are stacks with a count.
pub(super) fn is_like(text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(LOOKED_AT)
        .peekable();
    lines.peek().is_some() && lines.all(|line| parts(line).is_some())
}

/// The one profile of a text. What its counts stand for is not in it: they are samples.
pub(super) fn read(text: &str) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::Collapsed;
    let mut tree = CallTree::new(Room::new(Size::MOST));
    for (index, line) in text.lines().enumerate() {
        let wrong = |problem: &str| format.wrong(&format_args!("line {}: {problem}", index + 1));
        if line.trim().is_empty() {
            continue;
        }
        let (stack, count) = parts(line).ok_or_else(|| wrong("it is not a stack and a count"))?;
        let mut node = tree.root();
        for name in stack.split(';').map(str::trim).filter(|name| !name.is_empty()) {
            let (name, file, line) = place(name);
            let frame = tree.frame(name, file, line);
            let called = frame.and_then(|frame| tree.call_frame(node, frame));
            node = called.map_err(|error| wrong(&error.to_string()))?;
        }
        tree.add(node, count).map_err(|error| wrong(&error.to_string()))?;
    }
    let meaning = Meaning {
        name: "process_cpu",
        kind: "samples",
        unit: "count",
        ..Meaning::default()
    };
    let profile = ImportedProfile::of_tree(tree, meaning).map_err(|error| format.wrong(&error))?;
    Ok(profile.into_iter().collect())
}

fn parts(line: &str) -> Option<(&str, i64)> {
    let (stack, count) = line.trim_end().rsplit_once([' ', '\t'])?;
    let count = count.parse().ok().filter(|count| *count >= 0)?;
    (!stack.trim().is_empty()).then_some((stack, count))
}

/// Name, file and line of `work (app.py:12)`, as py-spy writes it, and of `work - app.rb:12`, as rbspy does.
fn place(frame: &str) -> (&str, &str, i64) {
    let in_brackets = frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" ("));
    let split = in_brackets.or_else(|| frame.rsplit_once(" - "));
    let found = split.and_then(|(name, place)| {
        let (file, line) = place.rsplit_once(':')?;
        let line = line.parse().ok().filter(|line| *line >= 0)?;
        let is_file = !file.is_empty() && file.contains(['.', '/', '<']);
        is_file.then_some((name, file, line))
    });
    found.unwrap_or((frame, "", 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_line_are_read_behind_a_name() {
        for (frame, expected) in [
            ("work (app.py:12)", ("work", "app.py", 12)),
            ("<module> (lib/app.py:3)", ("<module>", "lib/app.py", 3)),
            ("work - /srv/app.rb:7", ("work", "/srv/app.rb", 7)),
            ("Foo::bar(int, int)", ("Foo::bar(int, int)", "", 0)),
            ("thread (1:2)", ("thread (1:2)", "", 0)),
            ("work - 7", ("work - 7", "", 0)),
        ] {
            assert_eq!(place(frame), expected, "{frame}");
        }
    }
}
