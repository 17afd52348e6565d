//! Caches decoded stacks between queries: stack id to frames. Ids are content hashes, so cached stacks are never stale.
//! The cache is limited in bytes.
//!
//! In: stack ids of a query. Out: a [`StackTable`] with their frames, each distinct frame and string once. A table only
//! grows; when it does not fit into the cache, the next query starts a new one.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;
use hashbrown::HashSet as FastSet;
use parking_lot::RwLock;

use crate::base::BoxFuture;
use crate::profile::flamegraph::{Paths, address_name};
use crate::profile::{StackId, TenantId, TimeSpan};
use crate::query::QueryError;
use crate::query::cache::{Bytes, Cache};
use crate::query::runtime::Runtime;
use crate::query::{scan, stream};
use crate::store::schema::column::{FRAMES, STACK};
use crate::store::schema::{self, Table};
use crate::store::snapshot::{ScanFilter, Snapshot};

/// A frame as stored in the `stacks` table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) function: Arc<str>,
    pub(crate) file: Arc<str>,
    pub(crate) line: i64,
    pub(crate) mapping: Arc<str>,
    pub(crate) address: i64,
    pub(crate) build_id: Arc<str>,
    pub(crate) inlined: bool,
}

impl Frame {
    fn text_bytes(&self) -> usize {
        self.function.len() + self.file.len() + self.mapping.len() + self.build_id.len()
    }
}

#[derive(Default)]
pub(crate) struct StackTable {
    strings: FastSet<Arc<str>>,
    frames: Vec<Frame>,
    /// Display name of each frame: its function, or binary and address where the function is unknown.
    names: Vec<Arc<str>>,
    index: HashMap<Frame, u32>,
    stacks: HashMap<StackId, Stack>,
    /// The stacks as paths of names, as far as flame graphs by name needed them.
    paths: Paths,
    bytes: usize,
}

struct Stack {
    /// Indices of its frames, leaf first.
    frames: Box<[u32]>,
    /// End of its path in `paths`; [`NO_PATH`] before it is needed.
    leaf: u32,
}

const NO_PATH: u32 = u32::MAX;

/// The cached tables of all tenants.
pub(crate) type StackCache = Cache<TenantId, Arc<RwLock<StackTable>>>;

impl Bytes for RwLock<StackTable> {
    /// 0 while a query fills the table; it is weighed again when that is done.
    fn bytes(&self) -> usize {
        self.try_read().map_or(0, |table| table.bytes())
    }
}

/// Estimated overhead of a map entry and an allocation in bytes.
const ENTRY_BYTES: usize = 64;

impl StackTable {
    /// Frame indices of a stack, leaf first.
    pub(crate) fn stack(&self, id: StackId) -> Option<&[u32]> {
        self.stacks.get(&id).map(|stack| stack.frames.as_ref())
    }

    /// The frame at an index from [`StackTable::stack`].
    pub(crate) fn frame(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    /// Whether the frame at a place of a stack is the last of its location: an inlined function belongs to the location
    /// of the function that it was inlined into, which comes next.
    pub(crate) fn ends_location(&self, frames: &[u32], at: usize) -> bool {
        let frame = |at: usize| frames.get(at).map(|index| self.frame(*index));
        let Some(own) = frame(at) else { return true };
        !own.inlined || frame(at + 1).is_none_or(|next| next.address != own.address)
    }

    /// Display name of the frame at an index; never empty.
    pub(crate) fn name(&self, index: u32) -> &Arc<str> {
        &self.names[index as usize]
    }

    /// Total size of the texts of a stack's frames in bytes, repeated texts included.
    pub(crate) fn text_bytes(&self, id: StackId) -> usize {
        let frames = self.stack(id).unwrap_or_default();
        let of = |index: &u32| self.frame(*index).text_bytes();
        frames.iter().map(of).sum()
    }

    /// Total size of the texts of all distinct frames in bytes, repeated texts included.
    pub(crate) fn all_text_bytes(&self) -> usize {
        self.frames.iter().map(Frame::text_bytes).sum()
    }

    /// Number of distinct frames.
    pub(crate) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The stacks as paths of names.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Estimated memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.paths.bytes()
    }

