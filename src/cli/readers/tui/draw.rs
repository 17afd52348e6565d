//! Draws the state: lines at the top, flame graph or table, lines at the bottom, and boxes over them.
//!
//! In: a state that has been fitted to the screen. Out: the cells of a buffer. ratatui sends the changed cells.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use crate::cli::common::plain;
use crate::cli::readers::tui::areas::{Areas, SMALLEST, areas, middle};
use crate::cli::readers::tui::graph::ROOT;
use crate::cli::readers::tui::layout::{Cell, cells, scrolled};
use crate::cli::readers::tui::rows::Order;
use crate::cli::readers::tui::state::{Mode, State, View};
use crate::cli::readers::tui::text::{clip, clip_start, width};
use crate::cli::readers::tui::theme;
use crate::cli::readers::tui::theme::{Colours, Mark, TITLE};
use alluvium_profile::format;

/// Lines of the box that lists the keys.
const HELP: [&str; 16] = [
    "arrows, h j k l   move along the frames, or the rows",
    "PgUp PgDn g G     move further",
    "Enter             zoom to the frame; in the table: show the row's frame",
    "Esc, Backspace    zoom out; when not zoomed: end the search",
    "Tab               switch between flame graph and table",
    "s                 sort the table by the next column",
    "/                 search: text, /expression/ or =whole name",
    "n N               go to the next or previous match",
    "t                 choose the profile type",
    "r                 refresh now",
    "Ctrl-L            redraw the screen",
    "q, Ctrl-C         quit",
    "",
    "A frame is as wide as its share. Callers are above.",
    "self: the frame alone; total: with all its callees.",
    "Press any key to close this.",
];

/// End column, heading and sort order of each value column of the table.
const COLUMNS: [(usize, &str, Order); 2] = [(20, "self", Order::Own), (41, "total", Order::Total)];

/// Column in which names start in the table.
const NAMES: usize = 43;

/// Draws the complete screen.
pub(super) fn draw(buffer: &mut Buffer, state: &State, colours: Colours) {
    let screen = buffer.area;
    let Some(areas) = areas(screen) else {
        let text = format!("too small: {} x {} is needed", SMALLEST.0, SMALLEST.1);
        line(buffer, screen, &text, Style::new());
        return;
    };
    top(buffer, &areas, state);
    match state.view {
        View::Flames => flames(buffer, &areas, state, colours),
        View::Table => table(buffer, &areas, state),
    }
    line(
        buffer,
        areas.selected,
        &selected(state),
        Style::new().add_modifier(Modifier::BOLD),
    );
    status(buffer, areas.status, state, colours);
    match &state.mode {
        Mode::Help => draw_box(buffer, screen, "Keys", &HELP, None),
        Mode::Types { all, index } => {
            let all: Vec<String> = all.iter().map(|kind| plain::line(kind)).collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            draw_box(buffer, screen, "Profile type", &all, Some(*index));
        }
        Mode::Browse | Mode::Search { .. } => {}
    }
}

/// Writes a text at the start of an area, and cuts it at the end of the area.
fn line(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    if area.height > 0 {
        buffer.set_stringn(area.x, area.y, text, usize::from(area.width), style);
    }
}

/// Formats a value with its unit and its share of the total.
fn value(state: &State, value: i64) -> String {
    let picture = &state.picture;
    let share = format::share(value, picture.graph.frame(ROOT).total);
    format!("{} {share}", format::value(value, &picture.unit))
}

fn top(buffer: &mut Buffer, areas: &Areas, state: &State) {
    let picture = &state.picture;
    let columns = usize::from(areas.title.width);
    let views = match state.view {
        View::Flames => "[flames] table ",
        View::Table => " flames [table]",
    };
    let title = format!("{}{}", plain::line(short_type(&picture.kind)), state.title);
    let room = columns.saturating_sub(views.len() + 1);
    let title = shorten(&title, room);
    let blank = " ".repeat(room.saturating_sub(width(&title)) + 1);
    line(buffer, areas.title, &format!("{title}{blank}{views}"), TITLE);
    let total = format::value(picture.graph.frame(ROOT).total, &picture.unit);
    line(
        buffer,
        areas.summary,
        &format!("total {total}  {}", picture.time),
        Style::new(),
    );
}

