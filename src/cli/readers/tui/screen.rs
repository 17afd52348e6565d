//! Takes control of the terminal, and restores it afterwards.
//!
//! Raw mode and the alternate screen are properties of the terminal, and the panic hook is a property of the process.
//! Only this file sets them.

use std::io::{self, stdout};

use ratatui::DefaultTerminal;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::layout::Rect;

use crate::cli::readers::tui::draw::draw;
use crate::cli::readers::tui::state::State;
use crate::cli::readers::tui::theme::Colours;

/// The terminal in raw mode with the alternate screen, until the value is dropped. A panic restores the terminal before
/// the panic message is printed.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    colours: Colours,
}

impl Screen {
    pub(super) fn open(colours: Colours) -> io::Result<Self> {
        // `crossterm` reads NO_COLOR itself, but `colours` already takes NO_COLOR and the flag `--color` into account.
        ratatui::crossterm::style::force_color_output(colours != Colours::None);
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self { terminal, colours }),
            Err(error) => {
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws the changed cells. Terminals that support synchronized updates show all changes at once.
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

    /// Forgets the content of the screen, so that the next draw redraws all of it.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // `Terminal::clear` queries the cursor position, but the thread that reads keys would consume the response.
        let area = Rect::from(self.terminal.size()?);
        self.terminal.resize(area)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}
