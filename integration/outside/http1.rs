//! HTTP/1.1: contradictory lengths, and malformed chunks and heads.

use super::{House, statuses};

/// A request that follows the tested one. Its path does not exist, so its response has status 404.
const BEHIND: &str = "GET /behind HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// Returns a request to the SQL route with these headers and this body.
fn question(headers: &str, body: &str) -> String {
    format!("POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n{headers}\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lengths_that_do_not_agree_are_refused_and_what_is_behind_is_not_answered() {
    let mut house = House::start().await;
    for headers in [
        "Content-Length: 8\r\nContent-Length: 9",
        "Content-Length: 9\r\nContent-Length: 8",
        "Content-Length: 8, 9",
        "Content-Length: 8, 8",
        "Content-Length: +8",
        "Content-Length: -1",
        "Content-Length: 0x8",
        "Content-Length: 8 8",
        "Content-Length: 8;",
        "Content-Length: ",
        "Content-Length: 99999999999999999999",
        "Content-Length: 18446744073709551615",
        "Content-Length : 8",
        " Content-Length: 8",
        "Content-Length: 8\r\n 9",
        "Content\0-Length: 8",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\nContent-Length: 8",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding : chunked",
        "Content-Length: 8\r\nTransfer-Encoding: gzip",
    ] {
        let answer = house.raw((question(headers, "SELECT 1") + BEHIND).as_bytes()).await;
        let status = statuses(&answer);
        assert!(matches!(status[..], [400 | 413 | 431]), "{headers:?}: {answer}");
    }
    // If a request has a length and chunks, the chunks determine the body (RFC 9112, section 6.3). The bytes after the
    // chunks are a separate request.
    for headers in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 6",
        "Content-Length: 9999\r\nTransfer-Encoding: Chunked",
    ] {
        let chunked = question(headers, "8\r\nSELECT 1\r\n0\r\n\r\n");
        let answer = house.raw((chunked + BEHIND).as_bytes()).await;
        let status = statuses(&answer);
        assert!(matches!(status[..], [200, 404] | [200 | 400]), "{headers:?}: {answer}");
    }
    // The server must not read the body of a GET request as a separate request.
    let hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
    let request = format!(
        "GET /ready HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{hidden}{BEHIND}",
        hidden.len()
    );
    let answer = house.raw(request.as_bytes()).await;
    assert!(matches!(statuses(&answer)[..], [200] | [200, 404]), "{answer}");
    assert!(!answer.contains("/hidden"), "{answer}");
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_and_heads_of_a_wrong_form_are_refused() {
    let mut house = House::start().await;
    for chunks in [
        "Z\r\nSELECT 1\r\n0\r\n\r\n",
        "-8\r\nSELECT 1\r\n0\r\n\r\n",
        "+8\r\nSELECT 1\r\n0\r\n\r\n",
        "0x8\r\nSELECT 1\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\nSELECT 1\r\n0\r\n\r\n",
        "8\nSELECT 1\n0\n\n",
        "8\r\nSELECT 1X\r\n0\r\n\r\n",
        "8\r\nSELECT 10\r\n\r\n",
        "8;\nSELECT 1\r\n0\r\n\r\n",
        "\r\n8\r\nSELECT 1\r\n0\r\n\r\n",
    ] {
        let request = question("Transfer-Encoding: chunked", chunks) + BEHIND;
        let answer = house.raw(request.as_bytes()).await;
        assert_eq!(statuses(&answer), [400], "{chunks:?}: {answer}");
    }
    // The server's buffer for a head cannot hold this text, even if a read exceeds the size of the buffer slightly.
    let long = "a".repeat(300 << 10);
    let many = "x: y\r\n".repeat(500);
    for (request, wanted) in [
        ("GET /ready\r\n\r\n".to_owned(), [400].as_slice()),
        ("GET  /ready HTTP/1.1\r\n\r\n".to_owned(), &[400]),
        ("GET /ready HTTP/2.0\r\n\r\n".to_owned(), &[400]),
        ("GET /ready HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), &[400]),
        ("GET /ready HTTP/1.1\r\nX: a\0b\r\n\r\n".to_owned(), &[400]),
        ("GET /ready HTTP/1.1\r\nX: a\rb\r\n\r\n".to_owned(), &[400]),
        ("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), &[400]),
        ("\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03\r\n\r\n".to_owned(), &[400]),
        (
            format!("GET /{long} HTTP/1.1\r\nConnection: close\r\n\r\n"),
            &[414, 431],
        ),
        (
            format!("GET /ready HTTP/1.1\r\nConnection: close\r\nX: {long}\r\n\r\n"),
            &[431],
        ),
        (
            format!("GET /ready HTTP/1.1\r\nConnection: close\r\n{many}\r\n"),
            &[431],
        ),
    ] {
        let answer = house.raw(request.as_bytes()).await;
        let start = &request[..request.len().min(60)];
        let status = statuses(&answer);
        assert!(status.len() == 1 && wanted.contains(&status[0]), "{start:?}: {answer}");
    }
    house.check();
}
