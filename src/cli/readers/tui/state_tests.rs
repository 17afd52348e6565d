//! Tests of the state's reaction to keys and new pictures.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

use crate::cli::readers::tui::graph::ROOT;
use crate::cli::readers::tui::rows::Order;
use crate::cli::readers::tui::state::{Action, Mode, State, View};
use crate::cli::readers::tui::testing::{frame, picture};

const STACKS: [(&str, i64); 4] = [("main;work;leaf", 30), ("main;rest", 60), ("main", 10), ("gc", 5)];

fn state() -> State {
    let mut state = State::new("{}".to_owned(), picture(&STACKS));
    state.fit(Rect::new(0, 0, 80, 24));
    state
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

/// Presses keys: letters, and names of other keys in angle brackets.
fn press(state: &mut State, keys: &str) -> Action {
    let mut last = Action::Nothing;
    for word in keys.split_whitespace() {
        let codes = match word {
            "<enter>" => vec![KeyCode::Enter],
            "<esc>" => vec![KeyCode::Esc],
            "<back>" => vec![KeyCode::Backspace],
            "<tab>" => vec![KeyCode::Tab],
            "<down>" => vec![KeyCode::Down],
            word => word.chars().map(KeyCode::Char).collect(),
        };
        for code in codes {
            last = state.press(key(code));
        }
    }
    last
}

fn selected(state: &State) -> &str {
    &state.picture.graph.name(state.selected).text
}

fn row(state: &State) -> &str {
    &state.picture.graph.names[state.row().unwrap().name].text
}

#[test]
fn keys_walk_along_frames_and_zoom() {
    let mut state = state();
    press(&mut state, "j j");
    assert_eq!(selected(&state), "rest");
    press(&mut state, "l <enter>");
    assert_eq!(
        (selected(&state), state.root()),
        ("work", frame(&state.picture.graph, "work"))
    );
    // The table shows the zoomed frame.
    assert_eq!(state.table.rows.len(), 2);
    press(&mut state, "k");
    assert_eq!(selected(&state), "work");
    press(&mut state, "j <enter> <enter>");
    assert_eq!(selected(&state), "leaf");
    press(&mut state, "<back>");
    assert_eq!(state.root(), frame(&state.picture.graph, "work"));
    press(&mut state, "<esc>");
    assert_eq!((state.root(), selected(&state)), (ROOT, "leaf"));
    press(&mut state, "g");
    assert_eq!(state.selected, ROOT);
}

#[test]
fn a_search_lights_matches_while_it_is_typed_and_steps_through_them() {
    let mut state = state();
    assert_eq!(press(&mut state, "/ q"), Action::Nothing);
    assert_eq!(state.search, "q");
    press(&mut state, "<back> e");
    assert_eq!(state.matches.as_ref().unwrap().sum, 90);
    press(&mut state, "<enter>");
    assert_eq!(selected(&state), "rest");
    press(&mut state, "n");
    assert_eq!(selected(&state), "leaf");
    press(&mut state, "N");
    assert_eq!(selected(&state), "rest");
    // After a cancelled search, the previous search still applies.
    press(&mut state, "/ w o <esc>");
    assert_eq!((state.search.as_str(), &state.mode), ("e", &Mode::Browse));
    press(&mut state, "/ /(/");
    assert!(state.search_error.is_some() && state.matches.is_none());
    press(&mut state, "<enter> <esc>");
    assert!(state.search_error.is_none() && state.search.is_empty());
    press(&mut state, "n");
}

#[test]
fn a_search_that_is_open_takes_letters_but_not_control_c() {
    let mut state = state();
    press(&mut state, "/ abc");
    let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
    assert_eq!(state.press(control('u')), Action::Nothing);
    assert_eq!(state.search, "");
    assert_eq!(state.press(control('c')), Action::Quit);
    assert_eq!(state.press(control('l')), Action::Redraw);
    for _ in 0..2000 {
        press(&mut state, "x");
    }
    assert_eq!(state.search.len(), 1000);
}

#[test]
fn the_table_is_sorted_searched_and_leads_back_to_the_frames() {
    let mut state = state();
    press(&mut state, "j <tab>");
    assert_eq!((state.view, row(&state)), (View::Table, "main"));
    press(&mut state, "s");
    assert_eq!(
        (state.table.order, state.table.selected_row, row(&state)),
        (Order::Total, 0, "main")
    );
    press(&mut state, "G");
    assert_eq!(row(&state), "gc");
    press(&mut state, "g j");
    assert_eq!(row(&state), "rest");
    press(&mut state, "/ leaf <enter>");
    assert_eq!(row(&state), "leaf");
    press(&mut state, "<enter>");
    assert_eq!((state.view, selected(&state)), (View::Flames, "leaf"));
}

#[test]
fn another_picture_keeps_zoom_selection_and_row_where_they_are() {
    let mut state = state();
    press(&mut state, "j j l <enter> j");
    state.table.selected_row = 1;
    let row_before = row(&state).to_owned();
    state.show(picture(&[
        ("a", 5),
        ("main;rest", 60),
        ("main;work;leaf", 31),
        ("main;work;new", 9),
    ]));
    assert_eq!(state.picture.graph.name(state.root()).text, "work");
    assert_eq!((selected(&state), row(&state)), ("leaf", row_before.as_str()));
    state.show(picture(&[("a", 5)]));
    assert_eq!((state.root(), state.selected), (ROOT, ROOT));
    state.show(picture(&[]));
    assert!(state.row().is_none());
    for code in [
        KeyCode::Down,
        KeyCode::Enter,
        KeyCode::Tab,
        KeyCode::Enter,
        KeyCode::End,
    ] {
        state.press(key(code));
    }
}

#[test]
fn a_type_is_chosen_from_a_list() {
    let mut state = state();
    assert_eq!(press(&mut state, "t"), Action::AskTypes);
    let kinds = ["a", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "z"].map(str::to_owned);
    state.offer(kinds.to_vec());
    assert_eq!(
        press(&mut state, "j <down> <down> <enter>"),
        Action::Show("z".to_owned())
    );
    state.offer(kinds.to_vec());
    assert_eq!(press(&mut state, "k <enter>"), Action::Show("a".to_owned()));
    state.offer(kinds.to_vec());
    assert_eq!(press(&mut state, "<esc>"), Action::Nothing);
    state.offer(Vec::new());
    assert!(state.message.is_error && state.mode == Mode::Browse);
}

#[test]
fn help_is_left_by_any_key() {
    let mut state = state();
    press(&mut state, "?");
    assert_eq!(state.mode, Mode::Help);
    assert_eq!(press(&mut state, "q"), Action::Nothing);
    assert_eq!(press(&mut state, "r"), Action::Refresh);
    assert_eq!(press(&mut state, "q"), Action::Quit);
}
