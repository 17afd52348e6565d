//! The constants of a chunk, which events refer to by number.
//!
//! The constants are in a chain of events. Each event points back to the previous event. Only the position of each
//! constant is stored. A constant is read when a value refers to it. The constants of one type form a pool. The
//! positions in a pool are collected unordered and sorted once.

use crate::jfr::budget::Budget;
use crate::jfr::chunk::Chunk;
use crate::jfr::error::{JfrError, JfrErrorKind};
use crate::jfr::types::{Encoding, Types};

/// Type of the events that contain constants.
const CHECKPOINT: u64 = 1;

/// The pools whose constants are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pool {
    Class,
    Method,
    StackTrace,
    String,
    Symbol,
    ThreadState,
}

/// Names of the types of the pools, in the order of [`Pool`].
const NAMES: [&str; 6] = [
    "java.lang.Class",
    "jdk.types.Method",
    "jdk.types.StackTrace",
    "java.lang.String",
    "jdk.types.Symbol",
    "jdk.types.ThreadState",
];

/// Positions of the constants of each pool.
#[derive(Default)]
pub(super) struct Constants {
    /// Number and position of each constant, sorted by number.
    pools: [Vec<(u64, u32)>; NAMES.len()],
    /// Number of the type of each pool; `None` if the metadata has no such type.
    types: [Option<u64>; NAMES.len()],
}

impl Constants {
    /// Collects the positions of the constants of a chunk.
    pub(super) fn read(file: &[u8], chunk: &Chunk, types: &Types, budget: &mut Budget) -> Result<Self, JfrError> {
        let mut constants = Self::default();
        for (id, class) in types.iter() {
            if let Some(pool) = NAMES.iter().position(|name| **name == *class.name) {
                constants.types[pool] = Some(id);
            }
        }
        let mut event_start = chunk.constants;
        loop {
            let delta = constants.read_event(file, chunk, event_start, types, budget)?;
            if delta == 0 {
                break;
            }
            // Each event must lie before the event that points to it, so that no byte is read twice.
            let previous = i64::try_from(event_start - chunk.start)
                .ok()
                .and_then(|offset| offset.checked_add(delta));
            event_start = previous
                .and_then(|previous| usize::try_from(previous).ok())
                .map(|previous| chunk.start + previous)
                .filter(|previous| *previous < event_start && *previous > chunk.start)
                .ok_or_else(|| {
                    chunk
                        .reader(file, event_start)
                        .error(JfrErrorKind::PreviousConstants(delta))
                })?;
        }
        for pool in &mut constants.pools {
            pool.sort_unstable();
        }
        Ok(constants)
    }

    /// Reads the event at `start`. Returns the offset from this event to the previous one, which is negative, or 0 if
    /// there is none.
    fn read_event(
        &mut self,
        file: &[u8],
        chunk: &Chunk,
        start: usize,
        types: &Types,
        budget: &mut Budget,
    ) -> Result<i64, JfrError> {
        let origin = chunk.reader(file, start);
        let mut reader = origin;
        let size = reader.number()?;
        let mut event = origin.with_position(start).part(size)?.with_position(reader.position());
        let type_id = event.number()?;
        if type_id != CHECKPOINT {
            let expected = CHECKPOINT;
            return Err(origin.error(JfrErrorKind::EventType { type_id, expected }));
        }
        let (_start, _duration) = (event.number()?, event.number()?);
        // The field is encoded as an unsigned number.
        let delta = event.number()? as i64;
        let _kind = event.byte()?;
        for _ in 0..event.number()? {
            let pool_start = event;
            let id = event.number()?;
            let count = event.number()?;
            let form = types.form(id);
            if form == Encoding::Unknown {
                return Err(pool_start.error(JfrErrorKind::UnknownType(id)));
            }
            let pool = self.types.iter().position(|known| *known == Some(id));
            for _ in 0..count {
                let key = event.number()?;
                if let Some(pool) = pool {
                    let pool = &mut self.pools[pool];
                    // The entry is charged twice, because the list may double its capacity.
                    let bytes = 2 * size_of::<(u64, u32)>();
                    budget.charge(bytes).map_err(|kind| event.error(kind))?;
                    pool.push((key, event.position() as u32));
                }
                types.skip_one(&mut event, form, budget)?;
            }
        }
        Ok(delta)
    }

    /// Returns the position of a constant in the file, or `None` if it does not exist.
    pub(super) fn position(&self, pool: Pool, key: u64) -> Option<usize> {
        let pool = &self.pools[pool as usize];
        // If several constants have the same number, they are equal, and the last one is used.
        let after = pool.partition_point(|(known, _)| *known <= key);
        let (known, position) = pool.get(after.checked_sub(1)?)?;
        (*known == key).then_some(*position as usize)
    }

    /// Returns the number of the type of a pool.
    pub(super) fn type_id(&self, pool: Pool) -> Option<u64> {
        self.types[pool as usize]
    }
}
