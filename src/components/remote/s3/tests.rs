//! Tests against a fake S3 server. Its responses follow the documentation of S3.

use std::sync::Arc;

use axum::http::StatusCode;
use parking_lot::Mutex;

use super::{DEFINITION, Object, S3Arguments};
use crate::common::clouds::aws::testing::Amazon;
use crate::common::clouds::environment::Environment;
use crate::common::testing::{Body, Recorder, Running};
use alluvium_lang::value::Value;

fn client(endpoint: &str, secret: &str) -> Body {
    Body::new()
        .text("endpoint", endpoint)
        .text("region", "eu-central-1")
        .text("key", "AKID")
        .with("secret", Value::Secret(secret.into()))
}

/// Builds the component on a thread that may block, as the engine does.
async fn start(recorder: &Recorder, body: Body) -> Running<S3Arguments> {
    let recorder = recorder.clone();
    let build = move || Running::start(&DEFINITION, &recorder, &body);
    tokio::task::spawn_blocking(build).await.unwrap()
}

async fn update(running: &Running<S3Arguments>, body: Body) -> Result<(), String> {
    let component = running.component.clone();
    let update = move || component.update(body.arguments(&DEFINITION));
    let updated = tokio::task::spawn_blocking(update).await.unwrap();
    updated.map_err(|error| error.to_string())
}

#[tokio::test]
async fn an_object_is_read_with_a_signature_and_a_refusal_says_why() {
    let next = Arc::new(Mutex::new((StatusCode::OK, " one\n".to_owned())));
    let answers = next.clone();
    let amazon = Amazon::start("s3", &[("AKID", "hush")], move |_| answers.lock().clone()).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("remote.s3.test", folder.path());
    let body = |secret: &str| {
        Body::new()
            .text("path", "s3://bucket/a folder/b+c=d&.txt")
            .block("client", client(&amazon.url, secret))
    };
    let running = start(&recorder, body("hush")).await;
    assert_eq!(recorder.export("content"), Value::string(" one\n"));
    assert_eq!(amazon.requests(), ["GET /bucket/a%20folder/b%2Bc%3Dd%26.txt"]);

    next.lock().1 = "two".to_owned();
    update(&running, body("hush").with("is_secret", Value::Bool(true)))
        .await
        .unwrap();
    assert_eq!(recorder.export("content"), Value::Secret("two".into()));

    let error = update(&running, body("other")).await.unwrap_err();
    assert!(
        error.ends_with("401 Unauthorized: AuthFailure: the signature is not right"),
        "{error}"
    );
    assert!(!error.contains("other"), "{error}");
    let missing = "<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>";
    *next.lock() = (StatusCode::NOT_FOUND, missing.to_owned());
    let error = update(&running, body("hush")).await.unwrap_err();
    assert!(
        error.ends_with("404 Not Found: NoSuchKey: The key does not exist."),
        "{error}"
    );
    assert_eq!(recorder.export("content"), Value::Secret("two".into()));
    running.stop().await;
}

#[tokio::test]
async fn the_bucket_is_part_of_the_host_or_of_the_path() {
    let url = async |path: &str, client: Body| {
        let folder = tempfile::tempdir().unwrap();
        let context = Recorder::new("remote.s3.test", folder.path()).context;
        let body = Body::new().text("path", path).block("client", client);
        let arguments = body.arguments(&DEFINITION);
        let object = Object::new(&arguments, &context, &Environment::from([("AWS_REGION", "eu-west-1")])).unwrap();
        (
            object.url().await.unwrap().to_string(),
            object.aws.region().await.unwrap().to_string(),
        )
    };
    let in_path = Value::Bool(true);
    let own = || Body::new().text("endpoint", "https://minio.example.com/base/");
    for (path, client, expected, signed_for) in [
        (
            "s3://a/k/1",
            Body::new(),
            "https://a.s3.eu-west-1.amazonaws.com/k/1",
            "eu-west-1",
        ),
        (
            "s3://a/k",
            Body::new().text("region", "cn-north-1").text("signing_region", "x"),
            "https://a.s3.cn-north-1.amazonaws.com.cn/k",
            "x",
        ),
        (
            "s3://a.b/k",
            Body::new().text("region", "eu-north-1"),
            "https://s3.eu-north-1.amazonaws.com/a.b/k",
            "eu-north-1",
        ),
        ("s3://a/k", own(), "https://a.minio.example.com/base/k", "eu-west-1"),
        (
            "s3://a/k",
            own().with("use_path_style", in_path),
            "https://minio.example.com/base/a/k",
            "eu-west-1",
        ),
        (
            "s3://a/k",
            Body::new().text("endpoint", "http://[::1]:9000"),
            "http://[::1]:9000/a/k",
            "eu-west-1",
        ),
    ] {
        assert_eq!(url(path, client).await, (expected.to_owned(), signed_for.to_owned()));
    }
}

#[test]
fn the_arguments_are_checked() {
    let check = |body: Body| body.read(&DEFINITION).unwrap_err();
    assert_eq!(
        check(Body::new().text("path", "s3://bucket/")),
        "path: `s3://bucket/` must be s3://BUCKET/KEY"
    );
    let valid_body = || Body::new().text("path", "s3://bucket/key");
    assert_eq!(
        check(valid_body().text("poll_frequency", "30s")),
        "poll_frequency: poll_frequency must be greater than 30s"
    );
    assert_eq!(
        check(valid_body().block("client", Body::new().text("key", "AKID"))),
        "client.key: key needs secret"
    );
}
