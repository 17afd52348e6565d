//! Logins with an identity that a cloud assigns to a machine or an account.
//!
//! In: the arguments of a login. Out: the body of the login request, which proves the identity to Vault. Every login
//! looks up credentials and identities again. Only the nonce of logins with an EC2 identity is stored, in a file.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::common::clouds::aws::account::Account;
use crate::common::clouds::aws::client::Aws;
use crate::common::clouds::azure_machine::AzureMachine;
use crate::common::clouds::bearer;
use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::google::Google;
use crate::common::http::api_error::ApiError;
use crate::common::http::web_api::WebApi;
use crate::remote::vault::arguments::{AwsIdentity, AwsLogin, AzureLogin, Ec2Signature, GcpIdentity, GcpLogin};
use alluvium_base::file::{create_folders, replace};
use alluvium_pipeline::component::{ComponentError, Context};
use alluvium_wire::client::{ClientOptions, ProxyOptions};

/// Header with the name of the Vault server. The signature of the login request covers this header, so the login is
/// valid for this server only.
const SERVER_ID: HeaderName = HeaderName::from_static("x-vault-aws-iam-server-id");
/// URL of Google's API that signs tokens with the keys of service accounts.
const IAM: &str = "https://iamcredentials.googleapis.com/v1/";
/// OAuth scope of requests to [`IAM`].
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Lifetime of a token that Google signs. Vault rejects a token with a lifetime of more than 15 minutes.
const LIFETIME: Duration = Duration::from_mins(10);
/// Name of the file that stores the nonce of this machine's logins.
const NONCE: &str = "nonce";

/// The options, environment and folder that logins with a cloud identity need.
pub(super) struct Clouds {
    options: ClientOptions,
    environment: Environment,
    /// URL of Google's API that signs tokens.
    iam: Url,
    /// The component's folder.
    folder: PathBuf,
}