/// Returns the name and the sample type of a profile type. A text that does not have five parts is returned unchanged.
fn short_type(kind: &str) -> &str {
    let ends: Vec<usize> = kind.match_indices(':').map(|(offset, _)| offset).collect();
    if ends.len() == 4 { &kind[..ends[1]] } else { kind }
}

/// Returns the text, or its start followed by dots if the text is wider than `room` columns.
fn shorten(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut start = String::new();
    for c in text.chars() {
        start.push(c);
        if width(&start) + 2 > room {
            start.pop();
            break;
        }
    }
    start + ".."
}

fn flames(buffer: &mut Buffer, areas: &Areas, state: &State, colours: Colours) {
    let graph = &state.picture.graph;
    let root = state.root();
    if root != ROOT {
        let mut names: Vec<&str> = graph
            .ancestors(root)
            .map(|frame| graph.name(frame).text.as_str())
            .collect();
        names.reverse();
        let path = format!("zoomed: {}", names.join(" > "));
        line(
            buffer,
            areas.head,
            &clip_start(&path, usize::from(areas.head.width)),
            Style::new(),
        );
    }
    let shown = state.first + usize::from(areas.body.height);
    let levels = cells(graph, root, state.selected, areas.body.width, shown);
    for (y, level) in (areas.body.y..areas.body.bottom()).zip(levels.iter().skip(state.first)) {
        for cell in level {
            frame(buffer, areas.body.x, y, cell, state, colours);
        }
    }
}

fn frame(buffer: &mut Buffer, left: u16, y: u16, cell: &Cell, state: &State, colours: Colours) {
    let graph = &state.picture.graph;
    let name = graph.name(cell.frame);
    let is_match = state
        .matches
        .as_ref()
        .is_some_and(|matches| matches.has(graph.frame(cell.frame).name));
    let mark = Mark {
        is_selected: cell.frame == state.selected,
        is_match,
        is_passed_over: state.matches.is_some() && !is_match,
    };
    let style = colours.frame(name.hue, mark);
    let room = usize::from(cell.width).saturating_sub(1);
    let text = clip(&name.text, room);
    let filling = colours.filling().repeat(room.saturating_sub(width(&text)));
    // A bar at the left separates neighbours, even if their colours are equal.
    buffer.set_stringn(
        left + cell.x,
        y,
        format!("|{text}{filling}"),
        usize::from(cell.width),
        style,
    );
}

fn table(buffer: &mut Buffer, areas: &Areas, state: &State) {
    let mark = |order| if state.table.order == order { "*" } else { "" };
    let mut head = String::new();
    for (end, text, order) in COLUMNS {
        head = format!(
            "{head}{:>room$}",
            format!("{text}{}", mark(order)),
            room = end - head.len()
        );
    }
    let head = format!("{head:<NAMES$}name{}", mark(Order::Name));
    line(
        buffer,
        areas.head,
        &head,
        Style::new().add_modifier(Modifier::UNDERLINED),
    );
    let rows = state.table.rows.iter().enumerate().skip(state.table.first);
    for (y, (index, row)) in (areas.body.y..areas.body.bottom()).zip(rows) {
        let mark = Mark {
            is_selected: index == state.table.selected_row,
            is_match: state.matches.as_ref().is_some_and(|matches| matches.has(row.name)),
            is_passed_over: false,
        };
        let mut text = String::new();
        for ((end, ..), number) in COLUMNS.iter().zip([row.own, row.total]) {
            text = format!(
                "{text}{:>room$}",
                value(state, number),
                room = end.saturating_sub(text.len())
            );
        }
        let room = usize::from(areas.body.width).saturating_sub(NAMES);
        let name = clip(&state.picture.graph.names[row.name].text, room);
        let area = Rect { y, ..areas.body };
        line(buffer, area, &format!("{text:<NAMES$}{name}"), theme::row(mark));
    }
}

