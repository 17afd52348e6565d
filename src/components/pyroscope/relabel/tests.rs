//! Tests of the component from outside: the tests pass profiles to the component and check the profiles that the
//! component forwards.

use std::path::Path;
use std::sync::Arc;

use crate::common::testing::{Body, Collector, Recorder, Running, receivers};
use crate::pyroscope::relabel::DEFINITION;
use alluvium_lang::value::{Number, Value};
use alluvium_profile::{Labels, RawProfile};

fn body(sink: &Arc<Collector>, action: &str, regex: &str) -> Body {
    Body::new().with("forward_to", receivers([sink.clone() as _])).block(
        "rule",
        Body::new()
            .text("action", action)
            .text("regex", regex)
            .with("source_labels", Value::array([Value::string("env")]))
            .text("target_label", if action == "replace" { "stage" } else { "" }),
    )
}

fn profile(env: &str) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs([("__name__", "cpu"), ("env", env)]),
        id: "".into(),
        pprof: bytes::Bytes::from_static(b"x"),
    }
}

#[tokio::test]
async fn profiles_are_changed_dropped_and_counted() {
    let sink = Arc::new(Collector::default());
    let recorder = Recorder::new("pyroscope.relabel.test", Path::new("/nonexistent"));
    let running = Running::start(&DEFINITION, &recorder, &body(&sink, "drop", "dev"));
    let receiver = recorder.receiver();
    assert!(receiver.append(vec![profile("dev"), profile("prod")]).await.is_empty());
    assert!(receiver.append(vec![profile("prod")]).await.is_empty());
    assert_eq!(sink.profiles().len(), 2);

    let update = body(&sink, "replace", "(.*)").arguments(&DEFINITION);
    running.component.update(update).unwrap();
    // The receiver stays the same after an update, so components that refer to it need no new evaluation.
    assert!(receiver.append(vec![profile("dev")]).await.is_empty());
    assert!(Arc::ptr_eq(&receiver, &recorder.receiver()));
    assert_eq!(sink.profiles()[2].labels.get("stage"), Some("dev"));

    let metrics = recorder.context.metrics.encode();
    for line in [
        "pyroscope_relabel_profiles_processed 4",
        "pyroscope_relabel_profiles_written 3",
        "pyroscope_relabel_profiles_dropped 1",
        "pyroscope_relabel_cache_hits 1",
        "pyroscope_relabel_cache_misses 3",
        "pyroscope_relabel_cache_size 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    running.stop().await;
    assert_eq!(receiver.append(vec![profile("x")]).await.len(), 1);
}

#[test]
fn a_cache_of_no_size_is_refused() {
    let sink = Arc::new(Collector::default());
    let body = body(&sink, "drop", "x").with("max_cache_size", Value::Number(Number::Int(0)));
    assert_eq!(
        body.read(&DEFINITION).unwrap_err(),
        "max_cache_size: max_cache_size must be greater than 0"
    );
}
