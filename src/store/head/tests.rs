//! Tests of the head: applied profiles appear in sums, views do not change, and batches have the tables' schemas.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;

use super::*;
use crate::store::common::schema::Table;
use crate::store::ingest::{self, Prepared};
use crate::store::rules::limits::Limits;
use crate::store::tables::snapshot::{HeadScan, ScanFilter};
use alluvium_profile::pprof::{self, Profile, SampleLabel};
use alluvium_profile::time::day_of;
use alluvium_profile::{Labels, RawProfile, TimeSpan};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const SHAPE: Shape = Shape {
    functions: 50,
    samples: 300,
    depth: 12,
    labelled_every: 10,
};

fn prepared(service: &str, profile: &Profile<'_>) -> Prepared {
    let raw = RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service)]),
        id: "p1".into(),
        pprof: Bytes::from(pprof::encode(profile)),
    };
    ingest::prepare(&raw, 0, &Limits::unlimited()).unwrap()
}

fn sum(batches: &[arrow::record_batch::RecordBatch], column: usize) -> i64 {
    batches
        .iter()
        .map(|batch| {
            batch
                .column(column)
                .as_primitive::<Int64Type>()
                .iter()
                .flatten()
                .sum::<i64>()
        })
        .sum()
}

fn filter() -> ScanFilter {
    ScanFilter::default()
}

