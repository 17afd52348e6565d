//! Limits the memory of one query, within the limit of all queries together.
//!
//! In: reservations of DataFusion's operators. Out: success, or an error that names the limit and how to raise it.
//! Other modules limit memory that operators do not reserve, such as a batch in transit or the result of a function.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;

/// Returns the environment of one query: `all` with a memory pool that limits this query to `bytes`.
pub(crate) fn for_one_query(all: &Arc<RuntimeEnv>, bytes: usize) -> Arc<RuntimeEnv> {
    let mut environment = all.as_ref().clone();
    environment.memory_pool = Arc::new(QueryMemoryPool {
        all: all.memory_pool.clone(),
        used: AtomicUsize::new(0),
        bytes,
    });
    Arc::new(environment)
}

#[derive(Debug)]
struct QueryMemoryPool {
    all: Arc<dyn MemoryPool>,
    used: AtomicUsize,
    bytes: usize,
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "one query(used: {}, limit: {})", self.reserved(), self.bytes)
    }
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &str {
        "one query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let before = self.used.fetch_add(additional, Ordering::Relaxed);
        if before.saturating_add(additional) > self.bytes {
            self.used.fetch_sub(additional, Ordering::Relaxed);
            return Err(resources_datafusion_err!(
                "{}",
                limit_message("the query", "max_query_memory", self.bytes)
            ));
        }
        if self.all.try_grow(reservation, additional).is_err() {
            self.used.fetch_sub(additional, Ordering::Relaxed);
            let limit = match self.all.memory_limit() {
                MemoryLimit::Finite(bytes) => bytes,
                MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
            };
            return Err(resources_datafusion_err!(
                "{}",
                limit_message("all running queries together", "max_memory", limit)
            ));
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}

fn limit_message(subject: &str, limit: &str, bytes: usize) -> String {
    let (amount, unit) = match bytes >> 20 {
        0 => (bytes, "bytes"),
        mebibytes => (mebibytes, "MiB"),
    };
    format!(
        "{subject} would need more than {amount} {unit} of memory: select a shorter time range or fewer groups, or \
            raise sql.{limit} in the server's configuration"
    )
}
