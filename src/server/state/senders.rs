//! The senders of profiles since the start of the server: programs and collectors, by their names and addresses.
//!
//! In: requests of the routes that accept profiles. Out: the senders of a tenant. Each sender has counters and the time
//! of its last request. An Alluvium collector also reports the state of its queue. If the maximum number of senders is
//! reached, a new sender replaces the one that has sent nothing for the longest time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, USER_AGENT};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use serde_json::{Value, json};

use alluvium_profile::{TenantId, Tenants};
use alluvium_wire::queue_report::{QUEUE_HEADER, QueueReport};

/// Templates of the routes that accept profiles.
const ROUTES: [&str; 6] = [
    "/push.v1.PusherService/Push",
    "/ingest",
    "/pyroscope/ingest",
    "/v1development/profiles",
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    "/api/0/profiles",
];
/// Maximum number of senders of all tenants together.
const MAX_SENDERS: usize = 1000;
/// Maximum number of characters of a sender's name. Longer names are truncated.
const MAX_AGENT_CHARS: usize = 100;

/// The senders of all tenants.
#[derive(Debug, Default)]
pub(crate) struct Senders(Mutex<HashMap<Sender, SenderState>>);

/// The properties that distinguish a sender from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sender {
    tenant: TenantId,
    /// Value of `User-Agent`: usually a program and its version.
    agent: Arc<str>,
    /// Remote address of the connection, which may be the address of a proxy. `None` if it is unknown.
    address: Option<IpAddr>,
    /// Machine and component of a collector. Several collectors may share an address.
    collector: Option<(Arc<str>, Arc<str>)>,
}

/// Counters and last state of a sender.
#[derive(Debug)]
struct SenderState {
    first_ms: i64,
    last_ms: i64,
    requests: u64,
    /// Requests that were refused or failed.
    failed: u64,
    /// Bytes of request bodies on the wire. Only requests with a `Content-Length` count.
    bytes: u64,
    /// Status of the last response.
    status: u16,
    /// State of a collector's queue, from its last request.
    queue: Option<QueueReport>,
}

/// A request of a sender, before its response.
pub(in crate::server) struct SenderRequest {
    sender: Sender,
    bytes: u64,
    queue: Option<QueueReport>,
}

impl SenderRequest {
    /// Reads the sender of a request. Returns `None` if the route accepts no profiles or `tenant` returns no tenant.
    pub(in crate::server) fn of(
        (method, route): (&Method, &str),
        headers: &HeaderMap,
        tenant: impl FnOnce() -> Option<TenantId>,
        address: Option<IpAddr>,
    ) -> Option<Self> {
        if *method != Method::POST || !ROUTES.contains(&route) {
            return None;
        }
        let text_of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let agent: String = text_of(USER_AGENT.as_str())
            .unwrap_or_default()
            .chars()
            .take(MAX_AGENT_CHARS)
            .collect();
        let queue = text_of(QUEUE_HEADER).and_then(QueueReport::of_header);
        let name_of = |report: &QueueReport| -> (Arc<str>, Arc<str>) {
            (report.host.as_str().into(), report.component.as_str().into())
        };
        Some(Self {
            sender: Sender {
                tenant: tenant()?,
                agent: agent.into(),
                address,
                collector: queue.as_ref().map(name_of),
            },
            queue,
            bytes: text_of(CONTENT_LENGTH.as_str())
                .and_then(|length| length.parse().ok())
                .unwrap_or_default(),
        })
    }
}

impl Senders {
    /// Counts a request whose response has this `status`.
    pub(in crate::server) fn count_response(&self, sending: SenderRequest, status: u16, now_ms: i64) {
        let mut senders = self.0.lock();
        if senders.len() >= MAX_SENDERS && !senders.contains_key(&sending.sender) {
            let oldest = senders.iter().min_by_key(|(_, state)| state.last_ms);
            if let Some(oldest) = oldest.map(|(sender, _)| sender.clone()) {
                senders.remove(&oldest);
            }
        }
        let state = senders.entry(sending.sender).or_insert(SenderState {
            first_ms: now_ms,
            last_ms: now_ms,
            requests: 0,
            failed: 0,
            bytes: 0,
            status,
            queue: None,
        });
        state.last_ms = now_ms;
        state.requests += 1;
        state.failed += u64::from(status >= 400);
        state.bytes = state.bytes.saturating_add(sending.bytes);
        state.status = status;
        state.queue = sending.queue;
    }

