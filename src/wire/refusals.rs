//! Error detail that lists the refused profiles of a push with the reasons. Servers write it, and clients read it.
//!
//! In: refusals by their position in the request. Out: an [`ErrorDetail`]. The module also reads the refusals from the
//! error of a failed call. Other servers send no such detail. From their error messages, the module reads only the ids
//! of the refused profiles.

use std::collections::BTreeSet;

use prost::{Enumeration, Message};

use crate::call::CallError;
use crate::connect::Code;
use crate::error_detail::ErrorDetail;
use alluvium_profile::{RawProfile, SinkError, SinkErrorKind};

/// Name of the detail's type. Pyroscope has no such detail.
const TYPE_NAME: &str = "push.v1.PushRefusals";

/// Text before the index of each refused series in an error message of Pyroscope.
const REFUSED_SERIES: &str = "push series with index ";

/// Maximum total length in bytes of the messages in a detail, because gRPC sends the detail as a header. The error text
/// contains all messages.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// The refused profiles in the order of the request. All others were stored.
#[derive(Clone, PartialEq, Message)]
struct PushRefusals {
    #[prost(message, repeated, tag = "1")]
    refused: Vec<PushRefusal>,
}

#[derive(Clone, PartialEq, Message)]
struct PushRefusal {
    /// Index of the series in the request.
    #[prost(uint32, tag = "1")]
    series: u32,
    /// Index of the sample in the series.
    #[prost(uint32, tag = "2")]
    sample: u32,
    #[prost(enumeration = "Reason", tag = "3")]
    reason: i32,
    /// Message for users; may be empty.
    #[prost(string, tag = "4")]
    message: String,
}

/// The reason why a profile was refused; the numbers are part of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
enum Reason {
    Unspecified = 0,
    Invalid = 1,
    TooLarge = 2,
    LimitExceeded = 3,
    Unavailable = 4,
    Internal = 5,
}

/// Position of a profile in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Index of the series in the request.
    pub series: usize,
    /// Index of the sample in the series.
    pub sample: usize,
}

/// A refused profile of a push.
#[derive(Debug)]
pub struct Refused {
    /// Index among the profiles of the push.
    pub index: usize,
    /// The reason, if the server sends one.
    pub error: Option<SinkError>,
}

/// Builds the detail for refused profiles.
pub fn to_detail<'a>(refused: impl IntoIterator<Item = (Position, &'a SinkError)>) -> ErrorDetail {
    let mut room = MAX_MESSAGE_BYTES;
    let refused = refused.into_iter().map(|(position, error)| {
        let message = &error.message[..error.message.floor_char_boundary(room)];
        room -= message.len();
        PushRefusal {
            series: position.series as u32,
            sample: position.sample as u32,
            reason: reason_of(error.kind) as i32,
            message: message.to_owned(),
        }
    });
    let refused = refused.collect();
    ErrorDetail::new(TYPE_NAME, &PushRefusals { refused })
}

/// Returns the refused profiles of a failed push of `profiles`, in which each profile had its own series. All others
/// were accepted. Returns `None` when the error concerns the push as a whole, or when the push has only one profile.
pub fn of_error(error: &CallError, profiles: &[RawProfile]) -> Option<Vec<Refused>> {
    let CallError::Refused { message, details, .. } = error else {
        return None;
    };
    if profiles.len() < 2 {
        return None;
    }
    match details.iter().find_map(|detail| detail.read::<PushRefusals>(TYPE_NAME)) {
        Some(detail) => from_detail(detail, profiles.len()),
        None => from_message(message, profiles),
    }
}

/// Returns the indices of the series that Pyroscope refused, from the error of a request with `count` series. Pyroscope
/// stored all others. Returns `None` unless the error lists the refused series completely, and when it lists all
/// series.
pub fn series_of_error(error: &CallError, count: usize) -> Option<BTreeSet<usize>> {
    let CallError::Refused { message, .. } = error else {
        return None;
    };
    let mut parts = message.split(REFUSED_SERIES);
    let head = parts.next()?.trim_end();
    let index = |part: &str| part.split_once(" and id ")?.0.parse::<usize>().ok();
    let refused: BTreeSet<usize> = parts.map(index).collect::<Option<_>>()?;
    // Pyroscope writes the number of errors if there are several.
    let expected = match head.strip_suffix(" errors:") {
        Some(head) => head.rsplit(' ').next()?.parse().ok()?,
        None => 1,
    };
    let is_complete = refused.len() == expected && refused.last().is_some_and(|last| *last < count);
    (is_complete && refused.len() < count).then_some(refused)
}

