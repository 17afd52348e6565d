//! The client against servers on this machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use http::HeaderMap;

use crate::wire::client::{ClientOptions, Credential, HttpClient, OAuth2, ProxyOptions, Secret};

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { serve_router(listener, router).await });
    format!("http://{address}")
}

/// `axum::serve` needs a feature that the program does not have; hyper-util serves the router as the program does.
async fn serve_router(listener: tokio::net::TcpListener, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let io = hyper_util::rt::TokioIo::new(stream);
            let builder = hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
            let _ = builder.serve_connection(io, service).await;
        });
    }
}

fn options(credential: Credential) -> ClientOptions {
    ClientOptions {
        credential,
        ..ClientOptions::new("alluvium-test".into())
    }
}

async fn authorization(options: ClientOptions) -> String {
    let echo = |headers: HeaderMap| async move {
        let value = |name: &str| {
            headers
                .get(name)
                .map_or("-", |value| value.to_str().unwrap())
                .to_owned()
        };
        format!("{} {}", value("authorization"), value("user-agent"))
    };
    let url = serve(Router::new().route("/", get(echo))).await;
    let client = HttpClient::new(&options).unwrap();
    let request = client.get(url.parse().unwrap()).await.unwrap();
    request.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn credentials_and_user_agent_are_sent() {
    assert_eq!(authorization(options(Credential::None)).await, "- alluvium-test");
    let basic = Credential::Basic {
        username: "user".into(),
        password: Secret::Text("pass".into()),
    };
    assert_eq!(authorization(options(basic)).await, "Basic dXNlcjpwYXNz alluvium-test");
}

#[tokio::test]
async fn a_credentials_file_is_read_for_every_request() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let client = HttpClient::new(&options(Credential::Authorization {
        scheme: "Bearer".into(),
        credentials: Secret::File(file.path().into()),
    }))
    .unwrap();
    for token in ["one", "two"] {
        std::fs::write(file.path(), format!("{token}\n")).unwrap();
        assert_eq!(
            client.headers().await.unwrap()["authorization"],
            format!("Bearer {token}")
        );
    }
    file.close().unwrap();
    assert!(
        client
            .headers()
            .await
            .unwrap_err()
            .to_string()
            .starts_with("cannot read")
    );
}

#[tokio::test]
async fn an_oauth2_token_is_asked_for_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = |State(asked): State<Arc<AtomicUsize>>, headers: HeaderMap, body: String| async move {
        asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(headers["authorization"], "Basic aWQ6c2VjcmV0");
        assert_eq!(body, "grant_type=client_credentials&scope=a+b&audience=x");
        r#"{"access_token": "token", "token_type": "bearer", "expires_in": 3600}"#
    };
    let url = serve(Router::new().route("/token", post(answer)).with_state(asked.clone())).await;
    let client = HttpClient::new(&options(Credential::OAuth2(Box::new(OAuth2 {
        client_id: "id".into(),
        client_secret: Secret::Text("secret".into()),
        scopes: vec!["a".into(), "b".into()],
        token_url: format!("{url}/token").parse().unwrap(),
        endpoint_params: BTreeMap::from([("audience".into(), "x".into())]),
        options: ClientOptions::new("alluvium-test".into()),
    }))))
    .unwrap();
    for _ in 0..2 {
        assert_eq!(client.headers().await.unwrap()["authorization"], "Bearer token");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn requests_go_through_the_proxy() {
    let proxy = serve(Router::new().fallback(|uri: http::Uri| async move { format!("proxied {uri}") })).await;
    let client = HttpClient::new(&ClientOptions {
        proxy: ProxyOptions {
            url: Some(proxy.parse().unwrap()),
            ..ProxyOptions::default()
        },
        ..options(Credential::None)
    })
    .unwrap();
    let request = client.get("http://nowhere.invalid/x".parse().unwrap()).await.unwrap();
    assert_eq!(
        request.send().await.unwrap().text().await.unwrap(),
        "proxied http://nowhere.invalid/x"
    );
}
