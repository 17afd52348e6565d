//! The PostgreSQL port with its clients: psql, psycopg, JDBC, and a test client. The test client sends messages that
//! the other clients never send.
//!
//! Scenario: an engine with the data of the other query tests behind a real port. Guarantee: the clients connect and
//! see the tables. The port also refuses or stops the statements of the module `attacks`, and accepts no client without
//! permission. A query ends when its client cancels it or disconnects.

use std::process::Command;
use std::time::{Duration, Instant};

use alluvium::query::{QueryEngine, QueryLimits};
use alluvium::server::postgres::{PostgresError, PostgresOptions, PostgresServer, PostgresTls, PostgresUser};
use alluvium::server::tls::TlsFiles;
use alluvium_base::Shutdown;
use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::attacks;
use super::expected::Expected;
use super::wire_frames::serve;
use super::{engine_with, two_services};
use crate::program::other;

/// An open port that closes when it is dropped.
struct Port {
    address: String,
    shutdown: Shutdown,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Port {
    async fn open(engine: QueryEngine, change: impl FnOnce(&mut PostgresOptions)) -> Self {
        let mut options = PostgresOptions::new("127.0.0.1:0");
        options.multi_tenant = true;
        change(&mut options);
        let (address, shutdown) = serve(options, engine).await;
        Self { address, shutdown }
    }

    fn number(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }
}

fn engine() -> QueryEngine {
    engine_with(two_services(), QueryLimits::default())
}

fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("integration/fixtures")
        .join(name)
}

/// A client that queries by the simple protocol. With `send`, a test may also send other messages.
struct Client {
    stream: TcpStream,
    input: BytesMut,
    key: Vec<u8>,
}

impl Client {
    async fn connect(address: &str, database: &str) -> Result<Self, String> {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut body = BytesMut::new();
        body.put_i32(3 << 16);
        for text in ["user", "tester", "database", database, ""] {
            body.put_slice(text.as_bytes());
            body.put_u8(0);
        }
        let mut message = BytesMut::new();
        message.put_i32(body.len() as i32 + 4);
        message.put_slice(&body);
        stream.write_all(&message).await.unwrap();
        let mut client = Self {
            stream,
            input: BytesMut::new(),
            key: Vec::new(),
        };
        loop {
            match client.message().await {
                Some((b'K', body)) => client.key = body.to_vec(),
                Some((b'E', body)) => return Err(error_text(&body)),
                Some((b'Z', _)) => return Ok(client),
                Some(_) => {}
                None => return Err("closed".to_owned()),
            }
        }
    }

