//! Memory that the PostgreSQL port uses for its clients: statements, portals, names, values, parts of messages.
//!
//! Scenario: clients prepare and bind as much as they can and never sync. Some tests use a port with little memory, and
//! one uses the port of the real program. Guarantee: if a message exceeds a limit, such as the memory of the port, the
//! server refuses it and sends an error code. The memory of the process stays within its limit, and all other clients
//! work as before.

use std::iter;
use std::time::Duration;

use alluvium::query::QueryLimits;
use alluvium::server::postgres::PostgresOptions;
use alluvium_base::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::wire_frames::{message, serve};
use super::{engine_with, two_services};
use crate::harness::client;
use crate::program::{Address, PATIENCE, Program};

const MIB: usize = 1 << 20;

/// Opens a port whose connections together may use 2 MiB of memory.
async fn open() -> (String, Shutdown) {
    let mut options = PostgresOptions::new("127.0.0.1:0");
    options.memory_bytes = 2 * MIB;
    options.multi_tenant = true;
    serve(options, engine_with(two_services(), QueryLimits::default())).await
}

fn parse(name: &str, query: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", query.as_bytes(), b"\0\0\0"].concat())
}

/// Encodes a message that binds a portal to a statement, with or without a parameter.
fn bind(portal: &str, statement: &str, value: Option<&[u8]>) -> Vec<u8> {
    let mut body = [portal.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0"].concat();
    body.extend(u16::from(value.is_some()).to_be_bytes());
    if let Some(value) = value {
        body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        body.extend(value);
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

/// Encodes a message that requests this many rows of a portal. 0 requests all rows.
fn execute(portal: &str, rows: u32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &rows.to_be_bytes()].concat())
}

/// Encodes a message that makes the server send its pending responses.
fn flush() -> Vec<u8> {
    message(b'H', b"")
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

struct Client(TcpStream);

impl Client {
    async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut client = Self(stream);
        let body = b"\0\x03\0\0user\0tester\0database\0one\0\0";
        let length = u32::try_from(body.len() + 4).unwrap();
        let begin = [&length.to_be_bytes()[..], body].concat();
        client.0.write_all(&begin).await.unwrap();
        client.until(b'Z').await;
        client
    }

    /// Returns the next message, or `None` when the server has closed the connection.
    async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let read = async {
            let kind = self.0.read_u8().await.ok()?;
            let length = self.0.read_u32().await.ok()? as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).await.ok()?;
            Some((kind, body))
        };
        tokio::time::timeout(PATIENCE, read).await.expect("no answer")
    }

    /// Returns the kinds of all messages up to one of this kind, and the code of the last error among them.
    async fn until(&mut self, kind: u8) -> (Vec<u8>, Option<String>) {
        let (mut kinds, mut code) = (Vec::new(), None);
        while let Some((next, body)) = self.next().await {
            kinds.push(next);
            if next == b'E' {
                let mut fields = body.split(|byte| *byte == 0);
                let field = fields.find(|field| field.first() == Some(&b'C'));
                code = field.map(|field| String::from_utf8_lossy(&field[1..]).into_owned());
            }
            if next == kind {
                break;
            }
        }
        (kinds, code)
    }

    /// Sends a message and requests its response. Returns `None` if the response has the kind `good`, or the code of
    /// the error.
    async fn ask(&mut self, bytes: &[u8], good: u8) -> Option<String> {
        // The server may have closed the connection before it has read everything.
        let _ = self.0.write_all(&[bytes, &flush()].concat()).await;
        loop {
            match self.next().await {
                Some((kind, _)) if kind == good => return None,
                Some((b'E', body)) => {
                    let mut fields = body.split(|byte| *byte == 0);
                    let field = fields.find(|field| field.first() == Some(&b'C')).unwrap();
                    return Some(String::from_utf8_lossy(&field[1..]).into_owned());
                }
                Some(_) => {}
                None => return Some("closed".to_owned()),
            }
        }
    }

    /// Sends messages until the server refuses one. Returns the number of messages before the refused one, and the
    /// code.
    async fn many(&mut self, good: u8, messages: impl Iterator<Item = Vec<u8>>) -> (usize, Option<String>) {
        for (number, message) in messages.enumerate() {
            if let Some(code) = self.ask(&message, good).await {
                // If the server has no memory for a message, it closes the connection.
                let _ = self.0.write_all(&sync()).await;
                self.until(b'Z').await;
                return (number, Some(code));
            }
        }
        (usize::MAX, None)
    }
}

