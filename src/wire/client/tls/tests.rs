//! Tests the verifier against certificates and servers of OpenSSL. The expected verdicts come from Go's client.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use crate::client::tls::certificate::Certificate;
use crate::client::tls::provider::provider;
use crate::client::tls::verifier::{Trust, Verifier};
use crate::client::tls::{TlsOptions, configure};
use alluvium_base::pem::Pem;

const DAY: u64 = 86_400;

/// A temporary folder in which OpenSSL makes certificates.
struct Folder(tempfile::TempDir);

/// Server process that is killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace()).current_dir(self.0.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes `NAME.pem` and `NAME.key`: by default a self-signed authority.
    fn certificate(&self, name: &str, key: &str, options: &str) {
        self.openssl(&format!(
            "req -x509 -newkey {key} -nodes -keyout {name}.key -out {name}.pem -days 30 -subj /CN=127.0.0.1 {options}"
        ));
    }

    /// Makes `NAME.pem` and `NAME.key`, signed by an authority, without extensions: X.509 v1.
    fn old_certificate(&self, name: &str, authority: &str) {
        self.openssl(&format!(
            "req -newkey {EC} -nodes -keyout {name}.key -out {name}.csr -subj /CN=127.0.0.1"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {name}.pem"
        ));
    }

    fn read(&self, name: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.path(&format!("{name}.pem"))).unwrap()
    }

    /// Requests a page from a server with the certificate `name`, under both TLS versions. Returns the response's
    /// status.
    fn ask(&self, name: &str, options: &TlsOptions) -> Result<String, String> {
        let new = self.ask_by(name, options, "-tls1_3");
        assert_eq!(new, self.ask_by(name, options, "-tls1_2"), "TLS 1.3 and TLS 1.2 differ");
        new
    }

    fn ask_by(&self, name: &str, options: &TlsOptions, server_options: &str) -> Result<String, String> {
        let mut command = Command::new("openssl");
        command.args([
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-www",
            "-cipher",
            "DEFAULT:@SECLEVEL=0",
        ]);
        command.args(["-cert", &format!("{name}.pem"), "-key", &format!("{name}.key")]);
        command
            .args(server_options.split_whitespace())
            .current_dir(self.0.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = Server(command.spawn().unwrap());
        let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT ").map(str::to_owned));
        let mut stream = TcpStream::connect(address.unwrap()).unwrap();
        let config = Arc::new(configure(options, &[]).unwrap());
        let mut connection = rustls::ClientConnection::new(config, localhost()).unwrap();
        let mut stream = rustls::Stream::new(&mut connection, &mut stream);
        let write_result = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
        write_result.map_err(|error| error.to_string())?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        Ok(String::from_utf8_lossy(&status).into_owned())
    }

    /// Verifies the certificate `name` against `authorities`, as if the current time were `days` days later.
    fn verify(&self, name: &str, authorities: &[&str], host: &str, days: i64) -> Result<(), String> {
        let provider = Arc::new(provider());
        let certificates = authorities.iter().map(|name| self.read(name)).collect();
        let trust = Trust::authorities(certificates, provider.clone()).unwrap();
        let verifier = Verifier::new(trust, None, provider);
        let now = UnixTime::now().as_secs().saturating_add_signed(days * DAY as i64);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        let host = ServerName::try_from(host.to_owned()).unwrap();
        let verdict = verifier.verify_server_cert(&self.read(name), &[], &host, &[], now);
        verdict.map(|_| ()).map_err(|error| error.to_string())
    }

    fn trusting(&self, name: &str) -> TlsOptions {
        TlsOptions {
            ca: Some(Pem::File(self.path(&format!("{name}.pem")))),
            ..TlsOptions::default()
        }
    }

    /// Signs a message and returns the signature.
    fn sign(&self, key: &str, message: &[u8], options: &str) -> Vec<u8> {
        std::fs::write(self.path("message"), message).unwrap();
        self.openssl(&format!("dgst -sign {key}.key {options} -out signature message"));
        std::fs::read(self.path("signature")).unwrap()
    }
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("127.0.0.1").unwrap()
}

fn reckless() -> TlsOptions {
    TlsOptions {
        insecure_skip_verify: true,
        ..TlsOptions::default()
    }
}

const EC: &str = "ec -pkeyopt ec_paramgen_curve:P-256";
const P521: &str = "ec -pkeyopt ec_paramgen_curve:P-521";
const SAN: &str = "-addext subjectAltName=IP:127.0.0.1,DNS:server.test";

fn answered() -> Result<String, String> {
    Ok("HTTP/1.0 200".to_owned())
}

