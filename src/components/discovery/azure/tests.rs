//! Tests against a fake Resource Manager. Its responses follow Azure's documentation.

use std::sync::Arc;

use axum::http::StatusCode;
use parking_lot::Mutex;
use url::Url;

use super::cloud::Cloud;
use super::{Azure, DEFINITION};
use crate::common::clouds::environment::Environment;
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, Server, serve_api, shorten};
use alluvium_lang::value::Value;

const SUB: &str = "/subscriptions/s1/resourceGroups/g1/providers/Microsoft.Compute";
const ONE: &str = r#"{"id": "/subscriptions/s1/resourceGroups/g1/providers/Microsoft.Compute/virtualMachines/one",
    "name": "one", "type": "Microsoft.Compute/virtualMachines", "location": "westeurope", "tags": {"app.name": "shop"},
    "properties": {"hardwareProfile": {"vmSize": "Standard_D2"}, "osProfile": {"computerName": "one-host"},
    "storageProfile": {"osDisk": {"osType": "Linux"}},
    "networkProfile": {"networkInterfaces": [{"id": "/nics/second"}, {"id": "/nics/first"}]}}}"#;

/// The requests so far: the URI and the body of each.
type Asked = Arc<Mutex<Vec<String>>>;

async fn azure_api() -> (Url, Asked, Server) {
    let requests: Asked = Arc::default();
    let log = requests.clone();
    let (url, server) = serve_api(move |head, body| {
        let header = |name: &str| {
            head.headers
                .get(name)
                .map_or("", |value| value.to_str().unwrap())
                .to_owned()
        };
        let uri = head.uri.to_string();
        log.lock().push(format!("{uri} {body}").trim().to_owned());
        let token = || r#"{"access_token": "good", "expires_in": "3599"}"#.to_owned();
        let ok = |text: &str| (StatusCode::OK, text.to_owned());
        match uri.split_once("/metadata/identity").map_or(uri.as_str(), |_| "machine") {
            "/t1/oauth2/v2.0/token" if body.contains("client_secret=wrong") => {
                let text = r#"{"error": "invalid_client", "error_description": "AADSTS7000215"}"#;
                return (StatusCode::UNAUTHORIZED, text.to_owned());
            }
            "/t1/oauth2/v2.0/token" => return (StatusCode::OK, token()),
            "machine" => {
                assert_eq!(header("metadata"), "true");
                return (StatusCode::OK, token());
            }
            _ => assert_eq!(header("authorization"), "Bearer good"),
        }
        let expand = "$expand=ipConfigurations/publicIPAddress";
        match uri.as_str() {
            _ if uri == format!("{SUB}/virtualMachines?api-version=2023-09-01") => ok(&format!(
                r#"{{"value": [{ONE}],
                "nextLink": "http://elsewhere{SUB}/virtualMachines?api-version=2023-09-01&$skiptoken=x"}}"#
            )),
            _ if uri.ends_with("&$skiptoken=x") => ok(r#"{"value": [
                {"id": "/x/off", "name": "off",
                "properties": {"networkProfile": {"networkInterfaces": [{"id": "/nics/off"}]}}},
                {"id": "/x/gone", "name": "gone",
                "properties": {"networkProfile": {"networkInterfaces": [{"id": "/nics/gone"}]}}}
                ]}"#),
            _ if uri == format!("{SUB}/virtualMachineScaleSets?api-version=2023-09-01") => {
                ok(r#"{"value": [{"id": "/sets/web", "name": "web"}]}"#)
            }
            "/sets/web/virtualMachines?api-version=2023-09-01" => {
                ok(r#"{"value": [{"id": "/sets/web/virtualMachines/0",
                "instanceId": "0", "name": "web_0", "location": "westeurope",
                "properties": {"networkProfile": {"networkInterfaces": [{"id": "/sets/nic"}]}}}]}"#)
            }
            _ if uri == format!("/nics/second?api-version=2023-09-01&{expand}") => {
                ok(r#"{"properties": {"primary": false}}"#)
            }
            _ if uri == format!("/nics/first?api-version=2023-09-01&{expand}") => {
                ok(r#"{"properties": {"primary": true,
                "ipConfigurations": [{"properties": {"privateIPAddress": "10.0.0.1",
                "publicIPAddress": {"properties": {"ipAddress": "192.0.2.1"}}}}]}}"#)
            }
            _ if uri == format!("/sets/nic?api-version=2018-10-01&{expand}") => ok(r#"{"properties": {"primary": true,
                "ipConfigurations": [{"properties": {"privateIPAddress": "10.0.0.2"}}]}}"#),
            _ if uri.starts_with("/nics/off?") => ok(r#"{"properties": {}}"#),
            _ if uri.starts_with("/nics/gone?") => (StatusCode::NOT_FOUND, "{}".to_owned()),
            other => panic!("unexpected request: {other}"),
        }
    })
    .await;
    (url, requests, server)
}

fn arguments() -> Body {
    Body::new().text("subscription_id", "s1").text("resource_group", "g1")
}

fn oauth(secret: &str) -> Body {
    let oauth = Body::new().text("client_id", "c1").text("tenant_id", "t1");
    arguments().block("oauth", oauth.with("client_secret", Value::Secret(secret.into())))
}

