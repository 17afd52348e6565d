//! Tests of the order of operations: no acknowledgement comes before the sync of its record, no deletion starts before
//! its request is durable, and no request is removed before its deletion is durable.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::config::StoreConfig;
use crate::store::maintenance::tests::fault::config;
use crate::store::maintenance::tests::{SHAPE, Trace, deletion, fill, open, profile};
use crate::store::maintenance::*;
use crate::store::tests::scratch;
use alluvium_testing::synthetic::Names;
use alluvium_testing::tenant_id;

/// Counts the appends at each step: written to the log, synced, and acknowledged. Also counts the appends that were
/// acknowledged before the sync.
#[derive(Default)]
struct Order {
    logged: AtomicU64,
    durable: AtomicU64,
    acknowledged: AtomicU64,
    early: AtomicU64,
}

impl FaultHook for Order {
    fn check(&self, _point: FaultPoint) -> io::Result<()> {
        Ok(())
    }

    fn logged(&self, appends: usize) {
        self.logged.fetch_add(appends as u64, Ordering::SeqCst);
    }

    fn done(&self, point: FaultPoint) {
        match point {
            FaultPoint::LogSync => self.durable.store(self.logged.load(Ordering::SeqCst), Ordering::SeqCst),
            // Acknowledgements come in the order of the log.
            FaultPoint::Acknowledge
                if self.acknowledged.fetch_add(1, Ordering::SeqCst) >= self.durable.load(Ordering::SeqCst) =>
            {
                self.early.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledgement_comes_before_the_sync_of_its_record_however_many_push() {
    let dir = scratch();
    let order = Arc::new(Order::default());
    let store = open(StoreConfig {
        faults: Faults::new(order.clone()),
        flush_bytes: 100_000,
        ..config(dir.path())
    });
    let clients: Vec<_> = (0..8u64)
        .map(|client| {
            let store = store.clone();
            tokio::spawn(async move {
                let names = Names::new(SHAPE.functions);
                for number in 0..25u64 {
                    let seed = client * 100 + number;
                    assert!(
                        store
                            .append(&tenant_id("t"), vec![profile(&names, "shop", seed, seed as i64)])
                            .await
                            .is_empty()
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    assert_eq!((read(&order.acknowledged), read(&order.logged)), (200, 200));
    assert_eq!(read(&order.early), 0);
}

#[tokio::test]
async fn a_deletion_is_written_down_before_it_is_done_and_forgotten_after_it_is_durable() {
    let dir = scratch();
    let trace = Arc::new(Trace::default());
    let store = open(StoreConfig {
        faults: Faults::new(trace.clone()),
        ..config(dir.path())
    });
    fill(&store, "t", 1, 2, 40).await;
    trace.take();
    store
        .maintain(Work::Delete(deletion("{service_name=\"cart\"}")))
        .await
        .unwrap();
    let points = trace.take();
    let first = |is_match: fn(&FaultPoint) -> bool| points.iter().position(is_match).unwrap();
    let last = |is_match: fn(&FaultPoint) -> bool| points.iter().rposition(is_match).unwrap();
    let written = last(|point| matches!(point, FaultPoint::RequestWrite));
    assert!(
        written < first(|point| matches!(point, FaultPoint::FileCreate(_))),
        "{points:?}"
    );
    let durable = last(|point| matches!(point, FaultPoint::EntryFolderSync(_)));
    assert!(
        durable < first(|point| matches!(point, FaultPoint::RequestRemove)),
        "{points:?}"
    );
    assert!(
        last(|point| matches!(point, FaultPoint::FolderSync(_)))
            < first(|point| matches!(point, FaultPoint::EntryLink(_))),
        "{points:?}"
    );
    assert!(
        !points.iter().any(|point| matches!(point, FaultPoint::FileDelete(_))),
        "{points:?}"
    );
}