#[test]
fn an_authority_that_is_trusted_itself_may_be_the_server() {
    let folder = Folder::new();
    folder.certificate("self", "rsa:2048", SAN);
    assert_eq!(folder.ask("self", &folder.trusting("self")), answered());
    assert_eq!(folder.verify("self", &["self"], "127.0.0.1", 0), Ok(()));
    assert_eq!(folder.verify("self", &["self"], "server.test", 29), Ok(()));
    folder.certificate(
        "any",
        EC,
        &format!("{SAN} -addext extendedKeyUsage=anyExtendedKeyUsage"),
    );
    folder.certificate(
        "server",
        EC,
        &format!("{SAN} -addext extendedKeyUsage=clientAuth,serverAuth"),
    );
    for name in ["any", "server"] {
        assert_eq!(folder.verify(name, &["self", name], "127.0.0.1", 0), Ok(()), "{name}");
    }
}

#[test]
fn a_certificate_that_is_trusted_itself_must_have_the_name_the_time_and_the_purpose() {
    let folder = Folder::new();
    folder.certificate("self", EC, SAN);
    let refused = |name, host, days| folder.verify(name, &[name], host, days).unwrap_err();
    assert!(refused("self", "127.0.0.2", 0).contains("not valid for name"));
    assert!(refused("self", "other.test", 0).contains("not valid for name"));
    assert!(refused("self", "127.0.0.1", 31).contains("certificate expired"));
    assert!(refused("self", "127.0.0.1", -1).contains("not valid yet"));
    folder.certificate("common-name", EC, "");
    assert!(refused("common-name", "127.0.0.1", 0).contains("not valid for"));
    folder.certificate("client", EC, &format!("{SAN} -addext extendedKeyUsage=clientAuth"));
    assert!(refused("client", "127.0.0.1", 0).contains("extended key usage"));
    folder.certificate("critical", EC, &format!("{SAN} -addext 1.2.3.4=critical,DER:0500"));
    assert!(refused("critical", "127.0.0.1", 0).contains("UnsupportedCriticalExtension"));
}

#[test]
fn an_authority_is_no_server_because_another_certificate_is_trusted() {
    let folder = Folder::new();
    folder.certificate("self", EC, SAN);
    folder.certificate("twin", EC, SAN);
    folder.certificate("stranger", EC, "-subj /CN=stranger");
    folder.openssl("req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=leaf");
    std::fs::write(
        folder.path("leaf.cnf"),
        "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:TRUE\n",
    )
    .unwrap();
    folder.openssl(
        "x509 -req -in leaf.csr -CA stranger.pem -CAkey stranger.key -CAcreateserial -extfile leaf.cnf -out leaf.pem",
    );
    for (name, authorities) in [
        ("self", &["twin"][..]),
        ("self", &["stranger"]),
        ("self", &["twin", "stranger"]),
        ("leaf", &["stranger"]),
    ] {
        let error = folder.verify(name, authorities, "127.0.0.1", 0).unwrap_err();
        assert!(error.contains("is marked as an authority (CA:TRUE)"), "{name}: {error}");
    }
    // Another authority issued the certificate, but the client trusts the certificate itself.
    assert_eq!(folder.verify("leaf", &["leaf"], "127.0.0.1", 0), Ok(()));
}

#[test]
fn x509_v1_is_accepted_only_without_verification() {
    let folder = Folder::new();
    folder.certificate("ca", EC, "");
    folder.old_certificate("old", "ca");
    assert_eq!(Certificate::read(&folder.read("old")).unwrap().version, 1);
    assert_eq!(folder.ask("old", &reckless()), answered());
    for authorities in [&["ca"][..], &["old"]] {
        let error = folder.verify("old", authorities, "127.0.0.1", 0).unwrap_err();
        assert!(error.contains("the server's certificate is X.509 version 1"), "{error}");
    }
}

#[test]
fn rsa_keys_of_1024_bits_are_accepted_and_shorter_ones_are_named() {
    let folder = Folder::new();
    for bits in [1024, 1025, 1030] {
        folder.certificate("small", &format!("rsa:{bits}"), SAN);
        assert_eq!(folder.ask("small", &reckless()), answered(), "{bits} bits");
        assert_eq!(
            folder.ask("small", &folder.trusting("small")),
            answered(),
            "{bits} bits"
        );
    }
    folder.certificate("tiny", "rsa:768", SAN);
    let error = folder.ask("tiny", &reckless()).unwrap_err();
    assert!(
        error.contains("has an RSA key of 768 bits: at least 1024 bits"),
        "{error}"
    );
}

#[test]
fn the_curve_p521_is_supported_for_certificates_and_for_key_exchange() {
    let folder = Folder::new();
    folder.certificate("p521", P521, SAN);
    assert_eq!(folder.ask("p521", &folder.trusting("p521")), answered());
    assert_eq!(folder.ask("p521", &reckless()), answered());
    for version in ["-tls1_2", "-tls1_3"] {
        let options = format!("{version} -groups P-521");
        assert_eq!(folder.ask_by("p521", &reckless(), &options), answered());
    }
    folder.certificate("other", P521, SAN);
    assert!(folder.ask("p521", &folder.trusting("other")).is_err());
}

