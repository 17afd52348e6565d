//! Tests of the drawn screen.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use crate::cli::readers::tui::draw::draw;
use crate::cli::readers::tui::picture::Picture;
use crate::cli::readers::tui::state::State;
use crate::cli::readers::tui::testing::picture;
use crate::cli::readers::tui::theme::Colours;

const STACKS: [(&str, i64); 3] = [
    ("main;work;leaf", 30_000_000),
    ("main;rest", 60_000_000),
    ("main", 10_000_000),
];

fn state(picture: Picture) -> State {
    let mut state = State::new("{service_name=\"shop\"}".to_owned(), picture);
    state.fit(Rect::new(0, 0, 60, 10));
    state
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            key => KeyCode::Char(key),
        };
        state.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn screen(state: &mut State, width: u16, height: u16, colours: Colours) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let draw = |frame: &mut ratatui::Frame<'_>| {
        state.fit(frame.area());
        draw(frame.buffer_mut(), state, colours);
    };
    terminal.draw(draw).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the lines of a screen without trailing blanks.
fn lines(buffer: &Buffer) -> Vec<String> {
    let columns = usize::from(buffer.area.width);
    let text = |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol().to_owned()).collect::<String>();
    let rows = buffer.content().chunks(columns).map(text);
    rows.map(|row| row.trim_end().to_owned()).collect()
}

fn text(state: &mut State) -> Vec<String> {
    lines(&screen(state, 60, 10, Colours::None))
}

#[test]
fn the_screen_says_what_is_shown_and_what_is_selected() {
    let mut state = state(picture(&STACKS));
    state.say("as of 10:00:05");
    press(&mut state, "jj");
    let expected = [
        "process_cpu:cpu{service_name=\"shop\"}         [flames] table",
        "total 100 ms  2026-01-31T10:00:00Z to 2026-01-31T11:00:00Z",
        "",
        "|total------------------------------------------------------",
        "|main-------------------------------------------------------",
        "      |rest-------------------------------|work-------------",
        "                                          |leaf-------------",
        "",
        "self 60 ms 60.00%  total 60 ms 60.00%  rest",
        "as of 10:00:05                                 ?:help q:quit",
    ];
    assert_eq!(text(&mut state), expected);
}

#[test]
fn a_zoomed_frame_has_the_whole_width_and_its_way_over_it() {
    let mut state = state(picture(&STACKS));
    press(&mut state, "jjl\n");
    let screen_lines = text(&mut state);
    assert_eq!(screen_lines[2], "zoomed: total > main > work");
    assert!(
        screen_lines[3].starts_with("|work---") && screen_lines[4].starts_with("|leaf---"),
        "{screen_lines:#?}"
    );
}

#[test]
fn a_search_says_its_share_and_a_failure_takes_its_place() {
    let mut state = state(picture(&STACKS));
    press(&mut state, "/LEA");
    assert!(text(&mut state)[9].starts_with("/LEA_  30.00% in 1 frame "));
    press(&mut state, "\n");
    state.say("as of 10:00:05");
    assert!(text(&mut state)[9].starts_with("search LEA: 30.00% in 1 frame  as of "));
    state.fail("cannot reach\nthe server \u{1b}[2J");
    assert!(text(&mut state)[9].starts_with("! cannot reach the server \u{fffd}[2J"));
    press(&mut state, "//(/");
    assert!(text(&mut state)[9].contains("unclosed group"));
}

#[test]
fn without_colour_selection_and_matches_are_seen() {
    let mut state = state(picture(&STACKS));
    press(&mut state, "jj/work");
    let buffer = screen(&mut state, 60, 10, Colours::None);
    let style = |x: u16, y: u16| buffer.cell((x, y)).unwrap().modifier;
    assert_eq!(style(10, 5), Modifier::REVERSED);
    assert_eq!(style(50, 5), Modifier::BOLD | Modifier::UNDERLINED);
    assert_eq!(style(10, 4), Modifier::empty());
    let is_plain = |cell: &ratatui::buffer::Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
    assert!(buffer.content().iter().all(is_plain));
    let coloured = screen(&mut state, 60, 10, Colours::Indexed);
    assert_eq!(coloured.cell((50, 5)).unwrap().bg, Color::Indexed(220));
    assert!(lines(&coloured)[5].starts_with("      |rest       "));
}

