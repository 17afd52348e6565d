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
        slots: line.slots.into_iter().map(slot_message).collect(),
    }
}

fn slot_message(slot: HeatmapSlot) -> types::HeatmapSlot {
    let mut message = types::HeatmapSlot {
        timestamp: slot.end_ms,
        ..types::HeatmapSlot::default()
    };
    for cell in slot.cells {
        message.y_min.push(cell.min as f64);
        message.counts.push(i32::try_from(cell.count).unwrap_or(i32::MAX));
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
