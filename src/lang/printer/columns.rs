//! Elastic tab stops: cells of adjacent lines get a common width.
//!
//! The output of `fmt` must be the same as in Alloy. Therefore the algorithm and its corner cases follow Go's
//! `text/tabwriter` as Alloy configures it: cell padding of one space, indentation by tabs of width eight, columns
//! without text vanish. A column is a run of lines that have a cell at its position; the last cell of a line belongs to
//! no column. Trailing white space is removed at the end, except inside strings and comments.

use super::emitter::{ESCAPE, VERBATIM};

const PADDING: usize = 1;
const TAB_WIDTH: usize = 8;

#[derive(Default)]
struct Cell {
    bytes: Vec<u8>,
    /// Width of the cell in characters.
    width: usize,
    /// True if a tab ends the cell: the column stays even when it is empty.
    ends_with_tab: bool,
}

#[derive(Default)]
struct Layout {
    /// Lines that are aligned with each other (a run). The last line is incomplete.
    lines: Vec<Vec<Cell>>,
    cell: Cell,
    /// Widths of the columns to the left of the current one.
    widths: Vec<usize>,
    output: Vec<u8>,
}

/// Aligns the output of an emitter.
pub(crate) fn align(input: &[u8]) -> String {
    let mut layout = Layout {
        lines: vec![Vec::new()],
        ..Layout::default()
    };
    let mut bracket = None;
    for byte in input {
        match (bracket, *byte) {
            (Some(open), byte) if byte == open => {
                layout.cell.bytes.push(byte);
                bracket = None;
            }
            (Some(VERBATIM), b'\n') => {
                // The string continues on the next line. A marker ends it here and another begins it again, so that
                // `trim` finds a pair of markers in each line.
                layout.cell.bytes.push(VERBATIM);
                layout.end_line();
                layout.cell.bytes.push(VERBATIM);
            }
            (Some(_), byte) => layout.push(byte),
            (None, ESCAPE | VERBATIM) => {
                layout.cell.bytes.push(*byte);
                bracket = Some(*byte);
            }
            (None, b'\t') => {
                layout.cell.ends_with_tab = true;
                layout.end_cell();
            }
            (None, b'\x0b') => layout.end_cell(),
            (None, b'\n') => layout.end_line(),
            (None, b'\x0c') => layout.end_run(),
            (None, byte) => layout.push(byte),
        }
    }
    layout.flush();
    trim(&layout.output)
}

impl Layout {
    fn push(&mut self, byte: u8) {
        self.cell.bytes.push(byte);
        // Characters are counted by their first byte.
        self.cell.width += usize::from(byte & 0xc0 != 0x80);
    }

    fn end_cell(&mut self) {
        let cell = std::mem::take(&mut self.cell);
        if let Some(line) = self.lines.last_mut() {
            line.push(cell);
        }
    }

    /// Ends a line. A line of one cell does not influence the following lines, so it also ends the run.
    fn end_line(&mut self) {
        self.end_cell();
        let is_single = self.lines.last().is_some_and(|line| line.len() == 1);
        self.lines.push(Vec::new());
        if is_single {
            self.flush();
        }
    }

    /// Ends a line and the run.
    fn end_run(&mut self) {
        self.end_cell();
        self.lines.push(Vec::new());
        self.flush();
    }

    fn flush(&mut self) {
        if !self.cell.bytes.is_empty() {
            self.end_cell();
        }
        let lines = std::mem::take(&mut self.lines);
        self.format(&lines, 0, lines.len());
        self.lines.push(Vec::new());
    }

    /// Prints the lines `start..end`, whose columns to the left have the widths in `self.widths`.
    fn format(&mut self, lines: &[Vec<Cell>], mut start: usize, end: usize) {
        let column = self.widths.len();
        let in_column = |line: &Vec<Cell>| column + 1 < line.len();
        let mut current = start;
        while current < end {
            if !in_column(&lines[current]) {
                current += 1;
                continue;
            }
            self.print(lines, start, current);
            start = current;
            let mut width = 0;
            let mut empty = true;
            while current < end && in_column(&lines[current]) {
                let cell = &lines[current][column];
                width = width.max(cell.width + PADDING);
                empty &= cell.width == 0 && !cell.ends_with_tab;
                current += 1;
            }
            self.widths.push(if empty { 0 } else { width });
            self.format(lines, start, current);
            self.widths.pop();
            start = current;
        }
        self.print(lines, start, end);
    }

    fn print(&mut self, lines: &[Vec<Cell>], start: usize, end: usize) {
        for (index, line) in lines.iter().enumerate().take(end).skip(start) {
            let mut leading = true;
            for (column, cell) in line.iter().enumerate() {
                leading &= cell.bytes.is_empty();
                self.output.extend_from_slice(&cell.bytes);
                let Some(width) = self.widths.get(column) else { continue };
                if leading {
                    // Padding before the first text of a line is the indentation, which uses tabs.
                    let tabs = width.div_ceil(TAB_WIDTH);
                    self.output.extend(std::iter::repeat_n(b'\t', tabs));
                } else {
                    let blanks = width.saturating_sub(cell.width);
                    self.output.extend(std::iter::repeat_n(b' ', blanks));
                }
            }
            if index + 1 < lines.len() {
                self.output.push(b'\n');
            }
        }
    }
}

/// Removes the bytes `ESCAPE` and `VERBATIM`, which enclose comments and strings, and the trailing blanks outside of
/// comments and strings.
fn trim(aligned: &[u8]) -> String {
    let mut output: Vec<u8> = Vec::with_capacity(aligned.len());
    let mut blanks: Vec<u8> = Vec::new();
    let mut bracket = None;
    for byte in aligned {
        match (bracket, *byte) {
            (Some(open), byte) if byte == open => bracket = None,
            // Text between markers stays unchanged. A newline in a string is not between markers, see `align`.
            (Some(_), byte) => output.push(byte),
            (None, b' ' | b'\t') => blanks.push(*byte),
            (None, b'\n') => {
                blanks.clear();
                output.push(b'\n');
            }
            (None, byte) => {
                output.append(&mut blanks);
                if matches!(byte, ESCAPE | VERBATIM) {
                    bracket = Some(byte);
                } else {
                    output.push(byte);
                }
            }
        }
    }
    String::from_utf8_lossy(&output).into_owned()
}
