//! Times and steps that are invalid in every query, sent to every call that has such fields.
//!
//! Scenario: a server with a minute of profiles, queried with the smallest and largest times of 64 bits. Guarantee: the
//! server responds with status 400 and the name of the field, and never uses another time instead. The years 1 to 9999
//! are accepted.

use alluvium::server::ServerOptions;
use serde_json::{Value, json};

use crate::http_store::{CPU, Site, now_ms, push_some};

/// Returns the calls with a time range, each with its other required fields.
fn calls() -> Vec<(&'static str, Value)> {
    let stacks = json!({"profileTypeID": CPU, "labelSelector": "{}"});
    let with = |name: &str, value: Value| {
        let mut question = stacks.clone();
        question[name] = value;
        question
    };
    let mut heatmap = with("step", json!(15));
    heatmap["queryType"] = json!("HEATMAP_QUERY_TYPE_INDIVIDUAL");
    vec![
        ("ProfileTypes", json!({})),
        ("LabelNames", json!({})),
        ("LabelValues", json!({"name": "service_name"})),
        ("Series", json!({"matchers": ["{}"]})),
        ("SelectMergeStacktraces", stacks.clone()),
        ("SelectMergeProfile", stacks.clone()),
        (
            "SelectMergeSpanProfile",
            with("spanSelector", json!(["00000000000000ab"])),
        ),
        ("SelectSeries", with("step", json!(15))),
        ("SelectHeatmap", heatmap),
        ("AnalyzeQuery", json!({"query": format!("{CPU}{{}}")})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn times_at_the_ends_of_64_bits_are_refused_by_name() {
    let site = Site::new(ServerOptions::default()).await;
    push_some(&site).await;
    let (year_1, year_9999, now) = (-62_135_596_800_000_i64, 253_402_300_799_999_i64, now_ms());
    for (call, question) in calls() {
        let ask = async |start: i64, end: i64| {
            let mut question = question.clone();
            (question["start"], question["end"]) = (json!(start), json!(end));
            let (status, answer) = site.ask(call, question).await;
            (status, answer["message"].as_str().unwrap_or_default().to_owned())
        };
        for far in [i64::MIN, i64::MIN + 1, i64::MIN / 1000, year_1 - 1] {
            let (status, message) = ask(far, now).await;
            assert!(
                status == 400 && message.contains("start must be"),
                "{call} {far}: {message}"
            );
        }
        for far in [i64::MAX, i64::MAX / 1000, year_9999 + 2] {
            let (status, message) = ask(now, far).await;
            assert!(
                status == 400 && message.contains("end must be"),
                "{call} {far}: {message}"
            );
        }
        let (status, message) = ask(year_1, year_9999).await;
        assert_eq!(status, 200, "{call}: {message}");
    }
    let side = |start: i64| json!({"profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": now});
    let question = json!({"left": side(now - 1), "right": side(i64::MIN)});
    let (status, answer) = site.ask("Diff", question).await;
    assert_eq!(status, 400);
    assert!(answer.to_string().contains("right.start must be"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_that_are_none_are_refused_by_name() {
    let site = Site::new(ServerOptions::default()).await;
    push_some(&site).await;
    for (call, mut question) in calls().into_iter().filter(|(_, question)| !question["step"].is_null()) {
        (question["start"], question["end"]) = (json!(now_ms() - 60_000), json!(now_ms()));
        for step in [
            json!(0),
            json!(-1),
            json!("NaN"),
            json!("Infinity"),
            json!("-Infinity"),
            json!(1e300),
        ] {
            question["step"] = step.clone();
            let (status, answer) = site.ask(call, question.clone()).await;
            assert!(
                status == 400 && answer.to_string().contains("step"),
                "{call} {step}: {answer}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_functions_of_sql_are_refused_as_well() {
    let site = Site::new(ServerOptions::default()).await;
    push_some(&site).await;
    for time in [
        "'99999-01-01'",
        "'+12345-01-01T00:00:00Z'",
        "CAST(9223372036854775807 AS TIMESTAMP)",
    ] {
        let query = format!("SELECT * FROM top('{CPU}{{}}', {time}, 'now')");
        let asked = site
            .server
            .post("/api/v1/sql")
            .header("content-type", "text/plain")
            .body(query);
        assert_eq!(asked.send().await.unwrap().status(), 400, "{time}");
    }
}
