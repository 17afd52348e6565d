//! The event loop: keys, new pictures, timers and signals change the state. The screen is drawn after each event.
//!
//! A separate thread reads keys, and background tasks compute pictures, so that neither waits for the other.

use std::time::Duration;

use anyhow::Context;
use chrono::Utc;
use ratatui::crossterm::event::{self, Event};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::cli::readers::tui::fetch::Source;
use crate::cli::readers::tui::picture::Picture;
use crate::cli::readers::tui::screen::Screen;
use crate::cli::readers::tui::state::{Action, State};
use alluvium_base::duration;

/// Capacity of the queue of terminal events.
const WAITING: usize = 64;

/// A background task, if one is running.
type Task<T> = Option<JoinHandle<anyhow::Result<T>>>;

/// State of the loop that is not shown on the screen.
struct Work {
    source: Source,
    /// The type that is shown or was last requested.
    kind: Option<String>,
    refresh: Option<Duration>,
    picture: Task<Picture>,
    types: Task<Vec<String>>,
}

/// Handles events until the user quits. `refresh` is the time between two queries of a server.
pub(super) async fn run(
    state: &mut State,
    screen: &mut Screen,
    source: Source,
    refresh: Option<Duration>,
) -> anyhow::Result<()> {
    let mut keys = keys().context("cannot read keys")?;
    let mut ends = Ends::listen().context("cannot listen for signals")?;
    let mut ticks = refresh.map(|period| {
        let mut ticks = interval_at(Instant::now() + period, period);
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
                // All events that have arrived are handled before the screen is drawn again.
                let mut next = event;
                loop {
                    // `None` means that the terminal has been closed.
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
            result = finished(&mut work.picture) => work.arrived(state, result?),
            result = finished(&mut work.types) => match result? {
                Ok(types) => state.offer(types),
                Err(error) => state.fail(&format!("{error:#}")),
            },
            () = tick(&mut ticks) => work.ask(),
            () = ends.wait() => return Ok(()),
        }
    }
}

/// Handles an event and returns its action. The loop itself handles [`Action::Quit`] and [`Action::Redraw`].
fn act(event: &Event, state: &mut State, work: &mut Work) -> Action {
    let Event::Key(key) = event else {
        // Drawing detects a new size of the screen.
        return Action::Nothing;
    };
    let action = state.press(*key);
    match &action {
        Action::Refresh => {
            state.say("refreshing ...");
            work.ask();
        }
        Action::AskTypes if work.types.is_none() => {
            state.say("loading the profile types ...");
            work.types = Some(tokio::spawn(work.source.clone().types()));
        }
        Action::Show(kind) => {
            state.say(format!("loading {kind} ..."));
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
    /// Requests a picture, unless a request is running.
    fn ask(&mut self) {
        if self.picture.is_none() {
            self.picture = Some(tokio::spawn(self.source.clone().picture(self.kind.clone())));
        }
    }

    /// Shows a picture. If the request failed, the previous picture and its type stay.
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

    /// Returns the time of the picture and the refresh interval.
    fn news(&self) -> String {
        let now = Utc::now().format("%H:%M:%SZ");
        match self.refresh {
            Some(every) => format!("as of {now}, refresh every {}", duration::format(every)),
            None => format!("as of {now}"),
        }
    }
}

/// Returns the result of a task when the task has ended. Without a task, the function never returns. If the task
/// panicked, the error ends the command, because the panic hook has already restored the terminal.
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

/// Starts a thread that reads the events of the terminal. The thread ends when the terminal or the receiver is closed.
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

/// Signals that end the program. The terminal is restored first.
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
        let result = finished(&mut work.picture).await.unwrap();
        assert!(work.picture.is_none());
        work.arrived(&mut state, result);
        assert!(state.message.is_error && state.message.text.starts_with("no-such-file: cannot read"));
        assert_eq!(
            (state.picture.graph.frame(0).total, work.kind.as_deref()),
            (7, Some(shown.as_str()))
        );
        work.arrived(&mut state, Ok(picture(&[("main", 9)])));
        assert_eq!((state.picture.graph.frame(0).total, state.message.is_error), (9, false));
        assert!(state.message.text.ends_with(", refresh every 5s"));
    }
}
