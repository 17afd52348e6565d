//! The loop: keys, pictures that arrive, time, and signals change the state; after each the screen is drawn.
//!
//! Keys are read by a thread of their own and pictures are made by tasks, so that neither waits for the other.

use std::time::Duration;

use anyhow::Context;
use chrono::Utc;
use ratatui::crossterm::event::{self, Event};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::base::duration;
use crate::cli::readers::tui::fetch::Source;
use crate::cli::readers::tui::picture::Picture;
use crate::cli::readers::tui::screen::Screen;
use crate::cli::readers::tui::state::{Action, State};

/// Events that wait for the loop.
const WAITING: usize = 64;

/// Work in the background, if there is any.
type Task<T> = Option<JoinHandle<anyhow::Result<T>>>;

/// What the loop knows besides what is shown.
struct Work {
    source: Source,
    /// The type that is shown, or that was asked for last.
    kind: Option<String>,
    refresh: Option<Duration>,
    picture: Task<Picture>,
    types: Task<Vec<String>>,
}

/// Runs until the user has had enough. `refresh` is the time from one look at a server to the next.
pub(super) async fn run(
    state: &mut State,
    screen: &mut Screen,
    source: Source,
    refresh: Option<Duration>,
) -> anyhow::Result<()> {
    let mut keys = keys().context("cannot read keys")?;
    let mut ends = Ends::listen().context("cannot listen to signals")?;
    let mut ticks = refresh.map(|every| {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    let mut work = Work {
        source,
        kind: Some(state.picture.kind.clone()),
        refresh,
        picture: None,
        types: None,
    };
    state.say(work.news());
    loop {
        screen.draw(state).context("cannot draw the screen")?;
        tokio::select! {
            event = keys.recv() => {
                // What was typed meanwhile is drawn at once.
                let mut next = event;
                loop {
                    // The terminal is gone.
                    let Some(event) = next else { return Ok(()) };
                    match act(&event, state, &mut work) {
                        Action::Quit => return Ok(()),
                        Action::Redraw => screen.clear().context("cannot clear the screen")?,
                        _ => {}
                    }
                    match keys.try_recv() {
                        Ok(event) => next = Some(event),
                        Err(_) => break,
                    }
                }
            }
            done = finished(&mut work.picture) => work.arrived(state, done?),
            done = finished(&mut work.types) => match done? {
                Ok(types) => state.offer(types),
                Err(error) => state.fail(&format!("{error:#}")),
            },
            () = tick(&mut ticks) => work.ask(),
            () = ends.wait() => return Ok(()),
        }
    }
}

/// Does what an event asks for, but for what is left to the loop.
fn act(event: &Event, state: &mut State, work: &mut Work) -> Action {
    let Event::Key(key) = event else {
        // A new size is seen when the screen is drawn.
        return Action::Nothing;
    };
    let action = state.press(*key);
    match &action {
        Action::Refresh => {
            state.say("asking ...");
            work.ask();
        }
        Action::AskTypes if work.types.is_none() => {
            state.say("asking for the profile types ...");
            work.types = Some(tokio::spawn(work.source.clone().types()));
        }
        Action::Show(kind) => {
            state.say(format!("asking for {kind} ..."));
            work.kind = Some(kind.clone());
            if let Some(task) = work.picture.take() {
                task.abort();
            }
            work.ask();
        }
        _ => {}
    }
    action
}

impl Work {
    /// Asks for a picture, unless one is being made.
    fn ask(&mut self) {
        if self.picture.is_none() {
            self.picture = Some(tokio::spawn(self.source.clone().picture(self.kind.clone())));
        }
    }

    /// Shows a picture. When there is none, the old one stays, and its type.
    fn arrived(&mut self, state: &mut State, picture: anyhow::Result<Picture>) {
        match picture {
            Ok(picture) => {
                state.show(picture);
                state.say(self.news());
            }
            Err(error) => state.fail(&format!("{error:#}")),
        }
        self.kind = Some(state.picture.kind.clone());
    }

    /// How old the picture is and whether another will come.
    fn news(&self) -> String {
        let now = Utc::now().format("%H:%M:%SZ");
        match self.refresh {
            Some(every) => format!("as of {now}, again every {}", duration::format(every)),
            None => format!("as of {now}"),
        }
    }
}

/// The result of a task when it has ended; without one it never ends. A task that panicked ends the command: the screen
/// is given up already.
async fn finished<T>(task: &mut Task<T>) -> anyhow::Result<anyhow::Result<T>> {
    let Some(handle) = task else {
        return std::future::pending().await;
    };
    let result = handle.await;
    *task = None;
    result.context("a task of the screen failed")
}

async fn tick(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => {
            ticks.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Events of the terminal, until it is gone or nobody wants them any more.
fn keys() -> std::io::Result<mpsc::Receiver<Event>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let read = move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new().name("keys".to_owned()).spawn(read)?;
    Ok(receiver)
}

/// Signals that end a program. The terminal is put in order before.
struct Ends(Vec<Signal>);

impl Ends {
    fn listen() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        kinds.into_iter().map(signal).collect::<Result<_, _>>().map(Self)
    }

    async fn wait(&mut self) {
        let signals = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures::future::select_all(signals).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::readers::tui::testing::picture;

    fn work() -> Work {
        Work {
            source: Source::Files(vec!["no-such-file".into()]),
            kind: None,
            refresh: Some(Duration::from_secs(5)),
            picture: None,
            types: None,
        }
    }

    #[tokio::test]
    async fn a_refresh_that_fails_keeps_the_picture_and_its_type() {
        let mut state = State::new(String::new(), picture(&[("main", 7)]));
        let shown = state.picture.kind.clone();
        let mut work = work();
        work.kind = Some("other".to_owned());
        work.ask();
        work.ask();
        let done = finished(&mut work.picture).await.unwrap();
        assert!(work.picture.is_none());
        work.arrived(&mut state, done);
        assert!(state.message.is_error && state.message.text.starts_with("no-such-file: cannot read"));
        assert_eq!(
            (state.picture.graph.frame(0).total, work.kind.as_deref()),
            (7, Some(shown.as_str()))
        );
        work.arrived(&mut state, Ok(picture(&[("main", 9)])));
        assert_eq!((state.picture.graph.frame(0).total, state.message.is_error), (9, false));
        assert!(state.message.text.ends_with(", again every 5s"));
    }
}