/// The reason why an identity cannot be proved.
#[derive(Debug, thiserror::Error)]
pub(super) enum IdentityError {
    /// The cloud refused the identity, or cannot be reached.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// Google signed no token, or a value cannot be sent in a header.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A client of the cloud cannot be created.
    #[error(transparent)]
    Client(#[from] ComponentError),
    /// The nonce of this machine's logins cannot be read or stored.
    #[error("cannot read or write the nonce file {}: {source}", path.display())]
    Nonce { path: PathBuf, source: io::Error },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Signed {
    signed_jwt: String,
}

impl Clouds {
    /// Prepares logins with a cloud identity. Reads no file and sends no request.
    pub(super) fn new(context: &Context, environment: Environment) -> Result<Self, ComponentError> {
        Ok(Self {
            options: ClientOptions {
                proxy: ProxyOptions {
                    from_environment: true,
                    ..ProxyOptions::default()
                },
                ..ClientOptions::new(context.user_agent.clone())
            },
            environment,
            iam: IAM
                .parse()
                .map_err(|error| ComponentError(format!("{IAM} is not a URL: {error}")))?,
            folder: context.data_path.clone(),
        })
    }

    /// `auth.aws`: returns a signed request to AWS, without sending it, or the signed identity of the machine.
    pub(super) async fn aws(&self, login: &AwsLogin) -> Result<Value, IdentityError> {
        let account = Account {
            access_key: None,
            endpoint: None,
            profile: None,
            region: Some(login.region.clone()),
            role_arn: None,
            secret_key: None,
        };
        let aws = Aws::new(&account, None, &self.options, self.environment.clone());
        let aws = aws?;
        let mut body = match login.identity {
            AwsIdentity::Iam => iam_request(&aws, login.iam_server_id_header.as_deref()).await?,
            AwsIdentity::Ec2 => {
                let part = async |name| Ok::<_, CloudError>(aws.machine_identity(name).await?.replace('\n', ""));
                let mut body = match login.ec2_signature_type {
                    Ec2Signature::Pkcs7 => json!({ "pkcs7": part("pkcs7").await? }),
                    Ec2Signature::Identity => json!({
                        // The signature covers every byte of the document.
                        "identity": STANDARD.encode(aws.machine_identity("document").await?),
                        "signature": part("signature").await?,
                    }),
                };
                body["nonce"] = self.nonce()?.into();
                body
            }
        };
        if let Some(role) = &login.role {
            body["role"] = Value::from(&**role);
        }
        Ok(body)
    }

    /// `auth.azure`: returns a token of the machine's identity, and the names that identify the machine.
    pub(super) async fn azure(&self, login: &AzureLogin) -> Result<Value, IdentityError> {
        let machine = AzureMachine::new(&self.options.user_agent, self.environment.clone());
        let machine = machine?;
        let token = machine.token(&login.resource_url, "").await?;
        let instance = machine.instance().await?;
        Ok(json!({
            "role": *login.role,
            "jwt": *token.value,
            "vm_name": instance.name,
            "vmss_name": instance.vm_scale_set_name,
            "subscription_id": instance.subscription_id,
            "resource_group_name": instance.resource_group_name,
        }))
    }

    /// `auth.gcp`: returns the identity of the machine for the Vault at `server`, or a token that Google signs for a
    /// service account.
    pub(super) async fn gcp(&self, login: &GcpLogin, server: &Url) -> Result<Value, IdentityError> {
        let google = Google::new(SCOPE, &self.options, self.environment.clone());
        let google = google?;
        let role = &*login.role;
        let jwt = match login.identity {
            GcpIdentity::Gce => {
                let server = server.as_str().trim_end_matches('/');
                google.machine_identity(&format!("{server}/vault/{role}")).await?
            }
            GcpIdentity::Iam => {
                let account = login.iam_service_account.as_deref().unwrap_or_default();
                self.signed(&google, account, role).await?
            }
        };
        Ok(json!({ "role": role, "jwt": jwt }))
    }

    /// Returns a token for a Vault role, which Google signs with the key of a service account.
    async fn signed(&self, google: &Google, account: &str, role: &str) -> Result<String, IdentityError> {
        let ends = SystemTime::now() + LIFETIME;
        let ends = ends.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = json!({ "aud": format!("vault/{role}"), "sub": account, "exp": ends });
        let api = WebApi::with_options(&self.options, &self.iam)?;
        let url = api.url(["projects", "-", "serviceAccounts", &format!("{account}:signJwt")]);
        let request = api.request(Method::POST, url);
        let request = request.headers(bearer::header(&google.token().await?)?);
        let request = request.header(CONTENT_TYPE, "application/json");
        // The JSON of the request contains the claims as a string.
        let body = json!({ "payload": claims.to_string() }).to_string();
        let answer = api.send(request.body(body)).await?;
        Ok(answer.json::<Signed>()?.signed_jwt)
    }

    /// Returns the nonce of this machine's logins. Vault accepts later logins of a machine only with the nonce of its
    /// first login, so a file stores the nonce.
    fn nonce(&self) -> Result<String, IdentityError> {
        let path = self.folder.join(NONCE);
        let failed = |source: io::Error| IdentityError::Nonce {
            path: path.clone(),
            source,
        };
        match std::fs::read_to_string(&path) {
            Ok(nonce) => return Ok(nonce),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let nonce = uuid::Uuid::new_v4().to_string();
        create_folders(&self.folder).map_err(failed)?;
        replace(&path, nonce.as_bytes()).map_err(failed)?;
        Ok(nonce)
    }
}

/// Returns the parts of a signed request to AWS. Vault sends the request itself, and the response of AWS names the
/// signer of the request.
async fn iam_request(aws: &Aws, server_id: Option<&str>) -> Result<Value, IdentityError> {
    let mut headers = HeaderMap::new();
    if let Some(id) = server_id {
        let id = HeaderValue::from_str(id).map_err(|source| ApiError::Header {
            subject: "iam_server_id_header",
            source,
        })?;
        headers.insert(SERVER_ID, id);
    }
    let request = aws.identity_request(headers).await?;
    let headers = request.headers().iter();
    let headers: BTreeMap<&str, [String; 1]> = headers
        .map(|(name, value)| (name.as_str(), [String::from_utf8_lossy(value.as_bytes()).into_owned()]))
        .collect();
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
    Ok(json!({
        "iam_http_request_method": request.method().as_str(),
        "iam_request_url": STANDARD.encode(request.url().as_str()),
        "iam_request_headers": STANDARD.encode(json!(headers).to_string()),
        "iam_request_body": STANDARD.encode(body),
    }))
}

#[cfg(test)]
#[path = "clouds_tests.rs"]
mod tests;
