//! `alluvium tui` in a real terminal: tmux, 80 columns and 24 lines. The test presses keys and reads the screen.
//!
//! Scenarios: a file with two sample types, and a server that receives profiles while the screen is open. Guarantee:
//! zoom, search, switching the type and live refresh show on the screen, with and without colour. No refresh clears the
//! screen. After the end, the terminal has the same settings as before.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use alluvium_profile::pprof::{self, Builder, Profile, ValueType};

use crate::program::{PATIENCE, other};

/// A terminal with a shell in which Alluvium runs.
struct Terminal {
    socket: PathBuf,
    /// Path of the file with Alluvium's output since [`Terminal::record`].
    recording: PathBuf,
}

impl Terminal {
    /// Runs Alluvium with these arguments in a terminal of this size. Returns `None` if tmux is not installed.
    fn run(folder: &Path, (columns, lines): (u16, u16), variables: &[(&str, &str)], words: &[&str]) -> Option<Self> {
        other("tmux", &["-V"], "Debian's package tmux")?;
        let terminal = Self {
            socket: folder.join("tmux"),
            recording: folder.join("recording"),
        };
        let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let variables: Vec<String> = variables
            .iter()
            .map(|(name, value)| quoted(&format!("{name}={value}")))
            .collect();
        // The script compares the terminal settings before and after the run.
        let script = format!(
            "before=$(stty -g); env -u NO_COLOR TERM=xterm-256color {} {} tui {}; code=$?; \
             [ \"$before\" = \"$(stty -g)\" ] && same=same || same=changed; echo \"ended $code $same\"; exec sleep 600",
            variables.join(" "),
            quoted(env!("CARGO_BIN_EXE_alluvium")),
            words.join(" ")
        );
        let size = [columns.to_string(), lines.to_string()];
        let arguments = ["new-session", "-d", "-s", "t", "-x", &size[0], "-y", &size[1], &script];
        let output = terminal.tmux(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-f").arg("/dev/null").arg("-S").arg(&self.socket);
        tmux.args(arguments).env_remove("TMUX").output().unwrap()
    }

    /// Returns the contents of the screen. With the flag `-e`, the text also contains colours and attributes.
    fn screen(&self, flags: &[&str]) -> String {
        let output = self.tmux(&[&["capture-pane", "-p", "-t", "t"], flags].concat());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys. A key is a single letter or a name that tmux knows, such as `Enter`.
    fn press(&self, keys: &[&str]) {
        let output = self.tmux(&[&["send-keys", "-t", "t"], keys].concat());
        assert!(output.status.success());
    }

    /// Waits until `is_so` is true for the screen, and returns the screen.
    #[track_caller]
    fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen(&[]);
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "the screen never showed {what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen contains a text, and returns the screen.
    #[track_caller]
    fn see(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Overwrites the screen, as another program would.
    fn scribble(&self, text: &str) {
        let output = self.tmux(&["display-message", "-p", "-t", "t", "#{pane_tty}"]);
        let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        std::fs::write(device, format!("\u{1b}[H{text}")).unwrap();
        self.see(text);
    }

    /// Records Alluvium's output from this moment on.
    fn record(&self) {
        let command = format!("cat >> '{}'", self.recording.display());
        assert!(self.tmux(&["pipe-pane", "-t", "t", &command]).status.success());
    }

    /// Checks, after Alluvium has ended, that no sequence in the recording cleared a part of the screen.
    fn never_cleared(&self) {
        let deadline = Instant::now() + PATIENCE;
        let written = loop {
            let written = std::fs::read(&self.recording).unwrap_or_default();
            let written = String::from_utf8_lossy(&written).into_owned();
            if let Some((while_shown, _)) = written.split_once("\u{1b}[?1049l") {
                break while_shown.to_owned();
            }
            assert!(Instant::now() < deadline, "{written:?}");
            std::thread::sleep(Duration::from_millis(20));
        };
        let clearing = written.match_indices("\u{1b}[").find(|(at, _)| {
            let rest = written[at + 2..].trim_start_matches(|c: char| c.is_ascii_digit());
            rest.starts_with(['J', 'K'])
        });
        assert_eq!(clearing, None, "{written:?}");
    }

    /// Presses `q` and checks that the terminal has the same settings as before.
    fn quit(&self) {
        self.press(&["q"]);
        let screen = self.see("ended 0 same");
        assert!(!screen.contains("?:help"), "{screen}");
        let flags = self.tmux(&["display-message", "-p", "-t", "t", "#{cursor_flag} #{alternate_on}"]);
        assert_eq!(String::from_utf8_lossy(&flags.stdout).trim(), "1 0");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Returns the numbers of all text attributes that the escape sequences of a screen set.
fn codes(screen: &str) -> impl Iterator<Item = u32> {
    let parts = screen.split("\u{1b}[").skip(1).filter_map(|part| part.split_once('m'));
    parts
        .flat_map(|(codes, _)| codes.split(';'))
        .map(|code| code.parse().unwrap_or(0))
}

/// Returns the attributes of a text on a screen.
fn attributes_of(screen: &str, text: &str) -> Vec<u32> {
    let (before, _) = screen.split_once(text).unwrap();
    let mut set = Vec::new();
    for code in codes(before) {
        match code {
            0 => set.clear(),
            39 | 49 => {}
            code => set.push(code),
        }
    }
    set
}

/// Returns a profile with two sample types. `main` calls `work`, `rest`, and a function whose name contains a terminal
/// escape sequence.
fn profile() -> Vec<u8> {
    let kind = |kind, unit| ValueType { kind, unit };
    let mut builder = Builder::new(Profile {
        sample_types: vec![kind("objects", "count"), kind("space", "bytes")],
        ..Profile::default()
    });
    for (leaf, objects, space) in [
        ("work", 100, 3 << 20),
        ("rest", 300, 1 << 20),
        ("\u{1b}[31mred\u{1b}[2J", 100, 1 << 20),
    ] {
        let stack = [builder.named(leaf), builder.named("main")];
        builder.sample(stack, [], &[objects, space]);
    }
    pprof::gzip(&pprof::encode(&builder.finish()))
}

#[test]
fn a_file_is_zoomed_searched_and_seen_by_another_type() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.pb.gz");
    std::fs::write(&file, profile()).unwrap();
    let words = ["--file", file.to_str().unwrap()];
    let Some(terminal) = Terminal::run(folder.path(), (80, 24), &[], &words) else {
        return;
    };
    let screen = terminal.see("total 5 MiB");
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(lines.len(), 24, "{screen}");
    assert!(
        lines[0].starts_with("space heap.pb.gz") && lines[0].contains("[flames] table"),
        "{screen}"
    );
    assert!(
        lines[3].starts_with("|total") && lines[4].starts_with("|main"),
        "{screen}"
    );
    // An escape sequence in a name does not clear the screen.
    assert!(
        lines[5].contains("[31mred") && lines[5].contains("|rest") && lines[5].contains("|work"),
        "{screen}"
    );
    let colours = terminal.screen(&["-e"]);
    assert!(colours.contains("\u{1b}[38;5;16m"), "{colours}");
    terminal.scribble("from somebody else");
    terminal.press(&["C-l"]);
    terminal.see("space heap.pb.gz");
    terminal.record();

    terminal.press(&["j", "j"]);
    terminal.see("self 3 MiB 60.00%  total 3 MiB 60.00%  work");
    terminal.press(&["Enter"]);
    let screen = terminal.see("zoomed: total > main > work");
    assert!(screen.lines().nth(3).unwrap().starts_with("|work"), "{screen}");
    terminal.press(&["Escape"]);
    terminal.wait("the whole graph", |screen| {
        screen.contains("|total") && !screen.contains("zoomed")
    });

    terminal.press(&["/", "R", "E"]);
    terminal.see("/RE_  40.00% in 2 frames");
    terminal.press(&["Enter"]);
    terminal.see("search RE: 40.00% in 2 frames");
    terminal.press(&["n"]);
    terminal.see("self 1 MiB 20.00%  total 1 MiB 20.00%  rest");

    terminal.press(&["Tab"]);
    let screen = terminal.see("flames [table]");
    assert!(screen.contains("3 MiB 60.00%         3 MiB 60.00%  work"), "{screen}");
    terminal.press(&["s"]);
    terminal.see("total*");
    terminal.press(&["Tab"]);

    terminal.press(&["t"]);
    terminal.see("| objects ");
    terminal.press(&["k", "Enter"]);
    let screen = terminal.see("total 500");
    assert!(screen.starts_with("objects heap.pb.gz"), "{screen}");
    terminal.press(&["?"]);
    terminal.see("q, Ctrl-C         quit");
    terminal.press(&["x"]);
    terminal.quit();
    terminal.never_cleared();
}

#[test]
fn without_colour_and_on_a_small_screen_all_of_it_works() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.pb.gz");
    std::fs::write(&file, profile()).unwrap();
    let words = [file.to_str().unwrap()];
    let Some(terminal) = Terminal::run(folder.path(), (80, 24), &[("NO_COLOR", "1")], &words) else {
        return;
    };
    terminal.see("total 5 MiB");
    terminal.press(&["j", "j", "/", "r", "e", "s", "t"]);
    terminal.see("/rest_  20.00% in 1 frame");
    let attributes = terminal.screen(&["-e"]);
    // The selected frame is reversed, the found frame is bold and underlined, and neither has a colour.
    assert_eq!(attributes_of(&attributes, "|work"), [7], "{attributes:?}");
    assert_eq!(attributes_of(&attributes, "|rest"), [1, 4], "{attributes:?}");
    assert_eq!(attributes_of(&attributes, "|main"), [0; 0], "{attributes:?}");
    assert!(
        codes(&attributes).all(|code| code < 30 || code == 39 || code == 49),
        "{attributes:?}"
    );
    terminal.press(&["Enter"]);
    terminal.see("search rest");

    assert!(
        terminal
            .tmux(&["resize-window", "-t", "t", "-x", "40", "-y", "8"])
            .status
            .success()
    );
    let screen = terminal.wait("8 lines with a graph", |screen| {
        screen.lines().count() == 8 && screen.contains("|main") && screen.contains("?:help")
    });
    assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
    assert!(
        terminal
            .tmux(&["resize-window", "-t", "t", "-x", "30", "-y", "5"])
            .status
            .success()
    );
    terminal.see("too small");
    terminal.quit();
}

#[test]
fn what_cannot_be_shown_is_said_and_a_signal_leaves_the_terminal_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("none.pb.gz");
    let words = ["--file", nothing.to_str().unwrap()];
    let Some(terminal) = Terminal::run(folder.path(), (80, 24), &[], &words) else {
        return;
    };
    let screen = terminal.see("ended 1 same");
    assert!(screen.replace('\n', "").contains("cannot read the file"), "{screen}");
    // The next run uses another folder and so another tmux, because the previous tmux may still be ending.
    drop(terminal);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.pb.gz");
    std::fs::write(&file, profile()).unwrap();
    let words = ["--file", file.to_str().unwrap()];
    let terminal = Terminal::run(folder.path(), (80, 24), &[], &words).unwrap();
    terminal.see("total 5 MiB");
    // The shell of the terminal has a single child: Alluvium.
    let shell = terminal.tmux(&["display-message", "-p", "-t", "t", "#{pane_pid}"]);
    let shell = String::from_utf8_lossy(&shell.stdout).trim().to_owned();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    assert!(Command::new("kill").arg(children.trim()).status().unwrap().success());
    terminal.see("ended 0 same");
}

#[cfg(feature = "server")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_watched_and_no_refresh_clears_the_screen() {
    use crate::harness::client;
    use crate::known;
    use crate::program::{Address, Program};

    let folder = tempfile::tempdir().unwrap();
    if other("tmux", &["-V"], "Debian's package tmux").is_none() {
        return;
    }
    let address = Address::keep();
    let url = format!("http://{address}");
    let data = folder.path().join("data");
    let arguments = ["serve", "--listen", &address, "--data", &data.to_string_lossy()];
    let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
    server.ready(&client(), &format!("{url}/ready")).await;
    let labels = [("service_name", "watched")];
    known::push(&url, &labels).await;
    known::push_as(&url, "wall", &labels).await;

    let words = [
        "{service_name=\"watched\"}",
        "--url",
        &url,
        "--refresh",
        "200ms",
        "--color",
        "never",
    ];
    let terminal = Terminal::run(folder.path(), (80, 24), &[], &words).unwrap();
    let screen = terminal.see("total 100 ms");
    assert!(
        screen.starts_with("process_cpu:cpu{service_name=\"watched\"}"),
        "{screen}"
    );
    terminal.press(&["j", "j", "Enter", "/", "b", "e", "t", "a", "Enter"]);
    terminal.see("zoomed: total > main > alpha");
    terminal.see("search beta: 0.00% in 0 frames");
    terminal.record();

    known::push(&url, &labels).await;
    let screen = terminal.see("total 200 ms");
    // Zoom, selection and search are unchanged.
    assert!(screen.contains("zoomed: total > main > alpha"), "{screen}");
    assert!(
        screen.contains("self 140 ms 70.00%  total 140 ms 70.00%  alpha"),
        "{screen}"
    );
    known::push(&url, &labels).await;
    terminal.see("total 300 ms");

    terminal.press(&["t"]);
    terminal.see("| wall:wall:nanoseconds:wall:nanoseconds");
    terminal.press(&["j", "Enter"]);
    let screen = terminal.see("wall:wall{service_name=\"watched\"}");
    assert!(screen.contains("total 100 ms"), "{screen}");

    // If the server does not run, the screen shows an error, and the last data stays.
    server.kill();
    let screen = terminal.see("! ");
    assert!(
        screen.contains("wall:wall{service_name=\"watched\"}") && screen.contains("total 100 ms"),
        "{screen}"
    );
    terminal.press(&["Escape"]);
    terminal.wait("the whole graph", |screen| {
        screen.contains("|total") && !screen.contains("zoomed")
    });
    terminal.quit();
    terminal.never_cleared();
}
