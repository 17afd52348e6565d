//! Tests that the real engine loads modules over HTTP and follows their changes, with a server on this machine.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use parking_lot::Mutex;

use crate::ALL;
use crate::common::testing::{eventually, serve};
use alluvium_base::Shutdown;
use alluvium_pipeline::{Controller, Options};

fn module(address: &str) -> String {
    format!(
        r#"
declare "targets" {{
	discovery.relabel "all" {{
		targets = [{{"__address__" = "{address}"}}]
	}}

	export "output" {{
		value = discovery.relabel.all.output
	}}
}}
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_over_http_are_followed_and_bad_answers_change_nothing() {
    let answer = Arc::new(Mutex::new((StatusCode::OK, module("one:1"))));
    let shared = answer.clone();
    let router = Router::new().route(
        "/lib/module.alloy",
        get(move |headers: HeaderMap| {
            let known = headers.get("authorization").is_some_and(|value| value == "Bearer hush");
            let answer = shared.lock().clone();
            async move {
                if known {
                    answer
                } else {
                    (StatusCode::UNAUTHORIZED, String::new())
                }
            }
        }),
    );
    let (url, _server) = serve(router).await;
    let text = |token: &str| {
        format!(
            r#"
import.http "lib" {{
	url            = "{url}/lib/module.alloy"
	poll_frequency = "50ms"
	poll_timeout   = "40ms"

	client {{
		bearer_token = "{token}"
	}}
}}

lib.targets "t" {{ }}
"#
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::new(ALL, Options::new(folder.path()));
    let load = |token: &str| controller.load(vec![("config.alloy".to_owned(), text(token))]);
    let refused = load("wrong").await.unwrap_err().to_string();
    assert!(refused.contains("401") && !refused.contains("wrong"), "{refused}");
    if let Err(diagnostics) = load("hush").await {
        panic!("{diagnostics:?}");
    }
    let shutdown = Shutdown::new();
    let running = tokio::spawn({
        let (controller, shutdown) = (controller.clone(), shutdown.clone());
        async move { controller.run(shutdown).await }
    });
    let exports = || controller.component("lib.targets.t").unwrap().exports.to_string();
    assert!(exports().contains("one:1"));
    *answer.lock() = (StatusCode::OK, module("two:2"));
    eventually("the new module", || exports().contains("two:2")).await;
    for invalid in [
        (StatusCode::INTERNAL_SERVER_ERROR, module("three:3")),
        (StatusCode::OK, "declare {".to_owned()),
        (
            StatusCode::OK,
            "import.file \"x\" {\n\tfilename = \"/etc/passwd\"\n}\n".to_owned(),
        ),
    ] {
        *answer.lock() = invalid;
        eventually("the trouble to show", || controller.unhealthy() == ["import.http.lib"]).await;
        assert!(exports().contains("two:2"));
        *answer.lock() = (StatusCode::OK, module("two:2"));
        eventually("all to be well", || controller.healthy()).await;
    }
    shutdown.cancel();
    running.await.unwrap();
}
