//! Reports of a small profile. `integration/reports.rs` compares reports of real profiles with `go tool pprof`.

use alluvium_base::re2::Expression;

use crate::pprof::{Builder, Function, Line, Mapping, Profile, ValueType};
use crate::report::{Difference, Focus, Grouping, Options, Order, Report, ReportError, Side, Trim};

/// Creates a profile of stacks (root first), each with its time in units of 10 ms. `leaf+work` is one location, in
/// which `leaf` is inlined into `work`. All functions are in one file.
fn profile(samples: &[(&[&'static str], i64)]) -> Profile<'static> {
    let mut builder = Builder::new(Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        duration_nanos: 1_000_000_000,
        ..Profile::default()
    });
    let mapping = builder.mapping(Mapping {
        file: "/bin/shop",
        build_id: "abc",
        ..Mapping::default()
    });
    for (stack, count) in samples {
        let stack: Vec<u32> = stack
            .iter()
            .rev()
            .map(|name| {
                let names: Vec<&'static str> = name.split('+').collect();
                let lines: Vec<Line> = names
                    .iter()
                    .map(|name| {
                        let function = builder.function(Function {
                            name,
                            file: "shop//main.go",
                            ..Function::default()
                        });
                        Line { function, line: 7 }
                    })
                    .collect();
                builder.location(mapping, 0x1000 + name.len() as u64, &lines)
            })
            .collect();
        builder.sample(stack, [], &[count * 10_000_000]);
    }
    builder.finish()
}

fn options() -> Options {
    Options {
        grouping: Grouping::Functions,
        order: Order::Flat,
        trim: Trim::TOP,
        focus: Focus::default(),
        unit: None,
    }
}

const SAMPLES: [(&[&str], i64); 3] = [(&["main", "leaf+work"], 60), (&["main", "work"], 30), (&["main"], 10)];

#[test]
fn a_report_has_the_head_and_the_columns_of_pprof() {
    let report = Report::new(profile(&SAMPLES), 0, &options());
    let expected = "\
File: shop
Build ID: abc
Type: cpu
Duration: 1s, Total samples = 1000ms (  100%)
Showing nodes accounting for 1000ms, 100% of 1000ms total
      flat  flat%   sum%        cum   cum%
     600ms 60.00% 60.00%      600ms 60.00%  leaf (inline)
     300ms 30.00% 90.00%      900ms 90.00%  work
     100ms 10.00%   100%     1000ms   100%  main
";
    assert_eq!(report.top(), expected);
}

#[test]
fn places_are_what_the_grouping_says() {
    let names = |grouping| {
        let report = Report::new(profile(&SAMPLES), 0, &Options { grouping, ..options() });
        let text = report.top();
        let rows = text.lines().skip_while(|line| !line.starts_with("      flat")).skip(1);
        rows.map(|row| row.split_whitespace().skip(5).collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Grouping::Lines)[1], "work shop/main.go:7");
    assert_eq!(names(Grouping::FileFunctions)[2], "main shop/main.go");
    assert_eq!(names(Grouping::WholeFiles), ["shop/main.go"]);
    assert_eq!(
        names(Grouping::Addresses)[0],
        "0000000000001009 leaf shop/main.go:7 (inline)"
    );
}

#[test]
fn samples_that_are_not_wanted_are_left_out_of_the_rows_but_not_of_the_total() {
    let regex = |text: &str| Some(Expression::search(text).unwrap());
    let focused = |focus: &str, ignore: &str| {
        let focus = Focus {
            focus: regex(focus),
            ignore: regex(ignore),
        };
        Report::new(profile(&SAMPLES), 0, &Options { focus, ..options() })
    };
    let report = focused("wor", "le.f");
    let text = report.top();
    assert!(
        text.contains("Active filters:\n   focus=wor\n   ignore=le.f\n"),
        "{text}"
    );
    assert!(
        text.contains("Showing nodes accounting for 300ms, 30.00% of 1000ms total\n"),
        "{text}"
    );
    assert_eq!(report.unmatched(), [""; 0]);
    assert_eq!(focused("nobody", "none").unmatched(), ["focus", "ignore"]);
}

#[test]
fn peek_shows_callers_and_callees_or_says_that_nothing_matches() {
    let report = Report::new(profile(&SAMPLES), 0, &options());
    let text = report.peek(&Expression::search("^work$").unwrap()).unwrap();
    assert!(text.contains("900ms   100% |   main\n"), "{text}");
    assert!(text.contains("600ms 66.67% |   leaf (inline)\n"), "{text}");
    let error = report.peek(&Expression::search("nobody").unwrap()).unwrap_err();
    assert_eq!(error, ReportError::NoMatch("nobody".to_owned()));
}

#[test]
fn frames_that_the_profile_drops_are_taken_away_with_what_they_called() {
    let mut dropped = profile(&SAMPLES);
    dropped.drop_frames = "work";
    let text = Report::new(dropped, 0, &options()).top();
    assert!(
        text.ends_with("        1s   100%   100%         1s   100%  main\n"),
        "{text}"
    );
}

#[test]
fn two_profiles_are_compared_by_their_own_totals() {
    let side = |samples: &[(&[&'static str], i64)]| Side {
        profile: profile(samples),
        value: 0,
    };
    let after: [(&[&'static str], i64); 2] = [(&["main", "work"], 90), (&["main"], 10)];
    let text = Difference::new(side(&SAMPLES), side(&after), &options()).text(1);
    let expected = "\
Type: cpu
Before 1s, after 1s: 0
Showing top 1 nodes out of 3
    before  flat%      after  flat%    flat +-     cum +-
     600ms 60.00%          0     0%     -600ms     -600ms  leaf
";
    assert_eq!(text, expected);
}
