//! The format of log lines, and changes of level and format while the program runs.
//!
//! In: events sent to a subscriber that keeps its lines. No test touches the logs of the process.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{debug, error, info, info_span};

use super::{Format, Level, LogHandle, Settings, subscriber};

/// Runs `work` with these settings and returns its lines without their time.
fn lines(settings: Settings, work: impl FnOnce(&LogHandle)) -> Vec<String> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let sink = kept.clone();
    let (subscriber, handle) = subscriber(settings, move |line| sink.lock().push(line.to_owned()));
    tracing::subscriber::with_default(subscriber, || work(&handle));
    let lines = kept.lock().clone();
    lines.iter().map(|line| without_time(line)).collect()
}

fn without_time(line: &str) -> String {
    assert!(line.ends_with('\n'), "{line:?}");
    let line = line.trim_end_matches('\n');
    assert!(!line.contains('\n'), "{line:?}");
    let start = line.find("20").expect("a year");
    let time = &line[start..start + 27];
    assert!(chrono::DateTime::parse_from_rfc3339(time).is_ok(), "{time}");
    line.replacen(time, "T", 1)
}

#[test]
fn a_line_has_time_level_message_and_fields_in_order() {
    let logged = lines(Settings::default(), |_| {
        info!(
            url = "http://a/b?c=d",
            bytes = 12u64,
            ratio = 0.5,
            ok = true,
            "profile pushed"
        );
    });
    assert_eq!(
        logged,
        ["ts=T level=info msg=\"profile pushed\" url=\"http://a/b?c=d\" bytes=12 ratio=0.5 ok=true"]
    );
}

#[test]
fn values_that_could_be_misread_are_quoted() {
    let logged = lines(Settings::default(), |_| {
        info!(a = "", b = "x y", c = "line\none", d = "q\"q", e = "\u{1}", f = ?Some("z"), "plain");
    });
    assert_eq!(
        logged,
        [r#"ts=T level=info msg=plain a="" b="x y" c="line\none" d="q\"q" e="\u0001" f="Some(\"z\")""#]
    );
}

#[test]
fn json_lines_are_flat_objects() {
    let settings = Settings {
        format: Format::Json,
        ..Settings::default()
    };
    let logged = lines(settings, |_| {
        error!(
            count = 3,
            level = "own",
            nan = f64::NAN,
            text = "tab\t\"q\"",
            "it failed"
        );
    });
    let value: serde_json::Value = serde_json::from_str(&logged[0]).unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "ts": "T", "level": "error", "msg": "it failed", "count": 3, "level_": "own", "nan": "NaN",
            "text": "tab\t\"q\"",
        })
    );
}

#[test]
fn fields_of_spans_follow_and_the_innermost_wins() {
    let logged = lines(Settings::default(), |_| {
        let outer = info_span!("outer", component_id = "a.b", target = "outer");
        let _outer = outer.enter();
        let inner = info_span!("inner", target = "inner", later = tracing::field::Empty);
        let _inner = inner.enter();
        inner.record("later", 5);
        info!(n = 1, "done");
    });
    assert_eq!(
        logged,
        ["ts=T level=info msg=done n=1 target=inner later=5 component_id=a.b"]
    );
}

#[test]
fn level_and_format_change_while_running() {
    let logged = lines(Settings::default(), |handle| {
        debug!("not seen");
        let settings = Settings {
            level: Level::Debug,
            format: Format::Json,
        };
        handle.apply(settings).unwrap();
        debug!("seen");
        let settings = Settings {
            level: Level::Error,
            format: Format::Logfmt,
        };
        handle.apply(settings).unwrap();
        info!("not seen");
    });
    assert_eq!(logged, [r#"{"ts":"T","level":"debug","msg":"seen"}"#]);
}

#[test]
fn noisy_libraries_are_heard_from_warn_on() {
    let settings = Settings {
        level: Level::Debug,
        ..Settings::default()
    };
    let logged = lines(settings, |_| {
        info!(target: "pyroscope::backend::pprofrs::profiler", "starting cpu profiler");
        tracing::warn!(target: "hyper::proto", "odd");
    });
    assert_eq!(logged, ["ts=T level=warn msg=odd"]);
}

#[test]
fn passwords_in_urls_are_cut_out() {
    let logged = lines(Settings::default(), |_| {
        let error = std::io::Error::other("cannot reach https://user:s3cret@host:4040/x, nor ftp://t0ken@b");
        info!(url = "http://u:s3cret@h", error = %error, source = &error as &dyn std::error::Error, "no luck");
    });
    assert!(
        !logged[0].contains("s3cret") && !logged[0].contains("t0ken"),
        "{}",
        logged[0]
    );
    assert!(logged[0].contains("https://host:4040/x, nor ftp://b"), "{}", logged[0]);
}

#[test]
fn unknown_words_name_the_choices() {
    assert_eq!(
        "loud".parse::<Level>().unwrap_err().to_string(),
        "unrecognized log level `loud`: use one of debug, info, warn, error"
    );
    assert_eq!(
        "xml".parse::<Format>().unwrap_err().to_string(),
        "unrecognized log format `xml`: use one of logfmt, json"
    );
    for level in [Level::Debug, Level::Info, Level::Warn, Level::Error] {
        assert_eq!(level.to_string().parse::<Level>().unwrap(), level);
    }
    for format in [Format::Logfmt, Format::Json] {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
}
