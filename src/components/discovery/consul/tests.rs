//! Tests against a fake agent with blocking queries. Its responses follow Consul's API documentation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value as Content, json};
use tokio::sync::watch;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, Server, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

/// A fake agent. It has services by name, each with its instances and the index of its last change. The channel
/// `services` announces changes.
#[derive(Clone)]
struct Agent {
    services: watch::Sender<BTreeMap<String, (u64, Content)>>,
    requests: Arc<Mutex<Vec<String>>>,
    load: Arc<Mutex<Load>>,
}

/// The number of concurrent queries: the current number, and the maximum so far.
#[derive(Default)]
struct Load {
    now: usize,
    maximum: usize,
}

/// Counts a query as running until the value is dropped.
struct UnderWay(Arc<Mutex<Load>>);

impl UnderWay {
    fn new(load: &Arc<Mutex<Load>>) -> Self {
        let mut counted = load.lock();
        counted.now += 1;
        counted.maximum = counted.maximum.max(counted.now);
        Self(load.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().now -= 1;
    }
}

impl Agent {
    fn new() -> Self {
        Self {
            services: watch::Sender::new(BTreeMap::new()),
            requests: Arc::default(),
            load: Arc::default(),
        }
    }

    fn set(&self, name: &str, instances: Content) {
        self.services.send_modify(|services| {
            let index = services.values().map(|(index, _)| *index).max().unwrap_or(10) + 1;
            services.insert(name.to_owned(), (index, instances));
        });
    }

    async fn serve(&self) -> (String, Server) {
        let router = Router::new()
            .route(
                "/v1/agent/self",
                get(|| async { Json(json!({"Config": {"Datacenter": "dc1"}})) }),
            )
            .route("/v1/catalog/services", get(Self::catalog))
            .route("/v1/health/service/{name}", get(Self::service))
            .with_state(self.clone());
        let (base, server) = serve(router).await;
        (base.replace("http://", ""), server)
    }

    async fn catalog(State(agent): State<Self>, query: RawQuery, headers: HeaderMap) -> Response {
        agent
            .answer("catalog", query, &headers, |services| {
                let index = services.values().map(|(index, _)| *index).max().unwrap_or(10);
                // `Null` instances stand for a service whose queries fail.
                let tags = |instances: &Content| match instances {
                    Content::Null => json!(["pprof"]),
                    instances => instances[0]["Service"]["Tags"].clone(),
                };
                let tags = services
                    .iter()
                    .map(|(name, (_, instances))| (name.clone(), tags(instances)));
                Some((index, Content::Object(tags.collect())))
            })
            .await
    }

    async fn service(
        State(agent): State<Self>,
        Path(name): Path<String>,
        query: RawQuery,
        headers: HeaderMap,
    ) -> Response {
        let subject = name.clone();
        agent
            .answer(&subject, query, &headers, |services| services.get(&name).cloned())
            .await
    }

    /// Answers once the index of the content that `find` returns differs from the index in the query, or after the wait
    /// that the query requests.
    async fn answer(
        &self,
        subject: &str,
        RawQuery(query): RawQuery,
        headers: &HeaderMap,
        find: impl Fn(&BTreeMap<String, (u64, Content)>) -> Option<(u64, Content)>,
    ) -> Response {
        let token = headers
            .get("x-consul-token")
            .map_or("", |token| token.to_str().unwrap());
        let query = query.unwrap_or_default();
        self.requests
            .lock()
            .push(format!("{subject} {query} {token}").trim().to_owned());
        let after = query.split('&').find_map(|pair| pair.strip_prefix("index="));
        let wait = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("wait=")?.strip_suffix("ms"));
        let wait = Duration::from_millis(wait.map_or(0, |wait| wait.parse().unwrap()));
        let after: u64 = after.map_or(0, |index| index.parse().unwrap());
        let is_other = |entry: &Option<(u64, Content)>| entry.as_ref().is_none_or(|(index, _)| *index != after);
        let mut changes = self.services.subscribe();
        let _under_way = UnderWay::new(&self.load);
        let _ = tokio::time::timeout(wait, changes.wait_for(|services| is_other(&find(services)))).await;
        let entry = find(&self.services.borrow());
        match entry {
            Some((_, Content::Null)) => (StatusCode::INTERNAL_SERVER_ERROR, "No cluster leader").into_response(),
            Some((index, body)) => ([("x-consul-index", index.to_string())], Json(body)).into_response(),
            None => ([("x-consul-index", "1")], Json(json!([]))).into_response(),
        }
    }
}

