//! Transactions of a writer in a table's log: the last segment that it committed, and what it says of that commit.
//!
//! Delta has one number for each application id. The id of the writer has the segment. Three ids derived from it have
//! what a later start compares: the process, the number of profiles, and the segment that these belong to, since an
//! older program writes the first number alone. Checkpoints keep them, unlike the fields of `commitInfo`.

use delta_kernel::{Engine, KernelResult, SnapshotRef};

/// What a flush says of itself beside its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Random number of the process that commits.
    pub(crate) process: u64,
    /// Number of profiles that it commits.
    pub(crate) profiles: u64,
}

/// Ids of the writer's process, of its number of profiles, and of the segment that both belong to.
fn ids(writer: &str) -> [String; 3] {
    ["process", "profiles", "segment"].map(|name| format!("{writer}/{name}"))
}

/// The transactions of a commit of `writer`.
pub(super) fn of(writer: &str, version: i64, stamp: Option<Stamp>) -> Vec<(String, i64)> {
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

/// The last process that committed as `writer`; `None` for older programs.
pub(super) fn process(snapshot: &SnapshotRef, engine: &dyn Engine, writer: &str) -> KernelResult<Option<u64>> {
    let [process, ..] = ids(writer);
    let process = snapshot.get_app_id_version(&process, engine)?;
    Ok(process.map(|process| process as u64))
}

/// The number of profiles of the commit `version` of `writer`; `None` when it is not the last one, or does not say.
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
