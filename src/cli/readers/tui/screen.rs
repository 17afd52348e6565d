//! The terminal while it belongs to us, and as it was before afterwards.
//!
//! Raw mode and the alternate screen are properties of the terminal, and the hook of panics is one of the process: both
//! are set here and nowhere else.

use std::io::{self, stdout};

use ratatui::DefaultTerminal;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::layout::Rect;

use crate::cli::readers::tui::draw::draw;
use crate::cli::readers::tui::state::State;
use crate::cli::readers::tui::theme::Colours;

/// The terminal in raw mode with a screen of its own, until the value is dropped. A panic gives it back before its
/// message is printed.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    colours: Colours,
}

impl Screen {
    pub(super) fn open(colours: Colours) -> io::Result<Self> {
        // `crossterm` looks at NO_COLOR itself; whether that counts was decided by the flag.
        ratatui::crossterm::style::force_color_output(colours != Colours::None);
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self { terminal, colours }),
            Err(error) => {
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws what has changed, which terminals that can show at once.
    pub(super) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        execute!(stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(|frame| {
            state.fit(frame.area());
            draw(frame.buffer_mut(), state, self.colours);
        });
        let drawn = drawn.map(drop);
        execute!(stdout(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Forgets what stands on the screen: the next time all of it is drawn.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // `Terminal::clear` asks the terminal where its cursor is, and the thread that reads keys keeps the answer.
        let area = Rect::from(self.terminal.size()?);
        self.terminal.resize(area)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}
