//! Style of frames and texts, with many colours, few, or none.
//!
//! Without colour everything can still be distinguished: the selected frame is reversed, matches are bold and
//! underlined, and dashes fill the width of each frame.

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};

use crate::cli::readers::tui::graph::Hue;

/// Values of the flag `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Colours unless NO_COLOR is set or TERM is `dumb`.
    #[default]
    Auto,
    /// Colours in any environment.
    Always,
    /// No colours, as with NO_COLOR.
    Never,
}

/// Available colours of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    None,
    /// The eight colours of every terminal.
    Basic,
    /// The 256 colours of most terminals.
    Indexed,
}

/// Marks of a frame or row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub is_selected: bool,
    pub is_match: bool,
    /// True if there is a search and this frame does not match.
    pub is_passed_over: bool,
}

impl Colours {
    /// Returns the colours for the flag and the environment.
    pub(super) fn of(when: When, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let terminal = set("TERM").unwrap_or_default();
        let is_off = match when {
            When::Never => true,
            When::Always => false,
            When::Auto => set("NO_COLOR").is_some() || terminal == "dumb",
        };
        if is_off {
            Self::None
        } else if terminal.contains("256color") || set("COLORTERM").is_some() {
            Self::Indexed
        } else {
            Self::Basic
        }
    }

    /// Returns the text that fills a frame after its name.
    pub(super) fn filling(self) -> &'static str {
        match self {
            Self::None => "-",
            Self::Basic | Self::Indexed => " ",
        }
    }

    /// Returns the style of a frame of the flame graph.
    pub(super) fn frame(self, hue: Option<Hue>, mark: Mark) -> Style {
        let hue = hue.filter(|_| !mark.is_passed_over);
        let style = match self {
            Self::None => Style::new(),
            Self::Basic => {
                let background = if mark.is_match { Color::Yellow } else { basic(hue) };
                Style::new().fg(Color::Black).bg(background)
            }
            Self::Indexed => {
                let background = if mark.is_match {
                    Color::Indexed(220)
                } else {
                    indexed(hue)
                };
                Style::new().fg(Color::Indexed(16)).bg(background)
            }
        };
        style.add_modifier(modifiers(mark))
    }

    /// Returns the style of an error line.
    pub(super) fn error(self) -> Style {
        match self {
            Self::None => Style::new().add_modifier(Modifier::BOLD),
            Self::Basic | Self::Indexed => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}

/// The style of the first line.
pub(super) const TITLE: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Returns the style of a row of a table or list.
pub(super) fn row(mark: Mark) -> Style {
    Style::new().add_modifier(modifiers(mark))
}

fn modifiers(mark: Mark) -> Modifier {
    let mut modifiers = Modifier::empty();
    modifiers.set(Modifier::REVERSED, mark.is_selected);
    modifiers.set(Modifier::BOLD | Modifier::UNDERLINED, mark.is_match);
    modifiers
}

fn basic(hue: Option<Hue>) -> Color {
    const COLOURS: [Color; 5] = [Color::Red, Color::Green, Color::Cyan, Color::Blue, Color::Magenta];
    match hue {
        Some(hue) if !hue.is_pale => COLOURS.get(hue.degrees as usize / 72).copied().unwrap_or(Color::Red),
        _ => Color::Gray,
    }
}

/// Returns the colour of the 256-colour cube that is nearest to a light colour of this hue.
fn indexed(hue: Option<Hue>) -> Color {
    let Some(hue) = hue else {
        return Color::Indexed(252);
    };
    let (saturation, lightness) = if hue.is_pale { (0.15, 0.82) } else { (0.65, 0.76) };
    let chroma = (1.0 - (2.0 * lightness - 1.0_f64).abs()) * saturation;
    // The value of a channel: full within 60 degrees of its hue, and falling to the minimum at 120 degrees.
    let channel = |centre: f64| {
        let distance = (f64::from(hue.degrees) - centre).rem_euclid(360.0);
        let distance = distance.min(360.0 - distance);
        let share = (2.0 - distance / 60.0).clamp(0.0, 1.0);
        lightness - chroma / 2.0 + chroma * share
    };
    let step = |value: f64| (value * 5.0).round().clamp(0.0, 5.0) as u8;
    let [red, green, blue] = [0.0, 120.0, 240.0].map(|centre| step(channel(centre)));
    Color::Indexed(16 + 36 * red + 6 * green + blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hue(degrees: u32) -> Option<Hue> {
        Some(Hue {
            degrees,
            is_pale: false,
        })
    }

    #[test]
    fn the_environment_says_which_colours_there_are() {
        let colours = |when, set: &[(&str, &str)]| {
            Colours::of(when, |name| {
                let variable = set.iter().find(|(key, _)| *key == name);
                variable.map(|(_, value)| (*value).to_owned())
            })
        };
        let variable = ("TERM", "xterm-256color");
        assert_eq!(colours(When::Auto, &[variable]), Colours::Indexed);
        assert_eq!(
            colours(When::Auto, &[("TERM", "xterm"), ("COLORTERM", "truecolor")]),
            Colours::Indexed
        );
        assert_eq!(
            colours(When::Auto, &[("TERM", "screen"), ("NO_COLOR", "")]),
            Colours::Basic
        );
        assert_eq!(colours(When::Auto, &[variable, ("NO_COLOR", "1")]), Colours::None);
        assert_eq!(colours(When::Auto, &[("TERM", "dumb")]), Colours::None);
        assert_eq!(colours(When::Always, &[variable, ("NO_COLOR", "1")]), Colours::Indexed);
        assert_eq!(colours(When::Never, &[variable]), Colours::None);
    }

    #[test]
    fn without_colour_marks_are_seen_and_nothing_is_coloured() {
        let mark = Mark {
            is_selected: true,
            is_match: true,
            is_passed_over: false,
        };
        let style = Colours::None.frame(hue(10), mark);
        assert_eq!((style.fg, style.bg), (None, None));
        assert!(style.has_modifier(Modifier::REVERSED | Modifier::BOLD | Modifier::UNDERLINED));
        assert_eq!(Colours::None.frame(hue(10), Mark::default()), Style::new());
    }

    #[test]
    fn a_package_has_the_same_light_colour_in_every_frame() {
        assert_eq!(indexed(hue(0)), Color::Indexed(16 + 36 * 5 + 6 * 3 + 3));
        assert_eq!(indexed(hue(120)), Color::Indexed(16 + 36 * 3 + 6 * 5 + 3));
        assert_eq!(indexed(None), Color::Indexed(252));
        assert_eq!(
            [basic(hue(0)), basic(hue(359)), basic(None)],
            [Color::Red, Color::Magenta, Color::Gray]
        );
    }
}
