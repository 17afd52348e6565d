//! Ids of uploaded profiles: 26 characters that encode a time and random bits, followed by the name of the file.
//!
//! In: a time and a name. Out: an id that sorts by time and contains both. An id from a user is checked before it
//! becomes part of a path.

use uuid::Uuid;

/// Crockford's digits of base 32, which omit I, L, O and U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Number of digits in an id. The digits encode 128 bits.
const STAMP_CHARS: usize = 26;
/// Number of random bits. The other bits are the time in milliseconds.
const CHANCE_BITS: u32 = 80;
/// Maximum length of the name in an id, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The id of an uploaded profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UploadId(String);

impl UploadId {
    /// Creates an id. Characters of the name that are not safe in a path become `_`.
    pub(super) fn new(now_ms: i64, name: &str) -> Self {
        let chance = Uuid::new_v4().as_u128() & ((1 << CHANCE_BITS) - 1);
        let stamp = u128::from(now_ms.max(0) as u64) << CHANCE_BITS | chance;
        let digit = |position: usize| char::from(DIGITS[(stamp >> (5 * position)) as usize & 31]);
        let stamp: String = (0..STAMP_CHARS).rev().map(digit).collect();
        let safe = |character: char| if is_safe(character) { character } else { '_' };
        let name: String = name.chars().take(MAX_NAME_CHARS).map(safe).collect();
        Self(format!("{stamp}-{name}"))
    }

    /// Parses an id, or returns `None` if the text is not an id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stamp, rest) = text.split_at_checked(STAMP_CHARS)?;
        let name = rest.strip_prefix('-')?;
        let is_id = stamp.bytes().all(|byte| DIGITS.contains(&byte))
            && name.len() <= MAX_NAME_CHARS
            && name.chars().all(is_safe);
        is_id.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the file, with unsafe characters replaced.
    pub(super) fn name(&self) -> &str {
        self.0.get(STAMP_CHARS + 1..).unwrap_or_default()
    }

    /// Returns the time of the upload in Unix milliseconds.
    pub(super) fn time_ms(&self) -> i64 {
        let stamp = self.0.bytes().take(STAMP_CHARS).fold(0u128, |stamp, byte| {
            let digit = DIGITS.iter().position(|candidate| *candidate == byte).unwrap_or(0);
            stamp << 5 | digit as u128
        });
        (stamp >> CHANCE_BITS) as i64
    }
}

fn is_safe(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_time_and_name_and_sorts_by_time() {
        let id = UploadId::new(1_700_000_000_123, "a b/../c.pb.gz");
        assert_eq!((id.time_ms(), id.name()), (1_700_000_000_123, "a_b_.._c.pb.gz"));
        assert_eq!(UploadId::parse(id.as_str()), Some(id.clone()));
        assert!(id < UploadId::new(1_700_000_000_124, "a"));
        assert_ne!(id, UploadId::new(1_700_000_000_123, "a b/../c.pb.gz"));
        assert_eq!(UploadId::new(1, &"\u{e9}".repeat(100)).name(), "_".repeat(64));
    }

    #[test]
    fn what_could_leave_the_folder_is_no_id() {
        let stamp = "01HF".to_owned() + &"0".repeat(22);
        assert!(UploadId::parse(&format!("{stamp}-a")).is_some());
        for text in [
            "",
            "..",
            "../../VERSION",
            &stamp,
            &format!("{stamp}-a/b"),
            &format!("{stamp}/a"),
            &"\u{e9}".repeat(14),
        ] {
            assert_eq!(UploadId::parse(text), None, "{text}");
        }
        assert_eq!(UploadId::parse(&format!("{stamp}-{}", "a".repeat(65))), None);
        assert_eq!(UploadId::parse(&format!("{}I-a", &stamp[1..])), None);
    }
}
