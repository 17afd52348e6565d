//! Reads the parts of an X.509 certificate that rustls does not expose: its version, its key and its purposes.
//!
//! In: DER. Out: slices of the DER. Reading a certificate here does not make it trusted; the verifier decides.

/// ASN.1 tags (X.690, section 8.1.2).
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0]` and `[3]` of `TBSCertificate`: the version and the extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Object identifiers of the extended key usage extension and of two purposes in it (RFC 5280, section 4.2.1.12).
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const ANY_PURPOSE: &[u8] = &[0x55, 0x1d, 0x25, 0x00];
const SERVER_AUTHENTICATION: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// The parts of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Certificate<'a> {
    /// Version in the usual count: 1, 2 or 3.
    pub(super) version: u8,
    /// The whole `SubjectPublicKeyInfo`.
    pub(super) key_info: &'a [u8],
    /// Contents of the key's `AlgorithmIdentifier`.
    pub(super) key_algorithm: &'a [u8],
    /// The key itself, without the count of unused bits.
    pub(super) key: &'a [u8],
    /// Contents of the list of extensions, empty if there is none.
    extensions: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads a certificate. Returns `None` if the bytes are not a certificate.
    pub(super) fn read(der: &'a [u8]) -> Option<Self> {
        let mut signed = single_element(der, SEQUENCE)?;
        let mut body = next(&mut signed, SEQUENCE)?;
        let version = match body.first() {
            Some(&VERSION) => match single_element(next(&mut body, VERSION)?, INTEGER)? {
                [number @ 0..=2] => number + 1,
                _ => return None,
            },
            _ => 1,
        };
        next(&mut body, INTEGER)?;
        // Signature algorithm, issuer, validity and subject.
        for _ in 0..4 {
            next(&mut body, SEQUENCE)?;
        }
        let rest = body;
        let mut key_info = next(&mut body, SEQUENCE)?;
        let full_key_info = &rest[..rest.len() - body.len()];
        let key_algorithm = next(&mut key_info, SEQUENCE)?;
        let [0, key @ ..] = single_element(key_info, BIT_STRING)? else {
            return None;
        };
        let mut extensions: &[u8] = &[];
        while !body.is_empty() {
            let (tag, contents) = element(&mut body)?;
            if tag == EXTENSIONS {
                extensions = single_element(contents, SEQUENCE)?;
            }
        }
        Some(Self {
            version,
            key_info: full_key_info,
            key_algorithm,
            key,
            extensions,
        })
    }

    /// Returns true if the certificate may identify a server: it allows this purpose or any purpose, or it does not
    /// restrict its purposes.
    pub(super) fn is_for_servers(&self) -> bool {
        let Some(value) = self.extension(EXTENDED_KEY_USAGE) else {
            return true;
        };
        let Some(mut purposes) = single_element(value, SEQUENCE) else {
            return false;
        };
        while let Some(purpose) = next(&mut purposes, OBJECT_IDENTIFIER) {
            if [ANY_PURPOSE, SERVER_AUTHENTICATION].contains(&purpose) {
                return true;
            }
        }
        false
    }

    fn extension(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut extensions = self.extensions;
        while let Some(mut extension) = next(&mut extensions, SEQUENCE) {
            if next(&mut extension, OBJECT_IDENTIFIER)? == name {
                if extension.first() == Some(&BOOLEAN) {
                    next(&mut extension, BOOLEAN)?;
                }
                return single_element(extension, OCTET_STRING);
            }
        }
        None
    }
}

/// Returns the modulus and the exponent of an RSA key (RFC 8017, appendix A.1.1), without leading zeros.
pub(super) fn rsa_key(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut key = single_element(key, SEQUENCE)?;
    let modulus = positive(next(&mut key, INTEGER)?)?;
    let exponent = positive(single_element(key, INTEGER)?)?;
    Some((modulus, exponent))
}

/// Returns the name of a key's algorithm, for messages.
pub(super) fn algorithm_name(algorithm: &[u8]) -> &'static str {
    let mut rest = algorithm;
    let identifier = next(&mut rest, OBJECT_IDENTIFIER).unwrap_or_default();
    match identifier {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01] => "RSA",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a] => "RSA-PSS",
        [0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01] => "DSA",
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01] => "ECDSA",
        [0x2b, 0x65, 0x71] => "Ed448",
        _ => "an unknown algorithm",
    }
}

/// Returns the bytes of a positive integer, or `None` for zero, negative numbers and padding that DER forbids.
fn positive(integer: &[u8]) -> Option<&[u8]> {
    match integer {
        [0, rest @ ..] if rest.first().is_some_and(|byte| *byte >= 0x80) => Some(rest),
        [0x01..=0x7f, ..] => Some(integer),
        _ => None,
    }
}

/// Returns the contents of the only element in `der`.
fn single_element(mut der: &[u8], tag: u8) -> Option<&[u8]> {
    let contents = next(&mut der, tag)?;
    der.is_empty().then_some(contents)
}

/// Removes the next element from `der`. Returns its contents, or `None` if the element has another tag.
fn next<'a>(der: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (actual_tag, contents) = element(der)?;
    (actual_tag == tag).then_some(contents)
}

/// Removes the next element from `der` and returns its tag and contents. Lengths of 64 KiB or more are rejected.
fn element<'a>(der: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (length, rest) = match **der {
        [_, length @ 0..=0x7f, ref rest @ ..] => (usize::from(length), rest),
        [_, 0x81, length @ 0x80..=0xff, ref rest @ ..] => (usize::from(length), rest),
        [_, 0x82, high @ 1..=0xff, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
        _ => return None,
    };
    let tag = *der.first()?;
    let (contents, rest) = rest.split_at_checked(length)?;
    *der = rest;
    Some((tag, contents))
}