    /// The end of a path with a single name.
    pub(crate) fn single(&mut self, name: &str) -> u32 {
        let name = self.paths.name(&name.into());
        self.paths.insert([name])
    }

    /// Adds the path of a stack.
    fn lay(&mut self, id: StackId) {
        let Some(stack) = self.stacks.get_mut(&id) else { return };
        let (paths, names) = (&mut self.paths, &self.names);
        let path: Vec<u32> = stack
            .frames
            .iter()
            .rev()
            .map(|frame| paths.name(&names[*frame as usize]))
            .collect();
        stack.leaf = paths.insert(path);
    }

    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.bytes += text.len() + ENTRY_BYTES;
        self.strings.insert(text.clone());
        text
    }

    fn insert_frame(&mut self, frame: Frame) -> u32 {
        if let Some(index) = self.index.get(&frame) {
            return *index;
        }
        let index = self.frames.len() as u32;
        let name = display_name(&frame);
        let name = match name {
            None => frame.function.clone(),
            Some(name) => self.intern(&name),
        };
        self.names.push(name);
        self.frames.push(frame.clone());
        self.index.insert(frame, index);
        self.bytes += 2 * size_of::<Frame>() + ENTRY_BYTES;
        index
    }

    /// True when the table has the frames of the stack.
    pub(crate) fn has(&self, id: StackId) -> bool {
        self.stacks.contains_key(&id)
    }

    /// Adds a batch of the columns `stack` and `frames`.
    pub(crate) fn insert(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let ids = schema::integers(batch, STACK)?;
        let lists = schema::lists(batch, FRAMES)?;
        let columns = FrameColumns::new(lists.values().as_ref())?;
        // Within a batch a string of the dictionary often repeats in succession, so the last one of each column is
        // tried first.
        let mut recent: [Option<Arc<str>>; 4] = [const { None }; 4];
        let offsets = lists.value_offsets();
        for (row, id) in ids.iter().map(|id| StackId(*id)).enumerate() {
            if self.stacks.contains_key(&id) {
                continue;
            }
            let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
            let mut indices = Vec::with_capacity(end - start);
            for at in start..end {
                let texts = columns.texts.each_ref().map(|column| column.value(at));
                for (slot, text) in recent.iter_mut().zip(texts) {
                    if slot.as_deref() != Some(text) {
                        *slot = Some(self.intern(text));
                    }
                }
                let [Some(function), Some(file), Some(mapping), Some(build_id)] = &recent else {
                    return Err(QueryError::internal("a frame lacks its strings"));
                };
                let frame = Frame {
                    function: function.clone(),
                    file: file.clone(),
                    mapping: mapping.clone(),
                    build_id: build_id.clone(),
                    line: columns.line.value(at),
                    address: columns.address.value(at),
                    inlined: columns.inlined.value(at),
                };
                indices.push(self.insert_frame(frame));
            }
            self.bytes += indices.len() * 4 + ENTRY_BYTES;
            let stack = Stack {
                frames: indices.into_boxed_slice(),
                leaf: NO_PATH,
            };
            self.stacks.insert(id, stack);
        }
        Ok(())
    }
}

/// The ends of the paths of stacks, with their values; the values of missing stacks are added to `lost`. The memory of
/// new paths is charged to `memory`.
pub(crate) fn leaves(
    table: &RwLock<StackTable>,
    sums: &[(StackId, i64)],
    lost: &mut i64,
    memory: &MemoryReservation,
) -> Result<Vec<(u32, i64)>, QueryError> {
    let known = table.read();
    let is_new = |(id, _): &&(StackId, i64)| known.stacks.get(id).is_some_and(|stack| stack.leaf == NO_PATH);
    let new: Vec<StackId> = sums.iter().filter(is_new).map(|(id, _)| *id).collect();
    drop(known);
    if !new.is_empty() {
        let mut table = table.write();
        for id in new {
            let before = table.paths.bytes();
            table.lay(id);
            memory.try_grow(table.paths.bytes().saturating_sub(before))?;
        }
    }
    let known = table.read();
    let mut leaves = Vec::with_capacity(sums.len());
    for (id, value) in sums {
        match known.stacks.get(id) {
            Some(stack) => leaves.push((stack.leaf, *value)),
            None => *lost = lost.saturating_add(*value),
        }
    }
    Ok(leaves)
}

