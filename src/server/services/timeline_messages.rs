//! Converts time lines and heatmaps to messages of `querier.v1`.
//!
//! In: series from the query engine. Out: messages with exactly Pyroscope's fields.

use crate::query::{Exemplar, HeatmapLine, HeatmapSlot, SeriesPoints};
use alluvium_wire::proto::types;
use alluvium_wire::push::pairs;

/// Converts a time line to a message.
pub(super) fn series_message(mut line: SeriesPoints) -> types::Series {
    let mut exemplars = std::mem::take(&mut line.exemplars);
    let point = |(timestamp, value)| types::Point {
        value,
        timestamp,
        exemplars: exemplars.remove(&timestamp).map(exemplar_message).into_iter().collect(),
    };
    types::Series {
        labels: pairs(&line.labels),
        points: line.points.into_iter().map(point).collect(),
    }
}

/// Converts a series of a heatmap to a message.
pub(super) fn heatmap_message(line: HeatmapLine) -> types::HeatmapSeries {
    types::HeatmapSeries {
        labels: pairs(&line.labels),
        slots: line
            .slots
            .into_iter()
            .map(|slot| slot_message(slot, &line.starts))
            .collect(),
    }
}

/// Converts a slot to a message. Like Pyroscope, lists every range of the scale, also those that count nothing: Grafana
/// takes the next listed range for the upper end of a range, and the position in the list for the range.
fn slot_message(slot: HeatmapSlot, starts: &[i64]) -> types::HeatmapSlot {
    let mut message = types::HeatmapSlot {
        timestamp: slot.end_ms,
        y_min: starts.iter().map(|start| *start as f64).collect(),
        counts: vec![0; starts.len()],
        exemplars: Vec::new(),
    };
    for cell in slot.cells {
        if let Some(count) = message.counts.get_mut(cell.row) {
            *count = i32::try_from(cell.count).unwrap_or(i32::MAX);
        }
        message.exemplars.extend(cell.exemplar.map(exemplar_message));
    }
    message
}

/// Converts an exemplar to a message.
fn exemplar_message(exemplar: Exemplar) -> types::Exemplar {
    types::Exemplar {
        timestamp: exemplar.time_ms,
        profile_id: exemplar.profile_id.to_string(),
        span_id: exemplar.span_id,
        value: exemplar.value,
        labels: pairs(&exemplar.labels),
        trace_id: exemplar.trace_id,
    }
}
