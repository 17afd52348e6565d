//! A disk that is slow, full, or has no room for another file, under the real program.
//!
//! Scenario: the data folder of a server is on the test disk, which becomes slow or full and then good again while
//! profiles arrive. Guarantee: the server acknowledges pushes late or refuses them with 503, answers queries, and
//! recovers by itself when the disk is good again. The tables contain each acknowledged profile exactly once and no
//! refused one, also after a restart, and `store check` finds no error.

use std::path::Path;
use std::time::{Duration, Instant};

use alluvium_wire::call::CallError;
use tempfile::TempDir;

use super::disk::Trouble;
use super::layer::{Disk, Mounted};
use crate::disk::{Client, once};
use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, run};

/// A server as the real program, with its disk.
struct Site {
    // The process ends before its disk is unmounted, because fields are dropped in order.
    program: Program,
    _mounted: Mounted,
    disk: Disk,
    at: TempDir,
    logs: TempDir,
    address: Address,
    client: Client,
}

/// Starts the server on a mounted disk.
async fn begin(address: &Address, at: &Path, logs: &Path) -> Program {
    let data = at.join("data").to_string_lossy().into_owned();
    let arguments = ["serve", "--listen", address, "--data", &data];
    let mut program = Program::alluvium(&arguments, &logs.join("log"));
    program.ready(&client(), &format!("http://{address}/ready")).await;
    program
}

