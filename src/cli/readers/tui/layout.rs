//! Positions of frames on the screen, and their neighbours.
//!
//! In: a graph, the frame that fills the width, and the width. Out: columns. A frame that is narrower than a column is
//! shown only if it is the selected frame or one of the callers of that frame.

use crate::cli::readers::tui::graph::{Graph, ROOT};

/// A frame and its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub frame: usize,
    pub x: u16,
    pub width: u16,
}

/// A step from one frame to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Left,
    Right,
    Up,
    /// To the largest callee of the frame.
    Down,
}

/// Returns `root` and the frames below it, level by level and from left to right. There are at most `levels` levels.
pub(super) fn cells(graph: &Graph, root: usize, selected: usize, columns: u16, levels: usize) -> Vec<Vec<Cell>> {
    // The selected frame and its callers, from the leaf up: one in each level.
    let shown: Vec<usize> = graph.ancestors(selected).collect();
    let mut all: Vec<Vec<Cell>> = Vec::new();
    let mut level = vec![Cell {
        frame: root,
        x: 0,
        width: columns,
    }];
    while !level.is_empty() && all.len() < levels {
        let mut below = Vec::new();
        // End column of the left neighbour.
        let mut end = 0;
        for child in level.iter().flat_map(|cell| graph.children(cell.frame)) {
            let (x, child_end) = span(graph, root, child, columns);
            let x = x.max(end);
            let above = graph.frame(selected).level.checked_sub(graph.frame(child).level);
            let is_forced = above.and_then(|above| shown.get(above)) == Some(&child);
            let child_end = if is_forced {
                child_end.max(x + 1).min(columns)
            } else {
                child_end
            };
            if child_end > x {
                below.push(Cell {
                    frame: child,
                    x,
                    width: child_end - x,
                });
                end = child_end;
            }
        }
        all.push(std::mem::replace(&mut level, below));
    }
    all
}

/// Returns the frame to which a step leads, or `from` if there is no such frame.
pub(super) fn step(graph: &Graph, root: usize, columns: u16, from: usize, step: Step) -> usize {
    let is_wide = |frame: &usize| {
        let (x, end) = span(graph, root, *frame, columns);
        end > x && graph.is_within(root, *frame)
    };
    let level = graph.level(graph.frame(from).level);
    let to = match step {
        Step::Up if from == root => None,
        Step::Up => Some(graph.frame(from).parent),
        Step::Down => largest(graph, graph.children(from)),
        Step::Left => (level.start..from).rev().find(is_wide),
        Step::Right => (from + 1..level.end).find(is_wide),
    };
    to.unwrap_or(from)
}

/// Returns the frame with the largest total; the first of several equal frames.
pub(super) fn largest(graph: &Graph, frames: impl Iterator<Item = usize>) -> Option<usize> {
    frames.reduce(|best, frame| {
        if graph.frame(frame).total > graph.frame(best).total {
            frame
        } else {
            best
        }
    })
}

/// Scrolls a window of `height` lines over `count` lines, as little as possible, so that `line` is visible. `first` is
/// the first visible line before the scroll. Returns the first visible line after the scroll.
pub(super) fn scrolled(first: usize, line: usize, height: usize, count: usize) -> usize {
    let last = count.saturating_sub(height);
    let earliest = (line + 1).saturating_sub(height);
    first.clamp(earliest.min(line), line).min(last.max(earliest.min(line)))
}

/// Returns the start and end columns of a frame.
fn span(graph: &Graph, root: usize, frame: usize, columns: u16) -> (u16, u16) {
    let (root, frame) = (graph.frame(root), graph.frame(frame));
    let total = i128::from(root.total.max(1));
    let column = |x: i64| {
        let x = (i128::from(x) - i128::from(root.x)) * i128::from(columns) / total;
        x.clamp(0, i128::from(columns)) as u16
    };
    (column(frame.x), column(frame.x.saturating_add(frame.total)))
}

