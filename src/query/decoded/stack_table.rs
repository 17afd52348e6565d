//! Decoded stacks in memory: stack ids with their frames. Each distinct frame and each distinct text is stored once and
//! has a number.
//!
//! In: batches of the table `stacks`. Out: frames by number, and the stacks as paths of names. A [`StackTable`]
//! only grows. A frame is stored as numbers, so that the stacks of a fleet fit into the cache. A frame takes about 60
//! bytes besides its texts. A stack takes 40 bytes, plus 4 bytes for each of its frames.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::query::common::error::QueryError;
use crate::query::scan::frame_columns::FrameColumns;
use crate::store::common::schema;
use crate::store::common::schema::StartLines;
use crate::store::common::schema::column::{FRAMES, STACK};
use alluvium_profile::StackId;
use alluvium_profile::flamegraph::{Paths, address_name};

/// A frame as stored in the `stacks` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) function: &'a str,
    pub(crate) file: &'a str,
    pub(crate) line: i64,
    pub(crate) mapping: &'a str,
    pub(crate) address: i64,
    /// Offset in the file at which the mapping begins, if `address` is an offset in the file.
    pub(crate) mapped: Option<u64>,
    pub(crate) build_id: &'a str,
    pub(crate) inlined: bool,
    /// Line at which the function starts; 0 if unknown.
    pub(crate) start_line: i32,
}

#[derive(Default)]
pub(crate) struct StackTable {
    texts: Vec<Arc<str>>,
    text_index: HashTable<u32>,
    frames: Vec<KeptFrame>,
    frame_index: HashTable<u32>,
    /// The frames of all stacks, one stack after the other.
    stack_frames: Vec<u32>,
    stacks: HashMap<StackId, Stack>,
    /// The stacks as paths of names. The path of a stack is added at the first use of the stack in a flame graph that
    /// identifies functions by name.
    paths: Paths,
    hasher: DefaultHashBuilder,
    /// Memory of the texts themselves, in bytes.
    text_bytes: usize,
}

/// A frame with the numbers of its texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct KeptFrame {
    line: i64,
    address: i64,
    function: u32,
    file: u32,
    mapping: u32,
    build_id: u32,
    /// The display name of the frame: the function, or the binary and the address if the function is unknown.
    name: u32,
    start_line: i32,
    inlined: bool,
}

/// The table's entry for a stack.
#[derive(Clone, Copy)]
struct Stack {
    /// Index in `stack_frames` at which the frames of the stack begin, leaf first.
    start: u32,
    len: u32,
    /// The last node of the stack's path in `paths`; [`NO_PATH`] until a query needs the path.
    leaf: u32,
    /// True if the start line of at least one of its functions is known.
    has_start_lines: bool,
}

const NO_PATH: u32 = u32::MAX;
/// Overhead of a shared text in bytes: its reference counters, and the memory that the allocator's size classes waste.
const TEXT_OVERHEAD: usize = 24;

/// The last node of the path of a stack, or the reason why the node is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// The last node of the path of the stack.
    Node(u32),
    /// The stack has no path yet.
    Unlaid,
    /// The table does not have the stack.
    Lost,
}

impl StackTable {
    /// Returns the frame numbers of a stack, leaf first.
    pub(crate) fn stack(&self, id: StackId) -> Option<&[u32]> {
        let stack = self.stacks.get(&id)?;
        self.stack_frames.get(stack.start as usize..)?.get(..stack.len as usize)
    }

