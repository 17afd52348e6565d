//! `alluvium tui`: shows a flame graph and a table in the terminal, from a server or from files.
//!
//! `fetch` computes pictures, `state` holds the content of the screen and handles keys, `draw` turns the state into
//! cells, `screen` owns the terminal, and `events` is the loop that connects them.

mod areas;
mod draw;
#[cfg(test)]
mod draw_tests;
mod events;
mod fetch;
mod graph;
mod layout;
mod picture;
mod rows;
mod screen;
mod search;
mod state;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod testing;
mod text;
mod theme;

use std::io::{IsTerminal, stderr, stdin, stdout};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::readers::source::SourceArgs;
use alluvium_base::duration;
use alluvium_telemetry::logs::LogHandle;
use fetch::Source;
use screen::Screen;
use state::State;
use theme::{Colours, When};

/// Arguments of `alluvium tui`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium tui 'cpu{service_name=\"shop\"}' --from now-15m\n  \
                        alluvium tui '{service_name=~\"shop.*\"}' --refresh 30s\n  \
                        alluvium tui --file app.cpuprofile\n  alluvium tui heap.pb.gz\n\n\
                        Press ? for the keys."
)]
pub struct TuiArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Time between two queries of the server; 0 for no refresh.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    pub refresh: Duration,
    /// Use of colours: `auto` uses them unless NO_COLOR is set or TERM is `dumb`.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: When,
}

pub(crate) async fn run(args: TuiArgs, logs: LogHandle) -> anyhow::Result<()> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        bail!("`alluvium tui` needs a terminal; `alluvium top` and `alluvium tree` print text");
    }
    let (source, kind) = Source::open(with_file(args.source)).await?;
    let picture = source.clone().picture(kind).await?;
    let mut state = State::new(source.title(), picture);
    let is_live = source.is_live() && !args.refresh.is_zero();
    if stderr().is_terminal() {
        logs.silence()?;
    }
    let colours = Colours::of(args.color, |name| std::env::var(name).ok());
    let mut screen = Screen::open(colours).context("cannot set up the terminal")?;
    events::run(&mut state, &mut screen, source, is_live.then_some(args.refresh)).await
}

/// If the selector is the path of a file, moves it to the list of files to read.
fn with_file(mut source: SourceArgs) -> SourceArgs {
    let is_file = |selector: &String| source.files.is_empty() && Path::new(selector).is_file();
    if let Some(path) = source.query.selector.take_if(|selector| is_file(selector)) {
        source.files.push(path.into());
    }
    source
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        tui: TuiArgs,
    }

    #[test]
    fn a_file_may_stand_where_the_selector_does() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let source = |words: &[&str]| {
            let args = Command::try_parse_from([&["tui"], words].concat()).unwrap().tui;
            let source = with_file(args.source);
            (source.query.selector, source.files.len())
        };
        assert_eq!(source(&[file]), (None, 1));
        assert_eq!(source(&["cpu", "--file", file]), (Some("cpu".to_owned()), 1));
        assert_eq!(source(&[file, "--file", file]).1, 1);
        assert_eq!(source(&["cpu{}"]), (Some("cpu{}".to_owned()), 0));
    }
}
