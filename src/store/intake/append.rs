//! Appends a push to the log: decodes its profiles in groups, charges each group to the memory budget and queues the
//! group for the log.
//!
//! In: the profiles of one push. Out: an error for each refused profile, once all other profiles are durable and in the
//! head. The groups of a push may together need more memory than the budget: a group that does not fit waits until
//! earlier groups have released their memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::store::common::expected_clock::ExpectedClock;
use crate::store::common::lifecycle::Lifecycle;
use crate::store::common::metrics::{Metrics, Reason};
use crate::store::config::StoreConfig;
use crate::store::flush::flushes::Flushes;
use crate::store::flush::published::Published;
use crate::store::head::repeats::{Claim, RepeatStatus, Repeats};
use crate::store::ingest::{self, Prepared, Refusal};
use crate::store::intake::budget::{Budget, Charge};
use crate::store::log::record;
use crate::store::log::wal::{Log, RefusedAppend};
use crate::store::quota::Quotas;
use crate::store::rules::limits::{Limits, Rejection};
use alluvium_profile::{DecodedProfile, RawProfile, RefusedProfile, SinkError, SinkErrorKind, TenantId};

/// Groups that need less memory than this, in bytes, are decoded on the calling thread. Decoding such a group takes
/// less than half a millisecond, and a change of threads would cost that time. The memory is estimated from the
/// uncompressed size, not from the number of bytes received.
const MAX_INLINE_BYTES: usize = 1 << 20;

/// Groups whose records have fewer bytes than this are copied to the log's buffer on the calling thread.
const MAX_COPY_BYTES: usize = 256 << 10;

/// Maximum number of profiles that are decoded together, and their maximum memory in bytes.
const GROUP_PROFILES: usize = 256;
const GROUP_BYTES: usize = 8 << 20;

/// Value of the label `reason`, in the metric of rejected profiles, for profiles that are stored already.
const REASON_REPEATED: &str = "repeated";
/// Value of the label `reason`, in the metric of rejected profiles, while the disk does not respond.
const REASON_LOG_STALLED: &str = "log_stalled";

/// Longest time that an append waits for a flush to make room in the heads. Afterwards the append continues, because
/// the heads may grow up to `head_limit_bytes`.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that a group waits for its share of the budget.
const BUDGET_TIMEOUT: Duration = Duration::from_secs(30);

/// The write path of a store: everything that an append needs to store profiles.
pub(crate) struct Intake {
    pub(crate) config: Arc<StoreConfig>,
    /// Counts refused profiles and dropped values.
    pub(crate) metrics: Metrics,
    /// Memory budget of profiles between their arrival and the head.
    pub(crate) budget: Budget,
    /// The quotas of the tenants and their usage.
    pub(crate) quotas: Quotas,
    /// Profiles that were stored a short time ago.
    pub(crate) repeats: Arc<Repeats>,
    pub(crate) log: Arc<Log<PendingGroup>>,
    /// The heads. Profiles are refused while the heads are too large.
    pub(crate) published: Arc<Published>,
    /// Appends wait here for a flush while the heads exceed twice the size of a flush.
    pub(crate) flushes: Arc<Flushes>,
    /// Says whether the store still accepts profiles.
    pub(crate) lifecycle: Arc<Lifecycle>,
    /// Compares the wall clock with the expected time, for limits on the age of profiles.
    pub(crate) steady: ExpectedClock,
}

/// Accepted profiles of one group while their records go through the log.
pub(crate) struct PendingGroup {
    pub(crate) tenant: TenantId,
    /// The profiles whose records were queued.
    pub(crate) profiles: Vec<Prepared>,
    /// Claims on the profiles. When the profiles are stored, [`Claim::keep`] is called for each claim.
    pub(crate) claims: Vec<Claim>,
    pub(crate) reply: oneshot::Sender<Result<(), SinkError>>,
    /// The group's share of the budget, held until the head contains the profiles.
    _charge: Charge,
}

/// A profile in one of the two forms in which producers pass it.
pub(crate) enum ReceivedProfile {
    /// As pprof bytes, which the store decodes.
    Packed(RawProfile),
    /// As columns, which the producer has decoded.
    Decoded(DecodedProfile),
}

/// A profile and its index in the push.
struct PushProfile {
    index: usize,
    profile: UnpreparedProfile,
}

enum UnpreparedProfile {
    /// pprof bytes, and the maximum uncompressed size.
    Packed(RawProfile, usize),
    Decoded(DecodedProfile),
}

impl UnpreparedProfile {
    /// Returns the maximum memory in bytes that is needed to prepare the profile.
    fn memory(&self) -> usize {
        match self {
            Self::Packed(_, room) => ingest::memory_for(*room),
            Self::Decoded(profile) => ingest::memory_for_decoded(&profile.columns),
        }
    }
}

