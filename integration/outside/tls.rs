//! TLS on the port: broken versions and ciphers, and no TLS at all.

use std::path::PathBuf;
use std::time::Instant;

use tokio::net::TcpStream;

use super::{House, data};
use crate::program::{Address, PATIENCE, Program};

/// Types of records (RFC 8446, section 5.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// Encodes a ClientHello without extensions.
fn hello(version: [u8; 2], ciphers: &[u16]) -> Vec<u8> {
    let mut body = version.to_vec();
    body.extend([7; 32]);
    // No session id.
    body.push(0);
    body.extend((2 * ciphers.len() as u16).to_be_bytes());
    body.extend(ciphers.iter().flat_map(|cipher| cipher.to_be_bytes()));
    // No compression.
    body.extend([1, 0]);
    let mut message = vec![1, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    let mut record = vec![HANDSHAKE, 3, 1];
    record.extend((message.len() as u16).to_be_bytes());
    record.extend(message);
    record
}

/// Starts a server whose port uses TLS.
async fn start() -> House {
    let fixture = |name: &str| {
        let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("integration/fixtures/tls");
        fixtures.join(name).to_string_lossy().into_owned()
    };
    let (folder, address) = (tempfile::tempdir().unwrap(), Address::keep());
    let arguments = [
        "serve",
        "--listen",
        &address,
        "--data",
        &data(folder.path()),
        "--tls-cert",
        &fixture("cert.pem"),
        "--tls-key",
        &fixture("key.pem"),
    ];
    let mut program = Program::alluvium(&arguments, &folder.path().join("log"));
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(&*address).await.is_err() {
        program.check();
        assert!(Instant::now() < deadline, "no port\n{}", program.tail());
        tokio::task::yield_now().await;
    }
    House {
        program,
        url: format!("https://{address}"),
        address,
        folder,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_versions_of_tls_broken_ciphers_and_plain_text_are_refused() {
    let mut house = start().await;
    // RSA without forward secrecy, RC4, 3DES, export, NULL, and the ciphers of the old versions.
    let broken = [0x002f, 0x0035, 0x0005, 0x0004, 0x000a, 0x0003, 0x0002, 0xc014];
    for version in [[3, 0], [3, 1], [3, 2], [3, 3]] {
        let answer = house.raw_bytes(&hello(version, &broken)).await;
        assert_eq!(answer.first(), Some(&ALERT), "{version:?}: {answer:?}");
        // The level of the alert is fatal.
        assert_eq!(answer.get(5), Some(&2), "{version:?}: {answer:?}");
    }
    for plain in [
        "GET /ready HTTP/1.1\r\nHost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = house.raw(plain.as_bytes()).await;
        assert!(!answer.contains("HTTP/"), "{plain:?}: {answer}");
    }
    house.check();
}