    /// Returns the frame with a number from [`StackTable::stack`].
    pub(crate) fn frame(&self, number: u32) -> Frame<'_> {
        let frame = &self.frames[number as usize];
        let function = self.text(frame.function);
        let mapped = schema::mapped(frame.line).filter(|_| function.is_empty() && frame.address != 0);
        Frame {
            function,
            file: self.text(frame.file),
            line: if mapped.is_some() { 0 } else { frame.line },
            mapping: self.text(frame.mapping),
            address: frame.address,
            mapped,
            build_id: self.text(frame.build_id),
            inlined: frame.inlined,
            start_line: frame.start_line,
        }
    }

    /// Returns true if the frame at `index` of a stack is the last frame of its location. An inlined function has
    /// the same location as the function into which it was inlined. That function is the next frame.
    pub(crate) fn ends_location(&self, frames: &[u32], index: usize) -> bool {
        let frame = |index: usize| frames.get(index).map(|number| &self.frames[*number as usize]);
        let Some(own_frame) = frame(index) else { return true };
        !own_frame.inlined || frame(index + 1).is_none_or(|next| next.address != own_frame.address)
    }

    /// Returns the display name of the frame with a number. It is never empty.
    pub(crate) fn name(&self, number: u32) -> &Arc<str> {
        &self.texts[self.frames[number as usize].name as usize]
    }

    /// Returns the total size of the texts of a stack's frames in bytes, including repeated texts.
    pub(crate) fn text_bytes(&self, id: StackId) -> usize {
        let frames = self.stack(id).unwrap_or_default();
        let frame_bytes = |number: &u32| self.bytes_of_texts(&self.frames[*number as usize]);
        frames.iter().map(frame_bytes).sum()
    }

    /// Returns the total size of the texts of all distinct frames in bytes, including repeated texts.
    pub(crate) fn all_text_bytes(&self) -> usize {
        self.frames.iter().map(|frame| self.bytes_of_texts(frame)).sum()
    }

    /// Returns the number of distinct frames.
    pub(crate) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Returns the stacks as paths of names.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Returns the memory of the table in bytes, including the paths.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes_of_stacks() + self.paths.bytes()
    }

    /// Returns the memory of the table in bytes without the paths.
    pub(crate) fn bytes_of_stacks(&self) -> usize {
        self.text_bytes
            + self.texts.capacity() * size_of::<Arc<str>>()
            + self.text_index.allocation_size()
            + self.frames.capacity() * size_of::<KeptFrame>()
            + self.frame_index.allocation_size()
            + self.stack_frames.capacity() * size_of::<u32>()
            + self.stacks.allocation_size()
    }

    /// Returns true if the table has the frames of the stack.
    pub(crate) fn has(&self, id: StackId) -> bool {
        self.stacks.contains_key(&id)
    }

    /// Returns true if the table has the frames of the stack and the start line of at least one of its functions.
    pub(crate) fn has_start_lines(&self, id: StackId) -> bool {
        self.stacks.get(&id).is_some_and(|stack| stack.has_start_lines)
    }

    /// Adds a path with a single name and returns the last node of the path.
    pub(crate) fn single(&mut self, name: &str) -> u32 {
        let name = self.paths.name(&name.into());
        self.paths.insert([name])
    }

    /// Returns the last node of the path of a stack.
    pub(crate) fn leaf(&self, id: StackId) -> Leaf {
        match self.stacks.get(&id) {
            None => Leaf::Lost,
            Some(stack) if stack.leaf == NO_PATH => Leaf::Unlaid,
            Some(stack) => Leaf::Node(stack.leaf),
        }
    }

    /// Adds the path of a stack.
    pub(crate) fn lay(&mut self, id: StackId) {
        let Some(frames) = self.stack(id) else { return };
        let names: Vec<u32> = frames
            .iter()
            .rev()
            .map(|number| self.frames[*number as usize].name)
            .collect();
        let (paths, texts) = (&mut self.paths, &self.texts);
        let path: Vec<u32> = names.iter().map(|name| paths.name(&texts[*name as usize])).collect();
        let leaf = paths.insert(path);
        if let Some(stack) = self.stacks.get_mut(&id) {
            stack.leaf = leaf;
        }
    }

    /// Adds a batch of the columns `stack` and `frames`, and also of the column `start_lines` if the batch has one. If
    /// a stack has several rows, the first row with start lines of functions is used. If no row has them, the first row
    /// is used.
    pub(crate) fn insert(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let ids = schema::integers(batch, STACK)?;
        let lists = schema::lists(batch, FRAMES)?;
        let columns = FrameColumns::new(lists.values().as_ref())?;
        let separate_start_lines = StartLines::of(batch)?;
        // Files, mappings and build ids often repeat in consecutive frames, so the last text of each column is tried
        // first.
        let mut recent: [Option<(&str, u32)>; 4] = [None; 4];
        let mut numbers = Vec::new();
        let offsets = lists.value_offsets();
        for (row, id) in ids.iter().map(|id| StackId(*id)).enumerate() {
            let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
            let start_lines = match columns.start_line {
                Some(column) => &column.values()[start..end],
                None => separate_start_lines.row(row),
            };
            let has_start_lines = start_lines.iter().any(|line| *line != 0);
            let old = self.stacks.get(&id).copied();
            if old.is_some_and(|old| old.has_start_lines || !has_start_lines) {
                continue;
            }
            numbers.clear();
            for index in start..end {
                let texts = columns.texts.map(|column| column.value(index));
                let mut text_numbers = [0; 4];
                for ((slot, text), number) in recent.iter_mut().zip(texts).zip(&mut text_numbers) {
                    *number = match slot {
                        Some((last, number)) if *last == text => *number,
                        _ => slot.insert((text, self.intern(text)?)).1,
                    };
                }
                let [function, file, mapping, build_id] = text_numbers;
                let address = columns.address.value(index);
                let frame = KeptFrame {
                    line: columns.line.value(index),
                    address,
                    function,
                    file,
                    mapping,
                    build_id,
                    name: match display_name(texts[0], texts[2], address) {
                        None => function,
                        Some(name) => self.intern(&name)?,
                    },
                    start_line: start_lines.get(index - start).copied().unwrap_or(0),
                    inlined: columns.inlined.value(index),
                };
                numbers.push(self.intern_frame(frame)?);
            }
            self.store_stack(id, old, &numbers, has_start_lines)?;
        }
        Ok(())
    }

    /// Inserts a stack, or replaces its known entry.
    fn store_stack(
        &mut self,
        id: StackId,
        existing: Option<Stack>,
        frames: &[u32],
        has_start_lines: bool,
    ) -> Result<(), QueryError> {
        // The names and the number of frames of a known stack stay the same, because the id of a stack is a hash of
        // them.
        let leaf = existing.map_or(NO_PATH, |existing| existing.leaf);
        let old = existing.filter(|existing| existing.len as usize == frames.len());
        let start = match old {
            Some(old) => old.start,
            None => number_of(self.stack_frames.len())?,
        };
        let len = number_of(frames.len())?;
        match old.and_then(|_| self.stack_frames.get_mut(start as usize..)?.get_mut(..frames.len())) {
            Some(old) => old.copy_from_slice(frames),
            None => self.stack_frames.extend_from_slice(frames),
        }
        let stack = Stack {
            start,
            len,
            leaf,
            has_start_lines,
        };
        self.stacks.insert(id, stack);
        Ok(())
    }

    fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    fn bytes_of_texts(&self, frame: &KeptFrame) -> usize {
        let texts = [frame.function, frame.file, frame.mapping, frame.build_id];
        texts.map(|number| self.text(number).len()).iter().sum()
    }

    fn intern(&mut self, text: &str) -> Result<u32, QueryError> {
        let (texts, hasher) = (&mut self.texts, &self.hasher);
        let hash = hasher.hash_one(text);
        if let Some(number) = self.text_index.find(hash, |number| *texts[*number as usize] == *text) {
            return Ok(*number);
        }
        let number = number_of(texts.len())?;
        texts.push(text.into());
        self.text_index
            .insert_unique(hash, number, |number| hasher.hash_one(&*texts[*number as usize]));
        self.text_bytes += text.len() + TEXT_OVERHEAD;
        Ok(number)
    }

    fn intern_frame(&mut self, frame: KeptFrame) -> Result<u32, QueryError> {
        let (frames, hasher) = (&mut self.frames, &self.hasher);
        let hash = hasher.hash_one(frame);
        if let Some(number) = self.frame_index.find(hash, |number| frames[*number as usize] == frame) {
            return Ok(*number);
        }
        let number = number_of(frames.len())?;
        frames.push(frame);
        self.frame_index
            .insert_unique(hash, number, |number| hasher.hash_one(frames[*number as usize]));
        Ok(number)
    }
}

