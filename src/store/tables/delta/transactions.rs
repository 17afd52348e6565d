//! Transactions of a writer in a table's log: the last segment that the writer committed, and details of that commit.
//!
//! Delta has one number for each application id. The id of the writer holds the segment. Three derived ids hold values
//! that a later start compares: the process, the number of profiles, and the segment to which these two values belong.
//! An older program updates only the id of the writer, so the third id shows whether the other two values belong to the
//! last commit. Checkpoints preserve these numbers, unlike the fields of `commitInfo`.

use delta_kernel::{Engine, KernelResult, SnapshotRef};

/// The details that a flush records in addition to its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushStamp {
    /// Random number of the committing process.
    pub(crate) process: u64,
    /// Number of committed profiles.
    pub(crate) profiles: u64,
}

/// Returns the ids of the writer's process, of its number of profiles, and of the segment to which both belong.
fn ids(writer: &str) -> [String; 3] {
    ["process", "profiles", "segment"].map(|name| format!("{writer}/{name}"))
}

/// Returns the transactions of a commit of `writer`.
pub(super) fn list(writer: &str, version: i64, stamp: Option<FlushStamp>) -> Vec<(String, i64)> {
    let mut all = vec![(writer.to_owned(), version)];
    if let Some(stamp) = stamp {
        let [process, profiles, segment] = ids(writer);
        all.extend([
            (process, stamp.process as i64),
            (profiles, stamp.profiles as i64),
            (segment, version),
        ]);
    }
    all
}

/// Returns the random number of the last process that recorded its number when it committed as `writer`, or `None` if
/// only older programs committed, which record no number.
pub(super) fn process(snapshot: &SnapshotRef, engine: &dyn Engine, writer: &str) -> KernelResult<Option<u64>> {
    let [process, ..] = ids(writer);
    let process = snapshot.get_app_id_version(&process, engine)?;
    Ok(process.map(|process| process as u64))
}

/// Returns the number of profiles of the commit `version` of `writer`. The result is `None` if `version` is not the
/// last commit, or if the commit does not record the number.
pub(super) fn profiles(
    snapshot: &SnapshotRef,
    engine: &dyn Engine,
    writer: &str,
    version: i64,
) -> KernelResult<Option<u64>> {
    let [_, profiles, segment] = ids(writer);
    if snapshot.get_app_id_version(&segment, engine)? != Some(version) {
        return Ok(None);
    }
    let profiles = snapshot.get_app_id_version(&profiles, engine)?;
    Ok(profiles.map(|profiles| profiles.max(0) as u64))
}
