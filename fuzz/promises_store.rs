//! A promise of the store: whatever a profile contains, the store either refuses it, or stores and flushes it. The
//! store stays healthy, and it can be restarted.
//!
//! The target `store_flush` and `integration/fuzzing.rs` use this store. In: the uncompressed bytes of a profile. Out:
//! nothing, or a panic. The store works in temporary folders, in memory if possible.

use std::sync::Arc;
use std::time::Duration;

use alluvium::store::{Limits, Store, StoreConfig, SyncMode};
use alluvium_profile::{Labels, RawProfile, SinkErrorKind};
use alluvium_telemetry::metrics::Scope;

/// Number of profiles between two flushes.
const FLUSH_EVERY: u64 = 64;
/// Number of profiles between two restarts. A restart replays the log once. The next profile begins a new folder.
const START_EVERY: u64 = 4096;

/// A store that accepts one profile after the other.
pub(super) struct StoreOfProfiles {
    runtime: tokio::runtime::Runtime,
    open: Option<(tempfile::TempDir, Arc<Store>)>,
    taken: u64,
}

impl StoreOfProfiles {
    pub(super) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        Self {
            runtime,
            open: None,
            taken: 0,
        }
    }

    /// Appends a profile. Flushes or restarts the store if the flush or the restart is due.
    pub(super) fn take(&mut self, profile: &[u8]) {
        let store = self.store();
        let raw = RawProfile {
            labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "fuzz")]),
            id: "".into(),
            pprof: profile.to_vec().into(),
        };
        for alluvium_profile::RefusedProfile { error, .. } in
            self.runtime.block_on(store.append(&"fuzz".parse().unwrap(), vec![raw]))
        {
            let refused = matches!(error.kind, SinkErrorKind::Invalid | SinkErrorKind::TooLarge);
            assert!(refused, "{error}");
        }
        // The store must be closed before it starts again.
        drop(store);
        self.taken += 1;
        if self.taken.is_multiple_of(FLUSH_EVERY) {
            self.flush();
        }
        if self.taken.is_multiple_of(START_EVERY) {
            self.start_again();
        }
    }

    /// Flushes everything that was accepted so far to the tables.
    pub(super) fn flush(&mut self) {
        let store = self.store();
        self.runtime.block_on(store.flush()).expect("a flush");
        assert_eq!(store.unavailable(), None);
    }

    /// Opens the store again, which replays the log, and flushes it. The next profile begins a new folder.
    pub(super) fn start_again(&mut self) {
        let Some((folder, store)) = self.open.take() else {
            return;
        };
        drop(store);
        let store = open(folder.path());
        self.runtime.block_on(store.flush()).expect("a flush after a start");
        assert_eq!(store.unavailable(), None);
    }

    fn store(&mut self) -> Arc<Store> {
        let (_, store) = self.open.get_or_insert_with(|| {
            let folder = tempfile::tempdir_in("/dev/shm")
                .or_else(|_| tempfile::tempdir())
                .expect("a folder");
            let store = open(folder.path());
            (folder, store)
        });
        store.clone()
    }
}

fn open(folder: &std::path::Path) -> Arc<Store> {
    let limits = Limits {
        reject_older_than: Duration::ZERO,
        reject_newer_than: Duration::ZERO,
        ..Limits::default()
    };
    let config = StoreConfig {
        limits: limits.into(),
        sync: SyncMode::Off,
        ..StoreConfig::new(folder)
    };
    Store::open(config, &Scope::new()).expect("a store")
}
