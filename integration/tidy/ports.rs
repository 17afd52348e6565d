//! Ports on which tests listen: port 0 or a reserved port, never a fixed one, which another program may use.
//!
//! In: every Rust source. Out: the lines that bind a fixed port, and the lines of integration tests that start Alluvium
//! on a fixed port or without a listen address. The test does not detect other programs that
//! listen on their default ports.

use super::{Findings, Piece, piece, rust_files};

const FIXED: &str = "a fixed port may be in use: listen on `Address::keep()` or on port 0";

const DEFAULT: &str = "the default port may be in use: set the listen address to `Address::keep()` or to port 0";

/// Options that set a listen address.
const OPTIONS: [&str; 5] = [
    "--listen",
    "--postgres.listen",
    "--server.http.listen-addr",
    "--cluster.listen-addr",
    "--web.listen-address",
];

/// End of every configuration key that sets a port.
const KEY: &str = "listen_port";

#[test]
fn nobody_listens_on_a_fixed_port() {
    let mut found = Findings::default();
    for file in rust_files() {
        for (rule, line) in offenders(&file.path, &file.text) {
            found.add(&file.path, line, rule, file.line(line));
        }
    }
    found.none();
}

/// A string of a source without its quotes, or the code between two strings.
struct Token<'s> {
    /// Offset of the first byte of the text in the source.
    at: usize,
    text: &'s str,
    is_string: bool,
}

/// Returns the strings of a source and the code around them, without comments and character literals. Each string has
/// a code token before and after it, which may be empty.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let bytes = source.as_bytes();
    let (mut tokens, mut start, mut at) = (Vec::new(), 0, 0);
    let code = |from: usize, to: usize| Token {
        at: from,
        text: &source[from..to],
        is_string: false,
    };
    while at < bytes.len() {
        let (Piece::Comment(len) | Piece::Literal(len)) = piece(bytes, at) else {
            at += 1;
            continue;
        };
        tokens.push(code(start, at));
        if matches!(bytes[at], b'"' | b'r') {
            tokens.push(Token {
                at,
                text: inside(&source[at..at + len]),
                is_string: true,
            });
        }
        at += len;
        start = at;
    }
    tokens.push(code(start, source.len()));
    tokens
}

/// Returns the content of a string literal.
fn inside(literal: &str) -> &str {
    let open = literal.find('"').map_or(0, |quote| quote + 1);
    let close = literal.rfind('"').unwrap_or(open);
    literal.get(open..close).unwrap_or_default()
}

/// Returns every broken rule with its line.
fn offenders(path: &str, source: &str) -> Vec<(&'static str, usize)> {
    let tokens = tokens(source);
    let line = |at: usize| source[..at].matches('\n').count() + 1;
    let starts_programs = path.starts_with("integration/");
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let rest = &tokens[index..];
        if token.is_string {
            if starts_programs {
                found.extend(of_string(&tokens, index).map(|(rule, newlines)| (rule, line(token.at) + newlines)));
            }
            continue;
        }
        for (at, call) in token.text.match_indices("bind(") {
            let is_call = token.text[..at].ends_with(['.', ':']);
            if is_call && binds_a_fixed_port(rest, at + call.len()) {
                found.push((FIXED, line(token.at + at)));
            }
        }
    }
    found
}

/// Returns the rule that a string of an integration test breaks, and the number of lines between the beginning of the
/// string and the fault.
fn of_string(tokens: &[Token<'_>], index: usize) -> Option<(&'static str, usize)> {
    let (text, rest) = (tokens[index].text, &tokens[index..]);
    if option(rest).is_some_and(is_fixed) {
        return Some((FIXED, 0));
    }
    if begins_a_command_line(tokens, index) && !says_where(rest) {
        return Some((DEFAULT, 0));
    }
    text.match_indices(KEY).find_map(|(at, key)| {
        let value = text[at + key.len()..].trim_start_matches([' ', '\t', '=', ':']);
        let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        is_port(&value[..digits]).then(|| (FIXED, text[..at].matches('\n').count()))
    })
}

/// Returns true for the number of a port except 0.
fn is_port(text: &str) -> bool {
    text.replace('_', "").parse::<u16>().is_ok_and(|port| port != 0)
}

/// Returns true for an address that ends with the number of a port except 0.
fn is_fixed(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(_, port)| is_port(port))
}

