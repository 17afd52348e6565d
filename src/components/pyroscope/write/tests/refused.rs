//! Profiles that an endpoint refuses, alone or with others.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_partial_answer_does_not_name_is_not_sent_again() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let labels = Arc::new(Mutex::new(Vec::new()));
    let stored = labels.clone();
    endpoint.set_verdict(move |request| {
        let mut message = Vec::new();
        for (index, series) in request.series.iter().enumerate() {
            let name = service(&series.labels);
            if name == "s0003" {
                message.push(format!("series {index}, profile {}: wrong", series.samples[0].id));
            } else {
                stored.lock().push(name);
            }
        }
        if message.is_empty() {
            Ok(())
        } else {
            Err(ConnectError::invalid(message.join("\n")))
        }
    });
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let profiles: Vec<RawProfile> = names(0..8).iter().map(|name| profile(name)).collect();
    assert!(recorder.receiver().append(profiles).await.is_empty());
    eventually("the count", || {
        metric(&recorder, "pyroscope_write_dropped_profiles_total{") == 1.0
    })
    .await;
    assert_eq!(metric(&recorder, "pyroscope_write_sent_profiles_total{"), 7.0);
    let mut names = labels.lock().clone();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), labels.lock().len()), (7, 7));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_partial_answer_that_says_why_only_what_may_pass_is_sent_again() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let recorded = sizes.clone();
    endpoint.set_verdict(move |request| {
        recorded.lock().push(request.series.len());
        if request.series.len() == 1 {
            return Ok(());
        }
        let invalid = SinkError::new(SinkErrorKind::Invalid, "wrong");
        let full = SinkError::new(SinkErrorKind::Unavailable, "the disk is full");
        let services = request.series.iter().map(|series| service(&series.labels)).enumerate();
        let refused = services.filter_map(|(series, service)| match service.as_str() {
            "s0003" => Some((Position { series, sample: 0 }, &invalid)),
            "s0005" => Some((Position { series, sample: 0 }, &full)),
            _ => None,
        });
        // The message names no profile: only the detail does.
        Err(ConnectError::new(Code::Unavailable, "partly").with_detail(refusals::to_detail(refused)))
    });
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let profiles: Vec<RawProfile> = names(0..8).iter().map(|name| profile(name)).collect();
    assert!(recorder.receiver().append(profiles).await.is_empty());
    eventually("the second request", || endpoint.services() == ["s0005"]).await;
    eventually("the count", || {
        metric(&recorder, "pyroscope_write_sent_profiles_total{") == 7.0
    })
    .await;
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total{"), 1.0);
    assert_eq!(*sizes.lock(), [8, 1]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_the_server_always_fails_at_does_not_block_the_queue() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    endpoint.set_verdict(|request| {
        let is_rejected = request.series.iter().any(|series| service(&series.labels) == "s0001");
        if is_rejected {
            Err(ConnectError::new(Code::Internal, "panic"))
        } else {
            Ok(())
        }
    });
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let body = Body::new().block(
        "endpoint",
        fast(&url).with("max_backoff_retries", Value::Number(Number::Int(3))),
    );
    let running = Running::start(&DEFINITION, &recorder, &body);
    append(&recorder, 0..4).await;
    eventually("the others", || endpoint.services() == ["s0000", "s0002", "s0003"]).await;
    eventually("the count", || {
        metric(&recorder, "pyroscope_write_dropped_profiles_total{") == 1.0
    })
    .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_fails_alone_for_a_short_time_is_not_dropped() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    // A server that starts fails on some profiles and accepts others.
    let count = AtomicUsize::new(0);
    endpoint.set_verdict(move |request| {
        let is_failing = request.series.iter().any(|series| service(&series.labels) == "s0001");
        if is_failing && count.fetch_add(1, Ordering::Relaxed) < 6 {
            Err(ConnectError::new(Code::Unknown, "service is unavailable"))
        } else {
            Ok(())
        }
    });
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let body = Body::new().block(
        "endpoint",
        Body::new()
            .text("url", &url)
            .text("min_backoff_period", "5ms")
            .with("max_backoff_retries", Value::Number(Number::Int(3)))
            .block("queue", Body::new().text("batch_wait", "10ms")),
    );
    let running = Running::start(&DEFINITION, &recorder, &body);
    append(&recorder, 0..4).await;
    eventually("all", || endpoint.services() == names(0..4)).await;
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total{"), 0.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_tried_again_unless_switched_off() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    endpoint.set_verdict(move |_| match counter.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err(ConnectError::new(Code::ResourceExhausted, "slow down")),
        _ => Ok(()),
    });
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    append(&recorder, 0..1).await;
    eventually("the profile", || endpoint.accepted.lock().len() == 1).await;
    assert_eq!(metric(&recorder, "pyroscope_write_retries_total{"), 2.0);

    let endpoint_without_retry = fast(&url).with("retry_on_http_429", Value::Bool(false));
    let arguments_without_retry = Body::new()
        .block("endpoint", endpoint_without_retry)
        .arguments(&DEFINITION);
    running.component.update(arguments_without_retry).unwrap();
    count.store(0, Ordering::Relaxed);
    append(&recorder, 1..2).await;
    eventually("the drop", || {
        metric(&recorder, "pyroscope_write_dropped_profiles_total{") == 1.0
    })
    .await;
    running.stop().await;
}
