//! Parses and sends pushes of profiles (push.v1).
//!
//! In: a [`PushRequest`]. Out: [`RawProfile`]s, whose bytes are slices of the request's body. The module also builds
//! requests from profiles. It does not check the contents of the profiles, because the sink does.

use std::sync::Arc;

use crate::call::{CallError, Caller};
use crate::error_detail::ErrorDetail;
use crate::proto::push::{PushRequest, PushResponse, RawProfileSeries, RawSample};
use crate::proto::types::LabelPair;
use crate::refusals::{self, Position};
use crate::weight::MAX_PROFILES;
use alluvium_profile::{Labels, RawProfile, RefusedProfile, SinkError, SinkErrorKind};

/// Maximum length in bytes of the id and of the reason in a line of an error message. The message has a line for each
/// refused profile.
const EXCERPT_BYTES: usize = 400;

/// Route of the call that pushes profiles.
pub const PUSH_ROUTE: &str = "push.v1.PusherService/Push";

/// A push request split into its profiles.
#[derive(Debug, Default)]
pub struct PushBatch {
    /// Profiles to pass to a sink.
    pub profiles: Vec<RawProfile>,
    /// Origin of each profile in the request.
    origins: Vec<Origin>,
    /// Profiles that cannot be accepted, with the reason.
    refused: Vec<(Origin, SinkError)>,
}

/// Position and id of a profile, for errors.
#[derive(Debug, Clone)]
struct Origin {
    position: Position,
    /// Id that the sender gave the profile.
    id: Arc<str>,
}

impl PushBatch {
    /// Splits a request: each sample of each series is a profile. Profiles with invalid labels or without bytes are
    /// refused; all others are kept. A request without any sample, or with more than [`MAX_PROFILES`], is an error.
    pub fn from_request(request: PushRequest) -> Result<Self, SinkError> {
        let mut batch = Self::default();
        let profiles: usize = request.series.iter().map(|series| series.samples.len()).sum();
        if profiles > MAX_PROFILES {
            let message = format!("the push has {profiles} profiles, the limit is {MAX_PROFILES}: send it in parts");
            return Err(SinkError::new(SinkErrorKind::TooLarge, message));
        }
        for (series, raw_series) in request.series.into_iter().enumerate() {
            let pairs = raw_series.labels.into_iter().map(|pair| (pair.name, pair.value));
            let labels = Labels::distinct(pairs);
            for (index, sample) in raw_series.samples.into_iter().enumerate() {
                let origin = Origin {
                    position: Position { series, sample: index },
                    id: sample.id.into(),
                };
                match &labels {
                    Err(error) => batch.refuse(origin, error.to_string()),
                    Ok(_) if sample.raw_profile.is_empty() => {
                        batch.refuse(origin, "the profile is empty".to_owned());
                    }
                    Ok(labels) => {
                        batch.profiles.push(RawProfile {
                            labels: labels.clone(),
                            id: origin.id.clone(),
                            pprof: sample.raw_profile,
                        });
                        batch.origins.push(origin);
                    }
                }
            }
        }
        if batch.profiles.is_empty() && batch.refused.is_empty() {
            return Err(SinkError::new(SinkErrorKind::Invalid, "no profiles received"));
        }
        Ok(batch)
    }

    fn refuse(&mut self, origin: Origin, message: String) {
        self.refused
            .push((origin, SinkError::new(SinkErrorKind::Invalid, message)));
    }

    /// Returns the profiles for [`alluvium_profile::ProfileSink::append`] and the data needed for the response.
    pub fn split(self) -> (Vec<RawProfile>, PushOutcome) {
        let outcome = PushOutcome {
            origins: self.origins,
            refused: self.refused,
        };
        (self.profiles, outcome)
    }
}

/// Combines a sink's errors into the one error of the call.
#[derive(Debug)]
pub struct PushOutcome {
    origins: Vec<Origin>,
    refused: Vec<(Origin, SinkError)>,
}

/// Some profiles of a push were refused; all others are stored.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct PushRefused {
    /// One line for each refused profile, with its series and its id. The kind is the most retryable kind of all.
    pub error: SinkError,
    /// The refusals as a message for programs.
    pub detail: ErrorDetail,
}

impl PushOutcome {
    /// Returns `Ok` when all profiles were accepted. `refused` are the profiles that the sink refused.
    pub fn finish(mut self, refused: Vec<RefusedProfile>) -> Result<(), PushRefused> {
        let refused = refused
            .into_iter()
            .filter_map(|RefusedProfile { index, error }| Some((self.origins.get(index)?.clone(), error)));
        self.refused.extend(refused);
        self.refused.sort_by_key(|(origin, _)| origin.position);
        let kinds = self.refused.iter().map(|(_, error)| error.kind);
        let Some(kind) = SinkErrorKind::most_retryable(kinds) else {
            return Ok(());
        };
        let lines: Vec<String> = self
            .refused
            .iter()
            .map(|(Origin { position, id }, error)| match id.as_ref() {
                "" => format!("series {}: {}", position.series, excerpt(&error.message)),
                id => format!(
                    "series {}, profile {}: {}",
                    position.series,
                    excerpt(id),
                    excerpt(&error.message)
                ),
            })
            .collect();
        Err(PushRefused {
            error: SinkError::new(kind, lines.join("\n")),
            detail: refusals::to_detail(self.refused.iter().map(|(origin, error)| (origin.position, error))),
        })
    }
}

