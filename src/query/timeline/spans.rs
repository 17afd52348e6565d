//! Values of spans: the sums of those samples of a profile that have the id of the span.
//!
//! In: a filter. Out: sums by profile and span. Rows without a span are skipped.

use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::blocking;
use crate::query::common::error::QueryError;
use crate::query::common::{checked, stream};
use crate::query::decoded::context::Context;
use crate::query::scan::read;
use crate::query::series::moments::Moment;
use crate::query::timeline::exemplars::{Candidate, Span};
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{SERIES, SPAN_ID, TIME, TRACE_ID, VALUE};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::SeriesId;

/// Memory in bytes of an entry in the map of sums, with a share of the map's empty slots.
const SPAN_BYTES: usize = 96;

/// The value of a span in one profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SpanSum {
    value: i64,
    /// The trace of the span; 0 if unknown.
    trace: u128,
}

/// Sums by profile and span. Their memory is charged to the query until this value is dropped.
pub(crate) struct SpanSums {
    values: HashMap<(Moment, u64), SpanSum>,
    memory: MemoryReservation,
}

/// Returns the sums of all rows of `samples` that pass the filter and have a span.
pub(crate) fn sums(context: &Arc<Context>, filter: &ScanFilter) -> BoxFuture<'static, Result<SpanSums, QueryError>> {
    let context = context.clone();
    let columns = [SERIES, TIME, VALUE, SPAN_ID, TRACE_ID];
    let streams = read::open(&context.runtime, &context.snapshot, Table::Samples, filter, &columns);
    Box::pin(async move {
        let make = || SpanSums {
            values: HashMap::new(),
            memory: context.runtime.reservation("sums by span"),
        };
        let all = make();
        let parts = stream::fold(streams?, make, SpanSums::add).await?;
        let merged = blocking::run(move |cancellation| {
            parts.into_iter().try_fold(all, |all, part| {
                cancellation.check()?;
                all.with(part)
            })
        });
        merged.await
    })
}

impl SpanSums {
    /// Returns the spans as candidates for exemplars. Each candidate has the series and the time of its profile.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = Candidate> {
        self.values.iter().map(|(((series, time), id), sum)| Candidate {
            value: sum.value,
            time: *time,
            series: *series,
            span: Some(Span {
                id: *id,
                trace: sum.trace,
            }),
        })
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let series = schema::integers(batch, SERIES)?;
        let times = schema::times(batch, TIME)?;
        let values = schema::integers(batch, VALUE)?;
        let (spans, traces) = (schema::texts(batch, SPAN_ID)?, schema::texts(batch, TRACE_ID)?);
        if spans.null_count() == spans.len() {
            return Ok(());
        }
        for row in (0..batch.num_rows()).filter(|row| spans.is_valid(*row)) {
            // The query protocol supports only span ids of 64 bits, so rows with other ids are skipped.
            let Ok(span) = u64::from_str_radix(spans.value(row), 16) else {
                continue;
            };
            let trace = if traces.is_valid(row) { traces.value(row) } else { "" };
            let trace = u128::from_str_radix(trace, 16).unwrap_or_default();
            let value = values[row];
            self.add_sum(((SeriesId(series[row]), times[row]), span), SpanSum { value, trace })?;
        }
        self.charge()
    }

    fn with(mut self, other: Self) -> Result<Self, QueryError> {
        for (key, sum) in other.values {
            self.add_sum(key, sum)?;
        }
        self.charge()?;
        Ok(self)
    }

    fn add_sum(&mut self, key: (Moment, u64), addend: SpanSum) -> Result<(), QueryError> {
        let sum = self.values.entry(key).or_default();
        sum.trace = sum.trace.max(addend.trace);
        checked::add(&mut sum.value, addend.value)
    }

    fn charge(&self) -> Result<(), QueryError> {
        Ok(self.memory.try_resize(self.values.capacity() * SPAN_BYTES)?)
    }
}
