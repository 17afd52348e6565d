//! The content of the screen, and the changes that keys cause.
//!
//! In: keys, the size of the screen, pictures and messages. Out: a state that can be drawn, and [`Action`]s that the
//! event loop must perform. Nothing here waits.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Rect, Size};

use crate::cli::common::plain;
use crate::cli::readers::tui::areas::areas;
use crate::cli::readers::tui::graph::{Path, ROOT};
use crate::cli::readers::tui::layout;
use crate::cli::readers::tui::layout::{Step, scrolled};
use crate::cli::readers::tui::picture::Picture;
use crate::cli::readers::tui::rows;
use crate::cli::readers::tui::rows::{Order, Row};
use crate::cli::readers::tui::search::{Matches, Pattern};

/// Maximum length of a search text, in bytes.
const MAX_SEARCH_BYTES: usize = 1000;

/// Maximum number of nested zooms.
const MAX_ZOOMS: usize = 64;

/// The action that a key requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Quit,
    /// Request the profile again.
    Refresh,
    /// Request the list of profile types.
    AskTypes,
    /// Request the profile of this type.
    Show(String),
    /// Redraw the complete screen.
    Redraw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Flames,
    Table,
}

/// The mode that decides how keys are handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    /// The user types a search; `before` is restored if the user cancels.
    Search {
        before: String,
    },
    /// The user chooses a profile type.
    Types {
        all: Vec<String>,
        index: usize,
    },
    Help,
}

/// The message in the last line, beside the search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub text: String,
    pub is_error: bool,
}

/// Rows of the table and the scroll position.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub rows: Vec<Row>,
    pub selected_row: usize,
    pub first: usize,
    pub order: Order,
}

/// The complete content of the screen.
pub(super) struct State {
    /// Description of the profiles.
    pub title: String,
    pub picture: Picture,
    pub view: View,
    pub mode: Mode,
    pub selected: usize,
    /// The zoomed frames, each within the previous frame. The last frame fills the width.
    zooms: Vec<usize>,
    /// First visible level of the flame graph.
    pub first: usize,
    pub table: Table,
    /// The search text as the user typed it.
    pub search: String,
    /// The reason why the search text is invalid.
    pub search_error: Option<String>,
    pub matches: Option<Matches>,
    pub message: Message,
    body: Size,
}

impl State {
    pub(super) fn new(title: String, picture: Picture) -> Self {
        let mut state = Self {
            title,
            picture,
            view: View::Flames,
            mode: Mode::Browse,
            selected: ROOT,
            zooms: Vec::new(),
            first: 0,
            table: Table::default(),
            search: String::new(),
            search_error: None,
            matches: None,
            message: Message::default(),
            body: Size::default(),
        };
        state.refill();
        state
    }

    /// Returns the frame that fills the width.
    pub(super) fn root(&self) -> usize {
        self.zooms.last().copied().unwrap_or(ROOT)
    }

    /// Returns the selected row.
    pub(super) fn row(&self) -> Option<&Row> {
        self.table.rows.get(self.table.selected_row)
    }

    /// Sets the size of the screen, and scrolls so that the selection is visible.
    pub(super) fn fit(&mut self, screen: Rect) {
        let Some(areas) = areas(screen) else { return };
        self.body = areas.body.as_size();
        let height = usize::from(self.body.height);
        let graph = &self.picture.graph;
        let level = graph
            .frame(self.selected)
            .level
            .saturating_sub(graph.frame(self.root()).level);
        self.first = scrolled(self.first, level, height, level + height);
        self.table.first = scrolled(self.table.first, self.table.selected_row, height, self.table.rows.len());
    }

    /// Shows another picture. Finds the zoomed and the selected frames in it by their paths, and repeats the search.
    pub(super) fn show(&mut self, picture: Picture) {
        let before = &self.picture.graph;
        let selected = before.path(self.selected);
        let zooms: Vec<Path> = self.zooms.iter().map(|frame| before.path(*frame)).collect();
        let row = self.row().map(|row| before.names[row.name].text.clone());
        self.picture = picture;
        let graph = &self.picture.graph;
        self.zooms = zooms
            .iter()
            .map(|path| graph.find(path))
            .filter(|frame| *frame != ROOT)
            .collect();
        self.zooms.dedup();
        self.selected = layout::within(graph, self.root(), graph.find(&selected));
        self.refill();
        if let Some(row) = row {
            self.select_row(|name| name == row);
        }
    }

