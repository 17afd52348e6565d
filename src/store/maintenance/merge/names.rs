//! Merges the stacks of many files, and writes each stack once.
//!
//! In memory, distinct frames have numbers and a stack is a list of these numbers, so hundreds of thousands of stacks
//! take some tens of megabytes. Stacks are written in the order of their paths from the root, so that neighbours share
//! most of their frames and the file compresses well. If memory cannot hold all stacks, the merge reads its inputs once
//! for each [`Piece`].

use arrow::array::{AsArray, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use hashbrown::HashMap;

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::schema;
use crate::store::common::schema::column::{FRAMES, STACK};
use crate::store::common::schema::{PARTITION_COLUMNS, StartLines, Table};
use crate::store::flush::files::{Effort, Output, Target};
use crate::store::head::rows::{Shared, StackRows};
use crate::store::head::{Frame, Frames, TextId, Texts};
use crate::store::maintenance::merge::input::Input;
use crate::store::tables::delta::NewFile;
use crate::store::tables::stats::{FileStats, extend};
use alluvium_profile::StackId;

/// Number of frames in an output batch.
const BATCH_FRAMES: usize = 32 << 10;
/// Maximum number of times that a piece is halved.
const MAX_HALVINGS: u32 = 10;

/// The stacks whose ids begin with the same bits. Ids are hashes, so two pieces with the same number of bits contain
/// about the same number of stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Number of leading bits of an id that are compared with `value`.
    bits: u32,
    value: u64,
}

impl Piece {
    /// Returns true if the piece contains all stacks.
    pub(crate) fn is_all(self) -> bool {
        self.bits == 0
    }

    /// Returns the first half of the piece; `None` if the piece is too small to halve.
    pub(crate) fn half(self) -> Option<Self> {
        (self.bits < MAX_HALVINGS).then_some(Self {
            bits: self.bits + 1,
            value: self.value * 2,
        })
    }

    /// Returns the next piece of the same size; `None` after the last piece.
    pub(crate) fn next(self) -> Option<Self> {
        let value = self.value + 1;
        (value < 1 << self.bits).then_some(Self { value, ..self })
    }

    fn has(self, id: StackId) -> bool {
        self.bits == 0 || (id.0 as u64) >> (u64::BITS - self.bits) == self.value
    }
}

/// The reason why the stacks of a batch cannot be read.
#[derive(Debug, thiserror::Error)]
enum StacksError {
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    #[error("the frames are not a struct")]
    NotAStruct,
    /// A column is missing or has another type.
    #[error("the frames have no column `{0}` of the type that the layout requires")]
    Column(&'static str),
}

pub(crate) struct StackSet {
    piece: Piece,
    texts: Texts,
    frames: Frames,
    /// Id of each stack, with the start and the end of its frames in `paths`.
    stacks: Vec<(StackId, u32, u32)>,
    /// For each stack, its index in `stacks`, and whether the start lines of its functions are known.
    known: HashMap<StackId, (u32, bool)>,
    paths: Vec<u32>,
}

impl StackSet {
    /// Creates an empty set for the stacks of a piece.
    pub(crate) fn new(piece: Piece) -> Self {
        Self {
            piece,
            texts: Texts::default(),
            frames: Frames::default(),
            stacks: Vec::new(),
            known: HashMap::new(),
            paths: Vec::new(),
        }
    }

