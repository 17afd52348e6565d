//! Rate limits and series limits of a whole store: a tenant's excess profiles are refused with a reason, and other
//! tenants are not affected.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::store::common::clock::Clock;
use crate::store::tests::scratch;
use crate::store::*;
use alluvium_profile::RawProfile;
use alluvium_profile::pprof;
use alluvium_profile::{Labels, SinkErrorKind};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const SHAPE: Shape = Shape {
    functions: 20,
    samples: 20,
    depth: 6,
    labelled_every: 0,
};

/// A time after which a series is no longer active.
const LONG: Duration = Duration::from_mins(20);

/// A store with separate limits for the tenant `shop`, and with a clock that the test moves.
struct Limited {
    store: Arc<Store>,
    metrics: Scope,
    limits: TenantLimits,
    running: Arc<Mutex<Duration>>,
    _dir: tempfile::TempDir,
}

impl Limited {
    fn new(shop: Limits) -> Self {
        let (dir, metrics) = (scratch(), Scope::new());
        let running = Arc::new(Mutex::new(Duration::ZERO));
        let hand = running.clone();
        let limits = TenantLimits::default();
        limits.replace([(tenant_id("shop"), shop)]);
        let config = StoreConfig {
            limits: limits.clone(),
            clock: Clock::set_by(SystemTime::now, move || *hand.lock()),
            ..StoreConfig::new(dir.path())
        };
        Self {
            store: Store::open(config, &metrics).unwrap(),
            metrics,
            limits,
            running,
            _dir: dir,
        }
    }

    fn wait(&self, time: Duration) {
        *self.running.lock() += time;
    }

    /// Pushes a profile of each named pod. Returns the index and kind of each refusal.
    async fn push(&self, tenant: &str, pods: &[&str]) -> Vec<(usize, SinkErrorKind)> {
        let profiles = pods.iter().map(|pod| profile(pod)).collect();
        let refused = self.store.append(&tenant_id(tenant), profiles).await;
        refused.into_iter().map(|one| (one.index, one.error.kind)).collect()
    }

    fn refused(&self, reason: &str) -> u64 {
        let text = self.metrics.encode();
        let start = format!("alluvium_store_rejected_profiles_total{{reason=\"{reason}\"}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(&start));
        count.map_or(0, |count| count.parse().unwrap())
    }
}

fn profile(pod: &str) -> RawProfile {
    let names = Names::new(SHAPE.functions);
    let mut profile = cpu_profile(&names, SHAPE, 1);
    profile.time_nanos = chrono::Utc::now().timestamp_nanos_opt().unwrap();
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop"), ("pod", pod)]),
        id: pod.into(),
        pprof: pprof::encode(&profile).into(),
    }
}

const OVER: SinkErrorKind = SinkErrorKind::LimitExceeded;

#[tokio::test]
async fn a_tenant_beyond_its_rate_is_refused_until_time_has_paid_for_it() {
    let size = profile("a").pprof.len() as u64;
    let limited = Limited::new(Limits {
        ingestion_rate_bytes: size,
        ingestion_burst_bytes: 2 * size,
        ..Limits::default()
    });
    assert_eq!(limited.push("shop", &["a", "b", "c"]).await, [(2, OVER)]);
    assert_eq!(limited.push("shop", &["d", "e"]).await, [(0, OVER), (1, OVER)]);
    assert_eq!(limited.push("other", &["a", "b", "c", "d"]).await, []);
    assert_eq!(limited.refused("rate_limited"), 3);
    limited.wait(Duration::from_millis(1_500));
    assert_eq!(
        limited.push("shop", &["a", "b", "c"]).await,
        [(2, OVER)],
        "1.5 s pay for one and a half profiles, which is rounded up to two"
    );
    limited.limits.replace([]);
    assert_eq!(
        limited.push("shop", &["a", "b", "c", "d"]).await,
        [],
        "the override is gone"
    );
}

#[tokio::test]
async fn a_tenant_with_all_its_series_may_send_those_and_no_others() {
    let limited = Limited::new(Limits {
        max_active_series: 2,
        ..Limits::default()
    });
    assert_eq!(limited.push("shop", &["a", "b", "c", "a"]).await, [(2, OVER)]);
    assert_eq!(limited.push("other", &["a", "b", "c"]).await, []);
    assert_eq!(limited.refused("series_limit"), 1);
    limited.wait(LONG / 2);
    assert_eq!(limited.push("shop", &["a"]).await, []);
    limited.wait(LONG / 2);
    assert_eq!(limited.push("shop", &["c"]).await, [], "`b` is idle");
    assert_eq!(limited.push("shop", &["b"]).await, [(0, OVER)]);
}
