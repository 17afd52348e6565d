//! Tests of logins with cloud identities against fake metadata services and APIs. Their responses follow the
//! documentation of the clouds.

use axum::http::StatusCode;
use serde_json::Value as Json;

use super::*;
use crate::common::clouds::aws::testing::Amazon;
use crate::common::serving::grpc::testing::post_http1;
use crate::common::testing::{Body, Recorder, serve_api};
use crate::remote::vault::DEFINITION;
use crate::remote::vault::client::Vault;
use crate::remote::vault::login::{self, Login, Way};

const TOKEN: &str = r#"{"access_token": "token", "expires_in": "3600"}"#;

fn clouds<const N: usize>(folder: &std::path::Path, variables: [(&str, &str); N]) -> Clouds {
    let context = Recorder::new("remote.vault.test", folder).context;
    Clouds::new(&context, Environment::from(variables)).unwrap()
}

/// Returns the login that these arguments make.
async fn login(clouds: &Clouds, block: &'static str, body: Body) -> Result<Login, String> {
    let body = Body::new()
        .text("server", "https://vault.example.com:8200/")
        .text("path", "secret/app")
        .block(block, body);
    let arguments = body.arguments(&DEFINITION);
    let vault = Vault::new(&arguments, &"test".into()).unwrap();
    match login::way(&arguments, &vault, clouds, &mut None).await {
        Ok(Way::Login(login)) => Ok(login),
        Ok(Way::Token(_)) => panic!("no token is configured"),
        Err(error) => Err(error.to_string()),
    }
}

