//! Flame graphs of a running server, as the pages and scripts of Pyroscope read them (`/pyroscope/render`), and the
//! same profiles as pprof (`SelectMergeProfile`).
//!
//! Out: the values of functions and stacks. The levels are read here and not by Alluvium's own types.

use std::collections::BTreeSet;
use std::path::Path;

use alluvium::server::ServerOptions;
use alluvium_profile::pprof;
use alluvium_wire::call::Caller;
use alluvium_wire::querier::{QuerierClient, Selection};
use serde_json::Value;

use crate::http_store::{Site, now_ms};
use crate::pprof::Table;
use crate::program::run;

/// Time before and after now that is queried, in milliseconds.
const SPAN: i64 = 3_600_000;

/// A flame graph. Stacks begin at the root; the frame `total` is left out.
#[derive(Debug)]
pub(crate) struct Flames {
    pub(crate) total: i64,
    /// Unit of the values, as the server names it for the page.
    pub(crate) units: String,
    stacks: Vec<(Vec<String>, i64)>,
}

impl Flames {
    /// Asks a server for the flame graph of a profile type and a selector in braces.
    pub(crate) async fn ask(client: &reqwest::Client, url: &str, profile_type: &str, selector: &str) -> Self {
        let (from, until) = ((now_ms() - SPAN).to_string(), (now_ms() + SPAN).to_string());
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("query", &format!("{profile_type}{selector}"))
            .append_pair("from", &from)
            .append_pair("until", &until)
            .append_pair("maxNodes", "16384")
            .append_pair("format", "json")
            .finish();
        let answer = client.get(format!("{url}/pyroscope/render?{query}")).send();
        let answer = answer.await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{profile_type}{selector}: {status} {text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        let flames = Self {
            total: answer["flamebearer"]["numTicks"].as_i64().unwrap(),
            units: answer["metadata"]["units"].as_str().unwrap().to_owned(),
            stacks: stacks(&answer["flamebearer"]),
        };
        let sum: i64 = flames.stacks.iter().map(|(_, value)| value).sum();
        assert_eq!(sum, flames.total, "{profile_type}{selector}: {text}");
        flames
    }

    /// Returns the sum of the stacks with a function, whatever file stands before its name (`busy.js:burn:7`).
    pub(crate) fn with(&self, function: &str) -> i64 {
        let is_it = |name: &String| {
            name == function
                || name
                    .split_once(':')
                    .is_some_and(|(_, rest)| rest.split(':').next() == Some(function))
        };
        let stacks = self.stacks.iter().filter(|(stack, _)| stack.iter().any(is_it));
        stacks.map(|(_, value)| value).sum()
    }

    /// Returns the values of all functions.
    fn table(&self) -> Table {
        let mut table = Table::new();
        for (stack, value) in &self.stacks {
            for name in stack.iter().collect::<BTreeSet<_>>() {
                table.entry(name.clone()).or_default().1 += value;
            }
            if let Some(leaf) = stack.last() {
                table.entry(leaf.clone()).or_default().0 += value;
            }
        }
        table
    }
}

/// Uploads files with `alluvium upload`, each as a service of its own, and compares their flame graphs. A file comes
/// with a part of its profile type, such as `wall:nanoseconds`, and the expected values of all its functions.
pub(crate) fn uploaded(files: &[(&Path, &str, Table)]) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let site = Site::new(ServerOptions::default()).await;
        let (client, url) = (&site.server.client, site.server.url.as_str());
        for (at, (path, kind, expected)) in files.iter().enumerate() {
            let label = format!("service_name=file-{at}");
            let path = path.to_str().unwrap();
            let (succeeded, _, errors) =
                run(&["upload", path, "--url", url, "--label", &label, "--override-timestamp"]);
            assert!(succeeded, "{path}: {errors}");
            let selector = format!("{{service_name=\"file-{at}\"}}");
            let wanted = vec!["__profile_type__".to_owned()];
            let (start, end) = (now_ms() - SPAN, now_ms() + SPAN);
            let querier = site.server.querier();
            let series = querier
                .series(vec![selector.clone()], wanted, start, end)
                .await
                .unwrap();
            let mut types = series.iter().filter_map(|labels| labels.get("__profile_type__"));
            let profile_type = types.find(|profile_type| profile_type.contains(kind));
            let profile_type = profile_type.unwrap_or_else(|| panic!("{path}: no {kind} in {series:?}"));
            let flames = Flames::ask(client, url, profile_type, &selector).await;
            let mut expected = expected.clone();
            expected.retain(|_, values| *values != (0, 0));
            assert_eq!(flames.table(), expected, "{path} {profile_type}");
        }
    });
}

/// Returns the stacks of a flamebearer with their own values. A block of a level is four numbers: the distance from the
/// block before it, its total, its own value, and its name.
fn stacks(flamebearer: &Value) -> Vec<(Vec<String>, i64)> {
    let list = |value: &Value| value.as_array().unwrap().clone();
    let names = list(&flamebearer["names"]);
    let mut stacks = Vec::new();
    let mut above: Vec<(i64, i64, Vec<String>)> = vec![(0, i64::MAX, Vec::new())];
    for (depth, level) in list(&flamebearer["levels"]).iter().enumerate() {
        let numbers: Vec<i64> = list(level).iter().map(|number| number.as_i64().unwrap()).collect();
        let mut end = 0;
        let mut blocks = Vec::new();
        for block in numbers.chunks_exact(4) {
            let start = end + block[0];
            end = start + block[1];
            let parent = above.iter().find(|(first, last, _)| *first <= start && end <= *last);
            let mut stack = parent.unwrap().2.clone();
            if depth > 0 {
                stack.push(names[block[3] as usize].as_str().unwrap().to_owned());
            }
            if block[2] != 0 {
                stacks.push((stack.clone(), block[2]));
            }
            blocks.push((start, end, stack));
        }
        above = blocks;
    }
    stacks
}

/// Returns `function file:line` of all frames of the merged profile, where `file` is the last part of the path.
pub(crate) async fn places(
    client: &reqwest::Client,
    url: &str,
    profile_type: &str,
    selector: &str,
) -> BTreeSet<String> {
    let selection = Selection {
        profile_type: profile_type.to_owned(),
        selector: selector.to_owned(),
        start_ms: now_ms() - SPAN,
        end_ms: now_ms() + SPAN,
    };
    let querier = QuerierClient::new(Caller::new(client.clone(), url.parse().unwrap()));
    let bytes = querier.merge_profile(selection).await.unwrap();
    let profile = pprof::decode(&bytes).unwrap();
    let lines = profile.locations.iter().flat_map(|location| profile.lines_of(location));
    lines
        .map(|line| {
            let function = profile.functions[line.function as usize];
            let file = function.file.rsplit('/').next().unwrap();
            format!("{} {file}:{}", function.name, line.line)
        })
        .collect()
}

#[test]
fn the_levels_of_a_flame_graph_are_its_stacks() {
    let graph = serde_json::json!({
        "names": ["total", "main", "x.js:work:7", "rest"],
        "levels": [[0, 10, 0, 0], [0, 9, 2, 1, 0, 1, 1, 3], [2, 3, 3, 2, 0, 4, 4, 3]],
    });
    let flames = Flames {
        total: 10,
        units: String::new(),
        stacks: stacks(&graph),
    };
    let values: Vec<i64> = ["main", "work", "rest", "x.js"].map(|name| flames.with(name)).into();
    assert_eq!(values, [9, 3, 5, 0]);
}
