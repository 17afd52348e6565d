//! Runs `alluvium store backup` beside a server that constantly accepts pushes, flushes and merges.
//!
//! Guarantee: a server starts on each copy, and `store check` finds no error in it. The copy contains every profile
//! that was acknowledged before the backup began, exactly once, with its samples.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::disk::Client;
use crate::program::{Address, Program, client, run, sql};

/// Number of backups beside one server.
const BACKUPS: usize = 5;

async fn serve(data: &Path, folder: &Path, more: &[&str]) -> (Program, String) {
    let address = Address::keep();
    let data = data.to_string_lossy();
    let mut arguments = vec!["serve", "--listen", &address, "--data", &data];
    arguments.extend(more);
    let mut server = Program::alluvium(&arguments, &folder.join("log"));
    let url = format!("http://{address}");
    server.ready(&client(), &format!("{url}/ready")).await;
    (server, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_backup_beside_a_busy_server_has_what_was_acknowledged_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = folder.path().join("server.yaml");
    std::fs::write(&yaml, "maintenance:\n  interval: 50ms\n  cpu_share: 1\n").unwrap();
    let data = folder.path().join("data");
    let (mut server, url) = serve(&data, folder.path(), &["--config", &yaml.to_string_lossy()]).await;
    let (next, stop) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicBool::new(false)));
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let mut work = Vec::new();
    for _ in 0..3 {
        let (client, next, stop, acknowledged) = (Client::new(&url), next.clone(), stop.clone(), acknowledged.clone());
        work.push(tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let number = next.fetch_add(1, Ordering::SeqCst);
                client.push(number).await.unwrap();
                acknowledged.lock().unwrap().insert(number);
            }
        }));
    }
    let (flusher, stopped) = (Client::new(&url), stop.clone());
    work.push(tokio::spawn(async move {
        while !stopped.load(Ordering::SeqCst) {
            flusher.flush().await;
            // Each flush must find something to flush.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }));
    let mut copies = Vec::new();
    for number in 0..BACKUPS {
        let before = acknowledged.lock().unwrap().clone();
        let to = folder.path().join(format!("copy-{number}"));
        let (from, target) = (data.clone(), to.clone());
        let (done, out, errors) = tokio::task::spawn_blocking(move || {
            run(&["store", "backup", &from.to_string_lossy(), &target.to_string_lossy()])
        })
        .await
        .unwrap();
        assert!(done, "{}\n{errors}", String::from_utf8_lossy(&out));
        copies.push((before, to));
    }
    stop.store(true, Ordering::SeqCst);
    for one in work {
        one.await.unwrap();
    }
    assert!(server.terminate().success(), "{}", server.tail());
    let sent = next.load(Ordering::SeqCst);
    for (before, copy) in copies {
        let (sound, out, errors) = run(&["store", "check", &copy.to_string_lossy()]);
        assert!(sound, "{}\n{errors}", String::from_utf8_lossy(&out));
        let (mut server, url) = serve(&copy, folder.path(), &[]).await;
        let found = Client::new(&url).found().await;
        assert!(
            found.iter().all(|(number, count)| *number < sent && *count == 1),
            "{found:?}"
        );
        let there: BTreeSet<u64> = found.iter().map(|(number, _)| *number).collect();
        let lost: Vec<_> = before.difference(&there).collect();
        assert!(lost.is_empty(), "{lost:?} of {} are lost", before.len());
        let samples = sql(&client(), &url, "SELECT count(*), sum(value) FROM samples").await;
        let sum: u64 = there.iter().sum();
        assert_eq!(samples, [[there.len().to_string(), sum.to_string()]]);
        assert!(server.terminate().success(), "{}", server.tail());
        let (sound, out, errors) = run(&["store", "check", &copy.to_string_lossy()]);
        assert!(sound, "{}\n{errors}", String::from_utf8_lossy(&out));
    }
    // A copy is complete or absent, and it is never overwritten.
    let (done, _, errors) = run(&["store", "backup", &data.to_string_lossy(), &data.to_string_lossy()]);
    assert!(!done && errors.contains("already exists"), "{errors}");
}