    /// Returns the senders of the tenants, the most recent one first.
    pub(in crate::server) fn list(&self, tenants: &Tenants) -> Value {
        let senders = self.0.lock();
        let mut rows: Vec<_> = senders
            .iter()
            .filter(|(sender, _)| tenants.has(&sender.tenant))
            .collect();
        rows.sort_by(|(one, a), (other, b)| {
            let names =
                || (&one.agent, one.address, &one.collector).cmp(&(&other.agent, other.address, &other.collector));
            b.last_ms.cmp(&a.last_ms).then_with(names)
        });
        let row = |(sender, state): &(&Sender, &SenderState)| {
            json!({
                "agent": *sender.agent,
                "address": sender.address,
                "firstSeen": state.first_ms,
                "lastSeen": state.last_ms,
                "requests": state.requests,
                "failed": state.failed,
                "bytes": state.bytes,
                "lastStatus": state.status,
                "queue": state.queue.as_ref().map(queue_value),
            })
        };
        rows.iter().map(row).collect()
    }
}

fn queue_value(queue: &QueueReport) -> Value {
    json!({
        "host": queue.host,
        "component": queue.component,
        "profiles": queue.profiles,
        "oldestMs": u64::try_from(queue.oldest_age.as_millis()).unwrap_or(u64::MAX),
        "dropped": queue.dropped,
        "failures": queue.failures,
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn sending(agent: &str, tenant: &str) -> SenderRequest {
        let headers = HeaderMap::from_iter([
            (USER_AGENT, HeaderValue::from_str(agent).unwrap()),
            (CONTENT_LENGTH, HeaderValue::from_static("10")),
        ]);
        let route = (&Method::POST, "/ingest");
        SenderRequest::of(route, &headers, || tenant.parse().ok(), "127.0.0.1".parse().ok()).unwrap()
    }

    #[test]
    fn a_sender_is_counted_with_its_last_answer_for_its_tenant() {
        let senders = Senders::default();
        senders.count_response(sending("alluvium/1", "one"), 200, 5);
        senders.count_response(sending("alluvium/1", "one"), 429, 7);
        senders.count_response(sending("alloy/1", "one"), 200, 6);
        senders.count_response(sending("alloy/1", "two"), 200, 8);
        let row = |agent: &str, times: [i64; 2], requests: u64, failed: u64, status: u16| {
            json!({
                "agent": agent, "address": "127.0.0.1", "firstSeen": times[0], "lastSeen": times[1],
                "requests": requests, "failed": failed, "bytes": 10 * requests, "lastStatus": status,
                "queue": null,
            })
        };
        let expected = json!([row("alluvium/1", [5, 7], 2, 1, 429), row("alloy/1", [6, 6], 1, 0, 200)]);
        assert_eq!(senders.list(&"one".parse().unwrap()), expected);
    }

    #[test]
    fn collectors_behind_one_address_are_told_apart_with_the_last_that_each_said_of_its_queue() {
        let senders = Senders::default();
        for (host, profiles, now_ms) in [("web-1", 9, 5), ("web-2", 4, 6), ("web-1", 2, 7)] {
            let mut sending = sending("alluvium/1", "one");
            let report = QueueReport {
                host: host.to_owned(),
                component: "pyroscope.write.default".to_owned(),
                profiles,
                ..QueueReport::default()
            };
            let value = HeaderValue::from_str(&report.to_header()).unwrap();
            let headers = HeaderMap::from_iter([(http::HeaderName::from_static(QUEUE_HEADER), value)]);
            let route = (&Method::POST, "/ingest");
            let request = SenderRequest::of(route, &headers, || Some(TenantId::anonymous()), None).unwrap();
            (sending.sender.collector, sending.queue) = (request.sender.collector, request.queue);
            senders.count_response(sending, 200, now_ms);
        }
        let rows = senders.list(&"one".parse().unwrap());
        let row = |index: usize| {
            (
                &rows[index]["queue"]["host"],
                &rows[index]["queue"]["profiles"],
                &rows[index]["requests"],
            )
        };
        assert_eq!(row(0), (&json!("web-1"), &json!(2), &json!(2)));
        assert_eq!(row(1), (&json!("web-2"), &json!(4), &json!(1)));
    }

    #[test]
    fn only_routes_that_take_profiles_have_senders() {
        let has_sender = |method: Method, route: &str| {
            SenderRequest::of(
                (&method, route),
                &HeaderMap::new(),
                || Some(TenantId::anonymous()),
                None,
            )
            .is_some()
        };
        assert!(has_sender(Method::POST, "/push.v1.PusherService/Push"));
        assert!(!has_sender(Method::GET, "/api/0/profiles"));
        assert!(!has_sender(Method::POST, "/api/v1/sql"));
    }

    #[test]
    fn the_one_that_was_not_seen_for_the_longest_makes_room() {
        let senders = Senders::default();
        for number in 0..=MAX_SENDERS {
            senders.count_response(sending(&format!("agent {number}"), "one"), 200, number as i64);
        }
        let rows = senders.list(&"one".parse().unwrap());
        let agents: Vec<&str> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["agent"].as_str().unwrap())
            .collect();
        assert_eq!((agents.len(), agents[0]), (MAX_SENDERS, "agent 1000"));
        assert!(!agents.contains(&"agent 0"));
        let long = sending(&"x".repeat(1000), "one");
        assert_eq!(long.sender.agent.len(), MAX_AGENT_CHARS);
    }
}