fn instance(id: &str, address: &str, status: &str) -> Content {
    json!({
        "Node": {"Node": "n1", "Address": "10.0.0.1", "Meta": {"rack-no": "7", "zone": "b"},
                 "TaggedAddresses": {"wan": "192.0.2.1"}},
        "Service": {"ID": id, "Service": "web", "Address": address, "Port": 8080, "Tags": ["pprof", "v1"],
                    "Meta": {"team": "a"}, "Namespace": "default", "Partition": "p"},
        "Checks": [{"CheckID": "serfHealth", "Status": "passing"}, {"CheckID": "service:web", "Status": status}],
    })
}

fn shortened_targets(recorder: &Recorder) -> Vec<String> {
    let targets = recorder.exported_targets("targets");
    targets
        .iter()
        .map(|target| target.replace("__meta_consul_", ""))
        .collect()
}

#[tokio::test]
async fn a_change_is_seen_at_once_and_a_failing_service_keeps_its_targets() {
    let agent = Agent::new();
    agent.set("web", json!([instance("web-1", "", "warning")]));
    agent.set("other", json!([{"Service": {"Tags": ["x"]}}]));
    let (server, _server) = agent.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.consul.test", folder.path());
    let body = Body::new()
        .text("server", &server)
        .text("refresh_interval", "10ms")
        .text("token", "hidden")
        .with("tags", Value::array([Value::string("pprof")]))
        .with("node_meta", Value::object([("zone", Value::string("b"))]));
    let running = Running::start(&DEFINITION, &recorder, &body);
    let web = |id: &str, host: &str, address: &str, health: &str| {
        format!(
            "{{__address__={host}:8080,address=10.0.0.1,dc=dc1,health={health},metadata_rack_no=7,metadata_zone=b,\
             namespace=default,node=n1,partition=p,service=web,service_address={address},service_id={id},\
             service_metadata_team=a,service_port=8080,tagged_address_wan=192.0.2.1,tags=,pprof,v1,}}"
        )
    };
    let first = [web("web-1", "10.0.0.1", "", "warning")];
    eventually("the service", || shortened_targets(&recorder) == first).await;

    let two = [
        web("web-1", "10.0.0.1", "", "critical"),
        web("web-2", "10.0.0.9", "10.0.0.9", "passing"),
    ];
    agent.set(
        "web",
        json!([
            instance("web-1", "", "critical"),
            instance("web-2", "10.0.0.9", "passing")
        ]),
    );
    eventually("the second instance", || shortened_targets(&recorder) == two).await;

    agent.set("web", Content::Null);
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    let (_, message) = recorder.health();
    let expected = format!("request to http://{server}/v1/");
    assert!(
        message.starts_with(&expected) && message.contains("No cluster leader"),
        "{message}"
    );
    assert_eq!(shortened_targets(&recorder), two);

    agent.set("web", json!([instance("web-3", "", "passing")]));
    let third = [web("web-3", "10.0.0.1", "", "passing")];
    eventually("the service again", || {
        shortened_targets(&recorder) == third && recorder.health().0 == HealthState::Healthy
    })
    .await;
    agent.services.send_modify(|services| drop(services.remove("web")));
    agent.set("late", json!([instance("late-1", "", "passing")]));
    eventually("the other service", || {
        let targets = shortened_targets(&recorder);
        targets.len() == 1 && targets[0].contains("service=late")
    })
    .await;
    let requests = agent.requests.lock().clone();
    assert!(
        requests.contains(&"catalog stale=&node-meta=zone%3Ab hidden".to_owned()),
        "{requests:?}"
    );
    assert!(
        requests.contains(&"web tag=pprof&stale=&node-meta=zone%3Ab hidden".to_owned()),
        "{requests:?}"
    );
    let waits = |line: &&String| line.starts_with("web ") && line.contains("index=") && line.contains("wait=");
    assert!(requests.iter().any(|line| waits(&line)), "{requests:?}");
    running.stop().await;
}

#[tokio::test]
async fn an_instance_with_a_port_out_of_range_does_not_hide_the_other_instances() {
    let agent = Agent::new();
    let instance = |port: i64| json!({"Service": {"Address": "10.0.0.1", "Port": port}});
    agent.set("web", json!([instance(70_000), instance(-1), instance(80)]));
    let (server, _server) = agent.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.consul.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &Body::new().text("server", &server));
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    let targets = shortened_targets(&recorder);
    let addresses: Vec<&str> = targets.iter().filter_map(|target| target.split(',').next()).collect();
    let expected = ["10.0.0.1:70000", "10.0.0.1:-1", "10.0.0.1:80"].map(|address| format!("{{__address__={address}"));
    assert_eq!(addresses, expected, "{}", recorder.health().1);
    running.stop().await;
}

