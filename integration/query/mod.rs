//! Queries through the engine's interface, over Parquet files and heads made by the fixture.

mod attacks;
mod attacks_extreme;
mod budgets;
mod exemplars;
mod expected;
mod fixture;
mod questions;
mod refusals;
mod sizes;
mod sql;
mod wire;
mod wire_frames;
mod wire_memory;

use std::sync::Arc;
use std::time::Duration;

use alluvium::query::output::format::{Format, encode_all};
use alluvium::query::{QueryEngine, QueryLimits, StackQuery, TimeRange};

use fixture::{CPU, HEAP, NOON, TestStore, profile};

/// Returns a store with two services of the tenant `one` in two regions over a minute, and with a service of the tenant
/// `two`. Half of the profiles are in files, and half in a head.
fn two_services() -> Arc<TestStore> {
    let store = TestStore::new();
    fill(&store, NOON);
    store
}

/// The form in which the store holds the added profiles.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Head,
    Files,
    Both,
}

fn fill(store: &TestStore, start: i64) {
    fill_with(store, start, Keep::Both);
}

fn fill_with(store: &TestStore, start: i64, keep: Keep) {
    for step in 0..4i64 {
        if step == 2 && keep == Keep::Both {
            store.to_files();
        }
        let time = start + step * 15_000;
        store.add(profile(
            "one",
            &[("service_name", "shop"), ("region", "eu"), ("pod", "shop-1")],
            CPU,
            time,
            &[
                (&[("work", "work.go", 10), ("main.main", "main.go", 5)], 100),
                (&[("runtime.gcDrain", "mgc.go", 7), ("main.main", "main.go", 6)], 30),
            ],
        ));
        store.add(profile(
            "one",
            &[("service_name", "cart"), ("region", "us"), ("pod", "cart-1")],
            CPU,
            time,
            &[
                (&[("work", "work.go", 10), ("main.main", "main.go", 5)], 7),
                (&[("idle", "idle.go", 1)], 3),
            ],
        ));
        store.add(profile(
            "one",
            &[("service_name", "shop"), ("region", "eu"), ("pod", "shop-1")],
            HEAP,
            time,
            &[(&[("alloc", "alloc.go", 3), ("main.main", "main.go", 5)], 1 << 20)],
        ));
        store.add(profile(
            "two",
            &[("service_name", "secret"), ("region", "eu")],
            CPU,
            time,
            &[(
                &[("launch_codes", "secret.go", 1), ("main.main", "main.go", 5)],
                1_000_000,
            )],
        ));
    }
    if keep == Keep::Files {
        store.to_files();
    } else {
        store.to_head();
    }
}

fn engine(store: Arc<TestStore>) -> QueryEngine {
    engine_with(store, QueryLimits::default())
}

fn engine_with(store: Arc<TestStore>, limits: QueryLimits) -> QueryEngine {
    QueryEngine::new(store, limits).unwrap()
}

/// Returns the time range of [`two_services`], which is one minute.
fn minute() -> TimeRange {
    TimeRange::new(NOON, NOON + 60_000)
}

fn stacks_of(profile_type: &str, selector: &str, range: TimeRange) -> StackQuery {
    let matchers = alluvium_profile::selector::parse(selector).unwrap();
    StackQuery::new(profile_type.parse().unwrap(), matchers, range)
}

/// Returns the rows of a query as JSON.
async fn rows(engine: &QueryEngine, tenant: &str, sql: &str) -> serde_json::Value {
    let result = engine
        .sql(&crate::harness::tenants(tenant), sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let text = encode_all(result, Format::Json)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    serde_json::from_slice(&text).unwrap()
}

fn short(limit: Duration) -> QueryLimits {
    QueryLimits {
        timeout: limit,
        ..QueryLimits::default()
    }
}
