//! Runs configurations whose values come from files and HTTP responses, under the real engine.
//!
//! The values follow changes of the files and responses, and secrets are never shown.

use std::sync::Arc;

use axum::Router;
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
	export "output" {{
		value = [{{"__address__" = "{address}"}}]
	}}
}}
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_and_modules_follow_a_file_and_a_url() {
    let answer = Arc::new(Mutex::new(r#"[{"__address__": "one:1"}]"#.to_owned()));
    let shared = answer.clone();
    let router = Router::new().route("/targets", get(move || std::future::ready(shared.lock().clone())));
    let (url, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("module"), module("three:3")).unwrap();
    // A text file ends with a line break, which is not part of the token.
    std::fs::write(file("token"), "hush\n").unwrap();
    let text = format!(
        r#"
remote.http "list" {{
	url            = "{url}/targets"
	poll_frequency = "1s"
	poll_timeout   = "900ms"
}}

local.file "module" {{
	filename = "{module}"
}}

local.file "token" {{
	filename  = "{token}"
	is_secret = true
}}

import.string "lib" {{
	content = local.file.module.content
}}

lib.targets "more" {{ }}

discovery.relabel "all" {{
	targets = array.concat(encoding.from_json(remote.http.list.content), lib.targets.more.output)
}}

pyroscope.write "default" {{
	endpoint {{
		url          = "{url}"
		bearer_token = local.file.token.content
	}}
}}
"#,
        module = file("module").display(),
        token = file("token").display(),
    );
    let data = tempfile::tempdir().unwrap();
    let controller = Controller::new(ALL, Options::new(data.path()));
    if let Err(diagnostics) = controller.load(vec![("config.alloy".to_owned(), text)]).await {
        panic!("{diagnostics:?}");
    }
    let shutdown = Shutdown::new();
    let running = tokio::spawn({
        let (controller, shutdown) = (controller.clone(), shutdown.clone());
        async move { controller.run(shutdown).await }
    });
    let all = || {
        controller
            .component("discovery.relabel.all")
            .unwrap()
            .exports
            .to_string()
    };
    assert!(all().contains("one:1") && all().contains("three:3"), "{}", all());
    *answer.lock() = r#"[{"__address__": "two:2"}]"#.to_owned();
    eventually("the new answer", || all().contains("two:2") && !all().contains("one:1")).await;
    std::fs::write(file("module"), module("four:4")).unwrap();
    eventually("the new module", || all().contains("four:4")).await;
    "no list".clone_into(&mut answer.lock());
    eventually("the trouble", || controller.unhealthy() == ["discovery.relabel.all"]).await;
    assert!(all().contains("two:2"), "the last targets stay");
    assert!(!controller.unhealthy().contains(&"pyroscope.write.default".to_owned()));
    std::fs::write(file("token"), "hush\nhush").unwrap();
    eventually("the error at the token", || {
        controller.unhealthy().contains(&"pyroscope.write.default".to_owned())
    })
    .await;
    let token = controller.component("local.file.token").unwrap();
    let shown = format!("{} {} {token:?}", token.exports, token.arguments);
    assert!(shown.contains("(secret)") && !shown.contains("hush"), "{shown}");
    shutdown.cancel();
    running.await.unwrap();
}
