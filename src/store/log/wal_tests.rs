//! Tests of the write-ahead log: group commit, rotation, and recovery after a full disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use super::*;
use crate::store::common::fault::{FaultHook, FaultPoint};
use alluvium_base::segment;
use alluvium_telemetry::metrics::Scope;

/// A disk that is full while the switch is on.
struct FullDisk(AtomicBool, FaultPoint);

impl FaultHook for FullDisk {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        if point == self.1 && self.0.load(Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }
}

fn open(folder: &Path, number: u64, faults: Faults) -> (Log<u32>, LogEvents<u32>) {
    let (tx, rx) = sync_channel(1000);
    let metrics = Metrics::new(&Scope::new());
    (
        Log::open(folder, number, SyncMode::Full, faults, metrics, tx).unwrap(),
        rx,
    )
}

fn durable(events: &LogEvents<u32>, count: usize) -> Vec<u32> {
    let mut items = Vec::new();
    while items.len() < count {
        match events.recv_timeout(Duration::from_secs(10)).unwrap() {
            LogEvent::Durable(batch) => items.extend(batch),
            LogEvent::Failed(_, reason) => panic!("{reason}"),
            LogEvent::Rotated(..) => panic!("unexpected rotation"),
        }
    }
    items
}

#[test]
fn records_are_durable_in_order_and_survive_a_reopen() {
    let folder = tempfile::tempdir().unwrap();
    let (log, events) = open(folder.path(), 7, Faults::default());
    for index in 0..100u32 {
        log.append(&[[b"head", &index.to_le_bytes()]], index)
            .map_err(|_| ())
            .unwrap();
    }
    assert_eq!(durable(&events, 100), (0..100).collect::<Vec<_>>());
    drop(log);
    let contents = segment::read(&segment_path(folder.path(), 7)).unwrap();
    assert_eq!(contents.records.len(), 100);
    assert_eq!(contents.records[99].as_ref(), b"head\x63\0\0\0");
}

#[test]
fn a_rotation_splits_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let (log, events) = open(folder.path(), 1, Faults::default());
    log.append(&[[b"a", b""]], 1).map_err(|_| ()).unwrap();
    let reader = std::thread::spawn(move || {
        let mut log_order = Vec::new();
        while let Ok(event) = events.recv() {
            match event {
                LogEvent::Durable(items) => log_order.extend(items),
                LogEvent::Rotated(number, reply) => {
                    log_order.push(1000 + number as u32);
                    reply.send(number).unwrap();
                }
                LogEvent::Failed(..) => panic!(),
            }
        }
        log_order
    });
    assert_eq!(log.rotate().unwrap(), 1);
    log.append(&[[b"b", b""]], 2).map_err(|_| ()).unwrap();
    drop(log);
    assert_eq!(reader.join().unwrap(), [1, 1001, 2]);
    assert_eq!(segments(folder.path()).unwrap(), [1, 2]);
}

#[test]
fn a_full_disk_refuses_and_heals_by_itself() {
    for point in [FaultPoint::LogWrite, FaultPoint::LogSync] {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FullDisk(AtomicBool::new(false), point));
        let (log, events) = open(folder.path(), 1, Faults::new(disk.clone()));
        log.append(&[[b"kept", b""]], 1).map_err(|_| ()).unwrap();
        durable(&events, 1);
        disk.0.store(true, Ordering::SeqCst);
        log.append(&[[b"refused", b""]], 2).map_err(|_| ()).unwrap();
        match events.recv_timeout(Duration::from_secs(10)).unwrap() {
            LogEvent::Failed(items, _) => assert_eq!(items, [2]),
            _ => panic!("must fail"),
        }
        assert!(log.append(&[[b"refused too", b""]], 3).is_err());
        disk.0.store(false, Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(10);
        while log.failure().is_some() {
            assert!(Instant::now() < deadline, "the log must heal");
            std::thread::sleep(Duration::from_millis(5));
        }
        log.append(&[[b"again", b""]], 4).map_err(|_| ()).unwrap();
        durable(&events, 1);
        drop(log);
        let all: Vec<_> = segments(folder.path())
            .unwrap()
            .into_iter()
            .flat_map(|number| segment::read(&segment_path(folder.path(), number)).unwrap().records)
            .collect();
        assert_eq!(all, ["kept", "again"]);
    }
}