#[test]
fn the_table_has_columns_of_which_one_sorts() {
    let mut state = state(picture(&STACKS));
    press(&mut state, "\ts");
    let expected = [
        "                self               total*  name",
        "         10 ms 10.00%          100 ms 100%  main",
        "         60 ms 60.00%         60 ms 60.00%  rest",
        "         30 ms 30.00%         30 ms 30.00%  leaf",
        "          0 ns 0.00%         30 ms 30.00%  work",
    ];
    let screen_lines = lines(&screen(&mut state, 60, 12, Colours::None));
    let trimmed = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected: Vec<String> = expected.iter().map(trimmed).collect();
    let words: Vec<String> = screen_lines[2..7].iter().map(|line| trimmed(&line.as_str())).collect();
    assert_eq!(words[0], expected[0]);
    assert!(expected.iter().all(|line| words.contains(line)), "{screen_lines:#?}");
    assert_eq!(screen_lines[3].find("main"), screen_lines[4].find("rest"));
}

#[test]
fn names_cannot_command_the_terminal() {
    let evil = "\u{1b}[31mred\u{7}\u{202e}\u{9b}0m";
    let hebrew = "\u{5e9}\u{5dc}\u{5d5}\u{5dd}";
    let mut picture = picture(&[(evil, 50), (hebrew, 50)]);
    picture.kind = evil.to_owned();
    let mut state = State::new(crate::cli::common::plain::line(evil), picture);
    for keys in ["j", "/\u{1b}[31m", "\n\t"] {
        press(&mut state, keys);
        for colours in [Colours::None, Colours::Indexed] {
            let buffer = screen(&mut state, 80, 24, colours);
            let is_shown = |c: char| !c.is_control() && c != '\u{202e}';
            assert!(buffer.content().iter().all(|cell| cell.symbol().chars().all(is_shown)));
            // Every cell has one column, so nothing has moved.
            assert!(lines(&buffer)[0].ends_with("table") || lines(&buffer)[0].ends_with("[table]"));
        }
    }
    state.offer(vec![evil.to_owned()]);
    assert!(
        lines(&screen(&mut state, 80, 24, Colours::None))
            .iter()
            .all(|line| !line.contains('\u{1b}'))
    );
    press(&mut state, "q\t");
    let screen_lines = lines(&screen(&mut state, 80, 24, Colours::None));
    assert!(
        screen_lines[4].contains("red\u{fffd}\u{fffd}\u{fffd}0m"),
        "{screen_lines:#?}"
    );
    assert!(screen_lines[4].contains(hebrew));
}

#[test]
fn boxes_lie_over_the_picture_and_fit_into_a_small_screen() {
    let mut state = state(picture(&STACKS));
    press(&mut state, "?");
    let screen_lines = lines(&screen(&mut state, 80, 24, Colours::None));
    assert!(
        screen_lines
            .iter()
            .any(|line| line.contains("| q, Ctrl-C         quit")),
        "{screen_lines:#?}"
    );
    assert!(screen_lines.iter().all(|line| line.chars().count() <= 80));
    press(&mut state, "x");
    state.offer((0..30).map(|number| format!("type{number}")).collect());
    for _ in 0..29 {
        press(&mut state, "j");
    }
    let screen_lines = lines(&screen(&mut state, 40, 8, Colours::None));
    assert!(
        screen_lines.iter().any(|line| line.contains("| type29")),
        "{screen_lines:#?}"
    );
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let mut state = state(picture(&STACKS));
    for keys in ["", "jjj", "/a", "\n\t", "?"] {
        press(&mut state, keys);
        for (width, height) in [(1, 1), (10, 3), (39, 8), (40, 8), (41, 9), (200, 60), (300, 8)] {
            screen(&mut state, width, height, Colours::Basic);
        }
    }
    let screen_lines = lines(&screen(&mut state, 39, 24, Colours::None));
    assert_eq!(screen_lines[0], "too small: 40 x 8 is needed");
    assert!(screen_lines[1..].iter().all(String::is_empty));
}

#[test]
fn a_profile_of_nothing_is_a_screen_too() {
    let mut state = state(picture(&[]));
    let screen_lines = text(&mut state);
    assert_eq!(
        screen_lines[1],
        "total 0 ns  2026-01-31T10:00:00Z to 2026-01-31T11:00:00Z"
    );
    press(&mut state, "\t");
    assert_eq!(text(&mut state)[8], "");
}