#[test]
fn a_client_key_that_ring_cannot_use_is_refused_with_those_that_it_can() {
    let folder = Folder::new();
    folder.certificate("p521", P521, "");
    folder.certificate("small", "rsa:1024", "");
    for name in ["p521", "small"] {
        let options = TlsOptions {
            certificate: Some(Pem::File(folder.path(&format!("{name}.pem")))),
            key: Some(Pem::File(folder.path(&format!("{name}.key")))),
            ..TlsOptions::default()
        };
        let error = configure(&options, &[]).unwrap_err().to_string();
        assert!(
            error.contains("it must be RSA with 2048 to 4096 bits, ECDSA on P-256"),
            "{error}"
        );
    }
}

#[test]
fn a_signature_fits_one_key_one_message_and_one_algorithm() {
    let folder = Folder::new();
    folder.certificate("rsa", "rsa:1024", "");
    folder.certificate("rsa-other", "rsa:1024", "");
    folder.certificate("p521", P521, "");
    folder.certificate("p521-other", P521, "");
    let pss = "-sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest";
    let signatures = [
        ("rsa", "-sha256", "", "RSA_PKCS1_SHA256"),
        ("rsa", "-sha384", "", "RSA_PKCS1_SHA384"),
        ("rsa", "-sha512", "", "RSA_PKCS1_SHA512"),
        ("rsa", "-sha256", pss, "RSA_PSS_SHA256"),
        ("rsa", "-sha384", pss, "RSA_PSS_SHA384"),
        ("p521", "-sha512", "", "ECDSA_NISTP521_SHA512"),
    ];
    let schemes = provider().signature_verification_algorithms.mapping;
    let certificates = ["rsa", "rsa-other", "p521", "p521-other"].map(|name| (name, folder.read(name)));
    for (key, digest, padding, scheme) in signatures {
        let signature = folder.sign(key, b"message", &format!("{digest} {padding}"));
        for (name, certificate) in &certificates {
            let certificate = Certificate::read(certificate).unwrap();
            for (other, algorithms) in schemes {
                let is_right = *name == key && format!("{other:?}") == scheme;
                let mut fitting = algorithms.iter();
                let fitting = fitting.find(|algorithm| *algorithm.public_key_alg_id() == *certificate.key_algorithm);
                let Some(algorithm) = fitting else {
                    continue;
                };
                let verify = |message: &[u8], signature: &[u8]| {
                    let verdict = algorithm.verify_signature(certificate.key, message, signature);
                    verdict.is_ok()
                };
                assert_eq!(
                    verify(b"message", &signature),
                    is_right,
                    "{scheme} by {name} as {other:?}"
                );
                assert!(!verify(b"messages", &signature), "{scheme}: another message");
                for byte in 0..signature.len() {
                    let mut damaged_signature = signature.clone();
                    damaged_signature[byte] ^= 1;
                    assert!(
                        !is_right || !verify(b"message", &damaged_signature),
                        "{scheme}: byte {byte}"
                    );
                }
                assert!(!verify(b"message", &signature[1..]), "{scheme}: too short");
                assert!(
                    !verify(b"message", &[&signature[..], &[0]].concat()),
                    "{scheme}: too long"
                );
                assert!(!verify(b"message", &[]), "{scheme}: empty");
            }
        }
    }
    // TLS requires a salt as long as the digest.
    let signature = folder.sign(
        "rsa",
        b"message",
        "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:20",
    );
    let certificate = Certificate::read(&certificates[0].1).unwrap();
    let is_valid = |(_, algorithms): &(_, &[&'static dyn rustls::pki_types::SignatureVerificationAlgorithm])| {
        let verify = |algorithm: &&'static dyn rustls::pki_types::SignatureVerificationAlgorithm| {
            algorithm
                .verify_signature(certificate.key, b"message", &signature)
                .is_ok()
        };
        algorithms.iter().any(verify)
    };
    assert!(!schemes.iter().any(is_valid));
}

#[test]
fn a_certificate_that_is_cut_or_changed_is_read_without_panic() {
    let folder = Folder::new();
    folder.certificate("self", EC, SAN);
    let certificate = folder.read("self");
    assert!(Certificate::read(&certificate).unwrap().is_for_servers());
    for length in 0..certificate.len() {
        assert_eq!(Certificate::read(&certificate[..length]), None, "{length} bytes");
    }
    for byte in 0..certificate.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = certificate.to_vec();
            changed[byte] = value;
            let _ = Certificate::read(&changed).map(|certificate| certificate.is_for_servers());
        }
    }
}
