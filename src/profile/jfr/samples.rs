//! Sums of the samples of all chunks: values by kind, stack and labels.
//!
//! Functions, and functions with a line, are stored once for the whole recording, even if chunks assign different
//! numbers to them. A stack that occurs in several chunks is stored once for each of them.

use std::ops::Range;

use hashbrown::HashMap;

use crate::jfr::budget::Budget;
use crate::jfr::error::JfrErrorKind;
use crate::jfr::kinds::Kind;
use crate::jfr::texts::{TextId, Texts};

/// The context of a sample: numbers that the recorder stored with the stack, 0 if absent. Some of them refer to the
/// snapshot of labels that came with the recording (`snapshot`).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Correlation {
    /// Number of a label set of the snapshot.
    pub context: u64,
    /// Id of the span that was running.
    pub span: u64,
    /// Name of the span, as the number of a string in the snapshot.
    pub span_name: u64,
    /// The two halves of the trace's id.
    pub trace: [u64; 2],
}

/// A function and a line in the function. The line is 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FunctionLine {
    pub function: TextId,
    pub line: u32,
}

/// The sum of equal samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub kind: Kind,
    /// Index in the list of stacks.
    pub stack: u32,
    /// Index of the correlation of the samples.
    pub correlation: u32,
    pub values: [i64; 2],
}

/// Sums of a recording that is being read.
#[derive(Default)]
pub(super) struct Samples {
    pub texts: Texts,
    pub function_lines: Vec<FunctionLine>,
    function_line_index: HashMap<FunctionLine, u32>,
    /// The frames of all stacks, leaf first, as indices in `function_lines`.
    pub frames: Vec<u32>,
    /// For each stack its range in `frames`.
    pub stacks: Vec<Range<u32>>,
    pub correlations: Vec<Correlation>,
    correlation_index: HashMap<Correlation, u32>,
    pub rows: Vec<Row>,
    row_index: HashMap<(Kind, u32, u32), u32>,
}

/// Memory of an item in a list and of its entry in an index, in bytes. Counted twice, because a list that grows doubles
/// its capacity.
const fn entry_bytes<Item, Key>() -> usize {
    2 * (size_of::<Item>() + size_of::<(Key, u32)>() + 1)
}

impl Samples {
    /// Frees the indices that are only needed for adding.
    pub(super) fn forget_indices(&mut self) {
        self.function_line_index = HashMap::new();
        self.correlation_index = HashMap::new();
        self.row_index = HashMap::new();
    }

    /// Returns the index of a function with a line. Adds it if it is new.
    pub(super) fn function_line(
        &mut self,
        function_line: FunctionLine,
        budget: &mut Budget,
    ) -> Result<u32, JfrErrorKind> {
        if let Some(known) = self.function_line_index.get(&function_line) {
            return Ok(*known);
        }
        budget.charge(entry_bytes::<FunctionLine, FunctionLine>())?;
        let index = self.function_lines.len() as u32;
        self.function_lines.push(function_line);
        self.function_line_index.insert(function_line, index);
        Ok(index)
    }

    /// Appends a frame to the current stack.
    pub(super) fn push_frame(&mut self, function_line: u32, budget: &mut Budget) -> Result<(), JfrErrorKind> {
        budget.charge(2 * size_of::<u32>())?;
        self.frames.push(function_line);
        Ok(())
    }

    /// Adds the stack that consists of all frames from index `start` on, and returns its index.
    pub(super) fn stack(&mut self, start: usize, budget: &mut Budget) -> Result<u32, JfrErrorKind> {
        budget.charge(2 * size_of::<Range<u32>>())?;
        let index = self.stacks.len() as u32;
        self.stacks.push(start as u32..self.frames.len() as u32);
        Ok(index)
    }

    /// Adds values to the sum of a kind, a stack and a correlation.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        stack: u32,
        correlation: Correlation,
        values: [i64; 2],
        budget: &mut Budget,
    ) -> Result<(), JfrErrorKind> {
        let correlation = self.correlation(correlation, budget)?;
        let key = (kind, stack, correlation);
        if let Some(row) = self
            .row_index
            .get(&key)
            .and_then(|row| self.rows.get_mut(*row as usize))
        {
            for (sum, value) in row.values.iter_mut().zip(values) {
                *sum = sum.saturating_add(value);
            }
            return Ok(());
        }
        budget.charge(entry_bytes::<Row, (Kind, u32, u32)>())?;
        self.row_index.insert(key, self.rows.len() as u32);
        self.rows.push(Row {
            kind,
            stack,
            correlation,
            values,
        });
        Ok(())
    }

    fn correlation(&mut self, correlation: Correlation, budget: &mut Budget) -> Result<u32, JfrErrorKind> {
        if let Some(known) = self.correlation_index.get(&correlation) {
            return Ok(*known);
        }
        budget.charge(entry_bytes::<Correlation, Correlation>())?;
        let index = self.correlations.len() as u32;
        self.correlations.push(correlation);
        self.correlation_index.insert(correlation, index);
        Ok(index)
    }
}