/// Returns the number of the next element of a list of length `len`.
fn number_of(len: usize) -> Result<u32, QueryError> {
    u32::try_from(len).map_err(|_| {
        QueryError::Limit(
            "the stacks have more than 4 billion frames: select a shorter time range or fewer stacks".to_owned(),
        )
    })
}

/// Returns the display name of a frame without a function; `None` if the function is known.
fn display_name(function: &str, mapping: &str, address: i64) -> Option<String> {
    if !function.is_empty() {
        return None;
    }
    if mapping.is_empty() && address == 0 {
        return Some("[unknown]".to_owned());
    }
    Some(address_name(mapping, address as u64))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, StringArray, StructArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::query::scan::frame_columns::{flat_frame, flat_frame_fields, flat_frames};

    /// Function, address and start line of a frame of `app`.
    type Given = (&'static str, i64, i32);

    fn batch(stacks: &[(i64, &[Given])]) -> RecordBatch {
        let all: Vec<&Given> = stacks.iter().flat_map(|(_, frames)| frames.iter()).collect();
        let text = |text: fn(&Given) -> &'static str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(all.iter().map(|frame| text(frame))))
        };
        let number = |number: fn(&Given) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(all.iter().map(|frame| number(frame))))
        };
        let columns = vec![
            text(|frame| frame.0),
            text(|_| "main.go"),
            number(|_| 7),
            text(|_| "app"),
            number(|frame| frame.1),
            text(|_| "id"),
            Arc::new(BooleanArray::from(vec![false; all.len()])),
            Arc::new(all.iter().map(|frame| Some(frame.2)).collect::<Int32Array>()),
        ];
        let values = StructArray::try_new(flat_frame_fields(), columns, None).unwrap();
        let offsets = OffsetBuffer::from_lengths(stacks.iter().map(|(_, frames)| frames.len()));
        let lists = ListArray::try_new(flat_frame(), offsets, Arc::new(values), None).unwrap();
        let ids = Int64Array::from_iter_values(stacks.iter().map(|(id, _)| *id));
        let schema = Schema::new(vec![
            Field::new(STACK, DataType::Int64, false),
            Field::new(FRAMES, flat_frames(), false),
        ]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ids), Arc::new(lists)]).unwrap()
    }

    fn named(table: &StackTable, id: i64) -> Vec<(String, i64, i32)> {
        let frames = table.stack(StackId(id)).unwrap().iter();
        frames
            .map(|number| {
                let frame = table.frame(*number);
                (table.name(*number).to_string(), frame.address, frame.start_line)
            })
            .collect()
    }

    #[test]
    fn what_stacks_share_is_kept_once_and_each_has_its_frames_in_order() {
        let mut table = StackTable::default();
        table
            .insert(&batch(&[
                (1, &[("work", 1, 0), ("main", 2, 0)]),
                (2, &[]),
                (3, &[("", 9, 0)]),
            ]))
            .unwrap();
        table
            .insert(&batch(&[
                (4, &[("main", 2, 0), ("work", 1, 0), ("main", 3, 0)]),
                (1, &[("other", 1, 0)]),
            ]))
            .unwrap();
        assert_eq!(named(&table, 1), [("work".into(), 1, 0), ("main".into(), 2, 0)]);
        assert_eq!(named(&table, 2), []);
        assert_eq!(named(&table, 3), [("app 0x9".into(), 9, 0)]);
        let four = [("main".into(), 2, 0), ("work".into(), 1, 0), ("main".into(), 3, 0)];
        assert_eq!(named(&table, 4), four);
        assert_eq!(table.frame_count(), 4);
        // The texts are two functions, the file, the mapping, the build id, the empty function, and the display name of
        // the frame without a function.
        assert_eq!(table.texts.len(), 7);
        assert_eq!(table.stack(StackId(5)), None);
        assert_eq!(
            table.text_bytes(StackId(1)),
            2 * ("work".len() + "main.go".len() + "app".len() + "id".len())
        );
    }

    #[test]
    fn first_lines_that_come_later_take_the_place_of_frames_without() {
        let mut table = StackTable::default();
        let stack = StackId(1);
        table.insert(&batch(&[(1, &[("work", 1, 0), ("main", 2, 0)])])).unwrap();
        table.lay(stack);
        let leaf = table.leaf(stack);
        assert!(matches!(leaf, Leaf::Node(_)) && !table.has_start_lines(stack));
        let frame_count = table.stack_frames.len();
        for _ in 0..2 {
            table
                .insert(&batch(&[(1, &[("work", 1, 40), ("main", 2, 0)])]))
                .unwrap();
            table.insert(&batch(&[(1, &[("work", 1, 0), ("main", 2, 0)])])).unwrap();
        }
        assert_eq!(named(&table, 1), [("work".into(), 1, 40), ("main".into(), 2, 0)]);
        assert!(table.has_start_lines(stack));
        assert_eq!((table.leaf(stack), table.stack_frames.len()), (leaf, frame_count));
        assert_eq!(table.leaf(StackId(2)), Leaf::Lost);
    }
}
