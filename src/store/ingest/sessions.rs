//! Limits the number of sessions of a series, as in Pyroscope. A session is one run of a program, and its SDK sends the
//! session's id as the label `__session_id__`.
//!
//! In: the labels of a profile. Out: the labels with an id below the limit, or without an id. The relabel rules for
//! series run after this step. The rules for sample types see the id as it was sent.

use std::num::NonZeroU32;

use alluvium_profile::Labels;

/// Label with the id of a session.
pub(super) const SESSION_ID: &str = "__session_id__";
/// Number of hexadecimal digits of an id.
const DIGITS: usize = 16;

/// Returns the labels with the limited id of the session. Without a limit, or if the id is invalid, the result has no
/// id.
pub(super) fn limit_sessions(labels: &Labels, max: Option<NonZeroU32>) -> Labels {
    let Some(id) = labels.get(SESSION_ID) else {
        return labels.clone();
    };
    match max.and_then(|max| limited_id(id, max)) {
        Some(id) => labels.with(SESSION_ID, &id),
        None => labels.filtered(|name| name != SESSION_ID),
    }
}

/// Returns the remainder of an id, or `None` if the id is invalid. An id is a signed number of 64 bits, of which the
/// text has the lowest byte first. As in Pyroscope, the remainder of a negative number is not positive.
fn limited_id(id: &str, max: NonZeroU32) -> Option<String> {
    // `from_str_radix` also accepts a sign.
    if id.len() != DIGITS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(id, 16).ok()?.swap_bytes() as i64;
    let session = number.checked_rem(i64::from(max.get()))?;
    Some(format!("{:016x}", (session as u64).swap_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_becomes_its_remainder_and_an_invalid_one_is_removed() {
        for (id, max, expected) in [
            ("0400000000000000", 3, Some("0100000000000000")),
            ("0300000000000000", 3, Some("0000000000000000")),
            ("0001000000000000", 255, Some("0100000000000000")),
            ("0A00000000000000", 100, Some("0a00000000000000")),
            ("ffffffffffffffff", 3, Some("ffffffffffffffff")),
            ("fcffffffffffffff", 3, Some("ffffffffffffffff")),
            ("fdffffffffffffff", 3, Some("0000000000000000")),
            ("1", 3, None),
            ("+400000000000000", 3, None),
            ("not-a-session-id", 3, None),
            ("04000000000000000", 3, None),
        ] {
            let labels = Labels::from_pairs([(SESSION_ID, id), ("service_name", "shop")]);
            let limited = limit_sessions(&labels, NonZeroU32::new(max));
            assert_eq!(limited.get(SESSION_ID), expected, "{id} {max}");
            assert_eq!(limited.get("service_name"), Some("shop"));
            assert_eq!(limit_sessions(&labels, None).get(SESSION_ID), None, "{id}");
        }
        let labels = Labels::from_pairs([("service_name", "shop")]);
        assert_eq!(limit_sessions(&labels, NonZeroU32::new(3)), labels);
    }
}
