//! The name in a client certificate.
//!
//! In: a certificate in DER that the TLS handshake has verified. Out: the common name of its subject.

use x509_certificate::X509Certificate;

/// Returns the common name of the subject, if the certificate is readable and has one.
pub(super) fn common_name(certificate: &[u8]) -> Option<String> {
    X509Certificate::from_der(certificate).ok()?.subject_common_name()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_common_name_is_read_and_nonsense_is_not() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/integration/fixtures/tls/cert.pem");
        let certificate = CertificateDer::from_pem_file(path).unwrap();
        assert_eq!(common_name(&certificate).as_deref(), Some("localhost"));
        assert_eq!(common_name(b"nonsense"), None);
    }
}