    /// Shows a message in the last line.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.message = Message {
            text: text.into(),
            is_error: false,
        };
    }

    /// Shows an error in the last line.
    pub(super) fn fail(&mut self, text: &str) {
        self.message = Message {
            text: plain::line(&text.replace('\n', " ")),
            is_error: true,
        };
    }

    /// Lets the user choose a profile type.
    pub(super) fn offer(&mut self, all: Vec<String>) {
        let index = all.iter().position(|kind| *kind == self.picture.kind).unwrap_or(0);
        if all.is_empty() {
            self.fail("there are no profile types");
        } else {
            self.mode = Mode::Types { all, index };
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('l') => Action::Redraw,
                KeyCode::Char('u') if matches!(self.mode, Mode::Search { .. }) => {
                    self.search.clear();
                    self.find();
                    Action::Nothing
                }
                _ => Action::Nothing,
            };
        }
        match &mut self.mode {
            Mode::Browse => return self.browse(key.code),
            Mode::Search { .. } => self.type_search(key.code),
            Mode::Types { all, index } => match key.code {
                KeyCode::Up | KeyCode::Char('k') => *index = index.saturating_sub(1),
                KeyCode::Down | KeyCode::Char('j') => *index = (*index + 1).min(all.len().saturating_sub(1)),
                KeyCode::Enter => {
                    let chosen = all.get(*index).cloned();
                    self.mode = Mode::Browse;
                    return chosen.map_or(Action::Nothing, Action::Show);
                }
                KeyCode::Esc | KeyCode::Char('t' | 'q') => self.mode = Mode::Browse,
                _ => {}
            },
            Mode::Help => self.mode = Mode::Browse,
        }
        Action::Nothing
    }

    fn browse(&mut self, key: KeyCode) -> Action {
        match key {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('r') => return Action::Refresh,
            KeyCode::Char('t') => return Action::AskTypes,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('/') => {
                self.mode = Mode::Search {
                    before: std::mem::take(&mut self.search),
                };
                self.find();
            }
            KeyCode::Char('n') => self.step_match(true),
            KeyCode::Char('N') => self.step_match(false),
            KeyCode::Tab | KeyCode::BackTab => self.switch(),
            KeyCode::Esc | KeyCode::Backspace => self.back(),
            key if self.view == View::Flames => self.move_frame(key),
            key => self.move_row(key),
        }
        Action::Nothing
    }

    fn type_search(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(c) if self.search.len() < MAX_SEARCH_BYTES => self.search.push(c),
            KeyCode::Backspace if !self.search.is_empty() => {
                self.search.pop();
            }
            KeyCode::Esc | KeyCode::Backspace => {
                if let Mode::Search { before } = std::mem::replace(&mut self.mode, Mode::Browse) {
                    self.search = before;
                }
            }
            KeyCode::Enter => {
                self.mode = Mode::Browse;
                self.step_match(true);
                return;
            }
            _ => return,
        }
        self.find();
    }

    fn move_frame(&mut self, key: KeyCode) {
        let page = usize::from(self.body.height.max(2) / 2);
        let (way, times) = match key {
            KeyCode::Left | KeyCode::Char('h') => (Step::Left, 1),
            KeyCode::Right | KeyCode::Char('l') => (Step::Right, 1),
            KeyCode::Up | KeyCode::Char('k') => (Step::Up, 1),
            KeyCode::Down | KeyCode::Char('j') => (Step::Down, 1),
            KeyCode::PageUp => (Step::Up, page),
            KeyCode::PageDown => (Step::Down, page),
            KeyCode::Home | KeyCode::Char('g') => {
                self.selected = self.root();
                return;
            }
            KeyCode::Enter => {
                if self.selected != self.root() && self.zooms.len() < MAX_ZOOMS {
                    self.zooms.push(self.selected);
                    self.first = 0;
                    self.refill();
                }
                return;
            }
            _ => return,
        };
        for _ in 0..times {
            let graph = &self.picture.graph;
            self.selected = layout::step(graph, self.root(), self.body.width, self.selected, way);
        }
    }

    fn move_row(&mut self, key: KeyCode) {
        let last = self.table.rows.len().saturating_sub(1);
        let page = usize::from(self.body.height.max(2) - 1);
        let selected_row = self.table.selected_row;
        self.table.selected_row = match key {
            KeyCode::Up | KeyCode::Char('k') => selected_row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => selected_row + 1,
            KeyCode::PageUp => selected_row.saturating_sub(page),
            KeyCode::PageDown => selected_row + page,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            KeyCode::Char('s') => {
                self.sort();
                return;
            }
            KeyCode::Enter => {
                self.show_function();
                return;
            }
            _ => selected_row,
        }
        .min(last);
    }

    /// Sorts the table by the next column. The selected row stays selected.
    fn sort(&mut self) {
        let graph = &self.picture.graph;
        let table = &mut self.table;
        let chosen = table.rows.get(table.selected_row).map(|row| row.name);
        table.order = table.order.next();
        rows::sort(&mut table.rows, graph, table.order);
        let selected_row = table.rows.iter().position(|row| Some(row.name) == chosen);
        table.selected_row = selected_row.unwrap_or(0);
    }

    /// Shows the flame graph, and selects the largest frame of the function in the selected row.
    fn show_function(&mut self) {
        let Some(name) = self.row().map(|row| row.name) else {
            return;
        };
        let graph = &self.picture.graph;
        let root = self.root();
        let is_of_function =
            |frame: &usize| graph.function(graph.frame(*frame).name) == name && graph.is_within(root, *frame);
        if let Some(frame) = layout::largest(graph, (root..graph.len()).filter(is_of_function)) {
            self.selected = frame;
            self.view = View::Flames;
        }
    }

    /// Switches to the other view. In the table, the row of the selected frame's function is then selected.
    fn switch(&mut self) {
        self.view = match self.view {
            View::Table => View::Flames,
            View::Flames => {
                let text = self.picture.graph.name(self.selected).text.clone();
                self.select_row(|name| name == text);
                View::Table
            }
        };
    }

    /// Undoes the last zoom, or clears the search if no frame is zoomed.
    fn back(&mut self) {
        if self.zooms.pop().is_none() {
            self.search.clear();
        }
        self.first = 0;
        self.refill();
    }

    fn step_match(&mut self, is_forward: bool) {
        let Some(matches) = &self.matches else { return };
        if self.view == View::Flames {
            self.selected = matches.step(self.selected, is_forward).unwrap_or(self.selected);
            return;
        }
        let rows = self.table.rows.iter().enumerate();
        let indexes: Vec<usize> = rows
            .filter(|(_, row)| matches.has(row.name))
            .map(|(index, _)| index)
            .collect();
        let next = if is_forward {
            indexes
                .iter()
                .find(|index| **index > self.table.selected_row)
                .or(indexes.first())
        } else {
            indexes
                .iter()
                .rfind(|index| **index < self.table.selected_row)
                .or(indexes.last())
        };
        self.table.selected_row = next.copied().unwrap_or(self.table.selected_row);
    }

    /// Selects the first row for whose name `is_wanted` returns true, if there is one.
    fn select_row(&mut self, is_wanted: impl Fn(&str) -> bool) {
        let names = &self.picture.graph.names;
        let selected_row = self.table.rows.iter().position(|row| is_wanted(&names[row.name].text));
        self.table.selected_row = selected_row.unwrap_or(self.table.selected_row);
    }

    /// Recomputes the table and the search after a change of picture or zoom.
    fn refill(&mut self) {
        self.table.rows = rows::rows(&self.picture.graph, self.root(), self.table.order);
        self.table.selected_row = self.table.selected_row.min(self.table.rows.len().saturating_sub(1));
        self.find();
    }

    fn find(&mut self) {
        let pattern = Pattern::parse(&self.search);
        self.search_error = pattern.as_ref().err().map(ToString::to_string);
        let root = self.root();
        let matches = |pattern| Matches::of(&self.picture.graph, root, &pattern);
        self.matches = pattern.ok().flatten().map(matches);
    }
}
