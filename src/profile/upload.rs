//! A request to `/ingest` that components forward as received. Its body may be in any format.
//!
//! Such a request is a [`RawProfile`](crate::RawProfile), whose bytes have this layout: `magic | query | content type |
//! content encoding | body to the end`. A text is `length u32 little endian | UTF-8`. The magic begins with a byte that
//! begins neither pprof nor gzip. The parameter `name` is not stored, because the sender rebuilds it from the labels.
//! Queues on disk contain this layout: a change requires a new magic, and the old layout must stay readable.

use bytes::Bytes;

/// The first byte is the key of field 0, which does not exist in protobuf.
const MAGIC: &[u8; 8] = b"\0ingest\x01";

/// A request to `/ingest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Parameters of the URL except `name`, URL-encoded.
    pub query: Box<str>,
    /// Value of `Content-Type`; empty if there is none.
    pub content_type: Box<str>,
    /// Value of `Content-Encoding`; empty if there is none.
    pub content_encoding: Box<str>,
    /// The body as received, in any format.
    pub body: Bytes,
}

impl Upload {
    /// Returns the bytes before the body.
    pub fn head(query: &str, content_type: &str, content_encoding: &str) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        for text in [query, content_type, content_encoding] {
            head.extend_from_slice(&(text.len() as u32).to_le_bytes());
            head.extend_from_slice(text.as_bytes());
        }
        head
    }

    /// Reads the upload from the bytes of a profile. Returns `None` for pprof. The body shares the memory of `bytes`.
    pub fn read(bytes: &Bytes) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC.as_slice())?;
        let mut text = || -> Option<Box<str>> {
            let (length, tail) = rest.split_first_chunk()?;
            let (text, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = tail;
            std::str::from_utf8(text).ok().map(Into::into)
        };
        let (query, content_type, content_encoding) = (text()?, text()?, text()?);
        Some(Self {
            query,
            content_type,
            content_encoding,
            body: bytes.slice(bytes.len() - rest.len()..),
        })
    }

    /// Returns true for bytes that begin like an upload.
    pub fn is_in(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pprof;

    #[test]
    fn what_is_no_upload_is_none_and_an_upload_is_no_pprof() {
        for bytes in [
            &b""[..],
            b"\x1f\x8b\x08",
            b"\x0a\x04\x08\x01\x10\x02",
            b"\0ingest\x01",
            b"\0ingest\x01\xff\0\0\0a",
        ] {
            assert_eq!(Upload::read(&Bytes::from_static(bytes)), None);
        }
        assert!(pprof::decode(&Upload::head("format=jfr", "", "")).is_err());
    }

    proptest! {
        #[test]
        fn an_upload_survives_the_round_trip(
            query in ".{0,20}", kind in ".{0,8}", encoding in ".{0,4}",
            body in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut bytes = Upload::head(&query, &kind, &encoding);
            bytes.extend_from_slice(&body);
            let read = Upload::read(&bytes.into()).unwrap();
            prop_assert_eq!((&*read.query, &*read.content_type), (&*query, &*kind));
            prop_assert_eq!(&*read.content_encoding, &*encoding);
            prop_assert_eq!(&*read.body, &*body);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let with_magic = [MAGIC.as_slice(), &bytes].concat();
            let _ = Upload::read(&with_magic.into());
        }
    }
}
