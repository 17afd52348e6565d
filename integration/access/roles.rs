//! Roles, tenants and tokens, over HTTP, Connect, gRPC and gRPC-Web.

use std::time::{Duration, Instant};

use alluvium::server::ServerOptions;
use alluvium::server::access::tokens;
use alluvium_wire::proto::push::{PushRequest, PushResponse};
use alluvium_wire::proto::querier::{ProfileTypesRequest, ProfileTypesResponse};
use http::Method;
use prost::Message as _;
use tonic::{Code, Request};

use super::{Doors, PASSWORD, refusals};
use crate::grpc::{frame, grpc, web};
use crate::harness::TestServer;
use crate::program::PATIENCE;
use crate::tidy::root;

const PUSH: &str = "/push.v1.PusherService/Push";
const TYPES: &str = "/querier.v1.QuerierService/ProfileTypes";

/// Calls a path with a token and an optional tenant, and returns status and text.
async fn call(server: &TestServer, path: &str, token: &str, tenant: Option<&str>) -> (u16, String) {
    let mut request = server.post(path).header("content-type", "application/json").body("{}");
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    if let Some(tenant) = tenant {
        request = request.header("x-scope-orgid", tenant);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Returns methods and paths from the documentation's table of routes, except those of the page.
fn documented() -> Vec<(Method, String)> {
    let page = std::fs::read_to_string(root().join("docs/http-api.md")).unwrap();
    let table = page.split("## Routes").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut routes = Vec::new();
    let rows = table.lines().filter(|line| line.starts_with("| `/"));
    for line in rows.filter(|line| !line.contains("(page.md)")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let method = if cells[2].starts_with("POST") {
            Method::POST
        } else {
            Method::GET
        };
        let names: Vec<&str> = cells[1].split(", ").map(|name| name.trim_matches('`')).collect();
        let folder = names[0].rsplit_once('/').map_or("", |(folder, _)| folder);
        for name in &names {
            let path = if name.starts_with('/') {
                (*name).to_owned()
            } else {
                format!("{folder}/{name}")
            };
            routes.push((method.clone(), path.replace("{ids}", "a")));
        }
    }
    routes
}

#[tokio::test]
async fn without_a_credential_nothing_answers_but_health_login_and_the_page() {
    let doors = Doors::new();
    doors.token("any", "read", &[]);
    let server = doors.server().await;
    let routes = documented();
    assert!(routes.len() > 40, "{routes:?}");
    for (method, path) in routes {
        let open = [
            "/ready",
            "/grpc.health.v1.Health/Check",
            "/api/v1/login",
            "/api/v1/logout",
            "/api/v1/session",
        ];
        // speedscope is part of the page, which contains no user data.
        if open.contains(&path.as_str()) || path.starts_with("/speedscope/") {
            continue;
        }
        for prefix in ["", "/profile"] {
            let request = server
                .client
                .request(method.clone(), format!("{}{prefix}{path}", server.url));
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 401, "{method} {prefix}{path}");
            assert_eq!(
                answer.headers()["www-authenticate"],
                "Bearer realm=\"alluvium\"",
                "{path}"
            );
        }
    }
    for path in ["/ready", "/", "/profile/ready", "/sql"] {
        assert_eq!(server.get(path).await.0, 200, "{path}");
    }
    assert!(refusals(&server, "missing") > 80);
}

#[tokio::test]
async fn a_reader_may_not_push_and_a_writer_may_not_ask() {
    let doors = Doors::new();
    let (reader, writer) = (doors.token("reader", "read", &[]), doors.token("writer", "write", &[]));
    let admin = doors.token("admin", "admin", &[]);
    let server = doors.server().await;
    for (token, push, ask, flush) in [
        // An authorized client gets 400 for an empty push.
        (&reader, 403, 200, 403),
        (&writer, 400, 403, 403),
        (&admin, 400, 200, 204),
    ] {
        for (path, status) in [(PUSH, push), (TYPES, ask), ("/profile/flush", flush)] {
            let (found, text) = call(&server, path, token, None).await;
            assert_eq!(found, status, "{path}: {text}");
        }
    }
    for (token, code) in [
        ("", Code::Unauthenticated),
        ("allu_wrong", Code::Unauthenticated),
        (&reader, Code::PermissionDenied),
    ] {
        let mut request = Request::new(PushRequest::default());
        let bearer = format!("Bearer {token}");
        if !token.is_empty() {
            request.metadata_mut().insert("authorization", bearer.parse().unwrap());
        }
        let refused = grpc::<_, PushResponse>(&server, "", PUSH, request).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        let headers: &[(&str, &str)] = if token.is_empty() {
            &[]
        } else {
            &[("authorization", &bearer)]
        };
        let answer = web(
            &server,
            PUSH,
            headers,
            frame(0, &PushRequest::default().encode_to_vec()),
        )
        .await;
        assert_eq!(answer.status, code, "{}", answer.text);
    }
    let mut request = Request::new(ProfileTypesRequest::default());
    request
        .metadata_mut()
        .insert("authorization", format!("Bearer {reader}").parse().unwrap());
    let _: ProfileTypesResponse = grpc(&server, "", TYPES, request).await.unwrap();
    assert_eq!(call(&server, TYPES, "allu_wrong", None).await.0, 401);
    assert!(refusals(&server, "right") >= 6 && refusals(&server, "wrong") >= 3);
}

#[tokio::test]
async fn a_token_speaks_for_its_tenants_and_no_others() {
    let doors = Doors::new();
    let one = doors.token("one", "admin", &["shop"]);
    let two = doors.token("two", "admin", &["shop", "desk"]);
    let all = doors.token("all", "admin", &["*"]);
    let several = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let server = doors.server_with(doors.options(), several).await;
    for (token, tenant, status) in [
        (&one, None, 200),
        (&one, Some("shop"), 200),
        (&one, Some("desk"), 403),
        (&one, Some("a/b"), 400),
        (&two, None, 401),
        (&two, Some("desk"), 200),
        (&two, Some("other"), 403),
        (&one, Some("shop|desk"), 403),
        (&two, Some("shop|desk"), 200),
        (&two, Some("other|shop"), 403),
        (&all, Some("other|shop"), 200),
        (&all, None, 401),
        (&all, Some("other"), 200),
    ] {
        let (found, text) = call(&server, TYPES, token, tenant).await;
        assert_eq!(found, status, "{tenant:?}: {text}");
    }
    // A request that concerns all tenants requires access to all of them.
    assert_eq!(call(&server, "/flush", &one, None).await.0, 403);
    assert_eq!(call(&server, "/flush", &all, None).await.0, 204);
    assert!(refusals(&server, "tenant") == 4 && refusals(&server, "whole") == 1);
    // On a single-tenant server, a token for another tenant gives no access.
    let server = doors.server().await;
    assert_eq!(call(&server, TYPES, &one, None).await.0, 403);
    assert_eq!(call(&server, TYPES, &all, Some("other")).await.0, 200);
}

#[tokio::test]
async fn a_revoked_token_is_refused_by_a_running_server() {
    let doors = Doors::new();
    let (kept, revoked) = (doors.token("kept", "read", &[]), doors.token("revoked", "read", &[]));
    let server = doors.server().await;
    assert_eq!(call(&server, TYPES, &revoked, None).await.0, 200);
    tokens::revoke(&doors.tokens(), "revoked").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while call(&server, TYPES, &revoked, None).await.0 != 401 {
        assert!(Instant::now() < deadline, "the token is still accepted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(call(&server, TYPES, &kept, None).await.0, 200);
    // If the last token is revoked, the server still requires authentication.
    tokens::revoke(&doors.tokens(), "kept").unwrap();
    while call(&server, TYPES, &kept, None).await.0 != 401 {
        assert!(Instant::now() < deadline, "the token is still accepted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(call(&server, TYPES, "", None).await.0, 401);
}

#[tokio::test]
async fn a_server_begins_to_ask_when_the_first_token_is_made() {
    let doors = Doors::new();
    let server = doors.server().await;
    assert_eq!(call(&server, TYPES, "", None).await.0, 200);
    let token = doors.token("first", "read", &[]);
    let deadline = Instant::now() + PATIENCE;
    while call(&server, TYPES, "", None).await.0 != 401 {
        assert!(Instant::now() < deadline, "the server still requires no authentication");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(call(&server, TYPES, &token, None).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_are_taken_and_guesses_of_them_are_limited() {
    let doors = Doors::new();
    let token = doors.token("reader", "read", &[]);
    let mut options = doors.options();
    options.users = Some(doors.users());
    let server = doors.server_with(options, ServerOptions::default()).await;
    let ask = async |user: &str, password: &str| {
        let request = server.post(TYPES).header("content-type", "application/json").body("{}");
        request
            .basic_auth(user, Some(password))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    assert_eq!(ask("ada", PASSWORD).await, 200);
    assert_eq!(ask("eve", PASSWORD).await, 401);
    // Clients that only have fields for user and password send a token as the password.
    assert_eq!(ask("anybody", &token).await, 200);
    let mut refused = 0;
    while ask("ada", "a guess of the password").await == 401 {
        refused += 1;
        assert!(refused < 20, "guesses are not limited");
    }
    assert_eq!(refused, 10);
    assert_eq!(ask("ada", "another guess").await, 429);
    // Failed attempts of other callers do not lock out a user who has already authenticated with the password.
    assert_eq!(ask("ada", PASSWORD).await, 200);
    assert_eq!(refusals(&server, "attempts"), 2);
}

#[tokio::test]
async fn an_administrator_deletes_without_a_token_of_the_configuration() {
    let doors = Doors::new();
    doors.token("any", "read", &[]);
    let admin = doors.token("admin", "admin", &[]);
    let writer = doors.token("writer", "write", &[]);
    let server = doors.server().await;
    let delete = "/api/v1/admin/delete";
    // The test's store cannot delete: 400 shows that the request was authorized.
    assert_eq!(call(&server, delete, &writer, None).await.0, 403);
    assert_eq!(call(&server, delete, &admin, None).await.0, 400);
    assert_eq!(call(&server, delete, "", None).await.0, 401);
}
