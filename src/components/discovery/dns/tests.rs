//! Tests against a small fake DNS server, over UDP and TCP.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts, ServerOrderingStrategy,
};
use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, MX, NS, SRV};
use hickory_resolver::proto::rr::{Name, RData, Record};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

use super::{DEFINITION, Dns};
use crate::common::discovery::parts::Parts;
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Server};
use alluvium_base::dns::System;
use alluvium_lang::value::{Number, Value};

/// Maximum number of records that the server sends in one datagram.
const DATAGRAM: usize = 8;

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

/// A name with one of its records, or with `None` for a name that exists without records.
type Entry = (&'static str, Option<RData>);

/// The records of the server. A server with an empty zone answers every query with a failure.
#[derive(Clone, Default)]
struct Zone(Arc<Mutex<Vec<Entry>>>);

impl Zone {
    fn answer(&self, question: &[u8], max_answers: usize) -> Vec<u8> {
        let question = Message::from_vec(question).unwrap();
        let query = &question.queries[0];
        let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
        answer.queries = question.queries.clone();
        let records = self.0.lock();
        let of_name: Vec<_> = records
            .iter()
            .filter(|(owner, _)| name(owner) == *query.name())
            .collect();
        if records.is_empty() || query.name().to_string().starts_with("broken") {
            answer.metadata.response_code = ResponseCode::ServFail;
        } else if of_name.is_empty() {
            answer.metadata.response_code = ResponseCode::NXDomain;
        }
        let fits = |data: &&RData| data.record_type() == query.query_type() || matches!(data, RData::CNAME(_));
        for data in of_name.iter().filter_map(|(_, data)| data.as_ref()).filter(fits) {
            answer
                .answers
                .push(Record::from_rdata(query.name().clone(), 60, data.clone()));
            if let RData::CNAME(CNAME(other)) = data {
                let others = records.iter().filter(|(owner, _)| name(owner) == *other);
                let others = others.filter_map(|(_, data)| data.clone());
                answer
                    .answers
                    .extend(others.map(|data| Record::from_rdata(other.clone(), 60, data)));
            }
        }
        if answer.answers.len() > max_answers {
            answer.answers.truncate(max_answers);
            answer.metadata.truncation = true;
        }
        answer.to_vec().unwrap()
    }

    /// Starts a server for the zone. Returns a resolver configuration with this server and one search domain.
    async fn serve(&self) -> (System, [Server; 2]) {
        let (server, tasks) = self.listen().await;
        (system(vec![server]), tasks)
    }

    /// Starts a server for the zone. Returns its address.
    async fn listen(&self) -> (NameServerConfig, [Server; 2]) {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (mut by_udp, mut by_tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
        by_udp.port = udp.local_addr().unwrap().port();
        by_tcp.port = tcp.local_addr().unwrap().port();
        let (zone, other) = (self.clone(), self.clone());
        let datagrams = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = udp.recv_from(&mut buffer).await {
                udp.send_to(&zone.answer(&buffer[..length], DATAGRAM), from)
                    .await
                    .unwrap();
            }
        });
        let streams = tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                while let Ok(length) = stream.read_u16().await {
                    let mut question = vec![0; length.into()];
                    stream.read_exact(&mut question).await.unwrap();
                    let answer = other.answer(&question, usize::MAX);
                    stream.write_u16(answer.len().try_into().unwrap()).await.unwrap();
                    stream.write_all(&answer).await.unwrap();
                }
            }
        });
        let server = NameServerConfig::new(Ipv4Addr::LOCALHOST.into(), true, vec![by_udp, by_tcp]);
        (server, [Server::of(datagrams), Server::of(streams)])
    }
}

/// Returns a resolver configuration with these servers, in this order, and one search domain.
fn system(servers: Vec<NameServerConfig>) -> System {
    let config = ResolverConfig::from_parts(None, vec![name("shop.example.")], servers);
    let mut options = ResolverOpts::default();
    options.timeout = Duration::from_secs(20);
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    System::new(move || Ok((config.clone(), options.clone())))
}

