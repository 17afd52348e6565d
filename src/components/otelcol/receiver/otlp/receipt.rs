//! Sets the time of profiles that have none to their time of receipt.
//!
//! In: a request and the hash of its body. Out: the request without undated profiles. If a client repeats a request,
//! its profiles with an id get the time of the first receipt. Then their bytes are the same, and a server recognises
//! them.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;

use alluvium_wire::otlp::messages::ExportProfilesServiceRequest;

/// Time for which a request is remembered, at least the time for which the server remembers profiles.
const REMEMBERED: Duration = Duration::from_mins(10);
/// Maximum number of remembered requests. Only requests with undated profiles are remembered.
const MAX_REQUESTS: usize = 1024;

/// The hashes of recent requests, oldest first, each with the time of its first receipt in Unix nanoseconds.
#[derive(Default)]
pub(super) struct ReceiptTimes(Mutex<VecDeque<(u128, u64)>>);

impl ReceiptTimes {
    /// Sets the times of the undated profiles of a request that was received at `now` (Unix nanoseconds). The time of a
    /// profile without an id is always `now`: a server stores such a profile each time that it arrives.
    pub(super) fn date(&self, request: &mut ExportProfilesServiceRequest, hash: u128, now: u64) {
        let resources = request.resource_profiles.iter_mut();
        let scopes = resources.flat_map(|resource| &mut resource.scope_profiles);
        let undated = scopes
            .flat_map(|scope| &mut scope.profiles)
            .filter(|profile| profile.time_unix_nano == 0);
        let mut first = None;
        for profile in undated {
            let has_id = profile.profile_id.iter().any(|byte| *byte != 0);
            profile.time_unix_nano = if has_id {
                *first.get_or_insert_with(|| self.first(hash, now))
            } else {
                now
            };
        }
    }

    /// Returns the time of the first receipt of a request.
    fn first(&self, hash: u128, now: u64) -> u64 {
        let mut requests = self.0.lock();
        // After a jump of the clock, the times of earlier requests are wrong.
        requests.retain(|(_, time)| *time <= now && u128::from(now - *time) < REMEMBERED.as_nanos());
        if let Some((_, time)) = requests.iter().find(|(known, _)| *known == hash) {
            return *time;
        }
        if requests.len() == MAX_REQUESTS {
            requests.pop_front();
        }
        requests.push_back((hash, now));
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_wire::otlp::messages::{Profile, ResourceProfiles, ScopeProfiles};

    const NOW: u64 = 1_800_000_000_000_000_000;

    /// Returns the times that a request with a dated profile, an undated one, and an undated one without an id gets.
    fn times(receipt: &ReceiptTimes, hash: u128, now: u64) -> [u64; 3] {
        let profile = |id: u8, time_unix_nano| Profile {
            profile_id: vec![id; 16],
            time_unix_nano,
            ..Profile::default()
        };
        let mut request = ExportProfilesServiceRequest {
            resource_profiles: vec![ResourceProfiles {
                scope_profiles: vec![ScopeProfiles {
                    profiles: vec![profile(1, 7), profile(2, 0), profile(0, 0)],
                    ..ScopeProfiles::default()
                }],
                ..ResourceProfiles::default()
            }],
            ..ExportProfilesServiceRequest::default()
        };
        receipt.date(&mut request, hash, now);
        let profiles = &request.resource_profiles[0].scope_profiles[0].profiles;
        [0, 1, 2].map(|index: usize| profiles[index].time_unix_nano)
    }

    #[test]
    fn a_repeated_request_has_the_times_of_the_first() {
        let receipt = ReceiptTimes::default();
        let minute = 60_000_000_000;
        assert_eq!(times(&receipt, 1, NOW), [7, NOW, NOW]);
        assert_eq!(times(&receipt, 1, NOW + minute), [7, NOW, NOW + minute]);
        assert_eq!(times(&receipt, 2, NOW + minute), [7, NOW + minute, NOW + minute]);
        let later = NOW + 10 * minute;
        assert_eq!(times(&receipt, 1, later), [7, later, later]);
        // The clock was set back.
        assert_eq!(times(&receipt, 1, NOW), [7, NOW, NOW]);
        for hash in 0..2 * MAX_REQUESTS as u128 {
            times(&receipt, hash, NOW);
        }
        assert_eq!(receipt.0.lock().len(), MAX_REQUESTS);
    }
}
