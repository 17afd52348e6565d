//! The envelope around each message between members: proof that the sender has the secret and belongs to our cluster.
//!
//! In: messages, and datagrams from any sender. Out: datagrams, and messages of senders that know the secret. Without a
//! secret the proof is a checksum that anyone can compute. Messages contain names and addresses; they are not
//! encrypted.

use std::io;
use std::io::Read as _;
use std::path::Path;

use ring::hmac;
use xxhash_rust::xxh3::xxh3_64;

/// First bytes of every datagram; the last of these bytes is the version of the format.
const MAGIC: [u8; 4] = *b"ALC\x01";
const MAC_BYTES: usize = 32;
/// Number of bytes before the proof: the magic and the hash of the cluster's name.
const BEFORE_MAC: usize = MAGIC.len() + 8;
const HEADER: usize = BEFORE_MAC + MAC_BYTES;

/// Maximum size of a datagram in bytes; fits in one Ethernet packet.
pub(super) const LONGEST_DATAGRAM: usize = 1400;
/// Maximum size of a message in bytes.
pub(super) const LONGEST_MESSAGE: usize = LONGEST_DATAGRAM - HEADER;

/// Minimum size of a secret in bytes; a shorter one could be guessed.
const SHORTEST_SECRET: usize = 16;
/// Maximum size in bytes of the file with the secret; a larger file is probably the wrong file.
const LONGEST_SECRET: usize = 4096;

/// Seals and opens datagrams of one cluster.
pub(super) struct Envelope {
    key: hmac::Key,
    cluster: [u8; 8],
}

/// The reason why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The datagram is too short, too long, or from another program or version.
    Foreign,
    /// The datagram comes from another cluster.
    Cluster,
    /// The sender does not have the secret.
    Secret,
    /// The datagram comes from a member, but does not contain a valid message.
    Malformed,
    /// The message names an unknown member, but the list of known members already has its maximum length.
    Full,
}

impl Refused {
    /// Every reason, for metrics.
    pub(super) const ALL: [Self; 5] = [Self::Foreign, Self::Cluster, Self::Secret, Self::Malformed, Self::Full];

    /// The name of the reason in metrics and logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Cluster => "cluster",
            Self::Secret => "secret",
            Self::Malformed => "malformed",
            Self::Full => "full",
        }
    }
}

impl Envelope {
    /// Creates an envelope for the cluster of this name. An empty secret means no secret.
    pub(super) fn new(secret: &[u8], cluster: &str) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            cluster: xxh3_64(cluster.as_bytes()).to_be_bytes(),
        }
    }

    /// Wraps a message into a datagram.
    pub(super) fn seal(&self, message: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(HEADER + message.len());
        datagram.extend(MAGIC);
        datagram.extend(self.cluster);
        datagram.extend(self.proof(message).as_ref());
        datagram.extend(message);
        datagram
    }

    /// Checks a datagram and returns its message.
    pub(super) fn open<'a>(&self, datagram: &'a [u8]) -> Result<&'a [u8], Refused> {
        if datagram.len() > LONGEST_DATAGRAM {
            return Err(Refused::Foreign);
        }
        let rest = datagram.strip_prefix(&MAGIC).ok_or(Refused::Foreign)?;
        let (cluster, rest) = rest.split_first_chunk::<8>().ok_or(Refused::Foreign)?;
        let (proof, message) = rest.split_first_chunk::<MAC_BYTES>().ok_or(Refused::Foreign)?;
        if *cluster != self.cluster {
            return Err(Refused::Cluster);
        }
        let authenticated = [&MAGIC[..], cluster, message].concat();
        hmac::verify(&self.key, &authenticated, proof).map_err(|_| Refused::Secret)?;
        Ok(message)
    }

    fn proof(&self, message: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&MAGIC);
        context.update(&self.cluster);
        context.update(message);
        context.sign()
    }
}

/// The reason why a file contains no usable secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("the secret is longer than {LONGEST_SECRET} bytes")]
    TooLong,
    #[error("the secret is shorter than {SHORTEST_SECRET} bytes")]
    TooShort,
}

/// Reads the secret in a file, without surrounding white space.
pub(super) fn read_secret(path: &Path) -> Result<Vec<u8>, SecretError> {
    let mut secret = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(LONGEST_SECRET as u64 + 1).read_to_end(&mut secret))?;
    if secret.len() > LONGEST_SECRET {
        return Err(SecretError::TooLong);
    }
    let secret = secret.trim_ascii();
    if secret.len() < SHORTEST_SECRET {
        return Err(SecretError::TooShort);
    }
    Ok(secret.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_secret_and_is_of_the_cluster_is_heard() {
        let envelope = Envelope::new(b"a long enough secret", "blue");
        let sealed = envelope.seal(b"hello");
        assert_eq!(envelope.open(&sealed), Ok(&b"hello"[..]));
        for (other, refused) in [
            (Envelope::new(b"", "blue"), Refused::Secret),
            (Envelope::new(b"another long secret", "blue"), Refused::Secret),
            (Envelope::new(b"a long enough secret", "green"), Refused::Cluster),
        ] {
            assert_eq!(other.open(&sealed), Err(refused));
            assert_eq!(envelope.open(&other.seal(b"hello")), Err(refused));
        }
    }

    #[test]
    fn a_datagram_that_was_changed_cut_or_made_longer_is_refused() {
        let envelope = Envelope::new(b"", "");
        let sealed = envelope.seal(b"hello");
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(envelope.open(&changed).is_err(), "{index}");
            assert!(envelope.open(&sealed[..index]).is_err(), "{index}");
        }
        assert_eq!(envelope.open(&[&sealed[..], b"!"].concat()), Err(Refused::Secret));
        let longest = envelope.seal(&[7; LONGEST_MESSAGE]);
        assert_eq!(longest.len(), LONGEST_DATAGRAM);
        assert!(envelope.open(&longest).is_ok());
        assert_eq!(
            envelope.open(&envelope.seal(&[7; LONGEST_MESSAGE + 1])),
            Err(Refused::Foreign)
        );
    }

    #[test]
    fn a_secret_is_read_without_the_line_end_and_must_not_be_short() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789abcdef\n").unwrap();
        assert_eq!(read_secret(file.path()).unwrap(), b"0123456789abcdef");
        for invalid in ["0123456789abcde\n".to_owned(), "x".repeat(LONGEST_SECRET + 1)] {
            std::fs::write(file.path(), invalid).unwrap();
            assert!(read_secret(file.path()).is_err());
        }
        // The second file is endless.
        for invalid in ["/no/such/file", "/dev/zero"] {
            assert!(read_secret(std::path::Path::new(invalid)).is_err(), "{invalid}");
        }
    }
}