/// Returns the beginning of a text, at most [`EXCERPT_BYTES`] long.
fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(EXCERPT_BYTES)]
}

/// Builds a request. Each profile gets its own series, even if labels are equal, because servers name the series in a
/// refusal. The bytes are shared, not copied.
pub fn to_request(profiles: &[RawProfile]) -> PushRequest {
    let series = profiles
        .iter()
        .map(|profile| RawProfileSeries {
            labels: pairs(&profile.labels),
            samples: vec![RawSample {
                raw_profile: profile.pprof.clone(),
                id: profile.id.to_string(),
            }],
            annotations: Vec::new(),
        })
        .collect();
    PushRequest { series }
}

/// Converts labels to messages.
pub fn pairs(labels: &Labels) -> Vec<LabelPair> {
    labels
        .iter()
        .map(|(name, value)| LabelPair {
            name: name.to_owned(),
            value: value.to_owned(),
        })
        .collect()
}

/// Sends profiles to a server over push.v1.
#[derive(Clone, Debug)]
pub struct PushClient {
    caller: Caller,
}

impl PushClient {
    /// Creates a client of the server that `caller` calls.
    pub fn new(caller: Caller) -> Self {
        Self { caller }
    }

    /// Sends one batch. An error may concern only some of the profiles. The server then stores all others.
    /// [`refusals::of_error`] returns the refused profiles.
    pub async fn push(&self, profiles: &[RawProfile]) -> Result<(), CallError> {
        let _: PushResponse = self.caller.call(PUSH_ROUTE, &to_request(profiles)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn profile(name: &str, id: &str) -> RawProfile {
        RawProfile {
            labels: Labels::from_pairs([("__name__", name), ("service_name", "s")]),
            id: id.into(),
            pprof: Bytes::from_static(b"bytes"),
        }
    }

    #[test]
    fn profiles_survive_the_round_trip_each_in_a_series_of_its_own() {
        let profiles = [profile("cpu", "1"), profile("cpu", "2"), profile("memory", "")];
        let request = to_request(&profiles);
        assert_eq!(request.series.len(), 3);
        let (back, outcome) = PushBatch::from_request(request).unwrap().split();
        assert_eq!(back.len(), 3);
        for (left, right) in back.iter().zip(&profiles) {
            assert_eq!(
                (&left.labels, &left.id, &left.pprof),
                (&right.labels, &right.id, &right.pprof)
            );
        }
        assert!(outcome.finish(Vec::new()).is_ok());
    }

    #[test]
    fn binary_profiles_are_slices_of_the_body() {
        let body = Bytes::from(prost::Message::encode_to_vec(&to_request(&[profile("cpu", "")])));
        let range = body.as_ptr_range();
        let request: PushRequest = crate::connect::decode(crate::connect::Codec::Proto, body.clone()).unwrap();
        assert!(range.contains(&request.series[0].samples[0].raw_profile.as_ptr()));
    }

    #[test]
    fn nothing_to_push_is_an_error() {
        for series in [Vec::new(), vec![RawProfileSeries::default()]] {
            let error = PushBatch::from_request(PushRequest { series }).unwrap_err();
            assert_eq!(error.message, "no profiles received");
        }
    }

    #[test]
    fn a_push_has_a_bounded_number_of_profiles_and_a_bounded_error() {
        let mut request = to_request(&[profile("cpu", "")]);
        let sample = request.series[0].samples[0].clone();
        request.series[0].samples = vec![sample; MAX_PROFILES];
        assert_eq!(
            PushBatch::from_request(request.clone()).unwrap().profiles.len(),
            MAX_PROFILES
        );
        let name = "x".repeat(1 << 20);
        for _ in 0..2 {
            request.series[0].labels.push(LabelPair {
                name: name.clone(),
                value: String::new(),
            });
        }
        let (_, outcome) = PushBatch::from_request(request.clone()).unwrap().split();
        let error = outcome.finish(Vec::new()).unwrap_err();
        assert!(error.error.message.len() < MAX_PROFILES * 2 * EXCERPT_BYTES);
        assert!(error.detail.value.len() < MAX_PROFILES * 20);
        let extra_sample = request.series[0].samples[0].clone();
        request.series[0].samples.push(extra_sample);
        let error = PushBatch::from_request(request).unwrap_err();
        assert_eq!(error.kind, SinkErrorKind::TooLarge);
        assert!(error.message.contains("10001 profiles, the limit is 10000"), "{error}");
    }

    #[test]
    fn wrong_series_are_refused_by_number_and_the_others_stay() {
        let mut request = to_request(&[profile("cpu", ""), profile("memory", "two"), profile("block", "")]);
        let duplicate_label = request.series[1].labels[0].clone();
        request.series[1].labels.push(duplicate_label);
        request.series[2].samples[0].raw_profile = Bytes::new();
        let (profiles, outcome) = PushBatch::from_request(request).unwrap().split();
        assert_eq!(profiles.len(), 1);
        let error = outcome
            .finish(vec![RefusedProfile::new(
                0,
                SinkError::new(SinkErrorKind::Unavailable, "the disk is full"),
            )])
            .unwrap_err();
        assert_eq!(error.error.kind, SinkErrorKind::Unavailable);
        assert_eq!(
            error.error.message,
            "series 0: the disk is full\nseries 1, profile two: label `__name__` occurs twice\nseries 2: the \
                profile is empty"
        );
    }
}
