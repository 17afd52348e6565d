//! Call graphs: the functions of a tree of stacks, and the calls between them.
//!
//! In: a [`Tree`]. Out: a [`CallGraph`] of its largest functions. A function that occurs several times in a stack
//! (recursion) is counted once for the stack, and so is a call. If the functions between two shown functions are
//! omitted, an indirect call connects the two shown functions. A function that calls itself has no edge for this call.

use std::cmp::Reverse;

use hashbrown::HashMap;

use crate::flamegraph::tree::Tree;

/// Functions and calls between them, in an order that depends only on the stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallGraph {
    /// The functions with the largest totals, largest first. Functions with equal totals are sorted by name.
    pub functions: Vec<CalledFunction>,
    /// The calls, sorted by caller and then by callee.
    pub calls: Vec<FunctionCall>,
    /// Sum of the values of all stacks.
    pub total: i64,
    /// Number of functions with a total other than 0, including functions that are not in `functions`.
    pub function_count: usize,
}

/// A function, with its values over all stacks that contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledFunction {
    /// Readable name of the function.
    pub name: String,
    /// Value of the stacks that have this function as their leaf.
    pub own: i64,
    /// Value of the stacks that contain this function.
    pub total: i64,
}

/// A call between two functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCall {
    /// Index of the caller in [`CallGraph::functions`].
    pub caller: usize,
    /// Index of the called function.
    pub callee: usize,
    /// Value of the stacks that contain the call.
    pub value: i64,
    /// True if other functions lie between caller and callee in every stack.
    pub is_indirect: bool,
}

/// A step of the walk over the tree.
enum Step {
    Enter(u32),
    Leave(u32),
}

/// A function on the path from the root to the current node.
struct Ancestor {
    function: usize,
    /// Depth of the function's node: the number of nodes between the root and the node.
    depth: usize,
    /// The call that reached the function, as an index into the calls.
    call: Option<usize>,
}

impl Tree {
    /// Returns the graph of the `max_functions` functions with the largest totals (0: all).
    pub fn call_graph(&self, max_functions: usize) -> CallGraph {
        let all = self.sums_of_functions();
        let mut order: Vec<u32> = (1..all.len() as u32)
            .filter(|frame| all[*frame as usize].1 != 0)
            .collect();
        order.sort_unstable_by_key(|frame| {
            let texts = self.frame(*frame);
            let (_, total) = all[*frame as usize];
            (Reverse(total), &texts.function, &texts.file, &texts.mapping)
        });
        let function_count = order.len();
        if max_functions > 0 {
            order.truncate(max_functions);
        }
        let mut shown = vec![None; all.len()];
        let mut functions = Vec::with_capacity(order.len());
        for frame in order {
            let (own, total) = all[frame as usize];
            shown[frame as usize] = Some(functions.len());
            functions.push(CalledFunction {
                name: self.frame(frame).function.to_string(),
                own,
                total,
            });
        }
        CallGraph {
            calls: self.calls_between(&shown),
            functions,
            total: self.total(),
            function_count,
        }
    }

    /// Returns own value and total of each frame.
    fn sums_of_functions(&self) -> Vec<(i64, i64)> {
        let mut sums = vec![(0i64, 0i64); self.frame_count()];
        let mut depths = vec![0u32; self.frame_count()];
        self.walk(|step| match step {
            Step::Enter(node) => {
                let node = &self.nodes[node as usize];
                let (frame, sum) = (node.frame as usize, &mut sums[node.frame as usize]);
                sum.0 = sum.0.saturating_add(node.own);
                if depths[frame] == 0 {
                    sum.1 = sum.1.saturating_add(node.total);
                }
                depths[frame] += 1;
            }
            Step::Leave(node) => depths[self.nodes[node as usize].frame as usize] -= 1,
        });
        sums
    }

    /// Returns the calls between the shown frames. `shown` maps each frame to its index among the shown functions.
    fn calls_between(&self, shown: &[Option<usize>]) -> Vec<FunctionCall> {
        let mut calls: Vec<FunctionCall> = Vec::new();
        // Number of times that each call occurs in the current stack.
        let mut in_stack: Vec<u32> = Vec::new();
        let mut known: HashMap<(usize, usize), usize> = HashMap::new();
        let mut path: Vec<Ancestor> = Vec::new();
        let mut depth = 0;
        self.walk(|step| match step {
            Step::Enter(node) => {
                let node = &self.nodes[node as usize];
                if let Some(function) = shown[node.frame as usize] {
                    let caller = path.last().filter(|ancestor| ancestor.function != function);
                    let call = caller.map(|ancestor| {
                        let (caller, is_indirect) = (ancestor.function, ancestor.depth + 1 != depth);
                        let call = *known.entry((caller, function)).or_insert_with(|| {
                            calls.push(FunctionCall {
                                caller,
                                callee: function,
                                value: 0,
                                is_indirect,
                            });
                            in_stack.push(0);
                            calls.len() - 1
                        });
                        calls[call].is_indirect &= is_indirect;
                        if in_stack[call] == 0 {
                            calls[call].value = calls[call].value.saturating_add(node.total);
                        }
                        in_stack[call] += 1;
                        call
                    });
                    path.push(Ancestor { function, depth, call });
                }
                depth += 1;
            }
            Step::Leave(node) => {
                depth -= 1;
                if shown[self.nodes[node as usize].frame as usize].is_some()
                    && let Some(Ancestor { call: Some(call), .. }) = path.pop()
                {
                    in_stack[call] -= 1;
                }
            }
        });
        calls.sort_unstable_by_key(|call| (call.caller, call.callee));
        calls
    }

