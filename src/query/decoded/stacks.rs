//! Caches decoded stacks between queries. Ids are content hashes, so cached stacks are never stale, except for the
//! lines at which functions start. If a query needs these lines and a cached stack lacks them, the query reads the
//! stack again. The cache has a limit in bytes.
//!
//! In: stack ids of a query. Out: a [`StackTable`] with their frames. A table only grows. If a table does not fit into
//! the cache, the next query starts a new table.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use parking_lot::RwLock;

use crate::query::common::error::QueryError;
use crate::query::common::stream;
use crate::query::decoded::stack_table::{Leaf, StackTable};
use crate::query::resources::cache::{Bytes, Cache};
use crate::query::resources::runtime::Runtime;
use crate::query::scan::read;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{FRAMES, STACK, START_LINES};
use crate::store::tables::snapshot::{ScanFilter, Snapshot};
use alluvium_base::BoxFuture;
use alluvium_profile::{StackId, Tenants, TimeSpan};

/// The cached tables, one for each set of tenants of a query.
pub(crate) type StackCache = Cache<Tenants, Arc<RwLock<StackTable>>>;

impl Bytes for RwLock<StackTable> {
    /// Returns 0 while a query fills the table. At its end, the query makes the cache compute the size again.
    fn bytes(&self) -> usize {
        self.try_read().map_or(0, |table| table.bytes())
    }
}

/// Returns the last node of the path of each stack, with the value of the stack. Adds the values of missing stacks to
/// `lost`. Charges the memory of new paths to `memory`.
pub(crate) fn leaves(
    table: &RwLock<StackTable>,
    sums: &[(StackId, i64)],
    lost: &mut i64,
    memory: &MemoryReservation,
) -> Result<Vec<(u32, i64)>, QueryError> {
    let known = table.read();
    let is_new = |(id, _): &&(StackId, i64)| known.leaf(*id) == Leaf::Unlaid;
    let new: Vec<StackId> = sums.iter().filter(is_new).map(|(id, _)| *id).collect();
    drop(known);
    if !new.is_empty() {
        let mut table = table.write();
        for id in new {
            let before = table.paths().bytes();
            table.lay(id);
            memory.try_grow(table.paths().bytes().saturating_sub(before))?;
        }
    }
    let known = table.read();
    let mut leaves = Vec::with_capacity(sums.len());
    for (id, value) in sums {
        match known.leaf(*id) {
            Leaf::Node(node) => leaves.push((node, *value)),
            Leaf::Unlaid | Leaf::Lost => *lost = lost.saturating_add(*value),
        }
    }
    Ok(leaves)
}

/// A table with the frames of stacks. The query is charged for the frames that it added to the table. While the query
/// holds the table, the cache cannot free the memory of the table.
pub(crate) struct Loaded {
    pub(crate) table: Arc<RwLock<StackTable>>,
    _memory: Arc<MemoryReservation>,
}

/// The frames that [`load`] reads from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The frames of stacks that the table lacks.
    Frames,
    /// The frames of stacks that the table lacks, and of stacks that it contains without the lines at which functions
    /// start.
    StartLines,
}

/// Loads a table with the frames of all `ids` that occur in the snapshot on the days that overlap `time`.
pub(crate) fn load(
    runtime: Arc<Runtime>,
    cache: Arc<StackCache>,
    snapshot: Arc<Snapshot>,
    tenants: Tenants,
    time: TimeSpan,
    (ids, requested): (Vec<StackId>, Missing),
) -> BoxFuture<'static, Result<Loaded, QueryError>> {
    Box::pin(async move {
        let table = cache.change(&tenants, |table| table.clone());
        let memory = Arc::new(runtime.reservation("frames of stacks"));
        let loaded = Loaded {
            table: table.clone(),
            _memory: memory.clone(),
        };
        let missing: HashSet<StackId> = {
            let known = table.read();
            let has = |id: StackId| match requested {
                Missing::Frames => known.has(id),
                Missing::StartLines => known.has_start_lines(id),
            };
            ids.into_iter().filter(|id| !has(*id)).collect()
        };
        if missing.is_empty() {
            return Ok(loaded);
        }
        let filter = ScanFilter {
            tenants: Some(tenants.clone()),
            time: Some(time),
            stacks: Some(Arc::new(missing)),
            ..ScanFilter::default()
        };
        let streams = read::open(
            &runtime,
            &snapshot,
            Table::Stacks,
            &filter,
            &[STACK, FRAMES, START_LINES],
        )?;
        let target = table.clone();
        let before = table.read().bytes_of_stacks();
        stream::fold(
            streams,
            || (),
            move |(), batch| {
                let mut table = target.write();
                table.insert(batch)?;
                Ok(memory.try_resize(table.bytes_of_stacks().saturating_sub(before))?)
            },
        )
        .await?;
        // Makes the cache compute the size of the grown table again. If the table exceeds the limit, the cache evicts
        // it, and the next query starts a new table.
        cache.change(&tenants, |_| ());
        Ok(loaded)
    })
}
