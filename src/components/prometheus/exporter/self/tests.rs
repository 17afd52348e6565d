//! Tests of the exported target, and of the metrics at the path that the target names.

use std::path::Path;

use bytes::Bytes;
use http::{Request, StatusCode};

use crate::common::testing::{Body, Recorder, Running};
use crate::prometheus::exporter::own::DEFINITION;
use alluvium_base::net;
use alluvium_pipeline::component::own_http::OwnHttp;

#[tokio::test]
async fn the_target_leads_to_the_metrics_of_the_program() {
    let mut recorder = Recorder::new("mod.a/prometheus.exporter.self.me", Path::new("/nonexistent"));
    recorder.context.own_http = OwnHttp::new("alloy.internal:12345");
    let running = Running::start(&DEFINITION, &recorder, &Body::new());
    let id = "mod.a/prometheus.exporter.self.me";
    let expected = format!(
        "{{__address__=alloy.internal:12345,__meta_component_id={id},\
         __meta_component_name=mod.a/prometheus.exporter.self,\
         __metrics_path__=/api/v0/component/{id}/metrics,__scheme__=http,instance={},job=integrations/self}}",
        net::hostname()
    );
    assert_eq!(recorder.exported_targets("targets"), [expected]);

    let counter = prometheus_client::metrics::counter::Counter::<u64>::default();
    counter.inc();
    recorder.context.metrics.register("test_things", "Things", counter);
    let ask = |path: &str| {
        let request = Request::get(path).body(Bytes::new()).unwrap();
        running.component.serve(request).unwrap()
    };
    let answer = ask("/metrics").await;
    assert!(
        std::str::from_utf8(answer.body())
            .unwrap()
            .contains("test_things_total 1")
    );
    assert_eq!(
        answer.headers()["content-type"],
        alluvium_telemetry::metrics::CONTENT_TYPE
    );
    assert_eq!(ask("/elsewhere").await.status(), StatusCode::NOT_FOUND);
    running.stop().await;
}