    async fn message(&mut self) -> Option<(u8, BytesMut)> {
        loop {
            if self.input.len() >= 5 {
                let length = (&self.input[1..5]).get_u32() as usize;
                if self.input.len() > length {
                    let mut whole = self.input.split_to(length + 1);
                    let kind = whole.get_u8();
                    whole.advance(4);
                    return Some((kind, whole));
                }
            }
            if self.stream.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    async fn send(&mut self, kind: u8, body: &[u8]) {
        let mut message = BytesMut::new();
        message.put_u8(kind);
        message.put_i32(body.len() as i32 + 4);
        message.put_slice(body);
        let _ = self.stream.write_all(&message).await;
    }

    async fn begin(&mut self, sql: &str) {
        self.send(b'Q', &[sql.as_bytes(), b"\0"].concat()).await;
    }

    /// Returns the rows as text, or the error.
    async fn query(&mut self, sql: &str) -> Result<String, String> {
        self.begin(sql).await;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<String, String> {
        let (mut rows, mut error) = (String::new(), None);
        loop {
            match self.message().await {
                Some((b'D', body)) => rows.push_str(&String::from_utf8_lossy(&body)),
                Some((b'E', body)) => error = Some(error_text(&body)),
                Some((b'Z', _)) => break,
                Some(_) => {}
                None => {
                    error.get_or_insert("closed".to_owned());
                    break;
                }
            }
        }
        error.map_or(Ok(rows), Err)
    }
}

/// Returns code and text of an error.
fn error_text(body: &[u8]) -> String {
    let fields: Vec<String> = body
        .split(|byte| *byte == 0)
        .filter(|field| matches!(field.first(), Some(b'C' | b'M')))
        .map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
        .collect();
    fields.join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_attacks_are_refused_or_stopped_on_the_port_too() {
    let port = Port::open(engine_with(two_services(), attacks::limits()), |_| {}).await;
    let mut client = Client::connect(&port.address, "one").await.unwrap();
    let more = [
        (
            "prepare by text",
            Expected::Refused,
            "PREPARE p AS SELECT * FROM samples",
        ),
        (
            "execute by text",
            Expected::Refused,
            "EXECUTE p('x; DROP TABLE samples')",
        ),
        ("a role", Expected::Refused, "SET ROLE postgres"),
        ("a user", Expected::Refused, "SET SESSION AUTHORIZATION two"),
        (
            "a setting of the engine",
            Expected::Refused,
            "SET datafusion.execution.batch_size = 1",
        ),
        ("a setting of the host", Expected::Refused, "SHOW data_directory"),
        ("a file by COPY", Expected::Refused, "COPY samples TO STDOUT"),
        ("rows by COPY", Expected::Refused, "COPY samples FROM STDIN"),
        (
            "a second statement that harms",
            Expected::Refused,
            "SELECT 1; DROP TABLE samples",
        ),
        (
            "other tenants in pg_catalog",
            Expected::Harmless,
            "SELECT * FROM pg_catalog.pg_class",
        ),
        (
            "other tenants as databases",
            Expected::Harmless,
            "SELECT * FROM pg_catalog.pg_database",
        ),
        (
            "roles and passwords",
            Expected::Harmless,
            "SELECT * FROM pg_catalog.pg_authid",
        ),
        ("users and passwords", Expected::Refused, "SELECT * FROM pg_shadow"),
        (
            "settings by pg_settings",
            Expected::Harmless,
            "SELECT * FROM pg_catalog.pg_settings",
        ),
        (
            "write into pg_catalog",
            Expected::Refused,
            "UPDATE pg_catalog.pg_class SET relname = 'x'",
        ),
        ("a large object", Expected::Refused, "SELECT lo_import('/etc/passwd')"),
        (
            "stop another's query",
            Expected::Refused,
            "SELECT pg_terminate_backend(1)",
        ),
        ("sleep", Expected::Refused, "SELECT pg_sleep(1000)"),
        ("listen", Expected::Refused, "LISTEN x"),
        ("a cursor", Expected::Refused, "DECLARE c CURSOR FOR SELECT 1"),
    ];
    let more = more.map(|(name, expected, sql)| (name, expected, sql.to_owned()));
    // A statement that ends at the timeout takes long, and another test already runs all of them. So this test omits
    // some of them, but none that depends on the SQL dialect or on the protocol.
    let slow = [
        "a window over everything",
        "sort everything",
        "distinct of everything",
        "groups without end",
    ];
    // PostgreSQL clients send these statements routinely, so the port answers them although the engine refuses them.
    let usual = ["all settings", "a transaction", "two statements", "nothing"];
    let table = attacks::all()
        .into_iter()
        .filter(|row| !slow.contains(&row.0) && !usual.contains(&row.0))
        .chain(more);
    let mut problems = Vec::new();
    for (name, expected, sql) in table {
        let answer = client.query(&sql).await;
        let fits = match (&answer, expected) {
            (Ok(rows), Expected::Harmless) => !rows.contains("launch_codes") && !rows.contains("secret"),
            (Ok(_), _) => false,
            (Err(error), _) => !error.starts_with("XX000") && !error.contains("panicked"),
        };
        let shown: String = format!("{answer:?}").chars().take(300).collect();
        if !fits {
            problems.push(format!("{name} ({expected:?}): {shown}"));
        }
        if answer == Err("closed".to_owned()) || sql.len() > 1 << 20 {
            client = Client::connect(&port.address, "one").await.unwrap();
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(
        client
            .query("SELECT count(*) FROM samples WHERE tenant = 'one'")
            .await
            .unwrap()
            .len(),
        8
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_sees_the_tenant_of_its_database_alone() {
    let port = Port::open(engine(), |_| {}).await;
    let mut two = Client::connect(&port.address, "two").await.unwrap();
    assert!(
        two.query("SELECT DISTINCT function FROM flat")
            .await
            .unwrap()
            .contains("launch_codes")
    );
    let mut one = Client::connect(&port.address, "one").await.unwrap();
    assert!(
        !one.query("SELECT DISTINCT function FROM flat")
            .await
            .unwrap()
            .contains("launch_codes")
    );
    for database in ["postgres", "../two", "tester"] {
        let refused = Client::connect(&port.address, database).await.err().unwrap();
        assert!(refused.starts_with("3D000"), "{database}: {refused}");
    }
}

const ENDLESS: &str = "SELECT count(*) FROM samples a, samples b, samples c, samples d, samples e, samples f, samples \
    g, samples h \
                       WHERE a.value + b.value + c.value + d.value + e.value + f.value + g.value + h.value < 0";

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_when_its_client_asks_for_it_or_goes() {
    let engine = engine_with(
        two_services(),
        QueryLimits {
            max_concurrent_queries: 1,
            timeout: Duration::from_secs(200),
            ..QueryLimits::default()
        },
    );
    let port = Port::open(engine, |_| {}).await;
    let mut client = Client::connect(&port.address, "one").await.unwrap();
    client.begin(ENDLESS).await;
    // A cancel request has no effect before the query runs, so the test repeats the request.
    let key = client.key.clone();
    let stopped = async {
        let mut answer = std::pin::pin!(client.answer());
        loop {
            let mut other = TcpStream::connect(&port.address).await.unwrap();
            let mut message = BytesMut::new();
            message.put_i32(16);
            message.put_i32(80_877_102);
            message.put_slice(&key);
            other.write_all(&message).await.unwrap();
            if let Ok(answer) = tokio::time::timeout(Duration::from_millis(300), &mut answer).await {
                break answer.unwrap_err();
            }
        }
    };
    let stopped = tokio::time::timeout(Duration::from_mins(2), stopped).await.unwrap();
    assert!(stopped.starts_with("57014"), "{stopped}");
    assert_eq!(client.query("SELECT 1").await.unwrap().len(), 7);

    // If a client disconnects during its query, the only query slot is free again.
    client.begin(ENDLESS).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(client);
    let mut client = Client::connect(&port.address, "one").await.unwrap();
    let began = Instant::now();
    assert_eq!(client.query("SELECT 1").await.unwrap().len(), 7);
    // If the server had not noticed the disconnect, the query would have run until its timeout of 200 s.
    assert!(began.elapsed() < Duration::from_mins(2));
    let own = client.query("SET statement_timeout = '300ms'").await;
    assert_eq!(own, Ok(String::new()));
    let stopped = client.query(ENDLESS).await.unwrap_err();
    assert!(stopped.contains("statement_timeout"), "{stopped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded_in_number_idleness_and_size() {
    let port = Port::open(engine(), |options| {
        options.max_connections = 1;
        options.idle_timeout = Duration::from_secs(3);
    })
    .await;
    let mut first = Client::connect(&port.address, "one").await.unwrap();
    let refused = Client::connect(&port.address, "one").await.err().unwrap();
    assert!(
        refused.starts_with("53300") && refused.contains("postgres.max_connections"),
        "{refused}"
    );
    let (kind, body) = first.message().await.unwrap();
    assert_eq!(kind, b'E');
    assert!(
        error_text(&body).contains("postgres.idle_timeout"),
        "{}",
        error_text(&body)
    );
    drop(first);
    // The server releases the slot of a connection a moment after the client has seen the end of the connection.
    let mut client = loop {
        if let Ok(client) = Client::connect(&port.address, "one").await {
            break client;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let mut huge = BytesMut::new();
    huge.put_u8(b'Q');
    huge.put_i32(i32::MAX);
    client.stream.write_all(&huge).await.unwrap();
    let (kind, body) = client.message().await.unwrap();
    assert_eq!((kind, error_text(&body).starts_with("08P01")), (b'E', true));
    // Bytes that violate the protocol end a connection and nothing else.
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 64],
        &[255; 64],
        b"\0\0\0\x08\x04\xd2\x16\x2fxx",
    ] {
        let mut stream = TcpStream::connect(&port.address).await.unwrap();
        let _ = stream.write_all(garbage).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    drop(client);
    loop {
        if let Ok(mut client) = Client::connect(&port.address, "one").await {
            assert!(client.query("SELECT 1").await.is_ok());
            for (kind, body) in [
                (b'B', &b"\0\0"[..]),
                (b'P', b"x"),
                (b'D', b"Z\0"),
                (b'E', b""),
                (b'F', b"abc"),
            ] {
                client.send(kind, body).await;
                client.send(b'S', b"").await;
            }
            let _ = client.answer().await;
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// The result of this query has hundreds of megabytes.
const LARGE: &str = "SELECT repeat('x', 60000) FROM samples a, samples b, samples c";

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_nobody_takes_keep_no_place() {
    let engine = engine_with(
        two_services(),
        QueryLimits {
            max_concurrent_queries: 1,
            timeout: Duration::from_secs(4),
            ..QueryLimits::default()
        },
    );
    let port = Port::open(engine, |_| {}).await;
    let mut honest = Client::connect(&port.address, "one").await.unwrap();
    let mut silent = Client::connect(&port.address, "one").await.unwrap();
    silent.begin(LARGE).await;
    // The description of the columns has arrived, so the server has begun to send rows.
    assert_eq!(silent.message().await.unwrap().0, b'T');
    assert_eq!(honest.query("SELECT 1").await.unwrap().len(), 7);

    // A client that reads some rows and then stops reading does not hold a query slot either.
    let mut partly = Client::connect(&port.address, "one").await.unwrap();
    partly.send(b'P', &[b"\0", LARGE.as_bytes(), b"\0\0\0"].concat()).await;
    partly.send(b'B', b"\0\0\0\0\0\0\0\0").await;
    partly.send(b'E', b"\0\0\0\0\x01").await;
    partly.send(b'H', b"").await;
    loop {
        match partly.message().await.unwrap() {
            (b's', _) => break,
            (b'E', body) => panic!("{}", error_text(&body)),
            _ => {}
        }
    }
    assert_eq!(honest.query("SELECT 1").await.unwrap().len(), 7);
    partly.send(b'E', b"\0\0\0\0\x01").await;
    partly.send(b'S', b"").await;
    let over = partly.answer().await.unwrap_err();
    assert!(over.starts_with("57014"), "{over}");
    assert_eq!(partly.query("SELECT 1").await.unwrap().len(), 7);
}

/// Connects and sends only these bytes.
async fn stranger(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_keep_out_nobody() {
    let port = Port::open(engine(), |options| {
        options.max_connections = 1;
        options.startup_timeout = Duration::from_mins(10);
    })
    .await;
    let mut silent = Vec::new();
    for number in 0..200 {
        // Half of the clients send nothing, and the others send half a startup message.
        let bytes: &[u8] = if number % 2 == 0 { b"" } else { b"\0\0\0\x20\0\x03" };
        silent.push(stranger(&port.address, bytes).await);
    }
    let connected = tokio::time::timeout(Duration::from_mins(1), Client::connect(&port.address, "one")).await;
    let mut client = connected.expect("silent clients hold all connections").unwrap();
    assert_eq!(client.query("SELECT 1").await.unwrap().len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_taken_by_who_has_proven_who_it_is() {
    let port = Port::open(engine(), |options| {
        options.max_connections = 1;
        options.users = vec![PostgresUser {
            name: "ada".to_owned(),
            password: "correct horse".to_owned(),
            tenants: vec!["one".parse().unwrap()],
        }];
    })
    .await;
    let startup = b"\0\0\0\x12\0\x03\0\0user\0ada\0\0";
    let mut silent = Vec::new();
    for _ in 0..10 {
        let mut stream = stranger(&port.address, startup).await;
        let mut kind = [0];
        stream.read_exact(&mut kind).await.unwrap();
        // The server requests the password on each connection, whatever happened on others.
        assert_eq!(&kind, b"R");
        silent.push(stream);
    }
    if let Some(program) = other("psql", &["--version"], "postgresql-client") {
        let connection = format!(
            "host=127.0.0.1 port={} user=ada dbname=one sslmode=disable",
            port.number()
        );
        let (is_well, text) = psql(&program, &connection, "correct horse", &["SELECT 1"]);
        assert!(is_well, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_does_not_open_with_less_than_was_asked_for() {
    let with_tls = |certificate: &str, key: &str| {
        let mut options = PostgresOptions::new("127.0.0.1:0");
        options.tls = Some(PostgresTls {
            files: TlsFiles {
                certificate: fixture(certificate),
                key: fixture(key),
                client_ca: None,
            },
            required: true,
        });
        options
    };
    for (certificate, key) in [
        ("tls/none.pem", "tls/key.pem"),
        ("tls/cert.pem", "tls/none.pem"),
        ("tls/README.md", "tls/key.pem"),
        ("tls/key.pem", "tls/cert.pem"),
    ] {
        let failed = PostgresServer::bind(with_tls(certificate, key), engine()).await;
        assert!(matches!(failed, Err(PostgresError::Tls { .. })), "{certificate} {key}");
    }
    assert!(
        PostgresServer::bind(with_tls("tls/cert.pem", "tls/key.pem"), engine())
            .await
            .is_ok()
    );
    let open = PostgresServer::bind(PostgresOptions::new("0.0.0.0:0"), engine()).await;
    assert!(matches!(open, Err(PostgresError::NoUsers(_))));
}

/// Runs psql with commands, one after the other. Returns whether it succeeded, and its output.
fn psql(program: &std::path::Path, connection: &str, password: &str, commands: &[&str]) -> (bool, String) {
    let mut command = Command::new(program);
    command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-P", "pager=off", "-d", connection]);
    for text in commands {
        command.args(["-c", text]);
    }
    command.env("PGPASSWORD", password).env("PGCONNECT_TIMEOUT", "20");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_sees_tables_and_columns_and_rows() {
    let Some(program) = other("psql", &["--version"], "postgresql-client") else {
        return;
    };
    let port = Port::open(engine(), |_| {}).await;
    let connection = format!(
        "host=127.0.0.1 port={} user=tester dbname=one sslmode=disable",
        port.number()
    );
    let (is_well, text) = psql(
        &program,
        &connection,
        "",
        &[
            "\\d",
            "\\dt",
            "\\d samples",
            "\\dn",
            "\\l",
            "\\conninfo",
            "SELECT service_name, labels['region'] AS region FROM series ORDER BY 1",
            "SELECT count(*) AS first FROM samples; SHOW server_version",
            "EXPLAIN SELECT sum(value) FROM samples",
        ],
    );
    assert!(is_well, "{text}");
    for part in [
        " public | samples  | table ",
        "Table \"public.samples\"",
        " time         | timestamp with time zone | ",
        " cart         | us",
        " shop         | eu",
        "(alluvium ",
        "physical_plan",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_prove_who_they_are_and_tls_is_demanded() {
    let Some(program) = other("psql", &["--version"], "postgresql-client") else {
        return;
    };
    let port = Port::open(engine(), |options| {
        options.users = vec![PostgresUser {
            name: "ada".to_owned(),
            password: "correct horse".to_owned(),
            tenants: vec!["one".parse().unwrap()],
        }];
        options.tls = Some(PostgresTls {
            files: TlsFiles {
                certificate: fixture("tls/cert.pem"),
                key: fixture("tls/key.pem"),
                client_ca: None,
            },
            required: true,
        });
    })
    .await;
    let ask = |user: &str, database: &str, mode: &str, password: &str| {
        let root = fixture("tls/cert.pem");
        let connection = format!(
            "host=localhost hostaddr=127.0.0.1 port={} user={user} dbname={database} sslmode={mode} sslrootcert={}",
            port.number(),
            root.display()
        );
        psql(
            &program,
            &connection,
            password,
            &["SELECT DISTINCT tenant FROM samples"],
        )
    };
    let (is_well, text) = ask("ada", "one", "verify-full", "correct horse");
    assert!(is_well && text.contains("one"), "{text}");
    let (is_well, text) = ask("ada", "ada", "require", "correct horse");
    assert!(is_well && text.contains("one"), "{text}");
    for (user, database, mode, password, part) in [
        (
            "ada",
            "one",
            "require",
            "wrong",
            "password authentication failed for user \"ada\"",
        ),
        (
            "eve",
            "one",
            "require",
            "correct horse",
            "password authentication failed for user \"eve\"",
        ),
        ("ada", "two", "require", "correct horse", "does not exist"),
        ("ada", "one", "disable", "correct horse", "requires TLS"),
    ] {
        let (is_well, text) = ask(user, database, mode, password);
        assert!(!is_well && text.contains(part), "{user} {database} {mode}: {text}");
    }
}

const PSYCOPG: &str = r#"
import sys, datetime, threading, time, psycopg
connection = psycopg.connect(sys.argv[1], autocommit=True)
cursor = connection.cursor()
noon = datetime.datetime(2026, 11, 20, 12, 0, 15, tzinfo=datetime.timezone.utc)
for binary in [False, True]:
    cursor.execute("SELECT count(*), min(time), sum(value) FROM flat \
        WHERE time >= %s AND service_name = %s", (noon, "shop"), binary=binary)
    print("rows", cursor.fetchone())
    cursor.execute("SELECT labels, make_array('a', 'b c') AS list, 1.5::double precision, true, NULL, time, \
        12.34::numeric FROM flat WHERE service_name = 'cart' ORDER BY time LIMIT %s", (1,), binary=binary)
    labels, items, real, yes, none, at, exact = cursor.fetchone()
    print("types", labels["region"], items, real, yes, none, at.isoformat(),
        exact == 12.34 or str(exact).startswith("12.34"))
for run in range(8):
    asked = (sys.argv[2] + '{service_name="shop"}', "2026-11-20", "2026-11-21")
    cursor.execute("SELECT function, self FROM top(%s, %s, %s, 2)", asked, prepare=True)
print("top", cursor.fetchall())
cursor.execute("SELECT %s::text", ("'; DROP TABLE samples; --",))
print("quoted", cursor.fetchone()[0])
try:
    cursor.execute("DELETE FROM samples")
except psycopg.errors.ReadOnlySqlTransaction as error:
    print("read-only", error.sqlstate)
with connection.transaction():
    print("streamed", [row[0] for row in cursor.stream("SELECT value FROM samples WHERE value = 7")])
try:
    with connection.transaction():
        cursor.execute("SELECT nothing FROM samples")
except psycopg.Error as error:
    print("rolled back", error.sqlstate)
threading.Thread(target=lambda: (time.sleep(1), connection.cancel())).start()
try:
    cursor.execute(sys.argv[3])
except psycopg.errors.QueryCanceled:
    print("cancelled")
with connection.pipeline():
    first, second = connection.execute("SELECT 1"), connection.execute("SELECT 2")
    print("pipeline", first.fetchone(), second.fetchone())
"#;

#[tokio::test(flavor = "multi_thread")]
async fn psycopg_reads_types_streams_cancels_and_prepares() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let Some(python) = other(&python, &["-c", "import psycopg"], "the Python package psycopg") else {
        return;
    };
    let port = Port::open(engine(), |_| {}).await;
    let connection = format!(
        "host=127.0.0.1 port={} user=tester dbname=one sslmode=disable",
        port.number()
    );
    let output = tokio::task::spawn_blocking(move || {
        Command::new(python)
            .args(["-c", PSYCOPG, &connection, super::fixture::CPU, ENDLESS])
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace("datetime.timezone.utc", "UTC");
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows = "rows (9, datetime.datetime(2026, 11, 20, 12, 0, 15, tzinfo=UTC), Decimal('3146118'))";
    let types = "types us ['a', 'b c'] 1.5 True None 2026-11-20T12:00:00+00:00 True";
    let expected = [
        rows,
        types,
        rows,
        types,
        "top [('work', 400), ('runtime.gcDrain', 120)]",
        "quoted '; DROP TABLE samples; --",
        "read-only 25006",
        "streamed [7, 7, 7, 7]",
        "rolled back 42703",
        "cancelled",
        "pipeline (1,) (2,)",
    ];
    let found: Vec<String> = text
        .lines()
        .map(|line| line.replace("Decimal('3146118')", "3146118"))
        .collect();
    let expected = expected.map(|line| line.replace("Decimal('3146118')", "3146118"));
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jdbc_program_lists_tables_reads_in_parts_and_stops() {
    let Some(java) = other("java", &["-version"], "default-jdk-headless") else {
        return;
    };
    let Some(driver) = crate::program::file_of("ALLUVIUM_JDBC", "the driver org.postgresql:postgresql") else {
        return;
    };
    let port = Port::open(engine(), |_| {}).await;
    let url = format!("jdbc:postgresql://{}/one", port.address);
    let output = tokio::task::spawn_blocking(move || {
        Command::new(java)
            .arg("-cp")
            .arg(driver)
            .arg(fixture("jdbc/Look.java"))
            .args([url.as_str(), "tester", "none"])
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in [
        "table flat",
        "table stacks",
        "column time timestamptz",
        "column value int8",
        "run 0 rows 7",
        "run 6 rows 7",
        "refused 25006",
        "stopped 57014",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
    }
}
