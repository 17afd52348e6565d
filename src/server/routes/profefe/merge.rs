//! Merges profiles into one pprof: the profiles of a range, or the profiles with given ids.
//!
//! In: a parsed request. Out: a gzip-compressed pprof profile with every sample type of the merged profiles. The sample
//! types have the same order as in Go's own profiles, so that `go tool pprof` shows the usual type. Each sample type
//! requires a separate query. Equal stacks become one sample. If only one id is requested, samples have the labels with
//! which they were sent.

use std::collections::{BTreeSet, HashSet};

use crate::query::{KeptProfile, ProfilesQuery, StackQuery, TimeRange};
use crate::server::routes::profefe::accept::time_of;
use crate::server::routes::profefe::responses::{matchers, names, range, type_word};
use crate::server::state::shared::ServerState;
use alluvium_profile::pprof::{self, Profile};
use alluvium_profile::selector::Matcher;
use alluvium_profile::{ProfileType, ProfileTypeId, Tenants};
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::profefe::{ProfileSelection, Refusal, TypeWord, sample_type_place};

/// Synthetic label with the full profile type.
const PROFILE_TYPE: &str = "__profile_type__";

/// Maximum number of ids in a request.
const MAX_IDS: usize = 1000;

/// Maximum total size in bytes of the profiles that are joined into a response, before compression, and maximum number
/// of values in the response. Each stack has one value for every sample type.
const MAX_BYTES: usize = 128 << 20;
const MAX_VALUES: usize = 16 << 20;

/// A merged profile and its type.
pub(super) struct MergedProfile {
    /// The merged profile, compressed as gzip.
    pub pprof: Vec<u8>,
    /// The type of all merged profiles.
    pub word: &'static TypeWord,
}

/// The stacks to merge, and the properties of the result.
struct Selection {
    types: Vec<ProfileType>,
    matchers: Vec<Matcher>,
    range: TimeRange,
    ids: Vec<String>,
    time_nanos: i64,
    duration_nanos: i64,
}

/// Merges the profiles of a range.
pub(super) async fn of_range(
    state: &ServerState,
    tenants: &Tenants,
    requested: ProfileSelection,
) -> Result<MergedProfile, Refusal> {
    let (matchers, range) = (matchers(&requested)?, range(&requested));
    let word = requested.word.ok_or_else(|| Refusal::bad("unknown profile type"))?;
    let work = async {
        let by_type = [PROFILE_TYPE.to_owned()];
        let sets = state
            .engine
            .series(tenants, std::slice::from_ref(&matchers), &by_type, range)
            .await?;
        let ids = sets.iter().filter_map(|labels| labels.get(PROFILE_TYPE));
        let types: BTreeSet<&str> = ids.filter(|id| names(Some(word)).contain(id)).collect();
        let selection = Selection {
            types: types.into_iter().filter_map(|id| id.parse().ok()).collect(),
            matchers,
            range,
            ids: Vec::new(),
            time_nanos: range.start_ms.saturating_mul(1_000_000),
            duration_nanos: range.end_ms.saturating_sub(range.start_ms).saturating_mul(1_000_000),
        };
        merged(state, tenants, selection, word).await
    };
    state
        .engine
        .admitted(Box::pin(work))
        .await?
        .ok_or_else(Refusal::nothing)
}

/// Merges the profiles with these ids. Fails if one of them is not stored.
pub(super) async fn of_ids(state: &ServerState, tenants: &Tenants, ids: Vec<String>) -> Result<MergedProfile, Refusal> {
    if ids.len() > MAX_IDS {
        return Err(Refusal::bad(&format!(
            "a request may list at most {MAX_IDS} ids, not {}",
            ids.len()
        )));
    }
    let work = async {
        let profiles = with_ids(state, tenants, &ids).await?;
        let Some(of_first) = profiles.first().map(type_word) else {
            return Ok(None);
        };
        let types: BTreeSet<&str> = profiles
            .iter()
            .flat_map(|profile| &profile.types)
            .map(ProfileTypeId::as_str)
            .collect();
        let times = profiles.iter().map(|profile| profile.time_us);
        let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
        let durations = profiles.iter().map(|profile| profile.duration_ns);
        let selection = Selection {
            types: types.into_iter().filter_map(|id| id.parse().ok()).collect(),
            matchers: Vec::new(),
            range: TimeRange::new(first.div_euclid(1000), last.div_euclid(1000).saturating_add(1)),
            ids,
            time_nanos: first.saturating_mul(1000),
            duration_nanos: durations.fold(0, i64::saturating_add),
        };
        merged(state, tenants, selection, of_first).await
    };
    state
        .engine
        .admitted(Box::pin(work))
        .await?
        .ok_or_else(Refusal::nothing)
}