fn decoded(body: &Json, name: &str) -> String {
    String::from_utf8(STANDARD.decode(body[name].as_str().unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_login_by_iam_is_a_signed_request_that_amazon_answers_to_whoever_sends_it() {
    let amazon = Amazon::start("sts", &[("AKID", "hush")], |_| (StatusCode::OK, String::new())).await;
    let folder = tempfile::tempdir().unwrap();
    let keys = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "hush")];
    let [id, secret] = keys;
    let environment = clouds(folder.path(), [id, secret, ("AWS_ENDPOINT_URL_STS", &amazon.url)]);
    let iam = || Body::new().text("type", "iam").text("role", "r");
    let body = iam()
        .text("region", "eu-central-1")
        .text("iam_server_id_header", "vault.example.com");
    let Login { path, body, .. } = login(&environment, "auth.aws", body).await.unwrap();
    assert_eq!((path.as_str(), &body["role"]), ("auth/aws/login", &json!("r")));
    assert!(amazon.requests().is_empty(), "the login sends no request to AWS");
    // The test sends the signed request to the fake AWS, in place of Vault.
    let headers: BTreeMap<String, Vec<String>> = serde_json::from_str(&decoded(&body, "iam_request_headers")).unwrap();
    assert_eq!(headers["x-vault-aws-iam-server-id"], ["vault.example.com"]);
    assert!(headers["authorization"][0].contains("x-vault-aws-iam-server-id"));
    let mut request = post_http1(&decoded(&body, "iam_request_url"));
    for (name, values) in &headers {
        request = request.header(name, &values[0]);
    }
    let sent = request.body(decoded(&body, "iam_request_body")).send().await.unwrap();
    assert_eq!(
        (sent.status(), &body["iam_http_request_method"]),
        (StatusCode::OK, &json!("POST"))
    );
    assert_eq!(amazon.requests(), ["GetCallerIdentity&Version=2011-06-15"]);

    let other_environment = clouds(folder.path(), keys);
    for (body, url) in [
        (iam(), "https://sts.amazonaws.com/"),
        (
            iam().text("region", "eu-west-1"),
            "https://sts.eu-west-1.amazonaws.com/",
        ),
    ] {
        let body = login(&other_environment, "auth.aws", body).await.unwrap().body;
        assert_eq!(decoded(&body, "iam_request_url"), url);
        assert!(!body.to_string().contains("hush"));
    }
}

#[tokio::test]
async fn a_login_by_ec2_shows_the_machine_and_the_nonce_of_its_first_login() {
    let answer = |request: &str| {
        let text = match request {
            "PUT /latest/api/token" => "imds-token",
            "GET /latest/dynamic/instance-identity/pkcs7" => "MIA\nGCS\n",
            "GET /latest/dynamic/instance-identity/document" => "{\n}",
            "GET /latest/dynamic/instance-identity/signature" => "c2ln\nbmVk",
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text.to_owned())
    };
    let amazon = Amazon::start("", &[], answer).await;
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("remote.vault.test");
    // Each call simulates a different process.
    let body = async |body: Body| {
        let clouds = clouds(&own, [("AWS_EC2_METADATA_SERVICE_ENDPOINT", amazon.url.as_str())]);
        login(&clouds, "auth.aws", body.text("type", "ec2")).await.unwrap().body
    };
    let first = body(Body::new()).await;
    assert_eq!((&first["pkcs7"], first.get("role")), (&json!("MIAGCS"), None));
    let second = body(Body::new().text("ec2_signature_type", "identity").text("role", "r")).await;
    assert_eq!(decoded(&second, "identity"), "{\n}");
    assert_eq!(
        (&second["signature"], &second["role"]),
        (&json!("c2lnbmVk"), &json!("r"))
    );
    assert_eq!(first["nonce"], second["nonce"]);
    assert!(first["nonce"].as_str().unwrap().len() >= 32);
}

#[tokio::test]
async fn a_login_by_azure_shows_the_token_of_the_machine_and_which_it_is() {
    let (url, _server) = serve_api(|request, _| {
        assert_eq!(request.headers["metadata"], "true");
        let text = match request.uri.to_string().as_str() {
            "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fvault" => TOKEN,
            "/metadata/instance?api-version=2021-05-01" => {
                r#"{"compute": {"name": "vm1", "vmScaleSetName": "", "subscriptionId": "s1", "resourceGroupName": "g1",
                    "location": "westeurope"}, "network": {}}"#
            }
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let clouds = clouds(folder.path(), [("AZURE_POD_IDENTITY_AUTHORITY_HOST", url.as_str())]);
    let body = Body::new().text("role", "r").text("resource_url", "https://vault");
    let Login { path, body, .. } = login(&clouds, "auth.azure", body).await.unwrap();
    assert_eq!(path, "auth/azure/login");
    assert_eq!(
        body,
        json!({ "role": "r", "jwt": "token", "vm_name": "vm1", "vmss_name": "", "subscription_id": "s1",
            "resource_group_name": "g1" })
    );
}

#[tokio::test]
async fn a_login_by_gcp_shows_a_token_of_the_machine_or_of_a_service_account() {
    let (url, _server) = serve_api(|request, body| {
        let account = "/computeMetadata/v1/instance/service-accounts/default";
        let uri = request.uri.to_string();
        let text = match uri.strip_prefix(account).unwrap_or(&uri) {
            "/identity?audience=https%3A%2F%2Fvault.example.com%3A8200%2Fvault%2Fr&format=full" => "machine-jwt\n",
            "/token?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcloud-platform" => TOKEN,
            "/projects/-/serviceAccounts/a@p.iam.gserviceaccount.com:signJwt" => {
                assert_eq!(request.headers["authorization"], "Bearer token");
                let body: Json = serde_json::from_str(body).unwrap();
                let claims: Json = serde_json::from_str(body["payload"].as_str().unwrap()).unwrap();
                assert_eq!(claims["aud"], "vault/r");
                assert_eq!(claims["sub"], "a@p.iam.gserviceaccount.com");
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
                assert!((now..=now + 600).contains(&claims["exp"].as_u64().unwrap()));
                r#"{"keyId": "k", "signedJwt": "account-jwt"}"#
            }
            other => panic!("asked {other}"),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let host = url.as_str().trim_start_matches("http://").trim_end_matches('/');
    let mut clouds = clouds(folder.path(), [("GCE_METADATA_HOST", host)]);
    clouds.iam = url.clone();
    let gce = Body::new().text("role", "r").text("type", "gce");
    let iam = Body::new()
        .text("role", "r")
        .text("type", "iam")
        .text("iam_service_account", "a@p.iam.gserviceaccount.com");
    for (body, jwt) in [(gce, "machine-jwt"), (iam, "account-jwt")] {
        let Login { path, body, .. } = login(&clouds, "auth.gcp", body).await.unwrap();
        assert_eq!(
            (path.as_str(), body),
            ("auth/gcp/login", json!({ "role": "r", "jwt": jwt }))
        );
    }
}

#[tokio::test]
async fn a_machine_of_no_cloud_is_told_so_by_the_login_that_wanted_one() {
    let folder = tempfile::tempdir().unwrap();
    let clouds = clouds(
        folder.path(),
        [
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9"),
            ("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:9"),
            ("GCE_METADATA_HOST", "127.0.0.1:9"),
        ],
    );
    for (block, body) in [
        ("auth.aws", Body::new().text("type", "ec2")),
        ("auth.azure", Body::new().text("role", "r")),
        ("auth.gcp", Body::new().text("role", "r").text("type", "gce")),
    ] {
        let error = login(&clouds, block, body).await.err().unwrap();
        assert!(
            error.starts_with(&format!("{block}: request to http://127.0.0.1:9/")),
            "{error}"
        );
    }
}
