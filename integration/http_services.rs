//! Services and routes over HTTP that are not about queries: the server's version, its configuration, settings of
//! users, uploaded files, and statistics about the tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::server::{ServerOptions, Settings};
use alluvium_profile::pprof;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::{Nowhere, TestServer};
use crate::http_store::{CPU, SAMPLES, Site, now_ms, push_some};

/// Returns status and JSON of a call.
pub(crate) async fn call(server: &TestServer, route: &str, tenant: &str, question: &Value) -> (u16, Value) {
    let request = server
        .post(route)
        .header("content-type", "application/json")
        .header("x-scope-orgid", tenant);
    let response = request.body(question.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

#[tokio::test]
async fn a_client_learns_what_the_server_speaks() {
    let server = TestServer::start(Arc::new(Nowhere), ServerOptions::default()).await;
    for prefix in ["", "/profile"] {
        let route = format!("{prefix}/version.v1.Version/Version");
        assert_eq!(
            call(&server, &route, "one", &json!({})).await,
            (200, json!({"QuerierAPI": "1"}))
        );
        let route = format!("{prefix}/capabilities.v1.FeatureFlagsService/GetFeatureFlags");
        let (status, answer) = call(&server, &route, "one", &json!({})).await;
        assert_eq!(status, 200, "{answer}");
        let flags = answer["featureFlags"].as_array().unwrap().iter();
        let flags: BTreeMap<&str, bool> = flags
            .map(|flag| (flag["name"].as_str().unwrap(), flag["enabled"] == json!(true)))
            .collect();
        assert!(
            flags["v2StorageLayer"] && flags["utf8LabelNames"] && !flags["pyroscopeRuler"],
            "{flags:?}"
        );
    }
}

#[tokio::test]
async fn the_configuration_in_force_is_shown_with_what_differs_from_the_default() {
    let values =
        |length: &str| BTreeMap::from([("limits.a", json!(length)), ("limits.b", json!(7)), ("c", json!(true))]);
    let settings = Settings {
        in_force: values("1h0m0s"),
        default: values("0s"),
        retention: BTreeMap::from([("team".parse().unwrap(), "24h0m0s".to_owned())]),
    };
    let options = ServerOptions {
        multi_tenant: true,
        settings: Arc::new(settings),
        ..ServerOptions::default()
    };
    let server = TestServer::start(Arc::new(Nowhere), options).await;
    for (route, expected) in [
        ("", "c: true\nlimits:\n  a: \"1h0m0s\"\n  b: 7\n"),
        ("/default", "c: true\nlimits:\n  a: \"0s\"\n  b: 7\n"),
        ("/diff", "limits:\n  a: \"1h0m0s\"\n"),
    ] {
        let answer = server.get(&format!("/api/v1/status/config{route}")).await;
        assert_eq!(answer, (200, expected.to_owned()), "{route}");
    }
    let limits = |tenant: Option<&'static str>| {
        let mut request = server.client.get(format!("{}/api/v1/tenant_limits", server.url));
        if let Some(tenant) = tenant {
            request = request.header("x-scope-orgid", tenant);
        }
        async { request.send().await.unwrap() }
    };
    for (tenant, expected) in [
        ("team", json!({"a": "1h0m0s", "b": 7, "retention_period": "24h0m0s"})),
        ("other", json!({"a": "1h0m0s", "b": 7})),
    ] {
        let mut answer: serde_json::Map<String, Value> =
            serde_json::from_str(&limits(Some(tenant)).await.text().await.unwrap()).unwrap();
        // The limits of profiles come from the store.
        assert_eq!(answer["max_label_names_per_series"], json!(30));
        let of_profiles = ["max_", "ingestion_", "reject_", "sample_type_", "disable_", "numeric_"];
        answer.retain(|name, _| !of_profiles.iter().any(|start| name.starts_with(start)));
        assert_eq!(Value::Object(answer), expected, "{tenant}");
    }
    assert_eq!(limits(None).await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_kept_by_tenant_and_an_older_one_replaces_no_newer_one() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    let ask = async |name: &str, tenant: &str, question: Value| {
        call(
            &site.server,
            &format!("/settings.v1.SettingsService/{name}"),
            tenant,
            &question,
        )
        .await
    };
    assert_eq!(ask("Get", "one", json!({})).await, (200, json!({})));
    let theme =
        |value: &str, at: i64| json!({"setting": {"name": "theme", "value": value, "modifiedAt": at.to_string()}});
    let dark = theme("dark", 2000);
    assert_eq!(ask("Set", "one", dark.clone()).await, (200, dark.clone()));
    let (status, answer) = ask("Set", "one", theme("light", 1999)).await;
    assert_eq!((status, &answer["code"]), (409, &json!("already_exists")), "{answer}");
    assert_eq!(ask("Set", "one", theme("blue", 2000)).await.0, 200);
    let (status, answer) = ask("Set", "one", json!({"setting": {"name": "now", "value": ""}})).await;
    let now: i64 = answer["setting"]["modifiedAt"].as_str().unwrap().parse().unwrap();
    assert!(status == 200 && now > 1_700_000_000_000, "{answer}");
    let (_, answer) = ask("Get", "one", json!({})).await;
    let names: Vec<&str> = answer["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|setting| setting["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names, &answer["settings"][1]["value"]),
        (vec!["now", "theme"], &json!("blue"))
    );
    assert_eq!(ask("Get", "two", json!({})).await, (200, json!({})));
    for _ in 0..2 {
        assert_eq!(ask("Delete", "one", json!({"name": "theme"})).await, (200, json!({})));
    }
    assert_eq!(
        ask("Get", "one", json!({})).await.1["settings"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for wrong in [
        json!({}),
        json!({"setting": {"value": "x"}}),
        json!({"setting": {"name": "x".repeat(257), "value": "x"}}),
    ] {
        assert_eq!(ask("Set", "one", wrong.clone()).await.0, 400, "{wrong}");
    }
    assert_eq!(ask("Delete", "one", json!({})).await.0, 400, "no name");
    let half = "x".repeat(600 << 10);
    assert_eq!(
        ask("Set", "one", json!({"setting": {"name": "a", "value": half}}))
            .await
            .0,
        200
    );
    assert_eq!(
        ask("Set", "one", json!({"setting": {"name": "b", "value": half}}))
            .await
            .0,
        400
    );
    assert_eq!(
        ask("Get", "one", json!({})).await.1["settings"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn a_server_whose_store_keeps_nothing_says_so() {
    let server = TestServer::start(Arc::new(Nowhere), ServerOptions::default()).await;
    let (status, answer) = call(&server, "/settings.v1.SettingsService/Get", "one", &json!({})).await;
    assert_eq!((status, &answer["code"]), (501, &json!("unimplemented")));
}

/// Returns a request that uploads a file.
fn file(name: &str, bytes: &[u8]) -> Value {
    json!({"name": name, "profile": STANDARD.encode(bytes)})
}

/// Returns the flame graph of a response.
fn drawn(answer: &Value) -> Value {
    serde_json::from_str(answer["flamebearerProfile"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_profile_is_drawn_kept_and_compared_and_is_in_no_table() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    let ask = async |name: &str, tenant: &str, question: Value| {
        let route = format!("/adhocprofiles.v1.AdHocProfileService/{name}");
        call(&site.server, &route, tenant, &question).await
    };
    assert_eq!(ask("List", "one", json!({})).await, (200, json!({})));
    let (status, cpu) = ask(
        "Upload",
        "one",
        file("cpu.pb.gz", include_bytes!("fixtures/pprof/go-cpu.pb.gz")),
    )
    .await;
    assert_eq!(status, 200, "{cpu}");
    assert_eq!(
        (&cpu["name"], &cpu["profileType"]),
        (&json!("cpu.pb.gz"), &json!("cpu"))
    );
    assert_eq!(
        cpu["profileTypes"],
        json!(["cpu", "samples"]),
        "the type that is shown comes first"
    );
    let graph = drawn(&cpu);
    assert_eq!(graph["metadata"]["name"], "cpu");
    assert!(graph["flamebearer"]["numTicks"].as_i64().unwrap() > 0, "{graph}");

    let (_, by_count) = ask("Get", "one", json!({"id": cpu["id"], "profileType": "samples"})).await;
    assert_eq!(drawn(&by_count)["metadata"]["name"], "samples");
    assert_eq!(by_count["uploadedAt"], cpu["uploadedAt"]);
    let (status, text) = ask("Upload", "one", file("a b", b"main;work 3\nmain;idle 4\n")).await;
    assert_eq!((status, &text["name"]), (200, &json!("a_b")), "{text}");
    let text_graph = drawn(&text);
    assert_eq!(
        text_graph["flamebearer"]["names"],
        json!(["total", "main", "idle", "work"])
    );
    assert_eq!(text_graph["flamebearer"]["numTicks"], 7, "sum of all line counts");

    let (_, listed) = ask("List", "one", json!({})).await;
    let ids: Vec<&Value> = listed["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kept| &kept["id"])
        .collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&&cpu["id"]) && ids.contains(&&text["id"]), "{listed}");
    let (_, later) = ask("Upload", "one", file("a", b"main;work 5\n")).await;
    let both = json!({"leftId": text["id"], "rightId": later["id"]});
    let (status, difference) = ask("Diff", "one", both.clone()).await;
    assert_eq!(
        (status, &difference["profileTypes"]),
        (200, &json!(["samples"])),
        "{difference}"
    );
    let graph = drawn(&difference);
    assert_eq!((&graph["leftTicks"], &graph["rightTicks"]), (&json!(7), &json!(5)));

    assert_eq!(ask("List", "two", json!({})).await, (200, json!({})));
    assert_eq!(ask("Get", "two", json!({"id": cpu["id"]})).await.0, 404);
    assert_eq!(ask("Diff", "two", both).await.0, 404);
    let stats = call(
        &site.server,
        "/querier.v1.QuerierService/GetProfileStats",
        "one",
        &json!({}),
    )
    .await;
    assert_eq!(stats, (200, json!({})), "uploads are not stored");
    for (name, question, status) in [
        ("Upload", json!({"name": "a", "profile": "%%"}), 400),
        ("Upload", json!({"name": "a"}), 400),
        ("Upload", file("a", b"{\"version\": 1}"), 400),
        ("Get", json!({"id": "../../VERSION"}), 404),
        ("Get", json!({"id": cpu["id"], "profileType": "heap"}), 400),
        ("Get", json!({"id": cpu["id"], "maxNodes": -1}), 400),
        (
            "Diff",
            json!({"leftId": cpu["id"], "rightId": text["id"], "profileType": "cpu"}),
            400,
        ),
    ] {
        let (got, answer) = ask(name, "one", question.clone()).await;
        assert_eq!(got, status, "{name} {question}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_uploaded_profiles_make_room() {
    let site = Site::new(ServerOptions::default()).await;
    let ask = async |name: &str, question: Value| {
        let route = format!("/adhocprofiles.v1.AdHocProfileService/{name}");
        call(&site.server, &route, "one", &question).await
    };
    let mut first = Value::Null;
    for number in 0..101 {
        let (status, answer) = ask("Upload", file("text", format!("main {number}1\n").as_bytes())).await;
        assert_eq!(status, 200, "{answer}");
        if number == 0 {
            first = answer["id"].clone();
            // Ids of the same millisecond have no order, so the second upload waits until the next millisecond.
            let uploaded_ms: i64 = answer["uploadedAt"].as_str().unwrap().parse().unwrap();
            while now_ms() <= uploaded_ms {
                tokio::task::yield_now().await;
            }
        }
    }
    assert_eq!(
        ask("List", json!({})).await.1["profiles"].as_array().unwrap().len(),
        100
    );
    assert_eq!(ask("Get", json!({"id": first})).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_looked_at_and_compared_without_being_kept() {
    let site = Site::new(ServerOptions::default()).await;
    let look = async |query: &str, body: &[u8]| {
        let request = site.server.post(&format!("/api/v1/adhoc?{query}"));
        let response = request.body(body.to_vec()).send().await.unwrap();
        let status = response.status().as_u16();
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        (status, answer)
    };
    let (status, cpu) = look("", include_bytes!("fixtures/pprof/go-cpu.pb.gz")).await;
    assert_eq!(status, 200, "{cpu}");
    assert_eq!(cpu["profileType"], CPU);
    assert_eq!(cpu["profileTypes"], json!([SAMPLES, CPU]));
    let graph = &cpu["flamegraph"];
    assert_eq!(graph["names"][0], "total");
    assert_eq!(
        graph["files"].as_array().unwrap().len(),
        graph["names"].as_array().unwrap().len()
    );

    let script = b"shop 7 [000] 10.500000: cycles: \n\t401136 work+0x16 (/opt/shop)\n\t401200 main+0x1 (/opt/shop)\n\n";
    let (status, text) = look("", script).await;
    assert_eq!(status, 200, "{text}");
    assert_eq!(text["flamegraph"]["names"], json!(["total", "shop", "main", "work"]));
    assert_eq!(look("", &pprof::gzip(script)).await, (200, text));

    let pushed = push_some(&site).await;
    let (from, until) = pushed.range();
    let compared = format!("type=cpu&baseline=%7B%7D&from={from}&until={until}");
    let (status, both) = look(&compared, include_bytes!("fixtures/pprof/go-cpu.pb.gz")).await;
    assert_eq!(status, 200, "{both}");
    assert_eq!(both["difference"]["leftTicks"], json!(pushed.total().to_string()));
    assert_eq!(both["difference"]["rightTicks"], graph["total"]);

    for (query, body, status) in [
        ("", &b""[..], 400),
        ("", b"what is this\n", 400),
        ("", b"\x00\x01\x02\xff", 400),
        ("type=heap", script, 400),
        ("maxNodes=-1", script, 400),
        ("id=..%2F..%2FVERSION", b"", 404),
    ] {
        let (got, answer) = look(query, body).await;
        assert_eq!(got, status, "{query}: {answer}");
    }
    let route = "/adhocprofiles.v1.AdHocProfileService/List";
    assert_eq!(call(&site.server, route, "one", &json!({})).await, (200, json!({})));

    let route = "/adhocprofiles.v1.AdHocProfileService/Upload";
    for kept_file in [b"main;work 3\n".to_vec(), pprof::gzip(b"main;work 3\n")] {
        let (status, kept) = call(&site.server, route, "one", &file("text", &kept_file)).await;
        assert_eq!(status, 200, "{kept}");
        let (status, again) = look(&format!("id={}", kept["id"].as_str().unwrap()), b"").await;
        assert_eq!((status, &again["flamegraph"]["total"]), (200, &json!("3")), "{again}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_what_a_tenant_has_in_files_and_who_sent_it() {
    let site = Site::new(ServerOptions::default()).await;
    let told = async |part: &str| {
        let (status, text) = site.server.get(&format!("/api/v1/status/{part}")).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let nothing = |table| json!({"table": table, "files": 0, "bytes": 0, "rows": 0});
    let empty = ["profiles", "samples", "series", "stacks"].map(nothing);
    assert_eq!(told("storage").await, json!({"tables": empty, "days": []}));
    assert_eq!(told("senders").await, json!({"senders": []}));

    let sent = site
        .server
        .post("/ingest?name=shop&format=pprof")
        .header("user-agent", "shop-agent/1.2")
        .body("no profile, and listed all the same");
    assert_eq!(sent.send().await.unwrap().status(), 400);
    let pushed = push_some(&site).await;
    site.flush().await;
    let storage = told("storage").await;
    let table = |name: &str| {
        let tables = storage["tables"].as_array().unwrap();
        tables.iter().find(|table| table["table"] == name).unwrap().clone()
    };
    assert_eq!(table("profiles")["rows"], 4 * 2, "four profiles of two types");
    assert!(table("samples")["bytes"].as_u64().unwrap() > 0 && pushed.total() > 0);
    let days = storage["days"].as_array().unwrap();
    let bytes = |rows: &[Value]| -> u64 { rows.iter().map(|row| row["bytes"].as_u64().unwrap()).sum() };
    assert_eq!(bytes(days), bytes(storage["tables"].as_array().unwrap()));

    let senders = told("senders").await;
    let senders = senders["senders"].as_array().unwrap();
    let own = senders
        .iter()
        .find(|sender| sender["agent"] == "shop-agent/1.2")
        .unwrap();
    assert_eq!(
        (&own["address"], &own["requests"], &own["failed"], &own["lastStatus"]),
        (&json!("127.0.0.1"), &json!(1), &json!(1), &json!(400))
    );
    assert_eq!(own["bytes"], 35);
    assert_eq!(senders.len(), 2, "{senders:?}");
}
