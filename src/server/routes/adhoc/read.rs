//! Converts uploaded files to trees. A file may have any format of `/ingest`. A tree contains the stacks of one profile
//! type of the file.
//!
//! In: the bytes of a file. Out: its profile types, and the tree of one of them. The number of frames is limited before
//! a tree is built.

use std::sync::Arc;

use bytes::Bytes;

use crate::server::bodies::body::{Charge, ReceivedBody};
use crate::server::bodies::workers::LARGE_WORK;
use crate::server::routes::ingest::{now_nanos, read_upload};
use crate::server::state::shared::ServerState;
use alluvium_profile::flamegraph::Tree;
use alluvium_profile::labels::PROFILE_NAME;
use alluvium_profile::pprof::{self, Profile};
use alluvium_profile::{DecodedProfile, ProfileType, TenantId};
use alluvium_wire::byte_order::is_marked;
use alluvium_wire::connect::ConnectError;
use alluvium_wire::ingest::{self, IngestQuery};

/// Maximum number of frames in the stacks of a tree, including repeated frames.
const MAX_FRAMES: usize = 1 << 20;
/// Estimated memory of a tree per frame, in bytes.
const FRAME_BYTES: usize = 128;
/// Sample types to show if the request names none, in order of preference.
const PREFERRED_TYPES: [&str; 2] = ["cpu", "inuse_space"];

/// The profiles of a file, with the charge for their memory.
pub(super) struct OpenedFile {
    profiles: Vec<DecodedProfile>,
    charge: Charge,
}

/// Reads a file. A file in gzip is decompressed first if its format does not do so itself. The values of a text format
/// are not scaled. A profile without a time receives the current time.
pub(super) async fn open(
    state: &ServerState,
    tenant: &TenantId,
    (bytes, charge): (Bytes, Charge),
) -> Result<OpenedFile, ConnectError> {
    let any_format = IngestQuery::parse("name=adhoc", now_nanos())?;
    let is_packed = |body: &[u8]| ingest::is_packed(&any_format, "", body);
    let file = ReceivedBody { bytes, charge };
    let file = state
        .intake
        .unpack_upload(file, state.options.limits.push(), is_packed)
        .await?;
    let ReceivedBody { bytes: file, charge } = file;
    // With the default sample rate, each sample of a text would count as 10 ms.
    let is_text = is_marked(&file) || !pprof::is_gzip(&file) && std::str::from_utf8(&file).is_ok();
    let query = if is_text {
        "name=adhoc&sampleRate=0"
    } else {
        "name=adhoc"
    };
    let query = IngestQuery::parse(query, now_nanos())?;
    let (profiles, charge) = read_upload(state, tenant, (file, charge), String::new(), Arc::new(query)).await?;
    Ok(OpenedFile { profiles, charge })
}

impl OpenedFile {
    /// Returns the distinct types of all profiles of the file, in the order of the file.
    pub(super) fn types(&self) -> Vec<ProfileType> {
        let mut types: Vec<ProfileType> = Vec::new();
        for profile in &self.profiles {
            for profile_type in types_of(profile) {
                if !types.contains(&profile_type) {
                    types.push(profile_type);
                }
            }
        }
        types
    }

    /// Adds the stacks of a type to an empty tree. Returns the tree with the charge for its memory.
    pub(super) async fn tree(
        self,
        state: &ServerState,
        chosen: ProfileType,
        mut tree: Tree,
    ) -> Result<(Tree, Charge), ConnectError> {
        let weigh = move |profiles: Vec<DecodedProfile>| {
            let indexes = profile_indexes(&profiles, &chosen);
            let columns = indexes
                .iter()
                .map(|(profile_index, _)| profiles[*profile_index].columns.get());
            let frames = columns.fold(0, |sum: usize, profile| sum.saturating_add(frames(profile)));
            if frames > MAX_FRAMES {
                return Err(ConnectError::too_large(format!(
                    "the stacks of the file have {frames} frames, but the limit is {MAX_FRAMES}"
                )));
            }
            Ok(((profiles, indexes), frames * FRAME_BYTES))
        };
        let make = move |(profiles, indexes): (Vec<DecodedProfile>, Vec<(usize, usize)>)| {
            for (profile_index, index) in indexes {
                tree.insert_profile(profiles[profile_index].columns.get(), index);
            }
            Ok(tree)
        };
        state
            .intake
            .make((self.profiles, self.charge), LARGE_WORK, weigh, make)
            .await
    }
}

