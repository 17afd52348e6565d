//! `/debug/pprof/*`: profiles of this process, at the paths and in the format of Go programs.
//!
//! In: `?seconds=N`. Out: gzip pprof as `application/octet-stream`, and errors as text. Requests for profiles that only
//! Go programs have (goroutine, block, mutex, threadcreate) receive 404 with the reason, so that users know to disable
//! them in the scraper.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::profiling::{Profiling, ProfilingError};
use alluvium_telemetry::logs::without_userinfo;

/// Default of `seconds`, as in Go.
const DEFAULT_SECONDS: u64 = 30;

const INDEX: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>/debug/pprof/</title></head><body>
<h1>/debug/pprof/</h1>
<p>Profiles of this process as gzip pprof, for <code>go tool pprof</code> and for <code>pyroscope.scrape</code>.</p>
<ul>
<li><a href=\"profile?seconds=5\">profile</a>: CPU time, 100 samples per second; <code>?seconds=N</code>, 30 by \
    default</li>
<li><a href=\"heap\">heap</a>: memory in use, by the stack that allocated it</li>
<li><a href=\"allocs\">allocs</a>: the same as <code>heap</code>, at the path that scrapers request</li>
<li><a href=\"cmdline\">cmdline</a>: the command line, without secrets</li>
</ul>
</body></html>
";

pub(super) fn router(profiling: Profiling) -> Router {
    Router::new()
        .route("/debug/pprof", get(async || Redirect::permanent("/debug/pprof/")))
        .route("/debug/pprof/", get(async || Html(INDEX)))
        .route("/debug/pprof/profile", get(cpu))
        .route("/debug/pprof/heap", get(heap))
        .route("/debug/pprof/allocs", get(heap))
        .route("/debug/pprof/cmdline", get(cmdline))
        .route("/debug/pprof/{name}", get(absent))
        .with_state(profiling)
}

#[derive(serde::Deserialize)]
struct CpuQuery {
    seconds: Option<String>,
}

async fn cpu(State(profiling): State<Profiling>, Query(query): Query<CpuQuery>) -> Response {
    let seconds = match query.seconds.as_deref() {
        None | Some("") => DEFAULT_SECONDS,
        Some(text) => {
            if let Ok(seconds) = text.parse() {
                seconds
            } else {
                let text = format!("`seconds` must be a whole number of seconds, not `{text}`\n");
                return (StatusCode::BAD_REQUEST, text).into_response();
            }
        }
    };
    answer("profile", profiling.cpu(Duration::from_secs(seconds)).await)
}

async fn heap(State(profiling): State<Profiling>) -> Response {
    answer("heap", profiling.heap().await)
}

fn answer(name: &str, profile: Result<Vec<u8>, ProfilingError>) -> Response {
    let error = match profile {
        Ok(bytes) => {
            let headers = [
                (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
                (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
            ];
            return (headers, bytes).into_response();
        }
        Err(error) => error,
    };
    let status = match error {
        ProfilingError::Busy => StatusCode::CONFLICT,
        ProfilingError::Duration { .. } => StatusCode::BAD_REQUEST,
        ProfilingError::Unavailable(_) => StatusCode::NOT_FOUND,
        ProfilingError::Failed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n")).into_response()
}

/// Returns the arguments joined by NUL bytes, as in Go, with secrets hidden.
async fn cmdline() -> String {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    without_secrets(arguments).join("\0")
}

/// If the name of a flag contains one of these words, its value is hidden. The list also hides a value that is not
/// secret: the value of `--storage.s3.access-key-id`.
const SECRET_WORDS: [&str; 5] = ["secret", "password", "token", "key", "credential"];

/// Replacement for a hidden value.
const HIDDEN: &str = "<hidden>";

/// Hides the values of secret flags (`--flag value` and `--flag=value`) and passwords in URLs.
fn without_secrets(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_value_secret = false;
    arguments
        .map(|argument| {
            let name = argument.split('=').next().unwrap_or_default().to_ascii_lowercase();
            let is_flag = name.starts_with('-');
            let is_secret = is_flag && SECRET_WORDS.iter().any(|word| name.contains(word));
            if std::mem::take(&mut is_value_secret) && !is_flag {
                return HIDDEN.to_owned();
            }
            match argument.split_once('=') {
                Some((name, _)) if is_secret => format!("{name}={HIDDEN}"),
                _ => {
                    is_value_secret = is_secret;
                    without_userinfo(argument)
                }
            }
        })
        .collect()
}

async fn absent(Path(name): Path<String>) -> Response {
    let text = match name.as_str() {
        "goroutine" | "block" | "mutex" | "threadcreate" | "delta_heap" | "delta_block" | "delta_mutex" => {
            format!("there is no `{name}` profile: only Go programs have it; this program has `profile` and `heap`\n")
        }
        _ => format!("there is no profile `{name}`; there are `profile`, `heap` and `allocs`\n"),
    };
    (StatusCode::NOT_FOUND, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_flags_are_not_shown() {
        for (command, expected) in [
            (
                "serve --storage.s3.secret-access-key S3CR3T --data d",
                "serve --storage.s3.secret-access-key <hidden> --data d",
            ),
            (
                "--storage.s3.secret-access-key=a=b d",
                "--storage.s3.secret-access-key=<hidden> d",
            ),
            ("--Token x y", "--Token <hidden> y"),
            ("--some-password --data d", "--some-password --data d"),
            ("--api-token= --listen :4040", "--api-token=<hidden> --listen :4040"),
            ("run secret.alloy --data=key", "run secret.alloy --data=key"),
            ("--url https://ada:pw@host/x", "--url https://host/x"),
        ] {
            let shown = without_secrets(command.split(' ').map(str::to_owned));
            assert_eq!(shown.join(" "), expected);
        }
    }
}