    /// Visits all nodes except the root. Each node is entered after its parent, and left after its children.
    fn walk(&self, mut visit: impl FnMut(Step)) {
        let mut steps: Vec<Step> = self.children(0).map(Step::Enter).collect();
        while let Some(step) = steps.pop() {
            if let Step::Enter(node) = step {
                steps.push(Step::Leave(node));
                steps.extend(self.children(node).map(Step::Enter));
            }
            visit(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flamegraph::FrameRef;
    use crate::flamegraph::testing::tree;

    /// Formats each function as `name own total`.
    fn functions(graph: &CallGraph) -> Vec<String> {
        let text = |function: &CalledFunction| format!("{} {} {}", function.name, function.own, function.total);
        graph.functions.iter().map(text).collect()
    }

    /// Formats each call as `caller>callee value`, with two arrows if it is indirect.
    fn calls(graph: &CallGraph) -> Vec<String> {
        let text = |call: &FunctionCall| {
            let [caller, callee] = [call.caller, call.callee].map(|index| &graph.functions[index].name);
            let arrow = if call.is_indirect { ">>" } else { ">" };
            format!("{caller}{arrow}{callee} {}", call.value)
        };
        graph.calls.iter().map(text).collect()
    }

    #[test]
    fn functions_of_all_stacks_are_put_together() {
        let graph = tree(&[("main;a;work", 3), ("main;b;work", 4), ("main", 1), ("", 2)]).call_graph(0);
        assert_eq!(functions(&graph), ["main 1 8", "work 7 7", "b 0 4", "a 0 3"]);
        assert_eq!(calls(&graph), ["main>b 4", "main>a 3", "b>work 4", "a>work 3"]);
        assert_eq!((graph.total, graph.function_count), (10, 4));
    }

    #[test]
    fn recursion_counts_once_for_a_stack() {
        let graph = tree(&[("f;f;f;g", 5), ("f;g;f;g", 2), ("f", 1)]).call_graph(0);
        assert_eq!(functions(&graph), ["f 1 8", "g 7 7"]);
        // The graph has no edge from `f` to itself. In the second stack `f` calls `g` twice, which counts once.
        assert_eq!(calls(&graph), ["f>g 7", "g>f 2"]);
    }

    #[test]
    fn what_is_left_of_a_limit_is_tied_together() {
        let stacks = [
            ("main;small;big", 5),
            ("main;tiny;big", 4),
            ("main;big", 1),
            ("main;rest", 2),
        ];
        let graph = tree(&stacks).call_graph(2);
        assert_eq!(functions(&graph), ["main 0 12", "big 10 10"]);
        // The call is direct in one of the stacks.
        assert_eq!(calls(&graph), ["main>big 10"]);
        assert_eq!(graph.function_count, 5);
        let indirect = tree(&[("main;small;big", 5), ("big", 9)]).call_graph(2);
        assert_eq!(calls(&indirect), ["main>>big 5"]);
    }

    #[test]
    fn equal_functions_are_chosen_by_name() {
        let graph = tree(&[("c", 1), ("a", 1), ("b", 1)]).call_graph(2);
        assert_eq!(functions(&graph), ["a 1 1", "b 1 1"]);
    }

    #[test]
    fn a_stack_of_a_hundred_thousand_frames_is_no_problem() {
        let mut tree = Tree::by_name();
        let names = ["even", "odd"].map(|function| FrameRef {
            function,
            ..FrameRef::default()
        });
        tree.insert((0..100_000).map(|index| names[index % 2]), 1);
        assert_eq!(calls(&tree.call_graph(0)), ["even>odd 1", "odd>even 1"]);
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_stacks_one_by_one(
            stacks in prop::collection::vec((prop::collection::vec("[a-d]", 0..7), 1i64..100), 0..40)
        ) {
            let texts: Vec<(String, i64)> = stacks.iter().map(|(names, value)| (names.join(";"), *value)).collect();
            let borrowed: Vec<(&str, i64)> = texts.iter().map(|(stack, value)| (stack.as_str(), *value)).collect();
            let graph = tree(&borrowed).call_graph(0);
            for function in &graph.functions {
                let name = &function.name;
                let matching = stacks.iter().filter(|(names, _)| names.contains(name));
                prop_assert_eq!(function.total, matching.map(|(_, value)| value).sum::<i64>());
                let leaf_stacks = stacks.iter().filter(|(names, _)| names.last() == Some(name));
                prop_assert_eq!(function.own, leaf_stacks.map(|(_, value)| value).sum::<i64>());
            }
            for call in &graph.calls {
                let pair = [call.caller, call.callee].map(|index| graph.functions[index].name.clone());
                let matching = stacks.iter().filter(|(names, _)| names.windows(2).any(|names| *names == pair));
                prop_assert_eq!(call.value, matching.map(|(_, value)| value).sum::<i64>());
                prop_assert!(!call.is_indirect);
            }
        }
    }
}