/// Returns the frame to select after a zoom to `root`: `selected` if it lies within `root`, otherwise `root`.
pub(super) fn within(graph: &Graph, root: usize, selected: usize) -> usize {
    if selected != ROOT && graph.is_within(root, selected) {
        selected
    } else {
        root
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cli::readers::tui::testing::{frame, graph};

    fn drawn(graph: &Graph, root: usize, selected: usize, columns: u16) -> Vec<Vec<(String, u16, u16)>> {
        let levels = cells(graph, root, selected, columns, usize::MAX);
        let text = |cell: &Cell| (graph.name(cell.frame).text.clone(), cell.x, cell.width);
        levels.iter().map(|level| level.iter().map(text).collect()).collect()
    }

    #[test]
    fn frames_have_columns_by_their_share() {
        let graph = graph(&[("main;work", 30), ("main;rest", 60), ("main", 10)]);
        let cell = |name: &str, x, width| (name.to_owned(), x, width);
        let expected = [
            vec![cell("total", 0, 50)],
            vec![cell("main", 0, 50)],
            vec![cell("rest", 5, 30), cell("work", 35, 15)],
        ];
        assert_eq!(drawn(&graph, ROOT, ROOT, 50), expected);
        let work = frame(&graph, "work");
        assert_eq!(drawn(&graph, work, work, 50), [[cell("work", 0, 50)]]);
        assert_eq!(cells(&graph, ROOT, ROOT, 50, 2).len(), 2);
    }

    #[test]
    fn the_selected_frame_has_a_column_however_narrow_it_is() {
        let graph = graph(&[("a", 500), ("b;c", 1), ("d", 499)]);
        let names = |selected| {
            let levels = drawn(&graph, ROOT, selected, 10);
            levels
                .iter()
                .map(|level| level.iter().map(|cell| cell.0.clone()).collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(ROOT), ["total", "ad"]);
        assert_eq!(names(frame(&graph, "c")), ["total", "abd", "c"]);
    }

    #[test]
    fn steps_lead_to_neighbours_callers_and_the_largest_callee() {
        let graph = graph(&[("a;x", 40), ("a;y", 50), ("b", 1), ("c", 109)]);
        let [a, b, c, x, y] = ["a", "b", "c", "x", "y"].map(|name| frame(&graph, name));
        let to = |from, way| step(&graph, ROOT, 80, from, way);
        assert_eq!([to(a, Step::Down), to(x, Step::Up), to(ROOT, Step::Down)], [y, a, c]);
        // `b` has no column.
        assert_eq!([to(a, Step::Right), to(c, Step::Left), to(y, Step::Left)], [c, a, x]);
        assert_eq!(
            [to(ROOT, Step::Up), to(c, Step::Down), to(c, Step::Right)],
            [ROOT, c, c]
        );
        assert_eq!(step(&graph, a, 80, a, Step::Up), a);
        assert_eq!(step(&graph, a, 80, a, Step::Right), a);
        assert_eq!(to(b, Step::Right), c);
        assert_eq!(
            [within(&graph, a, x), within(&graph, a, c), within(&graph, a, ROOT)],
            [x, a, a]
        );
    }

    #[test]
    fn a_window_moves_no_more_than_it_must() {
        for (first, line, height, count, expected) in [
            (0, 0, 10, 100, 0),
            (0, 9, 10, 100, 0),
            (0, 10, 10, 100, 1),
            (50, 40, 10, 100, 40),
            (95, 99, 10, 100, 90),
            (7, 2, 10, 5, 0),
            (0, 0, 0, 0, 0),
        ] {
            assert_eq!(
                scrolled(first, line, height, count),
                expected,
                "{first} {line} {height} {count}"
            );
        }
    }

    proptest! {
        #[test]
        fn frames_neither_overlap_nor_leave_the_screen(
            stacks in prop::collection::vec((prop::collection::vec("[a-d]", 1..5), 1i64..1000), 1..40),
            columns in 1u16..200,
            chosen in any::<prop::sample::Index>(),
        ) {
            let stacks: Vec<(String, i64)> =
                stacks.into_iter().map(|(names, value)| (names.join(";"), value)).collect();
            let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(stack, value)| (stack.as_str(), *value)).collect();
            let graph = graph(&borrowed);
            let selected = chosen.index(graph.len());
            let levels = cells(&graph, ROOT, selected, columns, usize::MAX);
            for level in &levels {
                for pair in level.windows(2) {
                    prop_assert!(pair[0].x + pair[0].width <= pair[1].x);
                }
                prop_assert!(level.iter().all(|cell| cell.width > 0 && cell.x + cell.width <= columns));
            }
            prop_assert!(levels.iter().flatten().any(|cell| cell.frame == selected));
            for way in [Step::Left, Step::Right, Step::Up, Step::Down] {
                prop_assert!(step(&graph, ROOT, columns, selected, way) < graph.len());
            }
        }
    }
}