impl Site {
    /// Starts a site with the profiles 1 to 5 in files. Returns `None` if nothing can be mounted.
    async fn start() -> Option<(Self, Vec<u64>)> {
        let (disk, address) = (Disk::new(), Address::keep());
        let (at, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mounted = super::mount(&disk, at.path())?;
        let site = Self {
            program: begin(&address, at.path(), logs.path()).await,
            client: Client::new(&format!("http://{address}")),
            _mounted: mounted,
            disk,
            at,
            logs,
            address,
        };
        let kept: Vec<u64> = (1..=5).collect();
        for number in &kept {
            site.client.push(*number).await.unwrap();
        }
        assert_eq!(site.client.flush().await, 204);
        Some((site, kept))
    }

    /// Checks that the server returns exactly the acknowledged profiles, each once.
    async fn check(&mut self, kept: &[u64], when: &str) {
        self.program.check();
        assert_eq!(self.client.found().await, once(kept), "{when}\n{}", self.program.tail());
    }

    /// Kills the server and starts it again.
    async fn restart(&mut self) {
        self.program.kill();
        self.program = begin(&self.address, self.at.path(), self.logs.path()).await;
    }

    /// Makes the disk good again. Waits until a push succeeds, and checks that a flush succeeds, too.
    async fn recover(&mut self, next: &mut u64, kept: &mut Vec<u64>) {
        self.disk.trouble(Trouble::default());
        let deadline = Instant::now() + PATIENCE;
        loop {
            *next += 1;
            match self.client.push(*next).await {
                Ok(()) => break,
                Err(error) => assert_refused(&error),
            }
            assert!(
                Instant::now() < deadline,
                "the server does not recover\n{}",
                self.program.tail()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        kept.push(*next);
        assert_eq!(self.client.flush().await, 204, "{}", self.program.tail());
    }

    /// Checks the profiles after a kill and a restart, and that `store check` finds no error after a clean shutdown.
    async fn end(mut self, kept: &[u64]) {
        self.restart().await;
        self.check(kept, "after a start").await;
        assert!(self.program.terminate().success(), "{}", self.program.tail());
        let data = self.at.path().join("data").to_string_lossy().into_owned();
        let (sound, out, errors) = run(&["store", "check", &data]);
        assert!(sound, "{}\n{errors}", String::from_utf8_lossy(&out));
    }
}

/// Checks that a push was refused because the disk cannot accept it at the moment.
fn assert_refused(error: &CallError) {
    assert!(matches!(error, CallError::Refused { status: 503, .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_disk_delays_pushes_and_no_questions_and_loses_nothing() {
    let Some((mut site, mut kept)) = Site::start().await else {
        return;
    };
    let slow = |milliseconds| Trouble {
        slow: Duration::from_millis(milliseconds),
        ..Trouble::default()
    };
    let push = |client: &Client, number: u64| {
        let client = client.clone();
        tokio::spawn(async move { client.push(number).await })
    };
    // Pushes that arrive during a sync share the next sync.
    site.disk.trouble(slow(200));
    let pushes: Vec<_> = (6..=40).map(|number| push(&site.client, number)).collect();
    while !pushes.iter().all(tokio::task::JoinHandle::is_finished) {
        let found = site.client.found().await;
        assert!(found.starts_with(&once(&kept)), "{found:?}");
        assert!(found.iter().all(|(_, count)| *count == 1), "{found:?}");
    }
    for (push, number) in pushes.into_iter().zip(6..) {
        push.await.unwrap().unwrap();
        kept.push(number);
    }
    site.check(&kept, "on a slow disk").await;
    // Each write and each sync now takes 2 s. Meanwhile, queries and `/ready` must respond.
    site.disk.trouble(slow(2_000));
    let push = push(&site.client, 41);
    while !push.is_finished() {
        assert!(site.client.found().await.starts_with(&once(&kept)));
        let ready = client().get(format!("http://{}/ready", site.address)).send().await;
        assert_eq!(ready.unwrap().status(), 200);
    }
    push.await.unwrap().unwrap();
    kept.push(41);
    let mut next = 41;
    site.recover(&mut next, &mut kept).await;
    site.check(&kept, "after it").await;
    site.end(&kept).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_on_a_slow_disk_has_what_it_acknowledged() {
    let Some((mut site, kept)) = Site::start().await else {
        return;
    };
    site.disk.trouble(Trouble {
        slow: Duration::from_millis(200),
        ..Trouble::default()
    });
    let pushers: Vec<_> = (0..4u64)
        .map(|pusher| {
            let client = site.client.clone();
            tokio::spawn(async move {
                let mut kept = Vec::new();
                for number in (10 + pusher..).step_by(4) {
                    match client.push(number).await {
                        Ok(()) => kept.push(number),
                        Err(_) => return kept,
                    }
                }
                kept
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    site.program.kill();
    let mut acknowledged = kept;
    for pusher in pushers {
        acknowledged.extend(pusher.await.unwrap());
    }
    site.disk.trouble(Trouble::default());
    site.restart().await;
    let found = site.client.found().await;
    assert!(found.iter().all(|(_, count)| *count == 1), "{found:?}");
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|number| !found.contains(&(**number, 1)))
        .collect();
    assert!(lost.is_empty(), "{lost:?} of {} are lost", acknowledged.len());
    let found: Vec<u64> = found.into_iter().map(|(number, _)| number).collect();
    site.end(&found).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_pushes_and_flushes_and_takes_them_when_there_is_room() {
    let Some((mut site, mut kept)) = Site::start().await else {
        return;
    };
    let (mut next, mut refused) = (5, 0);
    // With these sizes, the disk becomes full during various writes: to the log, its next segment, files, or entries of
    // the table logs.
    for room in [0, 300, 9_000, 12_000, 20_000, 40_000] {
        let when = format!("with room for {room} bytes");
        next += 1;
        site.client.push(next).await.unwrap();
        kept.push(next);
        site.disk.trouble(Trouble {
            most_bytes: Some(site.disk.bytes() + room),
            ..Trouble::default()
        });
        // The flush may succeed, or fail after a part of its writes.
        let flushed = site.client.flush().await;
        assert!(matches!(flushed, 204 | 503), "{when}: {flushed}");
        refused += usize::from(flushed == 503);
        site.check(&kept, &when).await;
        let error = loop {
            next += 1;
            match site.client.push(next).await {
                Ok(()) => kept.push(next),
                Err(error) => break error,
            }
            assert!(next < 5_000, "{when} nothing is refused");
        };
        assert_refused(&error);
        // The flush succeeds if nothing is left to write.
        let flushed = site.client.flush().await;
        assert!(matches!(flushed, 204 | 503), "{when}: {flushed}");
        site.check(&kept, &when).await;
        site.recover(&mut next, &mut kept).await;
        site.check(&kept, "with room again").await;
    }
    assert!(refused > 0, "no flush was refused");
    site.end(&kept).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_room_for_another_file_pushes_go_on_and_flushes_when_there_is_some() {
    let Some((mut site, mut kept)) = Site::start().await else {
        return;
    };
    let (mut next, mut refused) = (5, 0);
    // First, the disk has no room for the next segment of the log. Each later round has room for one more file.
    for room in 0..12 {
        let when = format!("with room for {room} files");
        site.disk.trouble(Trouble {
            most_names: Some(site.disk.names() + room),
            ..Trouble::default()
        });
        for _ in 0..2 {
            next += 1;
            site.client.push(next).await.unwrap();
            kept.push(next);
            match site.client.flush().await {
                204 => {}
                status => {
                    assert_eq!(status, 503, "{when}\n{}", site.program.tail());
                    refused += 1;
                }
            }
            site.check(&kept, &when).await;
        }
        site.recover(&mut next, &mut kept).await;
    }
    assert!(refused > 0, "no flush was refused");
    site.end(&kept).await;
}
