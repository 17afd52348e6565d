//! Invalid bytes on the PostgreSQL port: bytes that are no message, and messages with wrong lengths or contents.
//!
//! Scenario: raw bytes before and after the startup message. Guarantee: whatever the bytes are, the client receives the
//! code 08P01 and the server closes the connection. No other client is affected.

use std::time::Duration;

use alluvium::query::{QueryEngine, QueryLimits};
use alluvium::server::postgres::{PostgresOptions, PostgresServer, PostgresUser};
use alluvium_base::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{engine_with, two_services};

async fn open(users: Vec<PostgresUser>) -> (String, Shutdown) {
    let mut options = PostgresOptions::new("127.0.0.1:0");
    options.users = users;
    serve(options, engine_with(two_services(), QueryLimits::default())).await
}

/// Opens a port for PostgreSQL clients. Returns its address, and the shutdown that closes it.
pub(super) async fn serve(options: PostgresOptions, engine: QueryEngine) -> (String, Shutdown) {
    let server = PostgresServer::bind(options, engine).await.unwrap();
    let address = server.local_addr().to_string();
    let shutdown = Shutdown::new();
    tokio::spawn(server.serve(shutdown.clone()));
    (address, shutdown)
}

/// Encodes a client message with its kind and length.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

fn first_message(code: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 8).unwrap();
    [&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat()
}

fn startup() -> Vec<u8> {
    first_message(3 << 16, b"user\0ada\0database\0alluvium\0\0")
}

/// Returns everything that the server sends until it closes the connection.
async fn answer(address: &str, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer));
    // The connection may be reset instead of closed, because the server did not read all bytes.
    let _ = read.await.expect("the server closes the connection");
    answer
}

/// Returns the code of the last message, or `no error` if it is not an `ErrorResponse`.
fn code(answer: &[u8]) -> String {
    let (mut at, mut code) = (0, String::from("no error"));
    while at + 5 <= answer.len() {
        let length = u32::from_be_bytes(answer[at + 1..at + 5].try_into().unwrap()) as usize;
        let body = &answer[at + 5..at + 1 + length];
        "no error".clone_into(&mut code);
        if answer[at] == b'E' {
            let mut fields = body.split(|byte| *byte == 0);
            let field = fields.find(|field| field.first() == Some(&b'C')).unwrap();
            code = String::from_utf8_lossy(&field[1..]).into_owned();
        }
        at += 1 + length;
    }
    code
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_lies_about_its_content_is_a_protocol_violation() {
    let (address, shutdown) = open(Vec::new()).await;
    let noise: Vec<u8> = (0..300_u32).map(|number| (number * 197 + 91) as u8).collect();
    let many_types = [b"\0SELECT 1\0".as_slice(), &[255, 255]].concat();
    for wrong in [
        message(b'B', &noise),
        message(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"),
        message(b'B', b""),
        message(b'P', &many_types),
        message(b'P', b"\0SELECT 1"),
        message(b'Q', b"SELECT 1"),
        message(b'D', b""),
        message(b'C', b""),
        message(b'E', b"\0"),
        message(b'~', b"abc"),
        message(b'F', b"\0\0\0\x01"),
        b"Q\0\0\0\0".to_vec(),
        b"Q\x7f\xff\xff\xff".to_vec(),
        noise.clone(),
    ] {
        let answer = answer(&address, &[startup(), wrong.clone()].concat()).await;
        assert_eq!(code(&answer), "08P01", "{wrong:?}");
    }
    shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_before_the_startup_message_and_while_authenticating() {
    let (address, shutdown) = open(Vec::new()).await;
    for wrong in [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        vec![0xff; 64],
        vec![0, 0, 0, 0, 1, 2, 3, 4],
        vec![0, 0, 0, 4, 0, 3, 0, 0],
        first_message(3 << 16, b""),
        first_message(3 << 16, b"user\0ada"),
        first_message(3 << 16, b"user\0ada\0\0more\0\0"),
        first_message(80_877_103, b"more"),
        first_message(80_877_104, b"m"),
        first_message(80_877_102, b"\0\0\0\x01"),
        [first_message(80_877_103, b""), first_message(3 << 16, b"user")].concat(),
    ] {
        let answer = answer(&address, &wrong).await;
        // The server answers a request for encryption with one byte first.
        let is_request = wrong[..8] == first_message(80_877_103, b"")[..];
        assert_eq!(code(&answer[usize::from(is_request)..]), "08P01", "{wrong:?}");
    }
    shutdown.cancel();

    let ada = PostgresUser {
        name: "ada".to_owned(),
        password: "secret".to_owned(),
        tenants: vec!["anonymous".parse().unwrap()],
    };
    let (address, shutdown) = open(vec![ada]).await;
    for wrong in [
        message(b'p', b""),
        message(b'p', b"SCRAM-SHA-256"),
        message(b'p', b"SCRAM-SHA-256\0\x7f\xff\xff\xff"),
        message(b'p', b"SCRAM-SHA-256\0\xff\xff\xff\xfe"),
        message(b'p', b"SCRAM-SHA-256\0\0\0\0\x02n,,more"),
        message(b'B', b"\0\0\0\x09"),
        message(b'Q', b"SELECT 1\0"),
    ] {
        let answer = answer(&address, &[startup(), wrong.clone()].concat()).await;
        assert_eq!(code(&answer), "08P01", "{wrong:?}");
    }
    shutdown.cancel();
}