/// A prepared profile and its record for the log.
struct AcceptedProfile {
    index: usize,
    prepared: Prepared,
    header: Vec<u8>,
    raw: RawProfile,
    claim: Option<Claim>,
}

#[derive(Default)]
struct Decoding {
    accepted: Vec<AcceptedProfile>,
    refused: Vec<(usize, Rejection)>,
    /// Profiles whose uncompressed size exceeds the size that they announce. They are decompressed again, up to the
    /// largest allowed size.
    oversized: Vec<(usize, RawProfile)>,
    /// Number of profiles that the tenant's relabel rules drop.
    dropped: usize,
    /// Number of profiles that are stored already.
    repeated: usize,
}

/// A group that is queued for the log.
struct QueuedGroup {
    /// Indices of the group's profiles in the push.
    indices: Vec<usize>,
    /// Receives the result when the group is durable and in the head.
    result: oneshot::Receiver<Result<(), SinkError>>,
    queued_at: Instant,
}

/// Stores the profiles that the limits allow. Returns the refused profiles.
pub(crate) async fn append(
    intake: Arc<Intake>,
    tenant: TenantId,
    profiles: Vec<ReceivedProfile>,
) -> Vec<RefusedProfile> {
    let limits = &intake.config.limits.of(&tenant);
    let convert = |arrived| match arrived {
        ReceivedProfile::Packed(raw) => {
            let room = ingest::announced_size(&raw, limits);
            UnpreparedProfile::Packed(raw, room)
        }
        ReceivedProfile::Decoded(profile) => UnpreparedProfile::Decoded(profile),
    };
    let mut rest: Vec<PushProfile> = profiles
        .into_iter()
        .map(convert)
        .enumerate()
        .map(|(index, profile)| PushProfile { index, profile })
        .collect();
    let mut refused: Vec<RefusedProfile> = Vec::new();
    let mut waiting: Vec<QueuedGroup> = Vec::new();
    while !rest.is_empty() {
        let after = rest.split_off(group_end(&rest));
        let group = std::mem::replace(&mut rest, after);
        let indices: Vec<usize> = group.iter().map(|opened| opened.index).collect();
        match accept_group(&intake, &tenant, limits, group).await {
            Ok(queued) => {
                refused.extend(queued.refused);
                waiting.extend(queued.waiting);
                let room = ingest::size_limit(limits);
                let oversized = queued.oversized.into_iter().map(|(index, raw)| PushProfile {
                    index,
                    profile: UnpreparedProfile::Packed(raw, room),
                });
                rest.extend(oversized);
            }
            Err(error) => refused.extend(all_refused(indices, &error)),
        }
    }
    for group in waiting {
        let deadline = group.queued_at + intake.config.answer_after;
        let error = match tokio::time::timeout_at(deadline, group.result).await {
            Ok(Ok(Ok(()))) => continue,
            Ok(Ok(Err(error))) => error,
            Ok(Err(_)) => intake.refusal(),
            Err(_) => {
                intake.count_refused(REASON_LOG_STALLED, group.indices.len());
                unknown_outcome(intake.config.answer_after)
            }
        };
        refused.extend(all_refused(group.indices, &error));
    }
    refused.sort_by_key(|refused| refused.index);
    refused
}

/// Returns the error for a push if the log has neither stored nor refused its records within the timeout.
fn unknown_outcome(after: Duration) -> SinkError {
    let message = format!(
        "the disk has not synced the write-ahead log within {} s: the profile may be stored nevertheless; send it \
         again (a profile with an id is stored only once)",
        after.as_secs()
    );
    SinkError::new(SinkErrorKind::Unavailable, message)
}

fn all_refused(indices: Vec<usize>, error: &SinkError) -> impl Iterator<Item = RefusedProfile> {
    indices
        .into_iter()
        .map(|index| RefusedProfile::new(index, error.clone()))
}

/// Returns the number of profiles at the start of `rest` that make a group, at least one.
fn group_end(rest: &[PushProfile]) -> usize {
    let mut bytes = 0;
    let full = rest.iter().take(GROUP_PROFILES).position(|opened| {
        bytes += opened.profile.memory();
        bytes > GROUP_BYTES
    });
    full.unwrap_or(rest.len().min(GROUP_PROFILES)).max(1)
}

/// Result of decoding and queueing a group.
struct GroupOutcome {
    refused: Vec<RefusedProfile>,
    waiting: Option<QueuedGroup>,
    oversized: Vec<(usize, RawProfile)>,
}

