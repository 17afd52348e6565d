//! Builds the options of async-profiler's agent, which are separated by commas. The module does no I/O.

use std::time::Duration;

use crate::pyroscope::java::arguments::ProfilingConfig;

/// Returns the options that start a recording to `file`. The recording ends by itself after `limit`.
pub(super) fn start(config: &ProfilingConfig, limit: Duration, file: &str, log: &str) -> String {
    let mut words = vec!["start".to_owned(), "jfr".to_owned()];
    if config.custom_arguments.is_empty() {
        if config.cpu {
            words.push(format!("event={}", config.event));
            words.push(format!("interval={}", config.period().as_nanos()));
            if config.per_thread {
                words.push("threads".to_owned());
            }
        }
        if !config.alloc.is_empty() {
            words.push(format!("alloc={}", config.alloc));
            if config.tlab {
                words.push("tlab".to_owned());
            }
        }
        if !config.lock.is_empty() {
            words.push(format!("lock={}", config.lock));
        }
        if !config.log_level.is_empty() {
            words.push(format!("loglevel={}", config.log_level));
        }
    } else {
        words.extend(from_command_line(&config.custom_arguments));
    }
    if config.quiet {
        words.push("quiet".to_owned());
    }
    words.push(format!("timeout={}", limit.as_secs()));
    words.push(format!("file={file}"));
    words.push(format!("log={log}"));
    words.join(",")
}

/// Returns the options that stop the recording to `file`.
pub(super) fn stop(file: &str, log: &str) -> String {
    format!("stop,jfr,file={file},log={log}")
}

/// Converts arguments of the program `asprof`, such as `-e cpu`, `--alloc 1m` and `--live`, to options of the agent.
/// An argument without a leading dash is passed on unchanged.
fn from_command_line(arguments: &[std::sync::Arc<str>]) -> Vec<String> {
    /// Arguments and the options that they stand for.
    const SHORT: [(&str, &str); 9] = [
        ("-e", "event"),
        ("-i", "interval"),
        ("-j", "jstackdepth"),
        ("-t", "threads"),
        ("-I", "include"),
        ("-X", "exclude"),
        ("-L", "loglevel"),
        ("-F", "features"),
        ("--all-user", "alluser"),
    ];
    /// Names of arguments that never take a value.
    const FLAGS: [&str; 10] = [
        "all",
        "alluser",
        "live",
        "nobatch",
        "nofree",
        "nostop",
        "record-cpu",
        "sched",
        "threads",
        "tlab",
    ];
    let mut options = Vec::new();
    let mut arguments = arguments.iter().peekable();
    while let Some(argument) = arguments.next() {
        let abbreviation = SHORT.iter().find(|(abbreviation, _)| **abbreviation == **argument);
        let name = match (abbreviation, argument.strip_prefix("--")) {
            (Some((_, name)), _) => name,
            (None, Some(name)) => name,
            (None, None) => {
                options.push(argument.to_string());
                continue;
            }
        };
        match arguments.next_if(|value| !value.starts_with('-') && !FLAGS.contains(&name)) {
            // A comma would end the option.
            Some(value) => options.push(format!("{name}={}", value.replace(',', ";"))),
            None => options.push(name.to_owned()),
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::Body;
    use crate::pyroscope::java::DEFINITION;
    use alluvium_lang::value::{Number, Value};

    fn options(config: Body) -> String {
        let body = Body::new()
            .with("targets", Value::array([]))
            .with("forward_to", Value::array([]))
            .block("profiling_config", config);
        let arguments = body.arguments(&DEFINITION);
        start(
            &arguments.profiling_config,
            Duration::from_secs(75),
            "/tmp/a.jfr",
            "/tmp/a.log",
        )
    }

    #[test]
    fn arguments_become_options_of_the_agent() {
        const END: &str = "timeout=75,file=/tmp/a.jfr,log=/tmp/a.log";
        assert_eq!(
            options(Body::new()),
            format!("start,jfr,event=itimer,interval=10000000,alloc=512k,lock=10ms,loglevel=INFO,{END}")
        );
        let other = Body::new()
            .text("event", "cpu")
            .with("sample_rate", Value::Number(Number::Int(200)))
            .with("per_thread", Value::Bool(true))
            .with("tlab", Value::Bool(true))
            .with("quiet", Value::Bool(true))
            .text("lock", "")
            .text("log_level", "");
        assert_eq!(
            options(other),
            format!("start,jfr,event=cpu,interval=5000000,threads,alloc=512k,tlab,quiet,{END}")
        );
        let body_without_events = Body::new().with("cpu", Value::Bool(false)).text("alloc", "");
        assert_eq!(
            options(body_without_events),
            format!("start,jfr,lock=10ms,loglevel=INFO,{END}")
        );
    }

    #[test]
    fn arguments_of_the_launcher_are_translated() {
        let words = [
            "-e",
            "wall",
            "-i",
            "50ms",
            "-t",
            "--alloc",
            "1m",
            "--live",
            "cstack=vm",
            "-I",
            "a,b",
        ];
        let custom = Value::array(words.map(Value::string));
        let text = options(Body::new().with("custom_arguments", custom));
        assert!(
            text.starts_with(
                "start,jfr,event=wall,interval=50ms,threads,alloc=1m,live,cstack=vm,include=a;b,timeout=75"
            ),
            "{text}"
        );
    }
}
