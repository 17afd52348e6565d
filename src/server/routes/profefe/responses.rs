//! Lists of profiles and services, without HTTP.
//!
//! In: a parsed request. Out: results of the query engine. Each request occupies one of the slots for running queries.

use crate::query::{KeptProfile, ProfilesQuery, TimeRange, TypeNames};
use crate::server::state::shared::ServerState;
use alluvium_profile::Tenants;
use alluvium_profile::labels::SERVICE_NAME;
use alluvium_profile::selector::{self, MatchOp, Matcher};
use alluvium_wire::connect::ConnectError;
use alluvium_wire::profefe::{NAMED, OTHER, ProfileAnswer, ProfileSelection, Refusal, TypeWord};

/// Returns the stored profiles that match the request, the oldest first.
pub(super) async fn find(
    state: &ServerState,
    tenants: &Tenants,
    requested: ProfileSelection,
) -> Result<Vec<ProfileAnswer>, Refusal> {
    let query = ProfilesQuery {
        matchers: matchers(&requested)?,
        range: range(&requested),
        names: names(requested.word),
        ids: Vec::new(),
        limit: requested.limit,
    };
    let work = async { Ok::<_, ConnectError>(state.engine.kept_profiles(tenants, query).await?) };
    let profiles = state.engine.admitted(Box::pin(work)).await?;
    let answer =
        |profile: &KeptProfile| ProfileAnswer::new(&profile.id, type_word(profile), &profile.labels, profile.time_us);
    Ok(profiles.iter().map(answer).collect())
}

/// Returns all services, sorted. If the server limits the length of the time range of a query, the list contains only
/// services with profiles in the latest time range of that length.
pub(super) async fn services(state: &ServerState, tenants: &Tenants) -> Result<Vec<String>, Refusal> {
    let longest = state.engine.limits().max_query_length;
    let range = match i64::try_from(longest.as_millis()) {
        Ok(0) | Err(_) => TimeRange::ALL,
        Ok(longest) => {
            let now = chrono::Utc::now().timestamp_millis();
            TimeRange::new(now.saturating_sub(longest), now)
        }
    };
    let work = async { Ok::<_, ConnectError>(state.engine.label_values(tenants, SERVICE_NAME, &[], range).await?) };
    Ok(state.engine.admitted(Box::pin(work)).await?)
}

/// Returns matchers that require the service and all labels of the request.
pub(super) fn matchers(requested: &ProfileSelection) -> Result<Vec<Matcher>, Refusal> {
    let labels = requested
        .labels
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let pairs: Vec<(&str, &str)> = labels.chain([(SERVICE_NAME, requested.service.as_str())]).collect();
    let bytes = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
    selector::check_count(pairs.len())
        .and_then(|()| selector::check_bytes(bytes))
        .map_err(|error| Refusal::bad(&error.to_string()))?;
    let matcher = |(name, value): (&str, &str)| Matcher::new(name, MatchOp::Equal, value);
    let matchers: Result<Vec<Matcher>, _> = pairs.into_iter().map(matcher).collect();
    matchers.map_err(|error| Refusal::bad(&error.to_string()))
}

/// Returns the time range of a request, including its last second.
pub(super) fn range(requested: &ProfileSelection) -> TimeRange {
    let end = requested.to.saturating_add(1);
    TimeRange::new(requested.from.saturating_mul(1000), end.saturating_mul(1000))
}

/// Returns the profile names that belong to a type of profefe, or all names for `None`.
pub(super) fn names(word: Option<&'static TypeWord>) -> TypeNames {
    match word {
        None => TypeNames::ALL,
        Some(word) if word.word == OTHER => TypeNames::NoneOf(&NAMED),
        Some(word) => TypeNames::AnyOf(word.names),
    }
}

/// Returns the type of a profile in profefe's terms.
pub(super) fn type_word(profile: &KeptProfile) -> &'static TypeWord {
    let first = profile.types.first().map_or("", |of_type| of_type.as_str());
    TypeWord::of_name(first.split(':').next().unwrap_or_default())
}