/// Returns the stored profiles with these ids, or an empty list if one of them is missing. If every id contains a time,
/// the range of these times is searched first, and then all time.
async fn with_ids(state: &ServerState, tenants: &Tenants, ids: &[String]) -> Result<Vec<KeptProfile>, ConnectError> {
    let times: Option<Vec<i64>> = ids.iter().map(|id| time_of(id)).collect();
    let likely = times.and_then(|times| {
        let (first, last) = (*times.iter().min()?, *times.iter().max()?);
        Some(TimeRange::new(first, last.saturating_add(1)))
    });
    let requested: HashSet<&str> = ids.iter().map(String::as_str).collect();
    for range in likely.into_iter().chain([TimeRange::ALL]) {
        let query = ProfilesQuery {
            matchers: Vec::new(),
            range,
            names: names(None),
            ids: ids.to_vec(),
            limit: 0,
        };
        let profiles = state.engine.kept_profiles(tenants, query).await?;
        let known: HashSet<&str> = profiles.iter().map(|profile| profile.id.as_ref()).collect();
        if known.len() == requested.len() {
            return Ok(profiles);
        }
    }
    Ok(Vec::new())
}

/// Merges the stacks of a selection. Returns `None` if the selection has no type.
async fn merged(
    state: &ServerState,
    tenants: &Tenants,
    mut selection: Selection,
    word: &'static TypeWord,
) -> Result<Option<MergedProfile>, ConnectError> {
    check(&selection.types)?;
    selection
        .types
        .sort_by_key(|of_type| sample_type_place(&of_type.sample_type));
    let numeric_labels = state.numeric_labels(tenants);
    let mut parts: Vec<Vec<u8>> = Vec::with_capacity(selection.types.len());
    let mut bytes = 0;
    for of_type in &selection.types {
        let mut query = StackQuery::new(of_type.clone(), selection.matchers.clone(), selection.range);
        query.profile_ids.clone_from(&selection.ids);
        query.numeric_labels.clone_from(&numeric_labels);
        let part = state.engine.merge_profile(tenants, query, pprof::encode).await?;
        bytes += part.len();
        if bytes > MAX_BYTES {
            return Err(too_large(&format!("{} MiB", MAX_BYTES >> 20)));
        }
        parts.push(part);
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let (time_nanos, duration_nanos) = (selection.time_nanos, selection.duration_nanos);
    let join = move || joined(&parts, time_nanos, duration_nanos, word.shown);
    let pprof = state.workers.run(bytes, join).await?;
    Ok(Some(MergedProfile { pprof, word }))
}

/// Fails if the types differ in name or period, because one profile cannot contain them.
fn check(types: &[ProfileType]) -> Result<(), ConnectError> {
    let kind_of = |of_type: &ProfileType| {
        (
            of_type.name.clone(),
            of_type.period_type.clone(),
            of_type.period_unit.clone(),
        )
    };
    let kinds: BTreeSet<_> = types.iter().map(kind_of).collect();
    if kinds.len() > 1 {
        let kinds: Vec<String> = kinds
            .into_iter()
            .map(|(name, kind, unit)| format!("{name} by {kind}:{unit}"))
            .collect();
        let message = format!("cannot merge profiles of different kinds: {}", kinds.join(", "));
        return Err(ConnectError::invalid(message));
    }
    Ok(())
}

fn too_large(limit: &str) -> ConnectError {
    ConnectError::invalid(format!(
        "the merged profile has more than {limit}; use a shorter range or more labels"
    ))
}

/// Joins profiles with one sample type each into one compressed profile.
fn joined(parts: &[Vec<u8>], time_nanos: i64, duration_nanos: i64, shown: &str) -> Result<Vec<u8>, ConnectError> {
    let decoded: Result<Vec<Profile<'_>>, _> = parts.iter().map(|part| pprof::decode(part)).collect();
    let decoded = decoded.map_err(|error| {
        ConnectError::new(
            Code::Internal,
            format!("cannot decode the server's own response: {error}"),
        )
    })?;
    let samples: usize = decoded.iter().map(Profile::sample_count).sum();
    if samples.saturating_mul(decoded.len()) > MAX_VALUES {
        return Err(too_large(&format!("{MAX_VALUES} values")));
    }
    let mut profile = pprof::side_by_side(&decoded);
    profile.time_nanos = time_nanos;
    profile.duration_nanos = duration_nanos;
    let default = profile
        .sample_types
        .iter()
        .find(|sample_type| sample_type.kind == shown)
        .or(profile.sample_types.last());
    profile.default_sample_type = default.map_or("", |sample_type| sample_type.kind);
    Ok(pprof::gzip(&pprof::encode(&profile)))
}