fn azure(url: &Url, body: &Body, environment: Environment) -> Azure {
    let cloud = Cloud {
        login: url.clone(),
        manager: url.clone(),
    };
    Azure::with_cloud(cloud, &body.arguments(&DEFINITION), &Recorder::context(), environment).unwrap()
}

#[tokio::test]
async fn machines_of_all_pages_and_scale_sets_become_targets() {
    let (url, requests, _server) = azure_api().await;
    let azure = azure(&url, &oauth("hush"), Environment::from([]));
    let targets = azure.targets().await.unwrap();
    assert_eq!(
        shorten(&targets),
        [
            "{__address__=10.0.0.1:80,__meta_azure_machine_computer_name=one-host,\
            __meta_azure_machine_id=/subscriptions/s1/resourceGroups/g1/providers/\
            Microsoft.Compute/virtualMachines/one,\
            __meta_azure_machine_location=westeurope,__meta_azure_machine_name=one,__meta_azure_machine_os_type=Linux,\
            __meta_azure_machine_private_ip=10.0.0.1,__meta_azure_machine_public_ip=192.0.2.1,\
            __meta_azure_machine_resource_group=g1,__meta_azure_machine_size=Standard_D2,\
            __meta_azure_machine_tag_app_name=shop,__meta_azure_subscription_id=s1,__meta_azure_tenant_id=t1}",
            "{__address__=10.0.0.2:80,__meta_azure_machine_id=/sets/web/virtualMachines/0,\
            __meta_azure_machine_location=westeurope,__meta_azure_machine_name=web_0,\
            __meta_azure_machine_private_ip=10.0.0.2,__meta_azure_machine_scale_set=web,\
            __meta_azure_subscription_id=s1,__meta_azure_tenant_id=t1}",
        ]
    );
    let interfaces = || {
        requests
            .lock()
            .iter()
            .filter(|line| line.contains("/nics/first"))
            .count()
    };
    assert_eq!(azure.targets().await.unwrap(), targets);
    assert_eq!(interfaces(), 1, "the component caches an interface");
    for _ in 0..10 {
        azure.targets().await.unwrap();
    }
    assert_eq!(interfaces(), 2, "the cache of interfaces expires");
    let scope = url.to_string().replace(':', "%3A").replace('/', "%2F");
    assert_eq!(
        requests.lock()[0],
        format!(
            "/t1/oauth2/v2.0/token grant_type=client_credentials&client_id=c1&scope={scope}.default&client_secret=hush"
        )
    );
}

#[tokio::test]
async fn a_wrong_secret_is_told_without_being_shown() {
    let (url, _, _server) = azure_api().await;
    let error = azure(&url, &oauth("wrong"), Environment::from([]))
        .targets()
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot get credentials for Azure: request to "),
        "{error}"
    );
    assert!(error.contains("AADSTS7000215") && !error.contains("wrong"), "{error}");
}

#[tokio::test]
async fn a_workload_a_machine_and_the_environment_give_tokens_too() {
    let (url, requests, _server) = azure_api().await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "jwt\n").unwrap();
    let (host, file) = (url.as_str(), token.to_str().unwrap());
    let first = async |body: Body, environment: Environment| {
        requests.lock().clear();
        azure(&url, &body, environment).targets().await.unwrap();
        requests.lock()[0].clone()
    };
    let workload = [
        ("AZURE_CLIENT_ID", "c1"),
        ("AZURE_TENANT_ID", "t1"),
        ("AZURE_FEDERATED_TOKEN_FILE", file),
    ];
    let line = first(
        arguments().block("workload_identity", Body::new()),
        Environment::from(workload),
    )
    .await;
    assert!(
        line.starts_with("/t1/oauth2") && line.ends_with("jwt-bearer&client_assertion=jwt"),
        "{line}"
    );

    let machine = Environment::from([("AZURE_POD_IDENTITY_AUTHORITY_HOST", host)]);
    let identity = Body::new().text("client_id", "c2");
    let line = first(arguments().block("managed_identity", identity), machine.clone()).await;
    assert!(
        line.starts_with("/metadata/identity/oauth2/token?api-version=2018-02-01&"),
        "{line}"
    );
    assert!(line.ends_with("&client_id=c2"), "{line}");

    let sdk = || arguments().block("sdk_auth", Body::new().text("tenant_id", "t1"));
    assert!(
        first(sdk(), machine)
            .await
            .starts_with("/metadata/identity/oauth2/token?")
    );
    let secret = [("AZURE_CLIENT_ID", "c1"), ("AZURE_CLIENT_SECRET", "hush")];
    assert!(
        first(sdk(), Environment::from(secret))
            .await
            .ends_with("&client_secret=hush")
    );
    assert!(
        first(sdk(), Environment::from(workload))
            .await
            .ends_with("&client_assertion=jwt")
    );
}

#[test]
fn the_arguments_are_checked() {
    let check = |body: Body| body.read(&DEFINITION).err();
    assert_eq!(check(oauth("hush").text("environment", "AZURECHINACLOUD")), None);
    assert_eq!(
        check(oauth("hush").text("environment", "Mars")).unwrap(),
        "environment: unknown environment \"Mars\": must be one of AzurePublicCloud, AzureChinaCloud, AzureUSGovernment"
    );
    assert!(check(arguments()).unwrap().contains("exactly one of oauth"));
}
