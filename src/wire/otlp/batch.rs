//! Converts an export request to profiles for a sink, and the sink's refusals to the response.
//!
//! In: a decoded request. Out: profiles, and later the response. A profile of the request becomes one profile for each
//! service that its samples name; all of them keep the profile's id. A request with a wrong index is refused as a whole
//! before anything is stored.

use std::sync::Arc;

use prost::Message;
use uuid::Uuid;

use crate::connect::{Code, ConnectError};
use crate::error_detail::ErrorDetail;
use crate::otlp::attributes::{Attribute, Common};
use crate::otlp::budget::Budget;
use crate::otlp::columns::ColumnMaker;
use crate::otlp::dictionary::Dictionary;
use crate::otlp::error::ExportError;
use crate::otlp::groups;
use crate::otlp::kind::Kind;
use crate::otlp::messages::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse, Profile,
    ProfilesDictionary, ResourceProfiles, ScopeProfiles,
};
use crate::weight::MAX_PROFILES;
use alluvium_profile::pprof::Profile as Columns;
use alluvium_profile::{DecodedProfile, RefusedProfile, SinkError, SinkErrorKind};

/// Length in nanoseconds of a profile that does not state it: ten seconds, as in Pyroscope.
const DEFAULT_DURATION_NANOS: i64 = 10_000_000_000;

/// Estimated memory in bytes of a label without its text, and of a profile without its columns and labels.
const LABEL_BYTES: usize = 128;
const PROFILE_BYTES: usize = 1024;

/// Maximum number of refusals that a response explains, and maximum length of each explanation in bytes.
const MAX_REASONS: usize = 16;
const REASON_BYTES: usize = 400;

/// Seconds after which a client that reached a limit may retry.
const RETRY_AFTER_SECONDS: i64 = 1;

/// The profiles of a request.
#[derive(Debug, Default)]
pub struct ExportBatch {
    /// Profiles to pass to a sink.
    pub profiles: Vec<DecodedProfile>,
    /// For each profile, the index of its original in the request.
    origins: Vec<usize>,
}

impl ExportBatch {
    /// Converts a request to profiles. Profiles without samples are skipped. `default_time_nanos` (Unix time) is the
    /// time of profiles without a time. If it is 0, these profiles stay without a time, so that a repeated request
    /// becomes the same profiles; the store then dates them.
    pub fn read(request: &ExportProfilesServiceRequest, default_time_nanos: i64) -> Result<Self, ConnectError> {
        let mut budget = Budget::of_request(request.encoded_len());
        Ok(Self::within(request, default_time_nanos, &mut budget)?)
    }

    fn within(
        request: &ExportProfilesServiceRequest,
        default_time_nanos: i64,
        budget: &mut Budget,
    ) -> Result<Self, ExportError> {
        let mut batch = Self::default();
        let scopes = || {
            let resources = request.resource_profiles.iter();
            resources.flat_map(|resource| resource.scope_profiles.iter().map(move |scope| (resource, scope)))
        };
        let mut profiles = scopes().flat_map(|(_, scope)| &scope.profiles);
        let no_tables = ProfilesDictionary::default();
        let tables = match &request.dictionary {
            Some(tables) => tables,
            None if profiles.any(|profile| !profile.samples.is_empty()) => return Err(ExportError::NoDictionary),
            None => &no_tables,
        };
        let dictionary = Dictionary::new(tables, budget)?;
        let mut maker = ColumnMaker::new(&dictionary, budget)?;
        let mut origin = 0;
        for (resource, scope) in scopes() {
            let common = common(resource, scope, &dictionary, budget)?;
            for profile in &scope.profiles {
                batch.add(
                    origin,
                    profile,
                    &common,
                    &dictionary,
                    &mut maker,
                    default_time_nanos,
                    budget,
                )?;
                origin += 1;
            }
        }
        Ok(batch)
    }

