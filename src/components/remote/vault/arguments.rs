//! Arguments of `remote.vault`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::arguments::checks;
use crate::components::common::http::values::HttpUrl;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{Interval, Natural, Secret, choices};
use crate::lang::body::arguments;

arguments! {
    /// Arguments of `remote.vault`.
    pub(crate) struct VaultArguments {
        /// Key of the secret, where it is not part of the path.
        key: Option<Arc<str>>,
        /// Namespace (Vault Enterprise).
        namespace: Option<Arc<str>>,
        /// Path of the secret in Vault.
        path: Arc<str>,
        /// Time after which a secret without a lease is read again; 0 is never.
        reread_frequency: Duration = "0s",
        /// URL of the Vault server.
        server: HttpUrl,
    }
    blocks {
        /// Credentials: a role and its secret.
        approle as "auth.approle": Option<AppRole>,
        /// Credentials: the machine's identity in Amazon Web Services.
        aws as "auth.aws": Option<AwsLogin>,
        /// Credentials: the machine's identity in Azure.
        azure as "auth.azure": Option<AzureLogin>,
        /// Credentials: data for any method of login.
        custom as "auth.custom": Option<Custom>,
        /// Credentials: the machine's identity in Google Cloud.
        gcp as "auth.gcp": Option<GcpLogin>,
        /// Credentials: a service account of Kubernetes.
        kubernetes as "auth.kubernetes": Option<Kubernetes>,
        /// Credentials: user and password of a directory.
        ldap as "auth.ldap": Option<UserPassword> { mount_path = "ldap" },
        /// Credentials: a token of Vault.
        token as "auth.token": Option<Token>,
        /// Credentials: user and password.
        userpass as "auth.userpass": Option<UserPassword> { mount_path = "userpass" },
        /// How the server is asked.
        client_options: ClientOptions,
    }
    check VaultArguments::check;
}

arguments! {
    /// The body of `auth.token { }`.
    pub(crate) struct Token {
        /// The token that is sent with every request.
        token: Secret,
    }
}

arguments! {
    /// The body of `auth.approle { }`.
    pub(crate) struct AppRole {
        /// Path that the method is mounted at.
        mount_path: Arc<str> = "approle",
        /// Id of the role to log in with.
        role_id: Arc<str>,
        /// Secret of the role to log in with.
        secret: Secret,
        /// Whether the secret is a token to unwrap.
        wrapping_token: bool = false,
    }
}

arguments! {
    /// The body of `auth.aws { }`.
    pub(crate) struct AwsLogin {
        /// Signature of the instance's identity: pkcs7 or identity.
        ec2_signature_type: Ec2Signature = "pkcs7",
        /// Value of the header with the server's id.
        iam_server_id_header: Option<Arc<str>>,
        /// Path that the method is mounted at.
        mount_path: Arc<str> = "aws",
        /// Region of the service that is asked.
        region: Arc<str> = "us-east-1",
        /// Role of Vault to log in with.
        role: Option<Arc<str>>,
        /// Which identity: iam or ec2.
        identity as "type": AwsIdentity,
    }
}

choices! {
    /// How the identity of an instance is signed.
    pub(crate) enum Ec2Signature {
        Pkcs7 = "pkcs7",
        Identity = "identity",
    }
}

choices! {
    /// Which identity is shown of a machine at Amazon.
    pub(crate) enum AwsIdentity {
        Iam = "iam",
        Ec2 = "ec2",
    }
}

arguments! {
    /// The body of `auth.azure { }`.
    pub(crate) struct AzureLogin {
        /// Path that the method is mounted at.
        mount_path: Arc<str> = "azure",
        /// Resource that the machine's token is for.
        resource_url: Arc<str> = "https://management.azure.com/",
        /// Role of Vault to log in with.
        role: Arc<str>,
    }
}

arguments! {
    /// The body of `auth.gcp { }`.
    pub(crate) struct GcpLogin {
        /// Service account, for the type iam.
        iam_service_account: Option<Arc<str>>,
        /// Path that the method is mounted at.
        mount_path: Arc<str> = "gcp",
        /// Role of Vault to log in with.
        role: Arc<str>,
        /// Which identity: gce or iam.
        identity as "type": GcpIdentity,
    }
    check GcpLogin::check;
}

choices! {
    /// Which identity is shown of a machine at Google.
    pub(crate) enum GcpIdentity {
        Gce = "gce",
        Iam = "iam",
    }
}

arguments! {
    /// The body of `auth.kubernetes { }`.
    pub(crate) struct Kubernetes {
        /// Path that the method is mounted at.
        mount_path: Arc<str> = "kubernetes",
        /// Role of Vault to log in with.
        role: Arc<str>,
        /// File with the token of the service account.
        service_account_file: Arc<str> = "/var/run/secrets/kubernetes.io/serviceaccount/token",
    }
}

arguments! {
    /// `auth.ldap { }` and `auth.userpass { }`
    pub(crate) struct UserPassword {
        /// Path that the method is mounted at.
        mount_path: Arc<str> = "",
        /// Password to log in with.
        password: Secret,
        /// User name to log in with.
        username: Arc<str>,
    }
}

arguments! {
    /// The body of `auth.custom { }`.
    pub(crate) struct Custom {
        /// Data that the login is made of.
        data: BTreeMap<Arc<str>, Secret>,
        /// Namespace to log in to.
        namespace: Option<Arc<str>>,
        /// Path that the login is sent to.
        path: Arc<str>,
    }
}

arguments! {
    /// The body of `client_options { }`.
    pub(crate) struct ClientOptions {
        /// How often a failed request is sent again.
        max_retries: Natural = 2,
        /// Longest wait before that.
        max_retry_wait: Duration = "1500ms",
        /// Shortest wait before that.
        min_retry_wait: Duration = "1s",
        /// Longest time that a request may take.
        timeout: Interval = "60s",
    }
}

impl VaultArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        checks::exactly_one(&[
            ("auth.token", self.token.is_some()),
            ("auth.approle", self.approle.is_some()),
            ("auth.aws", self.aws.is_some()),
            ("auth.azure", self.azure.is_some()),
            ("auth.gcp", self.gcp.is_some()),
            ("auth.kubernetes", self.kubernetes.is_some()),
            ("auth.ldap", self.ldap.is_some()),
            ("auth.userpass", self.userpass.is_some()),
            ("auth.custom", self.custom.is_some()),
        ])?;
        if self.key.is_none() && !self.path.trim_matches('/').contains('/') {
            let message = format!(
                "`{}` names a store and no secret in it: use STORE/SECRET, or key",
                self.path
            );
            return Err(ArgumentError::new("path", message));
        }
        Ok(())
    }
}

impl GcpLogin {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.identity == GcpIdentity::Iam && self.iam_service_account.is_none() {
            let message = "iam_service_account must not be empty";
            return Err(ArgumentError::new("iam_service_account", message));
        }
        Ok(())
    }
}