/// Returns true if Pyroscope's `/ingest` refused an upload for a reason that may pass. Pyroscope responds to almost
/// every failure with the status 422 and the code `unknown`, also while it stops. Only its text contains the code of
/// the failure.
pub fn is_transient_upload_error(error: &CallError) -> bool {
    let CallError::Refused {
        status: 422, message, ..
    } = error
    else {
        return false;
    };
    let reasons = message.split(REFUSED_SERIES).skip(1);
    let mut codes = reasons.filter_map(|part| {
        let (_, reason) = part.split_once(" failed: ")?;
        Code::from_name(reason.split_once(':')?.0)
    });
    codes.any(|code| code == Code::Canceled || code.is_retryable())
}

fn from_detail(detail: PushRefusals, count: usize) -> Option<Vec<Refused>> {
    let refused = detail.refused.into_iter().map(|refusal| {
        let index = refusal.series as usize;
        let kind = kind_of(Reason::try_from(refusal.reason).ok()?);
        (index < count && refusal.sample == 0).then(|| Refused {
            index,
            error: kind.map(|kind| SinkError::new(kind, refusal.message)),
        })
    });
    let refused: Vec<Refused> = refused.collect::<Option<_>>()?;
    (!refused.is_empty()).then_some(refused)
}

/// Returns the profiles whose ids occur in lines about a series, or `None` when no id or every id occurs.
fn from_message(message: &str, profiles: &[RawProfile]) -> Option<Vec<Refused>> {
    let lines: Vec<&str> = message.lines().filter(|line| line.contains("series")).collect();
    let is_named =
        |profile: &RawProfile| !profile.id.is_empty() && lines.iter().any(|line| line.contains(&*profile.id));
    let refused: Vec<Refused> = (0..profiles.len())
        .filter(|&index| is_named(&profiles[index]))
        .map(|index| Refused { index, error: None })
        .collect();
    (!refused.is_empty() && refused.len() < profiles.len()).then_some(refused)
}

fn reason_of(kind: SinkErrorKind) -> Reason {
    match kind {
        SinkErrorKind::Invalid => Reason::Invalid,
        SinkErrorKind::TooLarge => Reason::TooLarge,
        SinkErrorKind::LimitExceeded => Reason::LimitExceeded,
        SinkErrorKind::Unavailable | SinkErrorKind::Gone => Reason::Unavailable,
        SinkErrorKind::Internal => Reason::Internal,
    }
}

