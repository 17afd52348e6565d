//! Log lines of the program itself: logfmt or JSON on standard error. Level and format can change while the program
//! runs.
//!
//! In: events of `tracing` (and of libraries that use `log`), with the fields of the enclosing spans. Out: one line per
//! event: `ts`, `level`, `msg`, then the fields. User and password in a URL are removed from every value. Other secrets
//! never reach a log, because `lang` prints them as `(secret)`. Lines are not rotated, forwarded or dropped.

use std::fmt::{self, Debug, Write as _};
use std::io::Write as _;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// Libraries that log routine work at `info`, for example at every scrape. Only their warnings and errors are written.
const QUIET_TARGETS: [&str; 8] = [
    "pyroscope",
    "jemalloc_pprof",
    "hyper",
    "h2",
    "reqwest",
    "delta_kernel",
    "delta_kernel_default_engine",
    "object_store",
];

/// Level and format of the logs. The defaults are Alloy's: `info`, `logfmt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Minimum level of the lines that are written.
    pub level: Level,
    pub format: Format,
}

/// Levels, named as in Alloy's `logging` block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    Debug,
    /// Events that matter to an operator in normal operation.
    #[default]
    Info,
    Warn,
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `key=value key="with space"`.
    #[default]
    Logfmt,
    Json,
}

/// The reason why a setting is invalid or logs could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("unrecognized log level `{0}`: use one of debug, info, warn, error")]
    Level(String),
    #[error("unrecognized log format `{0}`: use one of logfmt, json")]
    Format(String),
    /// A global subscriber is already installed, or the subscriber of a handle has been dropped.
    #[error("cannot set up logging: {0}")]
    Setup(String),
}

impl FromStr for Level {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warn" => Ok(Self::Warn),
            "error" => Ok(Self::Error),
            other => Err(LogError::Level(other.to_owned())),
        }
    }
}

impl FromStr for Format {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "logfmt" => Ok(Self::Logfmt),
            "json" => Ok(Self::Json),
            other => Err(LogError::Format(other.to_owned())),
        }
    }
}

/// Sets up the logs of this process on standard error. May be called once.
pub fn init(settings: Settings) -> Result<LogHandle, LogError> {
    let (subscriber, handle) = subscriber(settings, |line| {
        // A closed standard error must not stop the program.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    });
    subscriber
        .try_init()
        .map_err(|error| LogError::Setup(error.to_string()))?;
    Ok(handle)
}

/// Changes the log settings at run time, for the `logging` block of a configuration.
#[derive(Clone)]
pub struct LogHandle {
    json: Arc<AtomicBool>,
    filter: reload::Handle<Targets, Registry>,
    taps: Arc<Taps>,
}

/// Receivers of log lines. Usually there are none. Then the flag `any` is false, and an event costs only one atomic
/// load.
#[derive(Default)]
struct Taps {
    any: AtomicBool,
    list: Mutex<Vec<Weak<Mutex<TapBuffer>>>>,
}

struct TapBuffer {
    text: String,
    limit: usize,
    omitted: u64,
}

/// Collects the lines that are logged during its lifetime, up to a limit in bytes.
pub struct LogTap {
    buffer: Arc<Mutex<TapBuffer>>,
}

impl LogTap {
    /// Returns the lines so far, and the number of omitted lines if the limit was reached.
    pub fn text(&self) -> String {
        let kept = self.buffer.lock();
        match kept.omitted {
            0 => kept.text.clone(),
            lines => format!("{}({lines} further lines omitted)\n", kept.text),
        }
    }
}

impl Taps {
    fn write(&self, line: &str) {
        let mut list = self.list.lock();
        list.retain(|tap| {
            let Some(tap) = tap.upgrade() else { return false };
            let mut kept = tap.lock();
            if kept.text.len() + line.len() <= kept.limit {
                kept.text.push_str(line);
            } else {
                kept.omitted += 1;
            }
            true
        });
        self.any.store(!list.is_empty(), Ordering::Relaxed);
    }
}

impl LogHandle {
    /// Applies these settings from the next event on.
    pub fn apply(&self, settings: Settings) -> Result<(), LogError> {
        self.filter
            .reload(filter(settings.level))
            .map_err(|error| LogError::Setup(error.to_string()))?;
        self.json.store(settings.format == Format::Json, Ordering::Relaxed);
        Ok(())
    }

    /// Stops writing events, for commands that draw on the terminal that standard error writes to.
    pub fn silence(&self) -> Result<(), LogError> {
        let no_targets = Targets::new().with_default(LevelFilter::OFF);
        self.filter
            .reload(no_targets)
            .map_err(|error| LogError::Setup(error.to_string()))
    }

    /// Starts to collect log lines, at most `limit` bytes.
    pub fn tap(&self, limit: usize) -> LogTap {
        let kept = Arc::new(Mutex::new(TapBuffer {
            text: String::new(),
            limit,
            omitted: 0,
        }));
        let mut list = self.taps.list.lock();
        list.push(Arc::downgrade(&kept));
        self.taps.any.store(true, Ordering::Relaxed);
        LogTap { buffer: kept }
    }
}

/// Creates a subscriber that passes finished lines (with their newline) to `write`, and a handle to change its
/// settings.
pub(crate) fn subscriber(
    settings: Settings,
    write: impl Fn(&str) + Send + Sync + 'static,
) -> (impl Subscriber + Send + Sync, LogHandle) {
    let json = Arc::new(AtomicBool::new(settings.format == Format::Json));
    let (filter, filter_handle) = reload::Layer::new(filter(settings.level));
    let taps = Arc::<Taps>::default();
    let lines = LineLayer {
        json: json.clone(),
        taps: taps.clone(),
        write: Box::new(write),
    };
    let handle = LogHandle {
        json,
        filter: filter_handle,
        taps,
    };
    (tracing_subscriber::registry().with(filter).with(lines), handle)
}

fn filter(level: Level) -> Targets {
    let level = match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    let quiet_level = level.min(LevelFilter::WARN);
    Targets::new()
        .with_default(level)
        .with_targets(QUIET_TARGETS.map(|target| (target, quiet_level)))
}

/// The layer that turns events into lines.
struct LineLayer {
    json: Arc<AtomicBool>,
    taps: Arc<Taps>,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

/// The fields of a span, stored in its extensions.
struct SpanFields(Fields);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LineLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(SpanFields(fields));
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(SpanFields(fields)) = span.extensions_mut().get_mut::<SpanFields>()
        {
            record.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(of_span)) = span.extensions().get::<SpanFields>() {
                fields.0.extend(of_span.0.iter().cloned());
            }
        }
        let time = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => "error",
            tracing::Level::WARN => "warn",
            tracing::Level::INFO => "info",
            _ => "debug",
        };
        let line = if self.json.load(Ordering::Relaxed) {
            json_line(&time, level, &fields)
        } else {
            logfmt_line(&time, level, &fields)
        };
        (self.write)(&line);
        if self.taps.any.load(Ordering::Relaxed) {
            self.taps.write(&line);
        }
    }
}