/// Returns the display names of types. The name is the sample type if it is unique among the types, and otherwise the
/// full profile type.
pub(super) fn names(types: &[ProfileType]) -> Vec<String> {
    let is_unique = |own: &ProfileType| {
        types
            .iter()
            .filter(|other| other.sample_type == own.sample_type)
            .count()
            == 1
    };
    let name = |own: &ProfileType| {
        if is_unique(own) {
            own.sample_type.clone()
        } else {
            own.to_string()
        }
    };
    types.iter().map(name).collect()
}

/// Moves the preferred types to the front. Grafana's Profiles Drilldown labels the flame graph of an upload with the
/// first type of the response, so this must be the type that is shown.
pub(super) fn preferred_first(mut types: Vec<ProfileType>) -> Vec<ProfileType> {
    let rank = |own: &ProfileType| {
        let position = PREFERRED_TYPES.iter().position(|name| own.sample_type == *name);
        position.unwrap_or(PREFERRED_TYPES.len())
    };
    types.sort_by_key(rank);
    types
}

/// Returns the type with the requested name or id, or the preferred type.
pub(super) fn choose(types: &[ProfileType], requested: Option<&str>) -> Result<ProfileType, ConnectError> {
    let profile_type = match requested.filter(|requested| !requested.is_empty()) {
        Some(requested) => {
            let mut named = std::iter::zip(types, names(types));
            named
                .find(|(own, name)| name == requested || own.to_string() == requested)
                .map(|(own, _)| own)
        }
        None => PREFERRED_TYPES
            .iter()
            .find_map(|preferred| types.iter().find(|own| own.sample_type == *preferred))
            .or(types.first()),
    };
    profile_type.cloned().ok_or_else(|| {
        ConnectError::invalid(format!(
            "there is no profile type `{}`, the file has {}",
            requested.unwrap_or_default(),
            names(types).join(", ")
        ))
    })
}

/// Returns the indexes of the profiles of a type, each with the index of the type in the profile.
fn profile_indexes(profiles: &[DecodedProfile], requested: &ProfileType) -> Vec<(usize, usize)> {
    let type_index = |profile: &DecodedProfile| types_of(profile).position(|own| own == *requested);
    let enumerated = profiles.iter().enumerate();
    enumerated
        .filter_map(|(profile_index, profile)| Some((profile_index, type_index(profile)?)))
        .collect()
}

fn types_of(profile: &DecodedProfile) -> impl Iterator<Item = ProfileType> {
    let (columns, name) = (
        profile.columns.get(),
        profile.labels.get(PROFILE_NAME).unwrap_or_default(),
    );
    columns.sample_types.iter().map(move |own| ProfileType {
        name: name.to_owned(),
        sample_type: own.kind.to_owned(),
        sample_unit: own.unit.to_owned(),
        period_type: columns.period_type.kind.to_owned(),
        period_unit: columns.period_type.unit.to_owned(),
    })
}

/// Returns the number of frames of all stacks. An address without a function counts as one frame.
fn frames(profile: &Profile<'_>) -> usize {
    let lines: Vec<usize> = profile
        .locations
        .iter()
        .map(|location| profile.lines_of(location).len().max(1))
        .collect();
    let frame_count = |location: &u32| lines.get(*location as usize).copied().unwrap_or(1);
    profile
        .sample_locations
        .iter()
        .fold(0, |sum: usize, location| sum.saturating_add(frame_count(location)))
}
