//! Call sites and frame filters: finds the stacks with given functions, and sums the values of these stacks by profile.
//!
//! In: a filter and the conditions on stacks. Out: values by profile. The stored totals of profiles include all of
//! their stacks, so this module reads the samples instead of the totals.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::blocking;
use crate::query::common::error::QueryError;
use crate::query::common::frame_filter::FrameFilter;
use crate::query::common::{checked, stream};
use crate::query::decoded::context::Context;
use crate::query::scan::read;
use crate::query::series::moments::Moment;
use crate::query::stacks::selector::StackSelector;
use crate::query::stacks::sums;
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{SERIES, TIME, VALUE};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::{SeriesId, StackId, TimeSpan};

/// Memory in bytes of an entry in the map of values, with a share of the map's empty slots.
const VALUE_BYTES: usize = 40;

/// Values by profile. Their memory is charged to the query until this value is dropped.
pub(crate) struct ValuesBelow {
    values: HashMap<Moment, i64>,
    memory: MemoryReservation,
}

/// Returns the stacks that begin with the functions of `call_site` and pass `frames`, among the rows of `samples` that
/// pass the filter.
pub(crate) fn selected_stacks(
    context: &Arc<Context>,
    filter: &ScanFilter,
    call_site: Vec<String>,
    frames: FrameFilter,
) -> BoxFuture<'static, Result<Arc<HashSet<StackId>>, QueryError>> {
    let (context, sums) = (context.clone(), sums::sorted_by_stack(context, filter));
    let time = filter.time.unwrap_or(TimeSpan::ALL);
    Box::pin(async move {
        let stack_sums = sums.await?;
        let ids: Vec<StackId> = stack_sums.values.iter().map(|(stack, _)| *stack).collect();
        let loaded = context.frames(time, ids.clone()).await?;
        let memory = context.runtime.reservation("frames of a filter");
        let selected = blocking::run(move |cancellation| {
            let table = loaded.table.read();
            let mut selector = StackSelector::new(&table, &call_site, &frames, memory);
            let mut selected = HashSet::new();
            for id in ids {
                cancellation.check()?;
                if selector.selects(id)? {
                    selected.insert(id);
                }
            }
            Ok(Arc::new(selected))
        });
        selected.await
    })
}

/// Returns, for each profile, the sum of the values of its rows in `samples` that pass the filter.
pub(crate) fn values(
    context: &Arc<Context>,
    filter: &ScanFilter,
) -> BoxFuture<'static, Result<ValuesBelow, QueryError>> {
    let context = context.clone();
    let columns = [SERIES, TIME, VALUE];
    let streams = read::open(&context.runtime, &context.snapshot, Table::Samples, filter, &columns);
    Box::pin(async move {
        let make = || ValuesBelow {
            values: HashMap::new(),
            memory: context.runtime.reservation("values below a call site"),
        };
        let all = make();
        let parts = stream::fold(streams?, make, ValuesBelow::add).await?;
        let merged = blocking::run(move |cancellation| {
            parts.into_iter().try_fold(all, |all, part| {
                cancellation.check()?;
                all.with(part)
            })
        });
        merged.await
    })
}

impl ValuesBelow {
    /// Removes and returns the value of a profile. If several profiles have the same moment (series and time), the
    /// first call returns the value, and later calls return 0.
    pub(crate) fn take(&mut self, moment: Moment) -> i64 {
        self.values.remove(&moment).unwrap_or(0)
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let series = schema::integers(batch, SERIES)?;
        let times = schema::times(batch, TIME)?;
        let values = schema::integers(batch, VALUE)?;
        for (row, value) in values.iter().enumerate() {
            self.add_value((SeriesId(series[row]), times[row]), *value)?;
        }
        self.charge()
    }

    fn with(mut self, other: Self) -> Result<Self, QueryError> {
        for (moment, value) in other.values {
            self.add_value(moment, value)?;
        }
        self.charge()?;
        Ok(self)
    }

    fn add_value(&mut self, moment: Moment, value: i64) -> Result<(), QueryError> {
        checked::add(self.values.entry(moment).or_default(), value)
    }

    fn charge(&self) -> Result<(), QueryError> {
        Ok(self.memory.try_resize(self.values.capacity() * VALUE_BYTES)?)
    }
}
