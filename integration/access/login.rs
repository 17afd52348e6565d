//! Login and logout of the page: cookies, and the events that end a session.

use std::time::{Duration, Instant};

use alluvium::server::ServerOptions;
use alluvium::server::access::tokens;
use serde_json::{Value, json};

use super::{Doors, PASSWORD, refusals, with_json};
use crate::harness::TestServer;
use crate::program::PATIENCE;

const TYPES: &str = "/querier.v1.QuerierService/ProfileTypes";

/// Logs in and returns status and cookie.
async fn login(server: &TestServer, body: Value) -> (u16, Option<String>) {
    let answer = with_json(server.post("/api/v1/login"), &body).send().await.unwrap();
    let cookie = answer
        .headers()
        .get("set-cookie")
        .map(|cookie| cookie.to_str().unwrap().to_owned());
    (answer.status().as_u16(), cookie)
}

/// Returns the part of a cookie that browsers send back.
fn pair(cookie: &str) -> String {
    cookie.split(';').next().unwrap().to_owned()
}

async fn ask(server: &TestServer, cookie: &str) -> u16 {
    let request = server
        .post(TYPES)
        .header("content-type", "application/json")
        .header("cookie", cookie);
    request.body("{}").send().await.unwrap().status().as_u16()
}

async fn session(server: &TestServer, cookie: &str) -> Value {
    let request = server
        .client
        .get(format!("{}/api/v1/session", server.url))
        .header("cookie", cookie);
    let text = request.send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_gives_a_cookie_that_scripts_cannot_read_and_a_logout_ends_it() {
    let doors = Doors::new();
    let mut options = doors.options();
    options.users = Some(doors.users());
    let server = doors.server_with(options, ServerOptions::default()).await;
    let nobody = json!({"asks": true, "identity": null, "logged_in": false});
    assert_eq!(session(&server, "").await, nobody);
    assert_eq!(
        login(&server, json!({"user": "ada", "password": "wrong"})).await,
        (401, None)
    );
    let (status, cookie) = login(&server, json!({"user": "ada", "password": PASSWORD})).await;
    let cookie = cookie.unwrap();
    assert_eq!(status, 204);
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    assert_eq!(ask(&server, &pair(&cookie)).await, 200);
    let ada = json!({"name": "ada", "roles": ["read", "write"], "tenants": ["anonymous"]});
    assert_eq!(session(&server, &pair(&cookie)).await["identity"], ada);

    let logout = server
        .post("/profile/api/v1/logout")
        .header("cookie", pair(&cookie))
        .send()
        .await
        .unwrap();
    assert_eq!(logout.status(), 204);
    assert!(logout.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(ask(&server, &pair(&cookie)).await, 401);
    assert_eq!(session(&server, &pair(&cookie)).await, nobody);
}

#[tokio::test]
async fn a_session_ends_with_the_token_that_began_it() {
    let doors = Doors::new();
    let token = doors.token("page", "read", &[]);
    let server = doors.server().await;
    let (status, cookie) = login(&server, json!({"password": token})).await;
    assert_eq!(status, 204);
    let cookie = pair(&cookie.unwrap());
    assert_eq!(ask(&server, &cookie).await, 200);
    tokens::revoke(&doors.tokens(), "page").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while ask(&server, &cookie).await != 401 {
        assert!(Instant::now() < deadline, "the session does not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_are_limited_and_take_nothing_but_json_of_this_site() {
    let doors = Doors::new();
    let mut options = doors.options();
    options.users = Some(doors.users());
    let server = doors.server_with(options, ServerOptions::default()).await;
    for body in [
        json!({}),
        json!({"user": "ada"}),
        json!({"password": "x".repeat(40_000)}),
        json!([]),
    ] {
        assert_eq!(login(&server, body).await.0, 400);
    }
    let form = server
        .post("/api/v1/login")
        .body("{\"user\": \"ada\", \"password\": \"x\"}");
    assert_eq!(form.send().await.unwrap().status(), 400);
    let foreign = server.post("/api/v1/login").header("sec-fetch-site", "cross-site");
    let foreign = with_json(foreign, &json!({"user": "ada", "password": PASSWORD}));
    let foreign = foreign.send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let mut refused = 0;
    while login(&server, json!({"user": "ada", "password": "guess"})).await.0 == 401 {
        refused += 1;
        assert!(refused < 20, "guesses are not limited");
    }
    assert_eq!((refused, refusals(&server, "attempts")), (10, 1));
    assert_eq!(refusals(&server, "wrong"), 10);
}
