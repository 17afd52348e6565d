//! Tests of sessions with the server of `alluvium_testing`.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::session::with_port;
use super::{Node, Session};
use alluvium_testing::zookeeper::ZooKeeper;

const LONG: Duration = Duration::from_mins(1);

fn describe(nodes: &[Option<Node>]) -> Vec<String> {
    let describe_node = |node: &Option<Node>| match node {
        Some(node) => format!("{} {:?}", String::from_utf8_lossy(&node.data), node.children),
        None => "none".to_owned(),
    };
    nodes.iter().map(describe_node).collect()
}

#[tokio::test]
async fn nodes_are_read_and_their_changes_are_told() {
    let server = ZooKeeper::start().await;
    for number in 0..200 {
        server.set(&format!("/a/n{number:03}"), &number.to_string());
    }
    let closed_address: Arc<str> = "127.0.0.1:1".into();
    let mut session = Session::connect(&[closed_address, server.address.clone()], LONG)
        .await
        .unwrap();
    let paths: Vec<String> = (0..200).map(|number| format!("/a/n{number:03}")).collect();
    let nodes = session.nodes(&paths).await.unwrap();
    assert_eq!(describe(&nodes[198..]), ["198 []", "199 []"]);
    let top_paths = ["/a".to_owned(), "/none".to_owned()];
    let nodes = session.nodes(&top_paths).await.unwrap();
    assert_eq!(nodes[0].as_ref().unwrap().children.len(), 200);
    assert!(nodes[1].is_none());
    session.expect("/none").await.unwrap();

    server.set("/a/n007", "other");
    assert_eq!(session.changed().await.unwrap(), "/a/n007");
    server.delete("/a/n008");
    assert_eq!(session.changed().await.unwrap(), "/a/n008");
    assert_eq!(session.changed().await.unwrap(), "/a");
    server.set("/none", "now");
    assert_eq!(session.changed().await.unwrap(), "/none");
    session.expect("/none").await.unwrap();
    assert_eq!(session.changed_too().as_deref(), Some("/none"), "the node exists");
    assert_eq!(
        describe(&session.nodes(&["/none".to_owned()]).await.unwrap()),
        ["now []"]
    );

    let error = session.nodes(&["/denied".to_owned()]).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!("zookeeper at {} refuses `/denied`: error -102", server.address)
    );
}

#[tokio::test]
async fn a_silent_session_is_kept_alive_by_pings_and_ends_with_its_connection() {
    let server = ZooKeeper::start().await;
    let mut session = Session::connect(std::slice::from_ref(&server.address), Duration::from_secs(3))
        .await
        .unwrap();
    let waiting = tokio::spawn(async move { session.changed().await.unwrap_err().to_string() });
    let four_pings = async {
        while server.pings() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, four_pings)
        .await
        .expect("the session sends four pings, which take longer than its timeout");
    server.end_sessions();
    let error = waiting.await.unwrap();
    assert_eq!(
        error,
        format!("zookeeper at {}: unexpected end of file", server.address)
    );
}

/// Starts a server that responds to the first request with these bytes, and sends nothing after them.
async fn answers(answer: &'static [u8]) -> Arc<str> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string().into();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 48];
        stream.read_exact(&mut request).await.unwrap();
        stream.write_all(answer).await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    address
}

#[tokio::test]
async fn what_is_no_zookeeper_is_said() {
    for (answer, expected, timeout) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "it sent a message of 1213486160 bytes",
            LONG,
        ),
        (&[0, 0, 0, 2, 1, 1], "a message is too short", LONG),
        (&[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0], "it granted no session", LONG),
        (&[], "no response in 50ms", Duration::from_millis(50)),
    ] {
        let server = answers(answer).await;
        let error = Session::connect(&[server], timeout).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A list that claims more elements than its message contains must not reserve memory for them.
#[tokio::test]
async fn a_list_with_a_wrong_length_is_refused() {
    let server = answers(&[
        // A session with a timeout of 60 seconds.
        0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0xea, 0x60, //
        // The reply to request 1: no contents.
        0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, //
        // The reply to request 2: 2,147,483,647 children, and none follows.
        0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff,
    ])
    .await;
    let mut session = Session::connect(std::slice::from_ref(&server), LONG).await.unwrap();
    let error = session.nodes(&["/a".to_owned()]).await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("zookeeper at {server}: a message is too short")),
        "{error}"
    );
}

#[test]
fn a_server_without_a_port_has_port_2181() {
    for (server, address) in [
        ("zookeeper-1", "zookeeper-1:2181"),
        ("10.0.0.7", "10.0.0.7:2181"),
        ("zookeeper-1:2182", "zookeeper-1:2182"),
        ("[fd00::7]:2182", "[fd00::7]:2182"),
    ] {
        assert_eq!(with_port(server), address);
    }
}
