//! Appends profiles to the queues of all endpoints, or to none of them.
//!
//! In: the senders with their queues, and profiles. Out: the error, if the profiles are not queued. If the disk is
//! full, the oldest profiles are dropped to make room. Blocks on the disk.

use std::cmp::Reverse;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::common::sending::outbox::metrics::DropReason;
use crate::common::sending::outbox::queue::record::{self, Encoded};
use crate::common::sending::outbox::queue::{self, Appending};
use crate::common::sending::outbox::sender::Sender;
use alluvium_profile::{RawProfile, SinkError, SinkErrorKind};

/// Appends to all queues, or to none if one of them fails, so that a retry of the producer creates no duplicates. The
/// profiles are encoded once for all queues.
pub(super) fn store(mut senders: Vec<&Sender>, profiles: &[RawProfile]) -> Option<SinkError> {
    let encoded = record::encode(profiles, queue::now_ms());
    // Every caller locks the queues in the same order, whatever the order of its endpoints.
    senders.sort_by_key(|sender| Arc::as_ptr(&sender.queue));
    let (failed, error) = loop {
        match append(&senders, &encoded) {
            Ok(()) => return None,
            // While the disk is full, the oldest profiles of the largest queue are dropped: the queue of a dead
            // endpoint must not use the space of the other queues.
            Err((_, error)) if is_want_of_room(&error) && make_room(&senders, &encoded) => {}
            Err(failed) => break failed,
        }
    };
    let bytes: u64 = profiles.iter().map(|profile| profile.pprof.len() as u64).sum();
    for sender in &senders {
        sender.metrics.dropped(DropReason::Disk, profiles.len() as u64, bytes);
    }
    let message = format!(
        "cannot queue profiles for endpoint {}: {error}",
        failed.settings.endpoint
    );
    Some(SinkError::new(SinkErrorKind::Unavailable, message))
}

/// Writes to every queue. Completes the appends only if all writes succeed.
fn append<'a>(senders: &[&'a Sender], encoded: &Encoded) -> Result<(), (&'a Sender, io::Error)> {
    let mut written = Vec::with_capacity(senders.len());
    for sender in senders {
        written.push(sender.queue.begin(encoded).map_err(|error| (*sender, error))?);
    }
    written.into_iter().for_each(Appending::finish);
    senders.iter().for_each(|sender| sender.queue.sync_much());
    Ok(())
}

fn is_want_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Drops the oldest profiles of the largest queue in which profiles can be dropped, to make room for `encoded`. Returns
/// false if there is no such queue.
fn make_room(senders: &[&Sender], encoded: &Encoded) -> bool {
    let mut senders = senders.to_vec();
    senders.sort_by_cached_key(|sender| Reverse(sender.queue.waiting().bytes));
    let at_rest = senders
        .iter()
        .find_map(|sender| Some((sender, sender.queue.make_room()?)));
    let dropped = at_rest.or_else(|| {
        // The segment that is being written may hold a whole queue, so only the largest queue loses it.
        let largest = senders.first()?;
        Some((largest, largest.queue.make_room_for(encoded)?))
    });
    let Some((sender, profiles)) = dropped else {
        return false;
    };
    if profiles > 0 {
        tracing::warn!(
            component = %sender.live.id(), endpoint = %sender.settings.endpoint, profiles,
            "the disk is full, the oldest queued profiles are dropped"
        );
    }
    true
}