/// A table with the frames of stacks, and the charge for the frames that were read for this query: while the query
/// holds the table, the cache cannot release its memory.
pub(crate) struct Loaded {
    pub(crate) table: Arc<RwLock<StackTable>>,
    _memory: Arc<MemoryReservation>,
}

/// Loads a table with the frames of all `ids` that occur in the snapshot on the days of `time`.
pub(crate) fn load(
    runtime: Arc<Runtime>,
    cache: Arc<StackCache>,
    snapshot: Arc<Snapshot>,
    tenant: TenantId,
    time: TimeSpan,
    ids: Vec<StackId>,
) -> BoxFuture<'static, Result<Loaded, QueryError>> {
    Box::pin(async move {
        let table = cache.change(&tenant, |table| table.clone());
        let memory = Arc::new(runtime.reservation("frames of stacks"));
        let loaded = Loaded {
            table: table.clone(),
            _memory: memory.clone(),
        };
        let missing: HashSet<StackId> = {
            let known = table.read();
            ids.into_iter().filter(|id| !known.stacks.contains_key(id)).collect()
        };
        if missing.is_empty() {
            return Ok(loaded);
        }
        let filter = ScanFilter {
            tenant: Some(tenant.clone()),
            time: Some(time),
            stacks: Some(Arc::new(missing)),
            ..ScanFilter::default()
        };
        let streams = scan::open(&runtime, &snapshot, Table::Stacks, &filter, &[STACK, FRAMES])?;
        let target = table.clone();
        let before = table.read().bytes;
        stream::fold(
            streams,
            || (),
            move |(), batch| {
                let mut table = target.write();
                table.insert(batch)?;
                Ok(memory.try_resize(table.bytes.saturating_sub(before))?)
            },
        )
        .await?;
        // Weighs the grown table again. Above the limit it is evicted, and the next query starts a new one.
        cache.change(&tenant, |_| ());
        Ok(loaded)
    })
}

/// The child arrays of a list of frames.
pub(crate) struct FrameColumns<'a> {
    /// Function, file, mapping and build id.
    pub(crate) texts: [&'a StringArray; 4],
    pub(crate) line: &'a Int64Array,
    pub(crate) address: &'a Int64Array,
    pub(crate) inlined: &'a BooleanArray,
}

impl<'a> FrameColumns<'a> {
    pub(crate) fn new(frames: &'a dyn Array) -> Result<Self, QueryError> {
        let error = || QueryError::internal("the frames of a stack do not have the columns of the layout");
        let frames = frames.as_struct_opt().ok_or_else(error)?;
        let text = |name: &str| {
            frames
                .column_by_name(name)
                .and_then(|column| column.as_string_opt::<i32>())
        };
        let number = |name: &str| {
            frames
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Int64Type>())
        };
        Ok(Self {
            texts: [
                text("function").ok_or_else(error)?,
                text("file").ok_or_else(error)?,
                text("mapping").ok_or_else(error)?,
                text("build_id").ok_or_else(error)?,
            ],
            line: number("line").ok_or_else(error)?,
            address: number("address").ok_or_else(error)?,
            inlined: frames
                .column_by_name("inlined")
                .and_then(|column| column.as_boolean_opt())
                .ok_or_else(error)?,
        })
    }
}

/// Display name for a frame without a function; `None` when the function is known.
fn display_name(frame: &Frame) -> Option<String> {
    if !frame.function.is_empty() {
        return None;
    }
    if frame.mapping.is_empty() && frame.address == 0 {
        return Some("[unknown]".to_owned());
    }
    Some(address_name(&frame.mapping, frame.address as u64))
}