/// Fields in the order of the event; the message is the field `message`.
#[derive(Default)]
struct Fields(Vec<(&'static str, Scalar)>);

#[derive(Clone)]
enum Scalar {
    /// A number or a boolean, written without quotes in both formats.
    Bare(String),
    Text(String),
}

impl Fields {
    fn put(&mut self, field: &Field, value: Scalar) {
        // Every event of a library that uses `log` has `log.target`, `log.line` and similar fields, which are dropped.
        if field.name().starts_with("log.") {
            return;
        }
        match self.0.iter_mut().find(|(name, _)| *name == field.name()) {
            Some((_, old)) => *old = value,
            None => self.0.push((field.name(), value)),
        }
    }

    fn message(&self) -> &str {
        match self.0.iter().find(|(name, _)| *name == "message") {
            Some((_, Scalar::Text(text) | Scalar::Bare(text))) => text,
            None => "",
        }
    }

    /// Iterates over all fields but the message. For a repeated name, it yields the innermost field.
    fn without_message(&self) -> impl Iterator<Item = (&'static str, &Scalar)> {
        let all = &self.0;
        all.iter().enumerate().filter_map(move |(index, (name, value))| {
            let shadowed = all[..index].iter().any(|(earlier, _)| earlier == name);
            (*name != "message" && !shadowed).then_some((*name, value))
        })
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, Scalar::Text(without_userinfo(format!("{value:?}"))));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Scalar::Text(without_userinfo(value.to_owned())));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Scalar::Bare(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Scalar::Bare(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Scalar::Bare(value.to_string()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON cannot represent infinities and NaN as numbers.
        let scalar = if value.is_finite() { Scalar::Bare } else { Scalar::Text };
        self.put(field, scalar(value.to_string()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(error) = source {
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        self.put(field, Scalar::Text(without_userinfo(text)));
    }
}

fn logfmt_line(time: &str, level: &str, fields: &Fields) -> String {
    let mut line = format!("ts={time} level={level} msg=");
    push_logfmt_value(&mut line, fields.message());
    for (name, value) in fields.without_message() {
        line.push(' ');
        line.extend(name.chars().map(|c| if is_plain(c) { c } else { '_' }));
        line.push('=');
        match value {
            Scalar::Bare(text) => line.push_str(text),
            Scalar::Text(text) => push_logfmt_value(&mut line, text),
        }
    }
    line.push('\n');
    line
}

/// Returns true for a character that needs no quotes in logfmt.
fn is_plain(c: char) -> bool {
    c > ' ' && c != '=' && c != '"' && c != '\\' && !c.is_control() && !c.is_whitespace()
}

fn push_logfmt_value(line: &mut String, value: &str) {
    if !value.is_empty() && value.chars().all(is_plain) {
        line.push_str(value);
        return;
    }
    push_json_string(line, value);
}

fn json_line(time: &str, level: &str, fields: &Fields) -> String {
    let mut line = format!("{{\"ts\":\"{time}\",\"level\":\"{level}\",\"msg\":");
    push_json_string(&mut line, fields.message());
    for (name, value) in fields.without_message() {
        // `ts`, `level` and `msg` are already used.
        let name = match name {
            "ts" | "level" | "msg" => &format!("{name}_"),
            other => other,
        };
        line.push(',');
        push_json_string(&mut line, name);
        line.push(':');
        match value {
            Scalar::Bare(text) => line.push_str(text),
            Scalar::Text(text) => push_json_string(&mut line, text),
        }
    }
    line.push_str("}\n");
    line
}

fn push_json_string(line: &mut String, value: &str) {
    line.push('"');
    for c in value.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    line.push('"');
}

/// Removes `user:password@` from every `scheme://user:password@host` in a text.
pub fn without_userinfo(text: String) -> String {
    if !text.contains("://") {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(index) = rest.find("://") {
        let (before, after) = rest.split_at(index + 3);
        clean.push_str(before);
        let is_end = |c: char| matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || c.is_whitespace();
        let authority = after.split(is_end).next().unwrap_or(after);
        rest = match authority.rfind('@') {
            Some(index) => &after[index + 1..],
            None => after,
        };
    }
    clean.push_str(rest);
    clean
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Logfmt => "logfmt",
            Self::Json => "json",
        })
    }
}

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
