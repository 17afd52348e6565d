//! Tests of scans that run while another thread applies profiles: neither waits for the other, and a view contains
//! exactly the profiles that were applied before its creation.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;

use crate::store::common::schema;
use crate::store::common::schema::{Table, column};
use crate::store::head::{Head, HeadView};
use crate::store::ingest::{self, Prepared};
use crate::store::rules::limits::Limits;
use crate::store::tables::snapshot::{HeadScan, ScanFilter};
use alluvium_profile::pprof;
use alluvium_profile::{Labels, RawProfile};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const PROFILES: u64 = 60;
/// Maximum time to wait for another thread. Only a failing test waits this long.
const LONG: Duration = Duration::from_secs(20);

/// Returns one profile of a sequence. The profiles add new functions, stacks, series, days and tenants.
fn prepared(number: u64) -> (&'static str, Prepared) {
    let names = Names::new(20 + number as usize);
    let shape = Shape {
        functions: 20 + number as usize,
        samples: 1 + (number as usize * 37) % 150,
        depth: 9,
        labelled_every: (number as usize % 3) * 4,
    };
    let mut profile = cpu_profile(&names, shape, number);
    profile.time_nanos = 1_800_000_000_000_000_000 + (number as i64 % 3) * 86_400_000_000_000;
    let raw = RawProfile {
        labels: Labels::from_pairs([
            ("__name__", "process_cpu".to_owned()),
            ("service_name", format!("service {}", number % 7)),
            ("pod", format!("pod {}", number / 10)),
        ]),
        id: format!("p{number}").as_str().into(),
        pprof: Bytes::from(pprof::encode(&profile)),
    };
    let tenant = ["one", "two"][number as usize % 2];
    (tenant, ingest::prepare(&raw, 0, &Limits::unlimited()).unwrap())
}

fn numbers(batches: &[RecordBatch], name: &str) -> Vec<i64> {
    let column = |batch: &RecordBatch| schema::integers(batch, name).unwrap().to_vec();
    batches.iter().flat_map(column).collect()
}

/// Returns the contents of a view: the sorted ids of profiles with their totals, one per type, and the sum of all
/// samples.
fn content(view: &HeadView) -> (Vec<(String, i64)>, i64) {
    let all = ScanFilter::default();
    let profiles = view.scan(Table::Profiles, &all);
    let mut totals = Vec::new();
    for batch in &profiles {
        let ids = batch.column_by_name("profile_id").unwrap().as_string::<i32>();
        let own = batch.column_by_name(column::TOTAL).unwrap().as_primitive::<Int64Type>();
        totals.extend((0..batch.num_rows()).map(|row| (ids.value(row).to_owned(), own.value(row))));
    }
    totals.sort();
    let samples = view.scan(Table::Samples, &all);
    let counts: i64 = numbers(&profiles, column::SAMPLE_COUNT).iter().sum();
    assert_eq!(
        counts as usize,
        samples.iter().map(RecordBatch::num_rows).sum::<usize>()
    );
    let sum = numbers(&samples, column::VALUE).iter().sum();
    let sums: i64 = view.sum_stacks(&all).unwrap().iter().map(|(_, value)| value).sum();
    assert_eq!(sums, sum);

    // For each day and tenant, each id of a stack or series occurs once, and no id of a sample row is missing.
    for (table, name) in [(Table::Stacks, column::STACK), (Table::Series, column::SERIES)] {
        for tenant in ["one", "two"] {
            let own = ScanFilter {
                tenants: Some(tenant_id(tenant).into()),
                ..ScanFilter::default()
            };
            let with_day = |batches: &[RecordBatch]| {
                let mut rows = Vec::new();
                for batch in batches {
                    let days = batch.column(1).as_primitive::<arrow::datatypes::Date32Type>().values();
                    rows.extend(
                        days.iter()
                            .copied()
                            .zip(schema::integers(batch, name).unwrap().to_vec()),
                    );
                }
                rows
            };
            let named = with_day(&view.scan(table, &own));
            let distinct: HashSet<_> = named.iter().copied().collect();
            assert_eq!(named.len(), distinct.len());
            assert!(
                with_day(&view.scan(Table::Samples, &own))
                    .iter()
                    .all(|row| distinct.contains(row))
            );
        }
    }
    (totals, sum)
}

#[test]
fn scans_beside_appends_see_the_profiles_of_their_view_each_once() {
    let profiles: Vec<_> = (0..PROFILES).map(prepared).collect();
    // The expected contents of a view by its number of profiles, from a head that no other thread changes.
    let reference = Arc::new(Head::new(Arc::default()));
    let mut expected = vec![(Vec::new(), 0)];
    for (tenant, profile) in &profiles {
        reference.apply(&tenant_id(tenant), profile);
        expected.push(content(&reference.view()));
    }
    let head = Arc::new(Head::new(Arc::default()));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut applied_counts = HashSet::new();
                    loop {
                        let is_last = is_done.load(Ordering::Acquire);
                        let view = head.view();
                        assert_eq!(content(&view), expected[view.applied as usize]);
                        applied_counts.insert(view.applied);
                        if is_last {
                            return applied_counts.len();
                        }
                    }
                })
            })
            .collect();
        for (tenant, profile) in &profiles {
            head.apply(&tenant_id(tenant), profile);
            std::thread::yield_now();
        }
        is_done.store(true, Ordering::Release);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    // Each view contains the profiles that were applied before its creation, whenever the view is read.
    let (first, rest) = profiles.split_at(profiles.len() / 2);
    let head = Arc::new(Head::new(Arc::default()));
    let mut views = Vec::new();
    for (tenant, profile) in first.iter().chain(rest) {
        head.apply(&tenant_id(tenant), profile);
        views.push(head.view());
    }
    for (index, view) in views.iter().enumerate().step_by(7) {
        assert_eq!(content(view), expected[index + 1]);
    }
}

#[test]
fn profiles_that_come_while_a_reader_holds_a_batch_are_not_in_its_scan() {
    let head = Arc::new(Head::new(Arc::default()));
    let (tenant, profile) = prepared(1);
    for _ in 0..5 {
        head.apply(&tenant_id(tenant), &profile);
    }
    let view = head.view();
    let before = content(&view);
    for table in Table::ALL {
        // The head grows during the callback. A lock that the scan held would prevent that.
        let mut rows = 0;
        view.scan_with(table, &ScanFilter::default(), &mut |batch| {
            rows += batch.num_rows();
            let (sender, receiver) = channel();
            let head = head.clone();
            std::thread::spawn(move || {
                for number in 0..20 {
                    let (tenant, profile) = prepared(number);
                    head.apply(&tenant_id(tenant), &profile);
                }
                sender.send(())
            });
            assert!(receiver.recv_timeout(LONG).is_ok(), "a profile waited for the reader");
            ControlFlow::Continue(())
        });
        assert!(rows > 0);
    }
    assert_eq!(content(&view), before);
}

#[test]
fn a_scan_ends_at_the_batch_at_which_its_reader_stops() {
    let head = Arc::new(Head::new(Arc::default()));
    for number in 0..10 {
        let (tenant, profile) = prepared(number);
        head.apply(&tenant_id(tenant), &profile);
    }
    for table in Table::ALL {
        let mut batches = 0;
        head.view().scan_with(table, &ScanFilter::default(), &mut |_| {
            batches += 1;
            ControlFlow::Break(())
        });
        assert_eq!(batches, 1);
    }
}