#[tokio::test]
async fn node_metadata_is_compared_exactly_and_a_key_with_a_hyphen_is_not_waited_for() {
    let agent = Agent::new();
    let on_node = |meta: Content| json!({"Node": {"Meta": meta}, "Service": {"Address": "10.0.0.1", "Port": 80}});
    let other = on_node(json!({"rack-no": "77", "zone": "b"}));
    let selected = on_node(json!({"rack-no": "7", "zone": "b"}));
    agent.set("web", json!([other, selected, on_node(Content::Null)]));
    let (server, _server) = agent.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.consul.test", folder.path());
    let body = |keys: &[(&'static str, &str)]| {
        let meta = keys.iter().map(|(key, value)| (*key, Value::string(*value)));
        Body::new()
            .text("server", &server)
            .text("refresh_interval", "10ms")
            .with("services", Value::array([Value::string("web")]))
            .with("node_meta", Value::object(meta))
    };
    let running = Running::start(&DEFINITION, &recorder, &body(&[("rack-no", "7"), ("zone", "b")]));
    eventually("the third query", || agent.requests.lock().len() > 2).await;
    assert_eq!(shortened_targets(&recorder).len(), 1);
    assert!(!agent.requests.lock().iter().any(|line| line.contains("wait=")));
    let other = body(&[("zone", "b")]);
    running.component.update(other.arguments(&DEFINITION)).unwrap();
    eventually("a query that waits", || agent.load.lock().now == 1).await;
    eventually("both nodes", || shortened_targets(&recorder).len() == 2).await;
    running.stop().await;
}

#[tokio::test]
async fn named_services_need_no_catalog_and_new_arguments_do_not_wait() {
    let agent = Agent::new();
    agent.set("a/b", json!([instance("one", "", "passing")]));
    agent.set("c", json!([instance("two", "", "passing")]));
    let (server, _server) = agent.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.consul.test", folder.path());
    let named = |name: &str| {
        Body::new()
            .text("server", &format!("http://{server}"))
            .text("refresh_interval", "10ms")
            .text("datacenter", "far")
            .with("services", Value::array([Value::string(name)]))
            .with("allow_stale", Value::Bool(false))
    };
    let running = Running::start(&DEFINITION, &recorder, &named("a/b"));
    eventually("the service", || shortened_targets(&recorder).len() == 1).await;
    assert!(shortened_targets(&recorder)[0].contains("dc=far"));
    eventually("a query that waits", || agent.load.lock().now == 1).await;
    running.component.update(named("c").arguments(&DEFINITION)).unwrap();
    eventually("the other service", || {
        shortened_targets(&recorder)
            .iter()
            .any(|target| target.contains("service=c,"))
    })
    .await;
    assert_eq!(agent.requests.lock()[0], "a/b dc=far");
    assert!(!agent.requests.lock().iter().any(|line| line.starts_with("catalog")));
    running.stop().await;
    eventually("no query is left", || agent.load.lock().now == 0).await;
}

#[tokio::test]
async fn of_many_services_a_bounded_number_is_asked_for_at_once() {
    let agent = Agent::new();
    for number in 0..100 {
        agent.set(&format!("s{number}"), json!([instance("one", "", "passing")]));
    }
    let (server, _server) = agent.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.consul.test", folder.path());
    let body = Body::new().text("server", &server).text("refresh_interval", "20ms");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("all services", || recorder.exported_targets("targets").len() == 100).await;
    let is_asked_twice = |requests: &[String]| {
        (0..100).all(|number| {
            requests
                .iter()
                .filter(|line| line.starts_with(&format!("s{number} ")))
                .count()
                > 1
        })
    };
    eventually("every service to have its turn", || {
        is_asked_twice(&agent.requests.lock())
    })
    .await;
    // The query for the catalog does not count against the limit of 32.
    let maximum = agent.load.lock().maximum;
    assert!(maximum <= 33, "{maximum} concurrent queries");
    running.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_away_is_named() {
    let (base, server) = serve(Router::new()).await;
    drop(server);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.consul.test", folder.path());
    let body = Body::new().text("server", &base).text("scheme", "http");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("the failure", || {
        recorder
            .health()
            .1
            .starts_with(&format!("request to {base}/v1/agent/self"))
    })
    .await;
    running.stop().await;
}

#[test]
fn credentials_are_given_once() {
    let body = Body::new().text("username", "u").text("bearer_token", "t");
    assert_eq!(
        body.read(&DEFINITION).unwrap_err(),
        "bearer_token: at most one of username, basic_auth, authorization, oauth2, bearer_token and bearer_token_file \
         may be given"
    );
    let alone = Body::new().text("password", "p").read(&DEFINITION).unwrap_err();
    assert_eq!(alone, "password: a password needs a username");
    assert!(
        Body::new()
            .text("server", "unix:///run/consul")
            .read(&DEFINITION)
            .is_err()
    );
}
