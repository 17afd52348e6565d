//! Exemplars: each is a profile or a span that represents a point of a time series or a cell of a heatmap.
//!
//! In: the candidate of each point or cell. Out: exemplars with ids and labels. Their number and the size of their
//! texts are limited, because each exemplar repeats the labels of its series.

use std::sync::Arc;

use crate::query::common::error::QueryError;
use crate::query::common::types::Exemplar;
use crate::query::decoded::context::Context;
use crate::query::decoded::labels::SeriesLabels;
use crate::query::series::moments;
use crate::query::series::moments::Moment;
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::SeriesId;

/// Maximum number of exemplars of a result.
const MAX_EXEMPLARS: usize = 50_000;

/// A profile, or a span in it. Candidates are ordered by value and then by time. The greatest candidate becomes the
/// exemplar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) value: i64,
    pub(crate) time: i64,
    pub(crate) series: SeriesId,
    pub(crate) span: Option<Span>,
}

/// The ids of a span and of its trace. An unknown trace is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) id: u64,
    pub(crate) trace: u128,
}

/// Replaces `best` if the candidate is greater.
pub(crate) fn keep_greater(best: &mut Option<Candidate>, candidate: Candidate) {
    *best = (*best).max(Some(candidate));
}

/// Returns the exemplars of candidates, in the order of the candidates.
pub(crate) fn load(
    context: &Arc<Context>,
    filter: &ScanFilter,
    labels: Arc<SeriesLabels>,
    candidates: Vec<Candidate>,
) -> BoxFuture<'static, Result<Vec<Exemplar>, QueryError>> {
    let (context, filter) = (context.clone(), filter.clone());
    Box::pin(async move {
        if candidates.len() > MAX_EXEMPLARS {
            return Err(QueryError::Limit(format!(
                "the result has more than {MAX_EXEMPLARS} exemplars; select a longer step or fewer series"
            )));
        }
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let memory = context.runtime.reservation("texts of exemplars");
        let labels_of = |series: SeriesId| labels.get(&series).cloned().unwrap_or_default();
        for candidate in &candidates {
            let labels = labels_of(candidate.series);
            let texts = labels.iter().map(|(name, value)| name.len() + value.len());
            memory.try_grow(size_of::<Exemplar>() + texts.sum::<usize>())?;
        }
        let candidate_moments = candidates.iter().map(moment).collect();
        let ids = moments::ids_of(&context, &filter, candidate_moments).await?;
        let exemplar = |candidate: &Candidate| Exemplar {
            time_ms: candidate.time.div_euclid(1000),
            value: candidate.value,
            profile_id: ids.get(&moment(candidate)).cloned().unwrap_or_default(),
            span_id: candidate
                .span
                .map(|span| format!("{:016x}", span.id))
                .unwrap_or_default(),
            trace_id: trace_text(candidate.span),
            labels: labels_of(candidate.series),
        };
        Ok(candidates.iter().map(exemplar).collect())
    })
}

fn trace_text(span: Option<Span>) -> String {
    let traced_span = span.filter(|span| span.trace != 0);
    traced_span
        .map(|span| format!("{:032x}", span.trace))
        .unwrap_or_default()
}

fn moment(candidate: &Candidate) -> Moment {
    (candidate.series, candidate.time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stands_for_its_place_and_of_equal_ones_the_newest() {
        let candidate = |value, time| Candidate {
            value,
            time,
            series: SeriesId(1),
            span: None,
        };
        let mut best = None;
        for (value, time) in [(-3, 9), (5, 1), (5, 4), (5, 2), (1, 8)] {
            keep_greater(&mut best, candidate(value, time));
        }
        assert_eq!(best, Some(candidate(5, 4)));
    }
}
