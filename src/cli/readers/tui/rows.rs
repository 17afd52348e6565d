//! The rows of the table: each function with its own value and its total value.
//!
//! A recursive function counts once per stack in its total.

use std::cmp::Reverse;

use crate::cli::readers::tui::graph::{Graph, ROOT};

/// One function of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Index in [`Graph::names`] of the first name that has the function's text.
    pub name: usize,
    pub own: i64,
    pub total: i64,
}

/// Sort order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Own,
    Total,
    Name,
}

impl Order {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Own => Self::Total,
            Self::Total => Self::Name,
            Self::Name => Self::Own,
        }
    }
}

/// Returns the functions of the frames within `root`, sorted.
pub(super) fn rows(graph: &Graph, root: usize, order: Order) -> Vec<Row> {
    let mut values = vec![(0i64, 0i64); graph.names.len()];
    // The search is depth-first, without recursion. For each function, `open` contains the number of its frames on the
    // path from the root.
    let mut open = vec![0usize; graph.names.len()];
    let mut work = vec![(root, true)];
    while let Some((index, is_entering)) = work.pop() {
        let frame = graph.frame(index);
        let name = graph.function(frame.name);
        if !is_entering {
            open[name] -= 1;
            continue;
        }
        let (own, total) = &mut values[name];
        *own = own.saturating_add(frame.own);
        if open[name] == 0 {
            *total = total.saturating_add(frame.total);
        }
        open[name] += 1;
        work.push((index, false));
        work.extend(graph.children(index).map(|child| (child, true)));
    }
    // The root of the graph is not a function.
    if root == ROOT {
        values[graph.function(graph.frame(ROOT).name)] = (0, 0);
    }
    let values = values.into_iter().enumerate();
    let values = values.filter(|(_, values)| *values != (0, 0));
    let mut rows: Vec<Row> = values.map(|(name, (own, total))| Row { name, own, total }).collect();
    sort(&mut rows, graph, order);
    rows
}

pub(super) fn sort(rows: &mut [Row], graph: &Graph, order: Order) {
    let text = |row: &Row| graph.names[row.name].text.as_str();
    rows.sort_by(|left, right| {
        let by_own = Reverse(left.own).cmp(&Reverse(right.own));
        let by_total = Reverse(left.total).cmp(&Reverse(right.total));
        let by_name = text(left).cmp(text(right));
        match order {
            Order::Own => by_own.then(by_total).then(by_name),
            Order::Total => by_total.then(by_own).then(by_name),
            Order::Name => by_name,
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::readers::tui::testing::{frame, graph};

    fn values(graph: &Graph, root: usize, order: Order) -> Vec<(&str, i64, i64)> {
        let rows = rows(graph, root, order);
        let value = |row: &Row| (graph.names[row.name].text.as_str(), row.own, row.total);
        rows.iter().map(value).collect()
    }

    #[test]
    fn a_recursive_function_is_counted_once_a_stack() {
        let graph = graph(&[
            ("main;work;work;leaf", 50),
            ("main;work;leaf", 30),
            ("main", 15),
            ("gc", 5),
        ]);
        let expected = [("leaf", 80, 80), ("main", 15, 95), ("gc", 5, 5), ("work", 0, 80)];
        assert_eq!(values(&graph, ROOT, Order::Own), expected);
        let by_total = values(&graph, ROOT, Order::Total);
        assert_eq!(
            by_total.iter().map(|row| row.0).collect::<Vec<_>>(),
            ["main", "leaf", "work", "gc"]
        );
        let by_name = values(&graph, ROOT, Order::Name);
        assert_eq!(
            by_name.iter().map(|row| row.0).collect::<Vec<_>>(),
            ["gc", "leaf", "main", "work"]
        );
        assert_eq!(Order::Own.next().next().next(), Order::Own);
    }

    #[test]
    fn a_zoomed_frame_has_a_table_of_its_own() {
        let graph = graph(&[("main;work;leaf", 50), ("main;rest", 30), ("total", 7)]);
        let work = frame(&graph, "work");
        assert_eq!(values(&graph, work, Order::Own), [("leaf", 50, 50), ("work", 0, 50)]);
        assert_eq!(values(&graph, ROOT, Order::Own)[2], ("total", 7, 7));
        assert!(
            rows(
                &Graph::of(&alluvium_profile::flamegraph::FlameGraph::default()),
                ROOT,
                Order::Own
            )
            .is_empty()
        );
    }
}
