//! Arguments of `remote.vault`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::checks;
use crate::common::http::values::HttpUrl;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, Natural, Secret, choices};
use alluvium_lang::body::arguments;

arguments! {
    /// Arguments of `remote.vault`.
    pub(crate) struct VaultArguments {
        /// Key of the secret in the store. If this argument is not set, the key is part of `path`.
        key: Option<Arc<str>>,
        /// Namespace of the secret (Vault Enterprise).
        namespace: Option<Arc<str>>,
        /// Path of the secret, or of its store if `key` is set.
        path: Arc<str>,
        /// Time between two reads of the secret. With 0, only the leases of the secret and of the token cause further
        /// reads.
        reread_frequency: Duration = "0s",
        /// URL of the Vault server.
        server: HttpUrl,
    }
    blocks {
        /// Logs in with an AppRole: a role and its secret.
        approle as "auth.approle": Option<AppRole>,
        /// Logs in with an identity in Amazon Web Services.
        aws as "auth.aws": Option<AwsLogin>,
        /// Logs in with the machine's identity in Azure.
        azure as "auth.azure": Option<AzureLogin>,
        /// Logs in with any method: sends the given data to the given path.
        custom as "auth.custom": Option<Custom>,
        /// Logs in with an identity in Google Cloud.
        gcp as "auth.gcp": Option<GcpLogin>,
        /// Logs in with a Kubernetes service account.
        kubernetes as "auth.kubernetes": Option<Kubernetes>,
        /// Logs in with user name and password of an LDAP directory.
        ldap as "auth.ldap": Option<UserPassword> { mount_path = "ldap" },
        /// Uses a configured Vault token.
        token as "auth.token": Option<Token>,
        /// Logs in with user name and password.
        userpass as "auth.userpass": Option<UserPassword> { mount_path = "userpass" },
        /// Timeout and retries of requests.
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
        /// Path at which the login method is mounted.
        mount_path: Arc<str> = "approle",
        /// ID of the role to log in with.
        role_id: Arc<str>,
        /// Secret ID of the role to log in with.
        secret: Secret,
        /// If true, `secret` is a wrapping token that is exchanged for the secret ID.
        wrapping_token: bool = false,
    }
}

arguments! {
    /// The body of `auth.aws { }`.
    pub(crate) struct AwsLogin {
        /// Signature of the instance's identity, for the type `ec2`: `pkcs7` or `identity`.
        ec2_signature_type: Ec2Signature = "pkcs7",
        /// Value of the header `X-Vault-AWS-IAM-Server-ID`, for the type `iam`.
        iam_server_id_header: Option<Arc<str>>,
        /// Path at which the login method is mounted.
        mount_path: Arc<str> = "aws",
        /// AWS region of the token service (STS), for the type `iam`.
        region: Arc<str> = "us-east-1",
        /// Vault role to log in with.
        role: Option<Arc<str>>,
        /// Identity to log in with: `iam` or `ec2`.
        identity as "type": AwsIdentity,
    }
}

choices! {
    /// Form of the signature of an instance's identity.
    pub(crate) enum Ec2Signature {
        Pkcs7 = "pkcs7",
        Identity = "identity",
    }
}

choices! {
    /// The AWS identity that a login proves.
    pub(crate) enum AwsIdentity {
        Iam = "iam",
        Ec2 = "ec2",
    }
}

arguments! {
    /// The body of `auth.azure { }`.
    pub(crate) struct AzureLogin {
        /// Path at which the login method is mounted.
        mount_path: Arc<str> = "azure",
        /// Resource that the machine's token is valid for.
        resource_url: Arc<str> = "https://management.azure.com/",
        /// Vault role to log in with.
        role: Arc<str>,
    }
}

arguments! {
    /// The body of `auth.gcp { }`.
    pub(crate) struct GcpLogin {
        /// Service account to log in as, for the type `iam`.
        iam_service_account: Option<Arc<str>>,
        /// Path at which the login method is mounted.
        mount_path: Arc<str> = "gcp",
        /// Vault role to log in with.
        role: Arc<str>,
        /// Identity to log in with: `gce` or `iam`.
        identity as "type": GcpIdentity,
    }
    check GcpLogin::check;
}

choices! {
    /// The Google Cloud identity that a login proves.
    pub(crate) enum GcpIdentity {
        Gce = "gce",
        Iam = "iam",
    }
}

arguments! {
    /// The body of `auth.kubernetes { }`.
    pub(crate) struct Kubernetes {
        /// Path at which the login method is mounted.
        mount_path: Arc<str> = "kubernetes",
        /// Vault role to log in with.
        role: Arc<str>,
        /// File with the token of the service account.
        service_account_file: Arc<str> = "/var/run/secrets/kubernetes.io/serviceaccount/token",
    }
}

arguments! {
    /// The body of `auth.ldap { }` and `auth.userpass { }`.
    pub(crate) struct UserPassword {
        /// Path at which the login method is mounted.
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
        /// Data to send in the login request.
        data: BTreeMap<Arc<str>, Secret>,
        /// Namespace to log in to.
        namespace: Option<Arc<str>>,
        /// Path of the login request, such as `auth/jwt/login`.
        path: Arc<str>,
    }
}

arguments! {
    /// The body of `client_options { }`.
    pub(crate) struct ClientOptions {
        /// Maximum number of retries of a request, after a network error, a timeout, a server error or status 429.
        max_retries: Natural = 2,
        /// Maximum wait before a retry.
        max_retry_wait: Duration = "1500ms",
        /// Minimum wait before a retry.
        min_retry_wait: Duration = "1s",
        /// Timeout of a request, for each attempt.
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
                "`{}` names a store but no secret in it: use STORE/SECRET, or set key",
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
