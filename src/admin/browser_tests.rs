//! Tests of browser requests: a table of headers and expected statuses for each kind of attack.

use axum::body::Body;
use axum::routing::any;
use tower::ServiceExt as _;

use super::*;

const LOOPBACK: &str = "127.0.0.1:4040";
const OPEN: &str = "192.0.2.7:4040";

/// Method and path, headers, and the expected status.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);

/// Sends a request with these headers over a connection that arrived at `address`. Returns status and text of the
/// response.
async fn ask(address: &str, line: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let allowed = AllowedHosts::new(["Profiles.example.com".to_owned()]);
    let routes = guard(Router::new().fallback(any(async || "ok")), allowed);
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(ArrivedAt(address.parse().unwrap()));
    let response = routes.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn programs_are_let_through_under_every_name() {
    for address in [LOOPBACK, OPEN, "[::1]:4040"] {
        for host in ["localhost:4040", "profiles.internal", "evil.example:4040"] {
            for line in ["GET /ready", "POST /ingest", "POST /-/reload", "GET /debug/pprof/heap"] {
                let answer = ask(address, line, &[("host", host), ("user-agent", "curl/8")]).await;
                assert_eq!(answer.0, 200, "{address} {host} {line}");
            }
        }
    }
    assert_eq!(ask(LOOPBACK, "GET /", &[]).await.0, 200);
}

#[tokio::test]
async fn on_a_loopback_address_a_browser_uses_names_of_this_machine() {
    for (host, status) in [
        ("localhost:4040", 200),
        ("LocalHost", 200),
        ("localhost.:4040", 200),
        ("alluvium.localhost:4040", 200),
        ("127.0.0.1:4040", 200),
        ("[::1]:4040", 200),
        ("192.0.2.7:4040", 200),
        ("profiles.example.com", 200),
        ("PROFILES.example.com:8080", 200),
        ("evil.example:4040", 403),
        ("localhost.evil.example:4040", 403),
        ("notlocalhost", 403),
        ("127.0.0.1.evil.example", 403),
        ("example.com", 403),
    ] {
        let origin = format!("http://{host}");
        for marker in [
            ("sec-fetch-site", "same-origin"),
            ("origin", origin.as_str()),
            ("referer", origin.as_str()),
            ("accept-language", "en"),
        ] {
            for address in [LOOPBACK, "[::1]:4040", "[::ffff:127.0.0.1]:4040"] {
                let answer = ask(address, "POST /api/v1/sql", &[("host", host), marker]).await;
                assert_eq!(answer.0, status, "{host} {marker:?}: {}", answer.1);
            }
            // A browser may use any name for a non-loopback address.
            assert_eq!(ask(OPEN, "POST /api/v1/sql", &[("host", host), marker]).await.0, 200);
        }
    }
    let (_, text) = ask(
        LOOPBACK,
        "GET /",
        &[("host", "evil.example:4040"), ("accept-language", "en")],
    )
    .await;
    assert!(text.contains("--http.allowed-host evil.example"), "{text}");
}

#[tokio::test]
async fn requests_for_another_site_are_refused_but_for_links_to_pages() {
    let cross = ("sec-fetch-site", "cross-site");
    let same_site = ("sec-fetch-site", "same-site");
    let navigate = ("sec-fetch-mode", "navigate");
    let document = ("sec-fetch-dest", "document");
    let cases: &[Case] = &[
        ("POST /ingest", &[("sec-fetch-site", "same-origin")], 200),
        (
            "POST /ingest",
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
            200,
        ),
        ("GET /-/reload", &[("sec-fetch-site", "none"), navigate, document], 200),
        ("POST /ingest", &[cross], 403),
        ("POST /ingest", &[same_site], 403),
        ("POST /flush", &[cross, navigate, document], 403),
        ("GET /profile?q=1", &[cross, navigate, document], 200),
        ("HEAD /", &[same_site, navigate], 200),
        (
            "GET /profile",
            &[cross, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")],
            403,
        ),
        ("GET /profile", &[cross, navigate, ("sec-fetch-dest", "iframe")], 403),
        ("GET /-/reload", &[cross, navigate, document], 403),
        ("GET /-/support", &[cross, navigate, document], 403),
        ("GET /debug/pprof/profile", &[cross, navigate, document], 403),
        ("GET /api/v0/component/a/b", &[cross, navigate, document], 403),
        // Requests without `Sec-Fetch-Site`, as over plain HTTP to another machine.
        ("POST /ingest", &[("origin", "http://profiles:4040")], 200),
        ("POST /ingest", &[("origin", "HTTP://profiles:4040")], 403),
        ("POST /ingest", &[("origin", "http://Profiles:4040")], 200),
        ("POST /ingest", &[("origin", "http://profiles")], 403),
        ("POST /ingest", &[("origin", "http://profiles:4041")], 403),
        ("POST /ingest", &[("origin", "http://evil.example")], 403),
        ("POST /ingest", &[("origin", "null")], 403),
        ("GET /profile", &[("origin", "http://evil.example")], 403),
        ("POST /ingest", &[("origin", "https://profiles.example.com")], 200),
        (
            "POST /ingest",
            &[
                ("origin", "https://grafana.example"),
                ("x-forwarded-host", "grafana.example"),
            ],
            200,
        ),
        (
            "POST /ingest",
            &[
                ("origin", "https://grafana.example"),
                ("x-forwarded-host", "grafana.example:443, inner"),
            ],
            200,
        ),
        (
            "POST /ingest",
            &[
                ("origin", "https://evil.example"),
                ("x-forwarded-host", "grafana.example"),
            ],
            403,
        ),
        ("POST /ingest", &[("referer", "http://evil.example/x?y")], 403),
        ("POST /ingest", &[("referer", "http://profiles:4040/sql")], 200),
        ("GET /profile", &[("referer", "http://evil.example/x")], 200),
        ("GET /-/reload", &[("referer", "http://evil.example/x")], 403),
    ];
    for (line, headers, status) in cases {
        let headers: Vec<_> = headers.iter().copied().chain([("host", "profiles:4040")]).collect();
        let (actual, text) = ask(OPEN, line, &headers).await;
        assert_eq!(actual, *status, "{line} {headers:?}: {text}");
        assert!(actual == 200 || text.contains("another site"), "{text}");
    }
}

#[test]
fn an_allowed_host_is_a_name() {
    assert_eq!(
        host_name("Profiles.example.com."),
        Ok("profiles.example.com".to_owned())
    );
    for text in ["", "http://a", "a:80", "a/b", "*.a", "a b"] {
        assert!(host_name(text).is_err(), "{text}");
    }
}