/// Decodes a group and queues it. An error applies to the whole group.
async fn accept_group(
    intake: &Arc<Intake>,
    tenant: &TenantId,
    limits: &Arc<Limits>,
    group: Vec<PushProfile>,
) -> Result<GroupOutcome, SinkError> {
    may_append(intake, group.len())?;
    let quotas = &intake.quotas;
    let checked = quotas
        .check_tenant(tenant)
        .and_then(|()| quotas.check_rate(tenant, limits));
    checked.map_err(|rejection| {
        intake.count_refused(rejection.reason, group.len());
        rejection.error
    })?;
    // Back pressure: senders slow down to the speed of the flush before memory reaches its limit.
    let _ = tokio::time::timeout(ROOM_TIMEOUT, intake.flushes.wait_for_room(|| intake.is_crowded())).await;
    let memory: usize = group.iter().map(|opened| opened.profile.memory()).sum();
    let charge = wait_for(intake, group.len(), intake.budget.reserve(memory)).await?;
    let received_ms = intake.config.clock.millis();
    let difference = intake.steady.difference(&intake.config.clock);
    let (shared_intake, owned_tenant, within_limits) = (intake.clone(), tenant.clone(), limits.adjusted_to(difference));
    let decoded = run(memory, MAX_INLINE_BYTES, move || {
        decode(&shared_intake, &owned_tenant, group, received_ms, &within_limits)
    })
    .await?;
    let refused = decoded
        .refused
        .into_iter()
        .map(|(index, rejection)| {
            intake.count_refused(rejection.reason, 1);
            RefusedProfile::new(index, rejection.error)
        })
        .collect();
    // The sender of dropped and repeated profiles receives a success, but the metric counts the profiles.
    for (reason, count) in [(ingest::DROPPED, decoded.dropped), (REASON_REPEATED, decoded.repeated)] {
        if count > 0 {
            intake.count_refused(reason, count);
        }
    }
    let larger = decoded.oversized;
    if decoded.accepted.is_empty() {
        return Ok(GroupOutcome {
            refused,
            waiting: None,
            oversized: larger,
        });
    }
    let held_bytes = decoded.accepted.iter().map(AcceptedProfile::bytes).sum();
    let charge = wait_for(intake, decoded.accepted.len(), intake.budget.adjust(charge, held_bytes)).await?;
    let record_bytes: usize = decoded.accepted.iter().map(|one| one.raw.pprof.len()).sum();
    let (shared_intake, tenant) = (intake.clone(), tenant.clone());
    let waiting = run(record_bytes, MAX_COPY_BYTES, move || {
        queue(&shared_intake, tenant, decoded.accepted, charge)
    })
    .await?;
    Ok(GroupOutcome {
        refused,
        waiting: Some(waiting),
        oversized: larger,
    })
}

/// Fails if the store accepts no profiles at the moment.
fn may_append(intake: &Intake, count: usize) -> Result<(), SinkError> {
    let refuse = |reason: &'static str, error: SinkError| {
        intake.count_refused(reason, count);
        Err(error)
    };
    let unavailable = |message: String| SinkError::new(SinkErrorKind::Unavailable, message);
    if let Some((reason, message)) = intake.unavailable() {
        return refuse(reason, unavailable(message));
    }
    let (head_bytes, limit) = (intake.published.head_bytes(), intake.config.head_limit_bytes);
    if head_bytes > limit {
        let message =
            format!("profiles in memory take {head_bytes} bytes, but at most {limit} are allowed: retry after a flush");
        return refuse("head_limit", unavailable(message));
    }
    Ok(())
}

/// Waits for `charge`, for at most [`BUDGET_TIMEOUT`].
async fn wait_for(intake: &Intake, count: usize, charge: impl Future<Output = Charge>) -> Result<Charge, SinkError> {
    if let Ok(charge) = tokio::time::timeout(BUDGET_TIMEOUT, charge).await {
        Ok(charge)
    } else {
        intake.count_refused("memory_limit", count);
        Err(SinkError::new(
            SinkErrorKind::Unavailable,
            format!(
                "earlier profiles have held all memory for decoding ({} bytes) for {} s",
                intake.budget.used(),
                BUDGET_TIMEOUT.as_secs()
            ),
        ))
    }
}

/// Runs CPU work on `bytes` bytes: on the calling thread below `light_bytes`, otherwise on a thread for blocking work.
async fn run<T: Send + 'static>(
    bytes: usize,
    light_bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SinkError> {
    if bytes < light_bytes {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| SinkError::new(SinkErrorKind::Internal, "the decoder failed"))
}

