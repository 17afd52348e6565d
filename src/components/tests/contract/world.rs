//! The environment of a component under test: servers of the test, and files.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The behaviour of a server that never responds successfully.
#[derive(Clone, Copy, Debug)]
pub(super) enum Api {
    /// Reads all requests and never responds.
    Silent,
    /// Responds to every request with status 500.
    Refusing,
}

/// Servers and files. Each server has its own thread, which lives as long as the process.
pub(super) struct World {
    silent: SocketAddr,
    refusing: SocketAddr,
    helpful: SocketAddr,
    occupied: TcpListener,
    folder: TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("module.alloy"), "declare \"a\" { }\n").unwrap();
        repository(&folder.path().join("repository"));
        Self {
            silent: serve(|_| None),
            refusing: serve(|_| Some("500 Internal Server Error\r\ncontent-length: 2\r\n\r\nno".to_owned())),
            helpful: serve(|path| Some(help(path))),
            occupied: TcpListener::bind("127.0.0.1:0").unwrap(),
            folder,
        }
    }

    /// Returns the text of a row with its placeholders replaced.
    pub(super) fn fill(&self, text: &str, api: Api) -> String {
        let address = match api {
            Api::Silent => self.silent,
            Api::Refusing => self.refusing,
        };
        text.replace("{api}", &address.to_string())
            .replace("{port}", &address.port().to_string())
            .replace("{ok}", &self.helpful.to_string())
            .replace("{taken}", &self.occupied.local_addr().unwrap().port().to_string())
            .replace("{missing}", &self.folder.path().join("missing").display().to_string())
            .replace("{folder}", &self.folder.path().display().to_string())
    }
}

/// Starts a server whose responses depend on the path. It serves a connection until the client closes it. If `answer`
/// returns `None`, the server does not respond.
fn serve(answer: fn(&str) -> Option<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || converse(stream, answer));
        }
    });
    address
}

/// Serves one connection. Each read counts as a request.
fn converse(mut stream: TcpStream, answer: fn(&str) -> Option<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let head = String::from_utf8_lossy(&buffer[..count]);
        let path = head.split(' ').nth(1).unwrap_or_default();
        let Some(answer) = answer(path) else { continue };
        if stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns the response to a request for `path`: success for the paths that some components request while they are
/// built, and the status 404 for all other paths.
fn help(path: &str) -> String {
    let body = match path {
        path if path.starts_with("/text") => "text",
        path if path.starts_with("/api/v1/namespaces/shop/") => {
            r#"{"metadata": {"name": "db", "namespace": "shop"}, "data": {"a": "Yg=="}}"#
        }
        path if path.starts_with("/v1/sys/internal/ui/mounts/text/") => {
            r#"{"data": {"path": "text/", "options": null}}"#
        }
        path if path.starts_with("/v1/text/") => r#"{"data": {"a": "b"}}"#,
        _ => return "404 Not Found\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
    };
    format!("200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Creates a git repository with one module.
fn repository(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    std::fs::write(folder.join("module.alloy"), "declare \"a\" { }\n").unwrap();
    for arguments in [
        &["init", "--quiet", "-b", "main"][..],
        &["add", "."],
        &["commit", "--quiet", "-m", "c"],
    ] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments);
        let status = git.current_dir(folder).env_remove("GIT_DIR").status();
        assert!(status.expect("git is installed").success(), "git {arguments:?}");
    }
}
