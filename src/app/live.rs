//! Connects the engine's live debugging with its routes: debug entries and flow counts as text streams that end when
//! the program stops.
//!
//! In: the controllers. Out: the state of `admin::live`. Entries may contain decoded profiles, which take long to
//! format, so blocking threads do this work.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::json;

use crate::app::web::Controllers;
use alluvium_admin::live::{Form, LiveState, Refusal, SEPARATOR};
use alluvium_base::Shutdown;
use alluvium_pipeline::Controller;
use alluvium_pipeline::component::live::Batch;
use alluvium_pipeline::run::live::WatchError;

/// Returns the state of the live debugging routes. Streams end at `shutdown`.
pub(crate) fn state(controllers: &Controllers, shutdown: &Shutdown) -> LiveState {
    let (watched, flowing, own) = (controllers.clone(), controllers.clone(), controllers.own.clone());
    let (until_watched, until_flowing) = (shutdown.clone(), shutdown.clone());
    LiveState {
        watch: Arc::new(move |id, probability, form| {
            let entries = watch(watched.controller(id), id, probability, form)?;
            Ok(entries.take_until(until_watched.clone().cancelled_owned()).boxed())
        }),
        flow: Arc::new(move |module, window| {
            let counts = flow(flowing.controller(module), module, window);
            counts.take_until(until_flowing.clone().cancelled_owned()).boxed()
        }),
        overview: Arc::new(move || {
            let is_enabled = own.live().is_enabled();
            json!({
                "version": env!("CARGO_PKG_VERSION"),
                "ready": own.ready(),
                "lastLoad": own.last_load_view(),
                "liveDebugging": {
                    "enabled": is_enabled,
                    "message": if is_enabled { String::new() } else { WatchError::Disabled.to_string() },
                },
            })
        }),
    }
}

fn watch(
    controller: &Controller,
    id: &str,
    probability: f64,
    form: Form,
) -> Result<BoxStream<'static, Bytes>, Refusal> {
    let watch = controller.watch(id, probability).map_err(|error| match error {
        WatchError::Disabled => Refusal::Disabled(error.to_string()),
        WatchError::Unknown(_) => Refusal::Unknown(error.to_string()),
    })?;
    let texts = stream::unfold(watch, move |mut watch| async move {
        let batch = watch.next().await?;
        let text = tokio::task::spawn_blocking(move || write(&batch, form)).await.ok()?;
        Some((text, watch))
    });
    Ok(texts.boxed())
}

fn write(batch: &Batch, form: Form) -> Bytes {
    let mut text = String::new();
    for entry in &batch.entries {
        match form {
            Form::Text => text.push_str(&entry.entry.text().replace(SEPARATOR, "|\\x3b|")),
            Form::Json => push_json(&mut text, &entry.json()),
        }
        text.push_str(SEPARATOR);
    }
    if batch.dropped > 0 {
        match form {
            // Writing to a String cannot fail.
            Form::Text => drop(write!(
                text,
                "({} entries were lost: they were not read fast enough)",
                batch.dropped
            )),
            Form::Json => push_json(&mut text, &json!({ "kind": "lost", "count": batch.dropped })),
        }
        text.push_str(SEPARATOR);
    }
    text.into()
}

fn flow(controller: &Controller, module: &str, window: Duration) -> BoxStream<'static, Bytes> {
    let flow = controller.flow(module);
    let texts = stream::unfold((flow, Instant::now()), move |(mut flow, last)| async move {
        tokio::time::sleep(window).await;
        let now = Instant::now();
        let mut text = String::new();
        for rate in flow.next(now - last) {
            push_json(&mut text, &serde_json::to_value(rate).unwrap_or_default());
            text.push_str(SEPARATOR);
        }
        // If nothing flows, sends an empty entry, as Alloy does, to show that the stream is open.
        if text.is_empty() {
            text.push_str(SEPARATOR);
        }
        Some((Bytes::from(text), (flow, now)))
    });
    texts.boxed()
}

/// Appends JSON that cannot contain the separator. If a string contains the separator, its middle character is escaped.
fn push_json(text: &mut String, value: &serde_json::Value) {
    text.push_str(&value.to_string().replace(SEPARATOR, "|\\u003b|"));
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