fn decode(intake: &Intake, tenant: &TenantId, group: Vec<PushProfile>, received_ms: i64, limits: &Limits) -> Decoding {
    let mut decoded = Decoding::default();
    for PushProfile { index, profile } in group {
        let (raw, prepared) = match profile {
            UnpreparedProfile::Packed(raw, room) => {
                let prepared = ingest::prepare_within(&raw, received_ms, limits, room);
                (raw, prepared)
            }
            UnpreparedProfile::Decoded(profile) => {
                let (raw, columns) = profile.into_parts();
                let prepared = ingest::prepare_decoded(&raw, columns, received_ms, limits);
                (raw, prepared)
            }
        };
        match prepared {
            Ok(prepared) => match intake.repeats.see(tenant, &raw, prepared.is_dated) {
                RepeatStatus::New(claim) => match intake.quotas.take(tenant, limits, &prepared) {
                    Ok(()) => decoded.accepted.push(AcceptedProfile {
                        index,
                        prepared,
                        header: record::encode_header(tenant, received_ms, limits, &raw),
                        raw,
                        claim,
                    }),
                    Err(rejection) => decoded.refused.push((index, rejection)),
                },
                RepeatStatus::Stored => decoded.repeated += 1,
                RepeatStatus::Waiting => decoded.refused.push((index, in_progress(&raw))),
            },
            Err(Refusal::Rejected(rejection)) => decoded.refused.push((index, rejection)),
            Err(Refusal::LargerThanAnnounced) => decoded.oversized.push((index, raw)),
            Err(Refusal::Dropped) => decoded.dropped += 1,
        }
    }
    decoded
}

/// Returns the refusal of a profile while a copy of the profile waits for the log and may still be refused.
fn in_progress(raw: &RawProfile) -> Rejection {
    Rejection::new(
        REASON_REPEATED,
        SinkErrorKind::Unavailable,
        format!(
            "a copy of the profile {} with the same id is being stored at the moment, try again",
            raw.labels.short()
        ),
    )
}

/// Queues the records of a group for the log.
fn queue(intake: &Intake, tenant: TenantId, accepted: Vec<AcceptedProfile>, charge: Charge) -> QueuedGroup {
    let (mut indices, mut profiles, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    let mut claims = Vec::new();
    for one in accepted {
        intake.count_dropped(&one.prepared);
        indices.push(one.index);
        profiles.push(one.prepared);
        claims.extend(one.claim);
        parts.push((one.header, one.raw.pprof));
    }
    let records: Vec<[&[u8]; 2]> = parts
        .iter()
        .map(|(header, body)| [header.as_slice(), body.as_ref()])
        .collect();
    let (reply, durable) = oneshot::channel();
    let pending = PendingGroup {
        tenant,
        profiles,
        claims,
        reply,
        _charge: charge,
    };
    if let Err(RefusedAppend(pending, reason)) = intake.log.append(&records, pending) {
        let error = SinkError::new(SinkErrorKind::Unavailable, reason.as_ref());
        let _ = pending.reply.send(Err(error));
    }
    QueuedGroup {
        indices,
        result: durable,
        queued_at: Instant::now(),
    }
}

impl AcceptedProfile {
    /// Returns the number of bytes to charge: the sum of the profile, the growth of the head, the header of the record,
    /// and twice the pprof bytes of the record.
    fn bytes(&self) -> usize {
        self.prepared.bytes() + self.prepared.growth() + 2 * self.raw.pprof.len() + self.header.len()
    }
}

impl Intake {
    /// Returns the metric's label `reason` and a message if the store accepts no profiles, otherwise `None`.
    pub(crate) fn unavailable(&self) -> Option<(&'static str, String)> {
        if self.lifecycle.is_closing() {
            return Some(("closing", "the store is closing".to_owned()));
        }
        if let Some(failure) = self.lifecycle.failure() {
            return Some(("thread_ended", failure));
        }
        if let Some(failure) = self.log.failure() {
            return Some(("log_unavailable", failure.to_string()));
        }
        let message = self.metrics.waits.log_is_stuck(self.config.stuck_after)?;
        Some((REASON_LOG_STALLED, message))
    }

    /// True while appends should wait: the heads exceed twice the size of a flush, and the store accepts profiles.
    fn is_crowded(&self) -> bool {
        self.published.head_bytes() > self.config.flush_bytes.saturating_mul(2) && self.unavailable().is_none()
    }

    fn count_refused(&self, reason: &'static str, count: usize) {
        self.metrics
            .rejected
            .get_or_create(&Reason { reason })
            .inc_by(count as u64);
    }

    fn count_dropped(&self, prepared: &Prepared) {
        for (reason, count) in [
            ("zero", prepared.zero_values),
            ("negative", prepared.negative_values),
            (ingest::DROPPED, prepared.relabelled_values),
        ] {
            if count > 0 {
                self.metrics
                    .dropped_values
                    .get_or_create(&Reason { reason })
                    .inc_by(count);
            }
        }
    }

    /// Returns the error for an append that receives no result because a thread has ended.
    fn refusal(&self) -> SinkError {
        let message = self
            .unavailable()
            .map_or_else(|| "the store is closing".to_owned(), |(_, message)| message);
        SinkError::new(SinkErrorKind::Unavailable, message)
    }
}
