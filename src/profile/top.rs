//! The table of functions ordered by self value, like `go tool pprof -top`. Its columns are the flat value, its share,
//! the running sum of shares, the cumulative value, and its share.
//!
//! The cumulative value of a function counts each stack once, even if the stack contains the function several times.
//! Rows are built from a tree. They are exact if the tree was built without a limit on its nodes.

use std::fmt::Write;

use crate::flamegraph::Tree;
use crate::format;

/// A function with its flat and cumulative value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// Name of the function, as in stacks.
    pub name: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Value of the function itself.
    pub flat: i64,
    /// Value of all stacks that contain the function.
    pub cum: i64,
}

/// All functions, sorted by flat value (largest first), then cumulative value, then name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopTable {
    /// The rows, largest flat value first.
    pub rows: Vec<TopRow>,
    /// Sum of the values of all stacks.
    pub total: i64,
}

/// A node of a tree: index of the name, values, and index of the parent (smaller than the index of the node).
struct Node {
    name: usize,
    parent: usize,
    total: i64,
    own: i64,
}

/// Parent index of the root, which has no parent.
const NONE: usize = usize::MAX;

impl TopTable {
    /// Builds the table from merged stacks.
    pub fn from_tree(tree: &Tree) -> Self {
        let nodes = tree
            .raw_nodes()
            .map(|(frame, parent, total, own)| Node {
                name: frame as usize,
                parent: parent.map_or(NONE, |parent| parent as usize),
                total,
                own,
            })
            .collect();
        Self::new(nodes, tree.total(), tree.raw_frames().collect())
    }

    fn new(nodes: Vec<Node>, total: i64, names: Vec<(&str, &str)>) -> Self {
        let mut rows: Vec<TopRow> = names
            .into_iter()
            .map(|(name, file)| TopRow {
                name: name.to_owned(),
                file: file.to_owned(),
                flat: 0,
                cum: 0,
            })
            .collect();
        let mut children: Vec<Vec<usize>> = nodes.iter().map(|_| Vec::new()).collect();
        for (index, node) in nodes.iter().enumerate() {
            if let Some(list) = children.get_mut(node.parent) {
                list.push(index);
            }
        }
        // Depth first without recursion. `open` contains the number of times that each function is on the current path.
        let mut open = vec![0usize; rows.len()];
        let mut work: Vec<(usize, bool)> = if nodes.is_empty() { Vec::new() } else { vec![(0, true)] };
        while let Some((index, entering)) = work.pop() {
            let node = &nodes[index];
            if !entering {
                open[node.name] -= 1;
                continue;
            }
            let row = &mut rows[node.name];
            row.flat = row.flat.saturating_add(node.own);
            if open[node.name] == 0 {
                row.cum = row.cum.saturating_add(node.total);
            }
            open[node.name] += 1;
            work.push((index, false));
            work.extend(children[index].iter().map(|child| (*child, true)));
        }
        // The root is not a function.
        if !rows.is_empty() {
            rows.remove(0);
        }
        rows.retain(|row| row.cum != 0 || row.flat != 0);
        rows.sort_by(|left, right| (right.flat, right.cum, &left.name).cmp(&(left.flat, left.cum, &right.name)));
        Self { rows, total }
    }

    /// Sorts by the cumulative value instead of the flat value.
    pub fn sort_by_cum(&mut self) {
        self.rows
            .sort_by(|left, right| (right.cum, right.flat, &left.name).cmp(&(left.cum, left.flat, &right.name)));
    }

    /// Formats the first `count` rows as text, with values of `unit`.
    pub fn render(&self, count: usize, unit: &str) -> String {
        let shown = &self.rows[..count.min(self.rows.len())];
        let flat: i64 = shown.iter().fold(0, |sum, row| sum.saturating_add(row.flat));
        let mut out = format!(
            "Showing nodes accounting for {}, {} of {} total\n",
            format::value(flat, unit),
            format::share(flat, self.total),
            format::value(self.total, unit),
        );
        if shown.len() < self.rows.len() {
            let _ = writeln!(out, "Showing top {} nodes out of {}", shown.len(), self.rows.len());
        }
        let mut lines = vec![["flat", "flat%", "sum%", "cum", "cum%"].map(str::to_owned)];
        let mut sum = 0i64;
        for row in shown {
            sum = sum.saturating_add(row.flat);
            lines.push([
                format::value(row.flat, unit),
                format::share(row.flat, self.total),
                format::share(sum, self.total),
                format::value(row.cum, unit),
                format::share(row.cum, self.total),
            ]);
        }
        let widths: Vec<usize> = (0..5)
            .map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0).max(7))
            .collect();
        for (index, line) in lines.iter().enumerate() {
            for (cell, width) in line.iter().zip(&widths) {
                let _ = write!(out, "{cell:>width$} ");
            }
            out.push(' ');
            out.push_str(index.checked_sub(1).map_or("", |row| &shown[row].name));
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flamegraph::FrameRef;

    fn tree() -> Tree {
        let mut tree = Tree::by_name();
        for (stack, value) in [
            ("main;work;work;leaf", 50),
            ("main;work;leaf", 30),
            ("main", 15),
            ("gc", 5),
        ] {
            let frame = |function| FrameRef {
                function,
                ..FrameRef::default()
            };
            tree.insert(stack.rsplit(';').map(frame), value);
        }
        tree
    }

    #[test]
    fn a_recursive_function_is_counted_once_a_stack() {
        let tree = tree();
        let table = TopTable::from_tree(&tree);
        let rows: Vec<(&str, i64, i64)> = table
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.flat, row.cum))
            .collect();
        assert_eq!(
            rows,
            [("leaf", 80, 80), ("main", 15, 95), ("gc", 5, 5), ("work", 0, 80)]
        );
    }

    #[test]
    fn the_table_is_printed_as_pprof_prints_it() {
        let mut table = TopTable::from_tree(&tree());
        table.sort_by_cum();
        let expected = "\
Showing nodes accounting for 15, 15.00% of 100 total
Showing top 2 nodes out of 4
   flat   flat%    sum%     cum    cum%
     15  15.00%  15.00%      95  95.00%  main
      0   0.00%  15.00%      80  80.00%  work
";
        table.rows.retain(|row| row.name != "leaf");
        table.rows.push(table.rows[0].clone());
        assert_eq!(table.render(2, "count"), expected);
    }
}