    /// Adds all stacks of a file that are in the piece. `go_on` is called after each batch with the memory in use, in
    /// bytes. If it returns false, reading ends, and the function returns false.
    pub(crate) fn read(
        &mut self,
        input: &mut Input,
        go_on: &mut dyn FnMut(usize) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        while let Some(batch) = input.next()? {
            self.insert(&batch).map_err(|error| input.failed(&error))?;
            if !go_on(self.bytes())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Estimates the memory held, including the memory for sorting, in bytes.
    fn bytes(&self) -> usize {
        self.texts.bytes()
            + self.frames.bytes()
            + self.frames.len() * 8
            + self.stacks.capacity() * size_of::<(StackId, u32, u32)>()
            + self.known.capacity() * 17
            + self.paths.capacity() * 4
    }

    fn insert(&mut self, batch: &RecordBatch) -> Result<(), StacksError> {
        let ids = schema::integers(batch, STACK)?;
        let lists = schema::lists(batch, FRAMES)?;
        let start_lines = StartLines::of(batch)?;
        let frames = lists.values().as_struct_opt().ok_or(StacksError::NotAStruct)?;
        let text = |name: &'static str| -> Result<&StringArray, StacksError> {
            let column = frames
                .column_by_name(name)
                .and_then(|column| column.as_string_opt::<i32>());
            column.ok_or(StacksError::Column(name))
        };
        let number = |name: &'static str| -> Result<&Int64Array, StacksError> {
            let column = frames
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Int64Type>());
            column.ok_or(StacksError::Column(name))
        };
        let texts = [text("function")?, text("file")?, text("mapping")?, text("build_id")?];
        let (line, address) = (number("line")?, number("address")?);
        let inlined: &BooleanArray = frames
            .column_by_name("inlined")
            .and_then(|column| column.as_boolean_opt())
            .ok_or(StacksError::Column("inlined"))?;
        let offsets = lists.value_offsets();
        let ids = ids.iter().map(|id| StackId(*id)).enumerate();
        for (row, id) in ids.filter(|(_, id)| self.piece.has(*id)) {
            let start_lines = start_lines.row(row);
            let has_start_lines = !start_lines.is_empty();
            let known = self.known.get(&id).copied();
            if known.is_some_and(|(_, has_known_lines)| has_known_lines || !has_start_lines) {
                continue;
            }
            let start = self.paths.len() as u32;
            for (depth, position) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
                let [function, file, mapping, build_id] = texts.map(|column| self.texts.insert(column.value(position)));
                self.paths.push(self.frames.insert(Frame {
                    function,
                    file,
                    line: line.value(position),
                    mapping,
                    build_id,
                    address: address.value(position) as u64,
                    inlined: inlined.value(position),
                    start_line: start_lines.get(depth).copied().unwrap_or(0),
                }));
            }
            let stack = (id, start, self.paths.len() as u32);
            let index = if let Some((index, _)) = known {
                self.stacks[index as usize] = stack;
                index
            } else {
                self.stacks.push(stack);
                self.stacks.len() as u32 - 1
            };
            self.known.insert(id, (index, has_start_lines));
        }
        Ok(())
    }

    /// Writes the stacks to a file. Returns `None` if there are no stacks.
    pub(crate) fn write(
        mut self,
        target: Target<'_>,
        name: &str,
        effort: Effort,
        faults: &Faults,
    ) -> Result<Option<NewFile>, StoreError> {
        if self.stacks.is_empty() {
            return Ok(None);
        }
        let ranks = self.ranks();
        let paths = &self.paths;
        self.stacks.sort_unstable_by(|left, right| {
            let path = |stack: &(StackId, u32, u32)| {
                let frames = &paths[stack.1 as usize..stack.2 as usize];
                frames.iter().rev().map(|frame| ranks[*frame as usize])
            };
            path(left).cmp(path(right)).then(left.0.cmp(&right.0))
        });
        let mut output = Output::create(target, name, effort, faults)?;
        let columns: Vec<usize> = (PARTITION_COLUMNS..Table::Stacks.schema().fields().len()).collect();
        let shared = Shared {
            tenant: target.tenant,
            day: target.day,
            texts: self.texts.shared(),
            projection: Some(&columns),
        };
        let mut stats = FileStats {
            rows: self.stacks.len() as u64,
            ..FileStats::default()
        };
        let mut rows = StackRows::default();
        let failed = |path: &std::path::Path, error: ArrowError| StoreError::Parquet {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        for (id, start, end) in &self.stacks {
            let frames = &self.paths[*start as usize..*end as usize];
            rows.push(
                *id,
                frames.iter().map(|frame| self.frames.get(*frame)),
                self.texts.shared(),
            );
            extend(&mut stats.stack, [*id]);
            if rows.is_full(BATCH_FRAMES) {
                let batch = rows.take(shared).map_err(|error| failed(output.path(), error))?;
                output.write(&batch)?;
            }
        }
        if rows.len() > 0 {
            let batch = rows.take(shared).map_err(|error| failed(output.path(), error))?;
            output.write(&batch)?;
        }
        output.finish(stats).map(Some)
    }

    /// Returns the rank of each frame among all frames, sorted by names.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.frames.len() as u32).collect();
        let key = |index: &u32| {
            let frame = self.frames.get(*index);
            let text = |id: TextId| self.texts.get(id);
            (
                text(frame.mapping),
                text(frame.function),
                text(frame.file),
                frame.line,
                frame.address,
                frame.start_line,
                *index,
            )
        };
        order.sort_unstable_by(|left, right| key(left).cmp(&key(right)));
        let mut ranks = vec![0; order.len()];
        for (rank, index) in order.iter().enumerate() {
            ranks[*index as usize] = rank as u32;
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_have_each_stack_once() {
        let ids = [0, 1, -1, i64::MAX, i64::MIN, 1 << 40, -(1 << 61)].map(StackId);
        let mut first = Piece::default();
        loop {
            let (mut count, mut hits) = (1, vec![0; ids.len()]);
            let mut piece = first;
            loop {
                for (id, hits) in ids.iter().zip(&mut hits) {
                    *hits += usize::from(piece.has(*id));
                }
                let Some(next) = piece.next() else { break };
                (piece, count) = (next, count + 1);
            }
            assert!(hits.iter().all(|hits| *hits == 1), "{first:?}");
            assert_eq!(count, 1 << first.bits);
            let Some(half) = first.half() else { break };
            first = half;
        }
    }
}
