//! Builds the access options and the TLS files of the server from flags and from the sections `auth` and
//! `server.http_tls_config` of the configuration file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::server::access::{AccessOptions, CertificateRule, OidcOptions, Rights, TenantScope};
use crate::server::tls::TlsFiles;

/// The value of `--auth` and of `auth.users` that disables authentication.
const NONE: &str = "none";

/// Authentication settings. Pyroscope has no such keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthSection {
    /// `none`, or a file of users with password hashes.
    pub users: Option<String>,
    pub tokens: Option<PathBuf>,
    /// If true, `/metrics` needs no authentication.
    pub open_metrics: bool,
    /// Rights of clients that present a certificate.
    pub certificates: Option<Vec<CertificateSection>>,
    /// The issuer whose tokens the server accepts.
    pub oidc: Option<OidcSection>,
}

/// Rights of a client certificate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CertificateSection {
    /// Common name of the certificate. `*` matches every certificate.
    pub name: String,
    pub roles: Vec<String>,
    #[serde(default)]
    pub tenants: Vec<String>,
}

/// An OpenID Connect issuer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OidcSection {
    pub issuer: String,
    pub audience: String,
    pub jwks_url: String,
    /// PEM file of the authorities that sign the certificate of `jwks_url`.
    pub ca_file: Option<PathBuf>,
    /// Claim that contains the identity's name for logs. Defaults to `sub`.
    pub name_claim: Option<String>,
    /// Claim that contains the tenants.
    pub tenant_claim: Option<String>,
    pub role_claim: Option<String>,
    /// Maps a value of the role claim to a role of Alluvium.
    #[serde(default)]
    pub roles: BTreeMap<String, String>,
}

/// Certificates of the port, under Pyroscope's key names.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HttpTlsSection {
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// PEM file of the authorities that sign client certificates.
    pub client_ca_file: Option<PathBuf>,
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

/// Access flags. They override the configuration file.
#[derive(Debug, Default)]
pub(crate) struct AccessFlags {
    /// `none`, or the path of a users file.
    pub auth: Option<String>,
    pub tokens: Option<PathBuf>,
    /// PEM file with the port's certificate.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// PEM file of the authorities that sign client certificates.
    pub tls_client_ca: Option<PathBuf>,
}

/// Returns the TLS files, if TLS is configured.
pub(crate) fn tls_files(flags: &AccessFlags, file: &HttpTlsSection) -> anyhow::Result<Option<TlsFiles>> {
    let flag_or_file = |flag: &Option<PathBuf>, file: &Option<PathBuf>| flag.clone().or_else(|| file.clone());
    let client_ca = flag_or_file(&flags.tls_client_ca, &file.client_ca_file);
    let certificate = flag_or_file(&flags.tls_cert, &file.cert_file);
    let key = flag_or_file(&flags.tls_key, &file.key_file);
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
            certificate,
            key,
            client_ca,
        })),
        (None, None) if client_ca.is_none() => Ok(None),
        _ => bail!("TLS needs both --tls-cert and --tls-key (cert_file and key_file of server.http_tls_config)"),
    }
}

/// Returns the access options of a server with this data folder.
pub(crate) fn access_options(
    flags: AccessFlags,
    file: AuthSection,
    tls: Option<&TlsFiles>,
    data: &Path,
) -> anyhow::Result<AccessOptions> {
    let mut options = AccessOptions::new(data);
    let users = flags.auth.or(file.users);
    options.is_open = users.as_deref() == Some(NONE);
    options.users = users.filter(|users| users != NONE).map(PathBuf::from);
    if let Some(tokens) = flags.tokens.or(file.tokens) {
        options.tokens = tokens;
    }
    options.open_metrics = file.open_metrics;
    options.certificates = certificates(file.certificates, tls)?;
    options.oidc = file.oidc.map(oidc).transpose()?;
    if options.is_open && (options.oidc.is_some() || options.certificates.is_some()) {
        bail!("auth: `none` turns authentication off, but the configuration has certificate rules or an issuer");
    }
    Ok(options)
}

/// Returns the rules for client certificates, if an authority for them is configured. If there are no explicit rules, a
/// client with any certificate of that authority may read and write the only tenant of a single-tenant server.
fn certificates(
    sections: Option<Vec<CertificateSection>>,
    tls: Option<&TlsFiles>,
) -> anyhow::Result<Option<Vec<CertificateRule>>> {
    let has_authority = tls.is_some_and(|tls| tls.client_ca.is_some());
    let Some(sections) = sections else {
        let everybody = CertificateRule {
            name: "*".to_owned(),
            rights: Rights::of_roles(["read", "write"])?,
            tenants: TenantScope::anonymous(),
        };
        return Ok(has_authority.then(|| vec![everybody]));
    };
    if !has_authority {
        bail!("auth.certificates needs the authority of the certificates: --tls-client-ca");
    }
    let rules = sections.into_iter().map(|section| {
        let (rights, tenants) = rights_and_tenants(&section.roles, &section.tenants)
            .with_context(|| format!("auth.certificates: `{}`", section.name))?;
        Ok(CertificateRule {
            name: section.name,
            rights,
            tenants,
        })
    });
    Ok(Some(rules.collect::<anyhow::Result<_>>()?))
}