#[test]
fn sums_of_all_tables_equal_those_of_the_profiles() {
    let names = Names::new(SHAPE.functions);
    let head = Arc::new(Head::new(Arc::default()));
    let tenant = tenant_id("t");
    let mut total = 0;
    for seed in 0..5 {
        let profile = cpu_profile(&names, SHAPE, seed);
        total += profile.values.iter().sum::<i64>();
        head.apply(&tenant, &prepared("shop", &profile));
    }
    let view = head.view();
    for table in Table::ALL {
        for batch in view.scan(table, &filter()) {
            assert_eq!(batch.schema(), table.schema());
        }
    }
    assert_eq!(sum(&view.scan(Table::Samples, &filter()), 6), total);
    assert_eq!(sum(&view.scan(Table::Profiles, &filter()), 5), total);
    let ids: HashSet<i64> = view
        .scan(Table::Stacks, &filter())
        .iter()
        .flat_map(|batch| batch.column(2).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    for batch in view.scan(Table::Samples, &filter()) {
        assert!(
            batch
                .column(5)
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .all(|id| ids.contains(id))
        );
    }
}

#[test]
fn a_view_stands_still_and_filters_hold() {
    let names = Names::new(SHAPE.functions);
    let head = Arc::new(Head::new(Arc::default()));
    let (one, two) = (tenant_id("one"), tenant_id("two"));
    let profile = cpu_profile(&names, SHAPE, 1);
    head.apply(&one, &prepared("shop", &profile));
    let before = head.view();
    head.apply(&one, &prepared("shop", &profile));
    head.apply(&two, &prepared("cart", &profile));
    let total = profile.values.iter().sum::<i64>();
    assert_eq!(sum(&before.scan(Table::Samples, &filter()), 6), total);
    let now = head.view();
    assert_eq!(sum(&now.scan(Table::Samples, &filter()), 6), 3 * total);
    let tenant = ScanFilter {
        tenants: Some(two.into()),
        ..filter()
    };
    assert_eq!(sum(&now.scan(Table::Samples, &tenant), 6), total);
    let profile_type = ScanFilter {
        profile_type: Some("process_cpu:samples:count:cpu:nanoseconds".into()),
        ..filter()
    };
    let ticks: i64 = profile.values.iter().step_by(2).sum();
    assert_eq!(sum(&now.scan(Table::Samples, &profile_type), 6), 3 * ticks);
    let time_us = profile.time_nanos / 1000;
    let time = ScanFilter {
        time: Some(TimeSpan::new(time_us + 1, i64::MAX)),
        ..filter()
    };
    assert!(now.scan(Table::Profiles, &time).is_empty());
    for filter in [filter(), tenant.clone(), profile_type.clone(), time.clone()] {
        for view in [&before, &now] {
            let sums = view.sum_stacks(&filter).unwrap();
            let distinct: HashSet<_> = sums.iter().map(|(stack, _)| *stack).collect();
            assert_eq!(distinct.len(), sums.len());
            let all: i64 = sums.iter().map(|(_, value)| value).sum();
            assert_eq!(all, sum(&view.scan(Table::Samples, &filter), 6));
        }
    }
    let projected = ScanFilter {
        projection: Some(Arc::from([6, 5])),
        ..filter()
    };
    assert_eq!(sum(&now.scan(Table::Samples, &projected), 0), 3 * total);
}

#[test]
fn links_and_repeated_stacks_keep_every_unit() {
    let names = Names::new(SHAPE.functions);
    let mut profile = cpu_profile(
        &names,
        Shape {
            labelled_every: 0,
            samples: 4,
            ..SHAPE
        },
        3,
    );
    // Four samples of one stack. One has a span id, and one has a trace id.
    let stack = profile.stack(0).to_vec();
    profile.sample_locations = stack.repeat(4);
    profile.sample_starts = (0..5).map(|index| index * stack.len() as u32).collect();
    profile.values = vec![1, 10, 2, 20, 4, 40, i64::MAX, 80];
    profile.labels = vec![SampleLabel::Text("span_id", "aa"), SampleLabel::Text("trace_id", "bb")];
    profile.label_starts = vec![0, 0, 1, 1, 2];
    let head = Arc::new(Head::new(Arc::default()));
    head.apply(&tenant_id("t"), &prepared("shop", &profile));
    let profile_type = ScanFilter {
        profile_type: Some("process_cpu:cpu:nanoseconds:cpu:nanoseconds".into()),
        ..filter()
    };
    let batches = head.view().scan(Table::Samples, &profile_type);
    let rows: Vec<(i64, Option<&str>, Option<&str>)> = batches
        .iter()
        .flat_map(|batch| {
            let text = |column: usize| batch.column(column).as_string::<i32>();
            (0..batch.num_rows()).map(move |row| {
                let get = |column: usize| (!text(column).is_null(row)).then(|| text(column).value(row));
                (batch.column(6).as_primitive::<Int64Type>().value(row), get(7), get(8))
            })
        })
        .collect();
    assert_eq!(rows, [(50, None, None), (20, Some("aa"), None), (80, None, Some("bb"))]);
    let stats = head
        .sorted(
            Table::Samples,
            &tenant_id("t"),
            day_of(profile.time_nanos / 1000),
            |_| Ok::<(), ()>(()),
        )
        .unwrap();
    assert_eq!(stats.rows, 6);
}

#[test]
fn sorted_batches_are_sorted_and_known_stacks_are_left_out() {
    let names = Names::new(SHAPE.functions);
    let known = Arc::<KnownStacks>::default();
    let head = Head::new(known.clone());
    let tenant = tenant_id("t");
    let profile = cpu_profile(&names, SHAPE, 1);
    let day = day_of(profile.time_nanos / 1000);
    for service in ["b", "a"] {
        head.apply(&tenant, &prepared(service, &profile));
    }
    let mut keys: Vec<(String, i64, i64)> = Vec::new();
    let stats = head
        .sorted(Table::Samples, &tenant, day, |batch| {
            let number = |column: usize| -> &Int64Array { batch.column(column).as_primitive::<Int64Type>() };
            for row in 0..batch.num_rows() {
                let profile_type = batch.column(2).as_string::<i32>().value(row).to_owned();
                keys.push((profile_type, number(1).value(row), number(3).value(row)));
            }
            Ok::<(), ()>(())
        })
        .unwrap();
    assert!(keys.is_sorted());
    assert_eq!(stats.rows, keys.len() as u64);
    let rows = |head: &Head| {
        head.sorted(Table::Stacks, &tenant, day, |_| Ok::<(), ()>(()))
            .unwrap()
            .rows
    };
    assert!(rows(&head) > 0);
    head.remember_stacks();
    let next = Head::new(known);
    next.apply(&tenant, &prepared("a", &profile));
    assert_eq!(rows(&next), 0);
}

#[test]
fn sorted_rows_stand_by_type_series_stack_and_time_however_profiles_came() {
    let names = Names::new(SHAPE.functions);
    let head = Arc::new(Head::new(Arc::default()));
    let tenant = tenant_id("t");
    let mut total = 0;
    // All profiles are on one day and out of order, and two have the same time.
    for (seconds, service) in [5i64, 1, 3, 3, 9, 2].into_iter().zip(["a", "b", "a", "a", "b", "a"]) {
        let mut profile = cpu_profile(&names, SHAPE, 4);
        profile.time_nanos = 1_800_000_000_000_000_000 + seconds * 1_000_000_000;
        total += profile.values.iter().sum::<i64>();
        head.apply(&tenant, &prepared(service, &profile));
    }
    let (mut batches, mut rows) = (Vec::new(), Vec::new());
    for (tenant, day) in head.days() {
        let stats = head.sorted(Table::Samples, &tenant, day, |batch| {
            batches.push(batch.clone());
            Ok::<(), String>(())
        });
        let stats = stats.unwrap();
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(stats.rows as usize, count);
        for batch in &batches {
            let times = batch
                .column(0)
                .as_primitive::<arrow::datatypes::TimestampMicrosecondType>();
            let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values().clone();
            let (series, stacks) = (column(1), column(3));
            for row in 0..batch.num_rows() {
                let profile_type = batch.column(2).as_string::<i32>().value(row).to_owned();
                rows.push((profile_type, series[row], stacks[row], times.value(row)));
            }
        }
        assert_eq!(stats.stack.unwrap().min.0, rows.iter().map(|row| row.2).min().unwrap());
        assert_eq!(stats.time.unwrap().max, rows.iter().map(|row| row.3).max().unwrap());
    }
    assert!(rows.is_sorted());
    assert_eq!(sum(&batches, 4), total);
}

/// Counts the stacks that a head adds to the tables. Returns the number of all stacks, the number with start lines of
/// functions, and the sum of these lines.
fn start_lines(head: &Head, profile: &Profile<'_>) -> (usize, usize, i64) {
    let (mut rows, mut with, mut sum) = (0, 0, 0);
    let day = day_of(profile.time_nanos / 1000);
    head.sorted(Table::Stacks, &tenant_id("t"), day, |batch| {
        let lists = batch.column_by_name("start_lines").unwrap().as_list::<i32>();
        let frames = batch.column_by_name("frames").unwrap().as_list::<i32>();
        rows += batch.num_rows();
        for row in (0..batch.num_rows()).filter(|row| lists.is_valid(*row)) {
            assert_eq!(lists.value_length(row), frames.value_length(row));
            let lines = lists.value(row);
            let lines = lines.as_primitive::<arrow::datatypes::Int32Type>().values();
            sum += lines.iter().map(|line| i64::from(*line)).sum::<i64>();
            with += 1;
        }
        Ok::<(), ()>(())
    })
    .unwrap();
    (rows, with, sum)
}

#[test]
fn a_stack_has_the_lines_at_which_functions_start_of_the_first_profile_that_knows_them() {
    let names = Names::new(SHAPE.functions);
    let tenant = tenant_id("t");
    let lined = cpu_profile(&names, SHAPE, 1);
    let shifted = |shift: fn(i64) -> i64| {
        let mut profile = lined.clone();
        for function in &mut profile.functions {
            function.start_line = shift(function.start_line);
        }
        prepared("a", &profile)
    };
    let (without_lines, later) = (shifted(|_| 0), shifted(|line| if line == 0 { 0 } else { line + 1000 }));
    let (overflowing, lined_too) = (shifted(|_| i64::MAX), prepared("b", &lined));
    let head_of = |profiles: &[&Prepared], known: &Arc<KnownStacks>| {
        let head = Head::new(known.clone());
        for profile in profiles {
            head.apply(&tenant, profile);
        }
        head
    };
    let lines = |profiles: &[&Prepared]| start_lines(&head_of(profiles, &Arc::default()), &lined);
    let expected = lines(&[&lined_too]);
    let (all, with, _) = expected;
    assert!(with > all / 2, "{expected:?}");
    assert_eq!(lines(&[&without_lines]), (all, 0, 0));
    assert_eq!(lines(&[&overflowing]), (all, 0, 0));
    for order in [
        [&without_lines, &lined_too, &later],
        [&lined_too, &later, &without_lines],
    ] {
        assert_eq!(lines(&order), expected);
    }

    // A flush between the profile without lines and the profile with lines changes nothing: the lines are stored once.
    let known = Arc::<KnownStacks>::default();
    let next = |profiles: &[&Prepared]| {
        let head = head_of(profiles, &known);
        let lines = start_lines(&head, &lined);
        head.remember_stacks();
        lines
    };
    assert_eq!(next(&[&without_lines]), (all, 0, 0));
    assert_eq!(next(&[&without_lines]), (0, 0, 0));
    assert_eq!(next(&[&without_lines, &lined_too]), (with, with, expected.2));
    assert_eq!(next(&[&lined_too, &later, &without_lines]), (0, 0, 0));
}