/// Formats the details of the selected frame or row.
fn selected(state: &State) -> String {
    let graph = &state.picture.graph;
    let (own, total, name, at_line) = match (state.view, state.row()) {
        (View::Table, Some(row)) => (row.own, row.total, row.name, 0),
        (View::Table, None) => return String::new(),
        (View::Flames, _) => {
            let frame = graph.frame(state.selected);
            (frame.own, frame.total, frame.name, frame.line)
        }
    };
    let name = &graph.names[name];
    let file = match (name.file.as_str(), at_line) {
        ("", _) => String::new(),
        (file, 0) => format!("  {file}"),
        (file, line) => format!("  {file}:{line}"),
    };
    format!(
        "self {}  total {}  {}{file}",
        value(state, own),
        value(state, total),
        name.text
    )
}

fn status(buffer: &mut Buffer, area: Rect, state: &State, colours: Colours) {
    let root = state.picture.graph.frame(state.root());
    let search_text = || match (&state.search_error, &state.matches) {
        (Some(search_error), _) => search_error.clone(),
        (None, None) => String::new(),
        (None, Some(matches)) => {
            let frames = if matches.frames.len() == 1 { "frame" } else { "frames" };
            let share = format::share(matches.sum, root.total);
            format!("{share} in {} {frames}", matches.frames.len())
        }
    };
    let (text, style) = match &state.mode {
        Mode::Search { .. } => (
            format!("/{}_  {}", plain::line(&state.search), search_text()),
            Style::new(),
        ),
        _ if state.message.is_error => (format!("! {}", state.message.text), colours.error()),
        _ if state.search.is_empty() => (state.message.text.clone(), Style::new()),
        _ => {
            let text = format!(
                "search {}: {}  {}",
                plain::line(&state.search),
                search_text(),
                state.message.text
            );
            (text, Style::new())
        }
    };
    let keys = "  ?:help q:quit";
    let room = usize::from(area.width).saturating_sub(keys.len());
    let text = shorten(&text, room);
    line(buffer, area, &text, style);
    let right = Rect {
        x: area.x + room as u16,
        width: area.width - room as u16,
        ..area
    };
    line(buffer, right, keys, Style::new());
}

/// Draws a centred box with lines; one of them may be selected.
fn draw_box(buffer: &mut Buffer, screen: Rect, title: &str, lines: &[&str], selected_index: Option<usize>) {
    let widest = lines
        .iter()
        .map(|line| width(line))
        .chain([width(title)])
        .max()
        .unwrap_or(0);
    let area = middle(
        screen,
        (widest + 4).min(1 << 12) as u16,
        (lines.len() + 2).min(1 << 12) as u16,
    );
    let height = usize::from(area.height.saturating_sub(2));
    let inner = usize::from(area.width.saturating_sub(4));
    let edge = format!("+{}+", "-".repeat(inner + 2));
    let first = scrolled(0, selected_index.unwrap_or(0), height, lines.len());
    let shown = lines.iter().enumerate().skip(first).take(height);
    let row = |line_number: usize| Rect {
        y: area.y + line_number as u16,
        height: 1,
        ..area
    };
    line(buffer, row(0), &edge, Style::new());
    line(buffer, row(0), &format!("+ {title} "), Style::new());
    for (line_number, (index, text)) in shown.enumerate() {
        let text = shorten(text, inner);
        let blank = " ".repeat(inner.saturating_sub(width(&text)));
        let mark = Mark {
            is_selected: selected_index == Some(index),
            ..Mark::default()
        };
        line(
            buffer,
            row(line_number + 1),
            &format!("| {text}{blank} |"),
            theme::row(mark),
        );
    }
    line(buffer, row(height + 1), &edge, Style::new());
}