/// Returns true if an argument is an address with a fixed port, or a tuple that ends with the number of a fixed port,
/// like `([127, 0, 0, 1], 80)`. The arguments begin in the first token at the offset `from`.
fn binds_a_fixed_port(tokens: &[Token<'_>], from: usize) -> bool {
    let (mut code, mut depth) = (String::new(), 1_usize);
    for (number, token) in tokens.iter().enumerate() {
        if token.is_string {
            if is_fixed(token.text) {
                return true;
            }
            continue;
        }
        let text = if number == 0 { &token.text[from..] } else { token.text };
        for c in text.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            code.push(c);
            if depth == 0 {
                return code.split(')').any(|part| {
                    let last = part.trim().trim_end_matches(',').rsplit_once(',');
                    last.is_some_and(|(_, last)| is_port(last.trim()))
                });
            }
        }
    }
    false
}

/// Returns the value of an option of [`OPTIONS`] if the first token begins with one. The value is in the same string or
/// in the next one.
fn option<'s>(tokens: &[Token<'s>]) -> Option<&'s str> {
    let first = tokens.first()?.text;
    let rest = OPTIONS.iter().find_map(|option| first.strip_prefix(option))?;
    if !rest.is_empty() {
        return rest.strip_prefix('=');
    }
    let (between, next) = (tokens.get(1)?, tokens.get(2)?);
    (between.text.trim() == "," && next.is_string).then_some(next.text)
}

/// Returns true for the name of a command that listens, if it is the first string of a list.
fn begins_a_command_line(tokens: &[Token<'_>], index: usize) -> bool {
    let listens = matches!(tokens[index].text, "serve" | "demo" | "run");
    let is_first = index > 0 && tokens[index - 1].text.trim_end().ends_with('[');
    let is_of_list = |next: &Token<'_>| next.text.trim_start().starts_with([',', ']', '.']);
    listens && is_first && tokens.get(index + 1).is_some_and(is_of_list)
}

/// Returns true if one of `tokens`, up to the end of the statement, is a string that contains `listen`, as each of the
/// [`OPTIONS`] does.
fn says_where(tokens: &[Token<'_>]) -> bool {
    let statement = tokens
        .iter()
        .take_while(|token| token.is_string || !token.text.contains(';'));
    statement
        .filter(|token| token.is_string)
        .any(|token| token.text.contains("listen"))
}

#[test]
fn the_scanner_finds_fixed_ports_and_programs_on_their_default_port() {
    let of = |source: &str| offenders("integration/a.rs", source);
    for source in [
        r#"let a = TcpListener::bind("127.0.0.1:8080").await;"#,
        "let a = socket.bind(SocketAddr::from(([127, 0, 0, 1], 8_080)));",
        "let a = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53, ));",
        r#"let a = ["serve", "--listen", "127.0.0.1:4040", "--data", &data];"#,
        r#"let a = run(&["run", "--server.http.listen-addr=127.0.0.1:12345"]);"#,
    ] {
        assert_eq!(of(source), [(FIXED, 1)], "{source}");
    }
    // The text is assembled, because the rule also reads the strings of this file.
    let text = format!("let a = r\"\n\t{KEY} = {}\n\";", 8080);
    assert_eq!(of(&text), [(FIXED, 2)]);
    for (source, line) in [
        (r#"let a = run(&["serve", "--auth", &users]);"#, 1),
        ("let a = vec![\n    \"run\".to_owned(),\n];\nlet b = \"--listen\";", 2),
        (r#"let a = [&["demo"], flags].concat();"#, 1),
    ] {
        assert_eq!(of(source), [(DEFAULT, line)], "{source}");
    }
    for source in [
        r#"let a = TcpListener::bind("127.0.0.1:0"); // bind("127.0.0.1:1")"#,
        "let a = socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)));",
        "let a = Agent::bind(options, ([127, 0, 0, 1], 0).into(), &scope).await;",
        "let a = TcpListener::bind(&*address);",
        r#"let a = ["serve", "--listen", &address, "--data", "a:1"];"#,
        r#"let a = ["run", &format!("--server.http.listen-addr={own}")];"#,
        r#"let a = ["", "run"].contains(&name) || matches!(name, "serve" | "demo");"#,
        r#"let a = command.arg("run");"#,
    ] {
        assert_eq!(of(source), [], "{source}");
    }
    let parsed = r#"let a = Line::parse_from(["serve", "--listen", "0.0.0.0:4040"]);"#;
    assert_eq!(offenders("src/a.rs", parsed), []);
}