fn kind_of(reason: Reason) -> Option<SinkErrorKind> {
    match reason {
        Reason::Unspecified => None,
        Reason::Invalid => Some(SinkErrorKind::Invalid),
        Reason::TooLarge => Some(SinkErrorKind::TooLarge),
        Reason::LimitExceeded => Some(SinkErrorKind::LimitExceeded),
        Reason::Unavailable => Some(SinkErrorKind::Unavailable),
        Reason::Internal => Some(SinkErrorKind::Internal),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use alluvium_profile::Labels;

    fn refused(message: &str, details: Vec<ErrorDetail>) -> CallError {
        CallError::Refused {
            url: "http://localhost/push".to_owned(),
            status: 400,
            code: None,
            message: message.to_owned(),
            details,
            retry_after: None,
        }
    }

    fn profiles(ids: &[&str]) -> Vec<RawProfile> {
        let profile = |id: &&str| RawProfile {
            labels: Labels::default(),
            id: (*id).into(),
            pprof: Bytes::new(),
        };
        ids.iter().map(profile).collect()
    }

    fn position(series: usize) -> Position {
        Position { series, sample: 0 }
    }

    #[test]
    fn a_detail_says_which_profiles_were_refused_and_why() {
        let errors = [
            SinkError::new(SinkErrorKind::TooLarge, "4 MiB"),
            SinkError::new(SinkErrorKind::Unavailable, "the disk is full"),
        ];
        let detail = to_detail([(position(0), &errors[0]), (position(2), &errors[1])]);
        let error = refused("sentence", vec![detail]);
        let read = of_error(&error, &profiles(&["a", "b", "c"])).unwrap();
        let read: Vec<(usize, SinkErrorKind, &str)> = read
            .iter()
            .map(|refused| {
                let error = refused.error.as_ref().unwrap();
                (refused.index, error.kind, error.message.as_str())
            })
            .collect();
        assert_eq!(
            read,
            [
                (0, SinkErrorKind::TooLarge, "4 MiB"),
                (2, SinkErrorKind::Unavailable, "the disk is full")
            ]
        );
        // A detail with a position that was never sent is not trusted. For one profile, the error itself says
        // everything.
        assert!(of_error(&error, &profiles(&["a", "b"])).is_none());
        assert!(of_error(&error, &profiles(&["a"])).is_none());
    }

    #[test]
    fn the_messages_of_a_detail_are_bounded_and_its_places_are_all_there() {
        let error = SinkError::new(SinkErrorKind::Invalid, "\u{e4}".repeat(1000));
        let detail = to_detail((0..10_000).map(|series| (position(series), &error)));
        assert!(
            detail.value.len() < 10_000 * 10 + MAX_MESSAGE_BYTES,
            "{}",
            detail.value.len()
        );
        assert_eq!(detail.read::<PushRefusals>(TYPE_NAME).unwrap().refused.len(), 10_000);
    }

    #[test]
    fn a_message_lists_the_refused_series_completely_or_is_not_trusted() {
        let listed = |message: &str, count: usize| {
            let listed = series_of_error(&refused(message, Vec::new()), count)?;
            Some(listed.into_iter().collect::<Vec<_>>())
        };
        let one = "push series with index 3 and id 7b1d failed: too much";
        assert_eq!(listed(&format!("failed to make a call: {one}"), 5), Some(vec![3]));
        let two = format!("failed to make a call: 2 errors: push series with index 0 and id 9 failed: old; {one}");
        assert_eq!(listed(&two, 5), Some(vec![0, 3]));
        assert_eq!(listed(&two.replace("failed to make a call: ", ""), 5), Some(vec![0, 3]));
        // A series that was not sent, a series that is missing in the list or listed twice, and an index that is none.
        assert_eq!(listed(one, 3), None);
        assert_eq!(listed(&two.replace("2 errors", "3 errors"), 5), None);
        assert_eq!(listed(&two.replace("2 errors: ", ""), 5), None);
        assert_eq!(listed(&two.replace("index 0", "index 3"), 5), None);
        assert_eq!(listed(&two.replace("index 0", "index x"), 5), None);
        // If all series are refused, the error itself says everything.
        assert_eq!(listed(&two.replace("index 3", "index 1"), 2), None);
        assert_eq!(listed("out of memory", 5), None);
    }

    #[test]
    fn the_text_of_an_upload_error_says_whether_it_may_pass() {
        let is_transient = |status: u16, reasons: &[&str]| {
            let series = reasons.iter().enumerate();
            let series =
                series.map(|(index, reason)| format!("push series with index {index} and id  failed: {reason}"));
            let message = series.collect::<Vec<_>>().join("; ");
            is_transient_upload_error(&CallError::Refused {
                url: "http://localhost/ingest".to_owned(),
                status,
                code: Some(Code::Unknown),
                message: format!("cannot push: {message}"),
                details: Vec::new(),
                retry_after: None,
            })
        };
        assert!(is_transient(422, &["unavailable: the service stops"]));
        assert!(is_transient(422, &["canceled: the client left"]));
        assert!(is_transient(422, &["invalid_argument: too old", "internal: no disk"]));
        assert!(!is_transient(
            422,
            &["invalid_argument: too old", "invalid_argument: too old"]
        ));
        assert!(!is_transient(422, &["unavailable"]));
        assert!(!is_transient(422, &[]));
        assert!(!is_transient(400, &["unavailable: the service stops"]));
    }

    #[test]
    fn a_sentence_says_who_when_it_names_some() {
        let profiles = profiles(&["one", "two", ""]);
        let named = |message: &str| {
            let read = of_error(&refused(message, Vec::new()), &profiles)?;
            assert!(read.iter().all(|refused| refused.error.is_none()));
            Some(read.iter().map(|refused| refused.index).collect::<Vec<_>>())
        };
        assert_eq!(named("push failed:\nseries 1, profile two: too old"), Some(vec![1]));
        assert_eq!(named("profile two is too old"), None);
        assert_eq!(named("series one\nseries two"), Some(vec![0, 1]));
        assert_eq!(named("out of memory"), None);
    }
}
