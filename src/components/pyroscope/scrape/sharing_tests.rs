//! Tests of targets that several collectors share: which collector scrapes a target, and how a target moves.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::sync::watch;

use crate::common::testing::{Body, Collector, Recorder, Running, eventually, receivers, serve, targets};
use crate::pyroscope::scrape::DEFINITION;
use crate::pyroscope::scrape::sharing::share;
use alluvium_cluster::{Cluster, Member, Owner, Part, View, ring};
use alluvium_lang::value::{Number, Value};

const GOROUTINE: &[u8] = &[0x0a, 4, 8, 1, 16, 2];

fn member(name: &str) -> Member {
    Member::new(name.into(), ([127, 0, 0, 1], 1).into())
}

/// Returns the view of the collector `own` when these other collectors exist.
fn view(own: &Member, others: &[&str], part: Part) -> Arc<View> {
    let others = others.iter().map(|name| member(name)).collect();
    Arc::new(View::new(own.clone(), others, part))
}

/// Returns arguments that scrape only goroutines, every 100 ms.
fn body(discovered: Value, sink: &Arc<Collector>, path: &str) -> Body {
    let disabled = || Body::new().with("enabled", Value::Bool(false));
    let kinds = Body::new()
        .block("profile.block", disabled())
        .block("profile.memory", disabled())
        .block("profile.mutex", disabled())
        .block("profile.process_cpu", disabled())
        .block("profile.goroutine", Body::new().text("path", path));
    Body::new()
        .with("targets", discovered)
        .with("forward_to", receivers([sink.clone() as _]))
        .text("scrape_interval", "100ms")
        .block("profiling_config", kinds)
}

fn clustered(body: Body) -> Body {
    body.block("clustering", Body::new().with("enabled", Value::Bool(true)))
}

#[tokio::test]
async fn each_collector_scrapes_its_share_and_takes_over_what_others_had() {
    let (url, _server) = serve(Router::new().route("/p", get(|| async { GOROUTINE }))).await;
    let address = url.trim_start_matches("http://");
    let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    // Labels that begin with `__meta_` have no influence on the owner of a target.
    let targets_seen_by = |meta: &str| {
        let labels = |name: &String| {
            let pairs = [("__address__", address), ("__meta_seen_by", meta), ("number", name)];
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let all: Vec<_> = names.iter().map(labels).collect();
        Value::array(all.iter().map(|labels| {
            Value::object(
                labels
                    .iter()
                    .map(|(name, value)| (name.as_str(), Value::string(value.as_str()))),
            )
        }))
    };
    let own = member("a");
    let views = watch::Sender::new(view(&own, &[], Part::Viewer));
    let mut recorder = Recorder::new("pyroscope.scrape.test", Path::new("/nonexistent"));
    recorder.context.cluster = Cluster::new(views.subscribe());
    let sink = Arc::new(Collector::default());
    let shared = clustered(body(targets_seen_by("a"), &sink, "/p"));
    let running = Running::start(&DEFINITION, &recorder, &shared);
    let message = "0 profiles are scraped, the cluster has not assigned targets to this collector yet";
    eventually("the cluster is not ready", || recorder.health().1 == message).await;

    let two = view(&own, &["b"], Part::Participant);
    let keys = names
        .iter()
        .map(|name| ring::key([("__address__", address), ("number", name)]));
    let count = keys.filter(|key| two.owner(*key) == Owner::Own).count();
    assert!((5..=35).contains(&count), "{count}");
    views.send_replace(two);
    let left = 40 - count;
    let message = format!("{count} profiles are scraped, {left} targets belong to 1 other collectors");
    eventually("a share is taken", || recorder.health().1 == message).await;
    eventually("a profile", || !sink.profiles().is_empty()).await;
    let info = format!("{:?}", running.component.debug_info());
    assert_eq!(info.matches(r#""collector": "b""#).count(), left, "{info}");
    assert_eq!(info.matches(r#""health""#).count(), count, "{info}");
    let metrics = recorder.context.metrics.encode();
    assert!(
        metrics.contains(&format!("pyroscope_scrape_targets_elsewhere {left}")),
        "{metrics}"
    );

    // Meta labels from another discovery change nothing.
    running
        .component
        .update(clustered(body(targets_seen_by("b"), &sink, "/p")).arguments(&DEFINITION))
        .unwrap();
    views.send_replace(view(&own, &[], Part::Participant));
    let message = "40 profiles are scraped, 0 targets belong to 0 other collectors";
    eventually("all are taken over", || recorder.health().1 == message).await;

    // Without the block the component ignores the cluster.
    views.send_replace(view(&own, &["b"], Part::Participant));
    running
        .component
        .update(body(targets_seen_by("b"), &sink, "/p").arguments(&DEFINITION))
        .unwrap();
    eventually("all are its own", || recorder.health().1 == "40 profiles are scraped").await;
    running.stop().await;
}

#[test]
fn the_limit_of_targets_is_that_of_each_collector() {
    let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let labels: Vec<[(&str, &str); 1]> = names.iter().map(|name| [("__address__", name.as_str())]).collect();
    let labels: Vec<&[(&str, &str)]> = labels.iter().map(<[_; 1]>::as_slice).collect();
    let views = watch::Sender::new(view(&member("a"), &["b"], Part::Participant));
    let cluster = Cluster::new(views.subscribe());
    let share_of = |limit: usize| {
        let limits = Body::new().with("max_targets", Value::Number(Number::Int(limit as i64)));
        let body = clustered(body(targets(&labels), &Arc::default(), "/p")).block("limits", limits);
        let (own, _) = share(&body.arguments(&DEFINITION), &cluster);
        (own.targets.len(), own.beyond)
    };
    let (own, beyond) = share_of(0);
    assert!((5..=35).contains(&own) && beyond == 0, "{own} {beyond}");
    assert_eq!(share_of(own), (own, 0));
    assert_eq!(share_of(own - 2), (own - 2, 2));
}

#[tokio::test]
async fn a_scrape_that_is_under_way_when_its_target_moves_is_finished() {
    let begin_count = Arc::new(AtomicUsize::new(0));
    let finish = Arc::new(tokio::sync::Notify::new());
    let (counter, finished) = (begin_count.clone(), finish.clone());
    let slow = get(move || {
        let finished = finished.clone();
        counter.fetch_add(1, Ordering::Relaxed);
        async move {
            finished.notified().await;
            GOROUTINE
        }
    });
    let (url, _server) = serve(Router::new().route("/slow", slow)).await;
    let address = url.trim_start_matches("http://").to_owned();
    let own = member("a");
    let views = watch::Sender::new(view(&own, &[], Part::Participant));
    let mut recorder = Recorder::new("pyroscope.scrape.test", Path::new("/nonexistent"));
    recorder.context.cluster = Cluster::new(views.subscribe());
    let sink = Arc::new(Collector::default());
    let discovered = targets(&[&[("__address__", address.as_str())]]);
    let running = Running::start(&DEFINITION, &recorder, &clustered(body(discovered, &sink, "/slow")));
    eventually("a scrape has begun", || begin_count.load(Ordering::Relaxed) == 1).await;
    views.send_replace(view(&own, &[], Part::Viewer));
    eventually("the target has moved", || recorder.health().1.starts_with("0 profiles")).await;
    finish.notify_one();
    eventually("the profile", || sink.profiles().len() == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(begin_count.load(Ordering::Relaxed), 1);
    running.stop().await;
}