/// Parses the names of roles and the ids of tenants, which come from flags or from the configuration file.
pub(crate) fn rights_and_tenants(roles: &[String], tenants: &[String]) -> anyhow::Result<(Rights, TenantScope)> {
    Ok((
        Rights::of_roles(roles.iter().map(String::as_str))?,
        TenantScope::of_ids(tenants.iter().map(String::as_str))?,
    ))
}

fn oidc(section: OidcSection) -> anyhow::Result<OidcOptions> {
    let url = section.jwks_url.parse::<url::Url>();
    let roles = section.roles.into_iter().map(|(value, role)| {
        let rights = role
            .parse::<Rights>()
            .with_context(|| format!("auth.oidc.roles: `{value}`"))?;
        Ok((value, rights))
    });
    Ok(OidcOptions {
        issuer: section.issuer,
        audience: section.audience,
        jwks_url: url.with_context(|| format!("auth.oidc.jwks_url: `{}` is not a URL", section.jwks_url))?,
        ca: section.ca_file,
        name_claim: section.name_claim.unwrap_or_else(|| "sub".to_owned()),
        tenant_claim: section.tenant_claim,
        role_claim: section.role_claim.unwrap_or_else(|| "roles".to_owned()),
        roles: roles.collect::<anyhow::Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config;

    fn options(text: &str, flags: AccessFlags) -> anyhow::Result<AccessOptions> {
        let file = config::parse(text)?;
        let tls = tls_files(&flags, &file.server.http_tls_config)?;
        access_options(flags, file.auth, tls.as_ref(), Path::new("/data"))
    }

    #[test]
    fn flags_win_over_the_file_and_the_tokens_lie_in_the_data_folder() {
        let plain = options("", AccessFlags::default()).unwrap();
        assert!(!plain.is_open && plain.users.is_none() && plain.certificates.is_none());
        assert_eq!(plain.tokens, Path::new("/data/tokens.json"));
        let text = "auth:\n  users: none\n  tokens: /etc/t.json\n  open_metrics: true\n";
        let open = options(text, AccessFlags::default()).unwrap();
        assert!(open.is_open && open.open_metrics);
        assert_eq!(open.tokens, Path::new("/etc/t.json"));
        let flags = AccessFlags {
            auth: Some("/etc/users".to_owned()),
            ..AccessFlags::default()
        };
        let closed = options(text, flags).unwrap();
        assert!(!closed.is_open);
        assert_eq!(closed.users.as_deref(), Some(Path::new("/etc/users")));
    }

    #[test]
    fn certificates_and_an_issuer_are_read() {
        let tls = "server:\n  http_tls_config: {cert_file: a, key_file: b, client_ca_file: c}\n";
        let everybody = options(tls, AccessFlags::default()).unwrap().certificates.unwrap();
        assert_eq!(
            (everybody[0].name.as_str(), everybody[0].rights.to_string().as_str()),
            ("*", "read,write")
        );
        let text = format!(
            "{tls}auth:\n  certificates: [{{name: agent, roles: [write], tenants: [shop]}}]\n  oidc:\n    issuer: i\
            \n    audience: a\n    jwks_url: https://i/keys\n    roles: {{viewer: read}}\n"
        );
        let parsed = options(&text, AccessFlags::default()).unwrap();
        assert_eq!(parsed.certificates.unwrap()[0].tenants.ids(), ["shop"]);
        let oidc = parsed.oidc.unwrap();
        assert_eq!(
            (oidc.name_claim.as_str(), oidc.roles["viewer"].to_string().as_str()),
            ("sub", "read")
        );
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for (text, word) in [
            ("server:\n  http_tls_config: {cert_file: a}\n", "both --tls-cert"),
            ("auth:\n  certificates: [{name: a, roles: [read]}]\n", "--tls-client-ca"),
            (
                "auth:\n  users: none\n  oidc: {issuer: i, audience: a, jwks_url: \"https://i\"}\n",
                "turns authentication off",
            ),
            (
                "auth:\n  oidc: {issuer: i, audience: a, jwks_url: keys}\n",
                "`keys` is not a URL",
            ),
            ("auth:\n  user: none\n", "user"),
        ] {
            let error = format!("{:#}", options(text, AccessFlags::default()).unwrap_err());
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