/// Runs a session that prepares a hundred statements and runs each.
async fn honest(address: &str) {
    let mut client = Client::connect(address).await;
    for number in 0..100 {
        let name = format!("statement {number}");
        let text = format!("SELECT count(*) FROM samples WHERE value > $1::bigint + {number}");
        assert_eq!(client.ask(&parse(&name, &text), b'1').await, None, "{name}");
    }
    for number in 0..100 {
        let name = format!("statement {number}");
        let run = [bind("", &name, Some(b"1")), execute("", 0), sync()].concat();
        client.0.write_all(&run).await.unwrap();
        let (kinds, code) = client.until(b'Z').await;
        assert_eq!((kinds, code), (b"2DCZ".to_vec(), None), "{name}");
    }
}

/// Returns a query with as many columns as allowed, with long names.
fn wide() -> String {
    let columns: Vec<String> = (0..1664).map(|column| format!("1 \"{column:0>148}\"")).collect();
    format!("SELECT {}", columns.join(","))
}

/// Opens a connection and begins a transaction, so that portals exist until its end.
async fn in_transaction(address: &str) -> Client {
    let mut client = Client::connect(address).await;
    client.0.write_all(&message(b'Q', b"BEGIN\0")).await.unwrap();
    client.until(b'Z').await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_a_statement_or_portal_has_a_limit() {
    let (address, _open) = open().await;
    let mut client = Client::connect(&address).await;
    let name = "n".repeat(1025);
    let refused = Some("42622".to_owned());
    assert_eq!(
        client.many(b'1', iter::once(parse(&name, ""))).await,
        (0, refused.clone())
    );
    assert_eq!(client.ask(&parse("s", "SELECT 1"), b'1').await, None);
    assert_eq!(
        client.many(b'2', iter::once(bind(&name, "s", None))).await,
        (0, refused)
    );
    assert_eq!(client.ask(&parse(&name[1..], ""), b'1').await, None);
    // If an error repeats a text of the client, it repeats only a part of the text.
    let unknown = message(b'D', format!("S{}\0", "n".repeat(60_000)).as_bytes());
    client.0.write_all(&[unknown, flush()].concat()).await.unwrap();
    let (kind, body) = client.next().await.unwrap();
    assert!(kind == b'E' && body.len() < 10_000, "{}", body.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_connection_keeps_is_refused_when_the_port_has_no_memory_left() {
    let (address, _open) = open().await;
    let refused = Some("53200".to_owned());
    // Values fill the memory.
    let mut values = in_transaction(&address).await;
    assert_eq!(values.ask(&parse("v", "SELECT $1::text"), b'1').await, None);
    let portals = (0..1000).map(|number| bind(&format!("p{number}"), "v", Some(&[b'v'; 50_000])));
    let (count, code) = values.many(b'2', portals).await;
    assert!((20..42).contains(&count) && code == refused, "{count} {code:?}");
    // The client sends a part of a large message while the server has no memory left for the message.
    let mut half = Client::connect(&address).await;
    half.0
        .write_all(&parse("half", &"x".repeat(MIB - 100))[..100])
        .await
        .unwrap();
    assert_eq!(half.until(b'E').await.1, refused);
    drop(values);

    // Statements with long texts and column names.
    let mut statements = again(&address).await;
    let parses = (0..1000).map(|number| parse(&format!("s{number}"), &wide()));
    let (count, code) = statements.many(b'1', parses).await;
    assert!((1..4).contains(&count) && code == refused, "{count} {code:?}");
    drop(statements);

    // Portals share the columns of their statement.
    let mut portals = again(&address).await;
    assert_eq!(portals.ask(&parse("w", &wide()), b'1').await, None);
    let binds = (0..1000).map(|number| bind(&format!("p{number}"), "w", None));
    let (count, code) = portals.many(b'2', binds).await;
    assert!((150..300).contains(&count) && code == refused, "{count} {code:?}");
    drop(portals);

    // A replaced statement uses memory as long as its portals exist.
    let mut replaced = again(&address).await;
    let both = (0..1000).map(|number| [parse("", &wide()), bind(&format!("p{number}"), "", None)].concat());
    let (count, code) = replaced.many(b'2', both).await;
    assert!((1..4).contains(&count) && code == refused, "{count} {code:?}");
    drop(replaced);

    // Portals whose rows were read in part also use memory after their query has ended.
    let mut rows = again(&address).await;
    let text = "SELECT repeat('x', 60000) FROM samples a, samples b LIMIT 20";
    assert_eq!(rows.ask(&parse("r", text), b'1').await, None);
    let begun = (0..15).map(|number| {
        let name = format!("p{number}");
        [bind(&name, "r", None), execute(&name, 1)].concat()
    });
    let (count, code) = rows.many(b's', begun).await;
    assert!((2..5).contains(&count) && code == refused, "{count} {code:?}");
    drop(rows);

    drop(again(&address).await);
    honest(&address).await;
}

/// Starts a transaction once the memory of disconnected clients is free.
async fn again(address: &str) -> Client {
    let connected = async {
        loop {
            let mut client = in_transaction(address).await;
            let parses = (0..3).map(|number| parse(&format!("s{number}"), &wide()));
            if client.many(b'1', parses).await.1.is_none() {
                let end = [sync(), message(b'Q', b"DISCARD ALL\0")].concat();
                client.0.write_all(&end).await.unwrap();
                client.until(b'Z').await;
                client.until(b'Z').await;
                return client;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, connected)
        .await
        .expect("the memory of disconnected clients is not free")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_little_memory_stays_within_it_whatever_its_sql_clients_keep() {
    let folder = tempfile::tempdir().unwrap();
    let (address, sessions) = (Address::keep(), Address::keep());
    let data = folder.path().join("data");
    let arguments = [
        "serve",
        "--listen",
        &address,
        "--postgres.listen",
        &sessions,
        "--data",
        &data.to_string_lossy(),
        "--memory-limit",
        "128MiB",
    ];
    let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
    server.ready(&client(), &format!("http://{address}/ready")).await;

    let mut held = Vec::new();
    let name = |at: usize| format!("{at:0>20}");
    for number in 0..8 {
        let mut attacker = in_transaction(&sessions).await;
        let (_, code) = match number % 4 {
            0 => {
                let portals = (0..1000).map(|at| bind(&name(at), "s", None));
                let first = [parse("s", &wide()), bind("first", "s", None)].concat();
                attacker.many(b'2', iter::once(first).chain(portals)).await
            }
            1 => {
                let long = "n".repeat(1_000_000);
                attacker
                    .many(b'1', (0..1000).map(|at| parse(&format!("{at}{long}"), "")))
                    .await
            }
            2 => {
                let ones = format!("SELECT 1 WHERE 1 IN (1{})", ",1".repeat(20_000));
                attacker.many(b'1', (0..40).map(|at| parse(&name(at), &ones))).await
            }
            _ => {
                let value = vec![b'v'; 900_000];
                let first = [parse("s", "SELECT $1::text"), bind("first", "s", Some(b"v"))].concat();
                let portals = (0..1000).map(|at| bind(&name(at), "s", Some(&value)));
                attacker.many(b'2', iter::once(first).chain(portals)).await
            }
        };
        assert!(
            matches!(
                code.as_deref(),
                None | Some("53200" | "53400" | "42622" | "54000" | "closed")
            ),
            "{number}: {code:?}"
        );
        held.push(attacker);
        let memory = server.own_memory();
        println!("{number}: {} MiB, {code:?}", memory >> 20);
        assert!(memory < 128 * MIB, "{number}: {} MiB", memory >> 20);
    }
    let metrics = client().get(format!("http://{address}/metrics")).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let limit = "alluvium_memory_limit_bytes{part=\"postgres\"} 2621440";
    assert!(metrics.contains(limit), "{metrics}");
    drop(held);
    drop(again(&sessions).await);
    honest(&sessions).await;
    server.check();
    assert!(server.terminate().success());
}