fn discovery(record: &str, port: i64, names: &[&str], system: System) -> Dns {
    let names = Value::array(names.iter().copied().map(Value::string));
    let body = Body::new()
        .with("names", names)
        .text("type", record)
        .with("port", Value::Number(Number::Int(port)));
    Dns {
        arguments: (*body.arguments(&DEFINITION)).clone(),
        system,
        parts: Parts::default(),
    }
}

async fn discover(dns: &Dns) -> Vec<String> {
    let targets = dns.targets().await.unwrap();
    let address = |target: &crate::common::arguments::targets::Target| {
        let labels: Vec<String> = target.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.join(" ").replace("__meta_dns_", "")
    };
    targets.iter().map(address).collect()
}

#[tokio::test]
async fn each_record_is_a_target() {
    let zone = Zone::default();
    let address = |text: &str| RData::A(A(text.parse().unwrap()));
    *zone.0.lock() = vec![
        (
            "_p._tcp.example.",
            Some(RData::SRV(SRV::new(0, 5, 6060, name("one.example.")))),
        ),
        (
            "_p._tcp.example.",
            Some(RData::SRV(SRV::new(0, 5, 6061, name("two.example.")))),
        ),
        (
            "_alias._tcp.example.",
            Some(RData::CNAME(CNAME(name("_p._tcp.example.")))),
        ),
        (
            "_chain._tcp.example.",
            Some(RData::CNAME(CNAME(name("_alias._tcp.example.")))),
        ),
        (
            "_circle._tcp.example.",
            Some(RData::CNAME(CNAME(name("_circle._tcp.example.")))),
        ),
        ("one.example.", Some(address("192.0.2.1"))),
        ("one.example.", Some(RData::AAAA(AAAA("2001:db8::1".parse().unwrap())))),
        ("alias.example.", Some(RData::CNAME(CNAME(name("target.example."))))),
        ("target.example.", Some(address("192.0.2.9"))),
        ("example.", Some(RData::MX(MX::new(10, name("mail.example."))))),
        ("example.", Some(RData::NS(NS(name("ns.example."))))),
    ];
    for (record, question, expected) in [
        (
            "srv",
            "_p._tcp.example",
            vec![
                "__address__=one.example:6060 name=_p._tcp.example srv_record_port=6060 srv_record_target=one.example.",
                "__address__=two.example:6061 name=_p._tcp.example srv_record_port=6061 srv_record_target=two.example.",
            ],
        ),
        (
            "SRV",
            "_alias._tcp.example.",
            vec![
                "__address__=one.example:6060 name=_alias._tcp.example. srv_record_port=6060 \
                 srv_record_target=one.example.",
                "__address__=two.example:6061 name=_alias._tcp.example. srv_record_port=6061 \
                 srv_record_target=two.example.",
            ],
        ),
        (
            "SRV",
            "_chain._tcp.example.",
            vec![
                "__address__=one.example:6060 name=_chain._tcp.example. srv_record_port=6060 \
                 srv_record_target=one.example.",
                "__address__=two.example:6061 name=_chain._tcp.example. srv_record_port=6061 \
                 srv_record_target=two.example.",
            ],
        ),
        ("SRV", "_circle._tcp.example.", vec![]),
        ("A", "one.example.", vec!["__address__=192.0.2.1:80 name=one.example."]),
        (
            "A",
            "alias.example.",
            vec!["__address__=192.0.2.9:80 name=alias.example."],
        ),
        (
            "AAAA",
            "one.example.",
            vec!["__address__=[2001:db8::1]:80 name=one.example."],
        ),
        (
            "MX",
            "example.",
            vec!["__address__=mail.example:80 mx_record_target=mail.example. name=example."],
        ),
        (
            "NS",
            "example.",
            vec!["__address__=ns.example:80 name=example. ns_record_target=ns.example."],
        ),
    ] {
        let (system, _server) = zone.serve().await;
        let dns = discovery(record, 80, &[question], system);
        assert_eq!(discover(&dns).await, expected, "{record}");
        assert!(dns.failure().is_none());
    }
}