    #[allow(clippy::too_many_arguments, reason = "one step of the loop above")]
    fn add<'m>(
        &mut self,
        origin: usize,
        profile: &'m Profile,
        common: &Common,
        dictionary: &Dictionary<'m>,
        maker: &mut ColumnMaker<'m>,
        default_time_nanos: i64,
        budget: &mut Budget,
    ) -> Result<(), ExportError> {
        if profile.samples.is_empty() {
            return Ok(());
        }
        let kind = Kind::of(profile, dictionary)?;
        let groups = groups::group_by_service(profile, &common.service(), dictionary, budget)?;
        if self.profiles.len() + groups.len() > MAX_PROFILES {
            return Err(ExportError::TooManyProfiles { limit: MAX_PROFILES });
        }
        // The labels of the groups differ, so the store can tell the groups apart although they share the id.
        let id: Arc<str> = id_of(profile).into();
        let types =
            [kind.sample_type, kind.period_type].map(|value_type| value_type.kind.len() + value_type.unit.len());
        for group in groups {
            let service = group.service.unwrap_or_default();
            budget.take(1, PROFILE_BYTES + kind.name.len() + service.len() + types[0] + types[1])?;
            budget.take(common.len(), LABEL_BYTES)?;
            let header = Columns {
                sample_types: vec![kind.sample_type],
                period_type: kind.period_type,
                period: profile.period,
                time_nanos: match profile.time_unix_nano {
                    0 => default_time_nanos,
                    time => i64::try_from(time).unwrap_or(i64::MAX),
                },
                duration_nanos: match profile.duration_nano {
                    0 => DEFAULT_DURATION_NANOS,
                    duration => i64::try_from(duration).unwrap_or(i64::MAX),
                },
                ..Columns::default()
            };
            let columns = maker.columns(&group, header, kind.scale, budget)?;
            self.profiles.push(DecodedProfile {
                labels: common.labels(kind.name, group.service),
                id: id.clone(),
                columns,
                pprof: None,
            });
            self.origins.push(origin);
        }
        Ok(())
    }

    /// Returns the memory in bytes that the profiles take.
    pub fn bytes(&self) -> usize {
        self.profiles.iter().map(|profile| profile.columns.bytes()).sum()
    }

    /// Returns the profiles for [`alluvium_profile::ProfileSink::append_decoded`] and the data needed for the response.
    pub fn split(self) -> (Vec<DecodedProfile>, ExportOutcome) {
        (self.profiles, ExportOutcome { origins: self.origins })
    }
}

/// Returns the labels of resource and scope.
fn common<'m>(
    resource: &'m ResourceProfiles,
    scope: &'m ScopeProfiles,
    dictionary: &Dictionary<'m>,
    budget: &mut Budget,
) -> Result<Common, ExportError> {
    let resource_attributes = resource.resource.iter().flat_map(|resource| &resource.attributes);
    let scope_attributes = scope.scope.iter().flat_map(|scope| &scope.attributes);
    let mut common = Common::default();
    for pair in resource_attributes.chain(scope_attributes) {
        let attribute: Attribute<'m> = dictionary.key_value(pair)?;
        budget.take(1, LABEL_BYTES + attribute.text_bytes())?;
        common.add(&attribute);
    }
    Ok(common)
}

/// Returns the id of a profile as a UUID, or an empty text when it has none.
fn id_of(profile: &Profile) -> String {
    match Uuid::from_slice(&profile.profile_id) {
        Ok(id) if !id.is_nil() => id.to_string(),
        _ => String::new(),
    }
}

/// Converts a sink's refusals to the response of the call.
#[derive(Debug)]
pub struct ExportOutcome {
    origins: Vec<usize>,
}

impl ExportOutcome {
    /// Builds the response for the profiles that the sink refused. If a retry may succeed for one of them, or if all
    /// were refused, the result is an error. Otherwise, the response counts the refused profiles.
    pub fn finish(self, refused: Vec<RefusedProfile>) -> Result<ExportProfilesServiceResponse, ConnectError> {
        let Some(kind) = SinkErrorKind::most_retryable(refused.iter().map(|one| one.error.kind)) else {
            return Ok(ExportProfilesServiceResponse::default());
        };
        let message = self.reasons(&refused);
        let is_final = !refused.iter().any(|one| one.error.is_retryable());
        if is_final && refused.len() < self.origins.len() {
            let mut rejected: Vec<usize> = refused.iter().filter_map(|one| self.origin(one)).collect();
            rejected.sort_unstable();
            rejected.dedup();
            return Ok(ExportProfilesServiceResponse {
                partial_success: Some(ExportProfilesPartialSuccess {
                    rejected_profiles: rejected.len() as i64,
                    error_message: message,
                }),
            });
        }
        let error = ConnectError::from(SinkError::new(kind, message));
        Err(match error.code {
            // gRPC clients do not retry without this detail.
            Code::ResourceExhausted => error.with_detail(retry_info()),
            _ => error,
        })
    }

    fn origin(&self, refused: &RefusedProfile) -> Option<usize> {
        self.origins.get(refused.index).copied()
    }

    /// Returns a line for each refusal, up to a limit.
    fn reasons(&self, refused: &[RefusedProfile]) -> String {
        let lines = refused.iter().take(MAX_REASONS).map(|one| {
            let message = &one.error.message;
            let message = &message[..message.floor_char_boundary(REASON_BYTES)];
            format!("profile {}: {message}", self.origin(one).unwrap_or_default())
        });
        let mut lines: Vec<String> = lines.collect();
        if refused.len() > MAX_REASONS {
            lines.push(format!("and {} more", refused.len() - MAX_REASONS));
        }
        lines.join("\n")
    }
}

/// The message `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<RetryDelay>,
}

/// The message `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct RetryDelay {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

fn retry_info() -> ErrorDetail {
    let retry_delay = Some(RetryDelay {
        seconds: RETRY_AFTER_SECONDS,
    });
    ErrorDetail::new("google.rpc.RetryInfo", &RetryInfo { retry_delay })
}