#[tokio::test]
async fn what_does_not_fit_into_a_datagram_comes_over_tcp() {
    let zone = Zone::default();
    let addresses = (1..=200).map(|last| ("many.example.", Some(RData::A(A::new(192, 0, 2, last)))));
    *zone.0.lock() = addresses.collect();
    let (system, _server) = zone.serve().await;
    let dns = discovery("A", 80, &["many.example."], system);
    assert_eq!(discover(&dns).await.len(), 200);
}

#[tokio::test]
async fn search_domains_are_tried_and_the_first_name_that_is_there_counts() {
    let zone = Zone::default();
    *zone.0.lock() = vec![
        ("cart.shop.example.", Some(RData::A(A::new(192, 0, 2, 1)))),
        ("cart.", Some(RData::A(A::new(192, 0, 2, 2)))),
        ("a.b.shop.example.", Some(RData::A(A::new(192, 0, 2, 3)))),
        ("a.b.", Some(RData::A(A::new(192, 0, 2, 4)))),
        ("empty.shop.example.", None),
        ("empty.", Some(RData::A(A::new(192, 0, 2, 5)))),
    ];
    let (system, _server) = zone.serve().await;
    let dns = discovery("A", 80, &["cart", "a.b", "empty", "gone", "cart."], system);
    assert_eq!(
        discover(&dns).await,
        [
            "__address__=192.0.2.4:80 name=a.b",
            "__address__=192.0.2.1:80 name=cart",
            "__address__=192.0.2.2:80 name=cart.",
        ]
    );
    assert!(dns.failure().is_none());
}

#[tokio::test]
async fn a_name_that_nobody_can_answer_for_keeps_its_targets() {
    let zone = Zone::default();
    *zone.0.lock() = vec![("one.example.", Some(RData::A(A::new(192, 0, 2, 1))))];
    let (system, _server) = zone.serve().await;
    let dns = discovery("A", 80, &["one.example.", "broken.example."], system);
    let expected = ["__address__=192.0.2.1:80 name=one.example."];
    assert_eq!(discover(&dns).await, expected);
    let failure = dns.failure().unwrap().to_string();
    assert!(
        failure.starts_with("cannot look up A of broken.example.: "),
        "{failure}"
    );
    zone.0.lock().clear();
    assert_eq!(discover(&dns).await, expected);
    assert!(dns.failure().unwrap().to_string().ends_with("(and 1 more)"));
}

#[tokio::test]
async fn a_server_that_fails_does_not_hide_the_response_of_another() {
    let zone = Zone::default();
    *zone.0.lock() = vec![
        ("one.example.", Some(RData::A(A::new(192, 0, 2, 1)))),
        (
            "_alias._tcp.example.",
            Some(RData::CNAME(CNAME(name("_p._tcp.example.")))),
        ),
        (
            "_p._tcp.example.",
            Some(RData::SRV(SRV::new(0, 5, 6060, name("one.example.")))),
        ),
    ];
    let failing = Zone::default();
    let (first, _first_tasks) = failing.listen().await;
    let (second, _second_tasks) = failing.listen().await;
    let (third, _third_tasks) = zone.listen().await;
    let servers = vec![first, second, third];
    let addresses = discovery("A", 80, &["one.example.", "gone.example."], system(servers.clone()));
    assert_eq!(
        discover(&addresses).await,
        ["__address__=192.0.2.1:80 name=one.example."]
    );
    assert!(addresses.failure().is_none());
    let services = discovery("SRV", 80, &["_alias._tcp.example."], system(servers));
    assert_eq!(
        discover(&services).await,
        [
            "__address__=one.example:6060 name=_alias._tcp.example. srv_record_port=6060 \
             srv_record_target=one.example."
        ]
    );
}
