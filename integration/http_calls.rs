//! Calls of Pyroscope's services that concern the server itself or a feature that the server does not have. For each
//! call, the server returns a response or a refusal with a reason. The result is the same over Connect, gRPC and
//! gRPC-Web.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::server::{ServerOptions, Settings};
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::proto::{debuginfo, health, settings, status, vcs};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::grpc::{frame, grpc, web};
use crate::harness::{Nowhere, TestServer};
use crate::http_services::call;

const ABOUT: &str = "/status.v1.StatusService";
const RULES: &str = "/settings.v1.RecordingRulesService";
const VCS: &str = "/vcs.v1.VCSService";
const FILES: &str = "/debuginfo.v1alpha1.DebuginfoService";

/// A request as JSON and as protobuf, with the expected status and code.
struct Case {
    path: String,
    question: Value,
    message: Vec<u8>,
    status: u16,
    code: &'static str,
}

/// Builds the case of a call. The protobuf message is built from the JSON.
macro_rules! case {
    ($ask:ty, $service:expr, $call:expr, $question:tt, $status:expr, $code:expr) => {{
        let question = json!($question);
        let message = connect::decode::<$ask>(Codec::Json, question.to_string().into()).unwrap();
        Case {
            path: format!("{}/{}", $service, $call),
            message: message.encode_to_vec(),
            question,
            status: $status,
            code: $code,
        }
    }};
}

fn cases() -> Vec<Case> {
    use debuginfo::{DeleteDebuginfoRequest, ListDebuginfoRequest, ShouldInitiateUploadRequest, UploadFinishedRequest};
    use settings::{
        DeleteRecordingRuleRequest, GetRecordingRuleRequest, ListRecordingRulesRequest, UpsertRecordingRuleRequest,
    };
    use status::{GetBuildInfoRequest, GetConfigRequest};
    use vcs::{
        GetCommitRequest, GetCommitsRequest, GetFileRequest, GithubAppRequest, GithubLoginRequest, GithubRefreshRequest,
    };
    let (known, missing, wrong) = ("", "not_found", "invalid_argument");
    let (none, nobody) = ("unimplemented", "unauthenticated");
    vec![
        case!(GetBuildInfoRequest, ABOUT, "GetBuildInfo", {}, 200, known),
        case!(GetConfigRequest, ABOUT, "GetConfig", {}, 200, known),
        case!(GetConfigRequest, ABOUT, "GetDiffConfig", {}, 200, known),
        case!(GetConfigRequest, ABOUT, "GetDefaultConfig", {}, 200, known),
        case!(ListRecordingRulesRequest, RULES, "ListRecordingRules", {}, 200, known),
        case!(GetRecordingRuleRequest, RULES, "GetRecordingRule", {"id": "abc"}, 404, missing),
        case!(GetRecordingRuleRequest, RULES, "GetRecordingRule", {"id": " "}, 400, wrong),
        case!(
            UpsertRecordingRuleRequest,
            RULES,
            "UpsertRecordingRule",
            {
                "metricName": "profiles_recorded_gc",
                "matchers": ["{__profile_type__=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}"],
                "groupBy": ["service_name"],
                "externalLabels": [{"name": "team", "value": "shop"}],
                "stacktraceFilter": {"functionName": {"functionName": "runtime.gcBgMarkWorker", "metricType": "TOTAL"}}
            },
            501,
            none
        ),
        case!(DeleteRecordingRuleRequest, RULES, "DeleteRecordingRule", {"id": "abc"}, 404, missing),
        case!(DeleteRecordingRuleRequest, RULES, "DeleteRecordingRule", {}, 400, wrong),
        case!(GithubAppRequest, VCS, "GithubApp", {}, 501, none),
        case!(GithubLoginRequest, VCS, "GithubLogin", {"authorizationCode": "a"}, 501, none),
        case!(GithubRefreshRequest, VCS, "GithubRefresh", {}, 401, nobody),
        case!(GetFileRequest, VCS, "GetFile", {"repositoryURL": "https://a/b", "ref": "main"}, 401, nobody),
        case!(GetCommitRequest, VCS, "GetCommit", {"repositoryURL": "https://a/b"}, 401, nobody),
        case!(GetCommitsRequest, VCS, "GetCommits", {"repositoryUrl": "https://a/b", "refs": ["a"]}, 401, nobody),
        case!(
            ShouldInitiateUploadRequest,
            FILES,
            "ShouldInitiateUpload",
            {"file": {"gnuBuildId": "abcdef", "name": "shop", "type": "TYPE_EXECUTABLE_FULL"}},
            200,
            known
        ),
        case!(UploadFinishedRequest, FILES, "UploadFinished", {"gnuBuildId": "abcdef"}, 404, missing),
        case!(UploadFinishedRequest, FILES, "UploadFinished", {"gnuBuildId": "../abc"}, 400, wrong),
        case!(ListDebuginfoRequest, FILES, "ListDebuginfo", {}, 200, known),
        case!(DeleteDebuginfoRequest, FILES, "DeleteDebuginfo", {"gnuBuildId": "ABCDEF"}, 200, known),
        case!(DeleteDebuginfoRequest, FILES, "DeleteDebuginfo", {}, 400, wrong),
    ]
}

#[tokio::test]
async fn every_call_has_its_status_over_each_protocol() {
    let server = TestServer::start(Arc::new(Nowhere), ServerOptions::default()).await;
    for case in cases() {
        for prefix in ["", "/profile"] {
            let path = format!("{prefix}{}", case.path);
            let (status, answer) = call(&server, &path, "", &case.question).await;
            assert_eq!(status, case.status, "{path} {}: {answer}", case.question);
            assert_eq!(answer["code"].as_str().unwrap_or_default(), case.code, "{path}");
            let by_web = web(&server, &path, &[], frame(0, &case.message)).await;
            let expected = match case.code {
                "" => Code::Ok,
                "not_found" => Code::NotFound,
                "invalid_argument" => Code::InvalidArgument,
                "unauthenticated" => Code::Unauthenticated,
                _ => Code::Unimplemented,
            };
            assert_eq!(by_web.status, expected, "{path} over gRPC-Web: {}", by_web.text);
            assert_eq!(
                by_web.text,
                answer["message"].as_str().unwrap_or_default(),
                "{path} over gRPC-Web"
            );
        }
    }
}

#[tokio::test]
async fn the_calls_about_the_server_say_what_its_plain_routes_do() {
    let values = |length: &str| BTreeMap::from([("limits.a", json!(length)), ("c", json!(true))]);
    let settings = Settings {
        in_force: values("1h0m0s"),
        default: values("0s"),
        ..Settings::default()
    };
    let options = ServerOptions {
        settings: Arc::new(settings),
        ..ServerOptions::default()
    };
    let server = TestServer::start(Arc::new(Nowhere), options).await;
    let (_, plain) = server.get("/api/v1/status/buildinfo").await;
    let plain: Value = serde_json::from_str(&plain).unwrap();
    let (_, answer) = call(&server, &format!("{ABOUT}/GetBuildInfo"), "", &json!({})).await;
    assert_eq!(answer["status"], plain["status"]);
    assert_eq!(answer["data"]["version"], plain["data"]["version"]);
    assert_eq!(answer["data"]["version"], env!("CARGO_PKG_VERSION"));

    for (name, route) in [
        ("GetConfig", ""),
        ("GetDiffConfig", "/diff"),
        ("GetDefaultConfig", "/default"),
    ] {
        let (_, plain) = server.get(&format!("/api/v1/status/config{route}")).await;
        let (_, answer) = call(&server, &format!("{ABOUT}/{name}"), "", &json!({})).await;
        assert_eq!(answer["contentType"], "text/plain; charset=utf-8", "{name}");
        let text = STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), plain, "{name}");
        assert!(plain.contains("limits:"), "{plain}");
    }
    let by_grpc: status::HttpBody = grpc(
        &server,
        "",
        "/status.v1.StatusService/GetDiffConfig",
        Request::new(status::GetConfigRequest {}),
    )
    .await
    .unwrap();
    assert_eq!(by_grpc.data, "limits:\n  a: \"1h0m0s\"\n".as_bytes());
}

#[tokio::test]
async fn no_file_with_symbols_is_asked_for_and_none_is_taken() {
    let server = TestServer::start(Arc::new(Nowhere), ServerOptions::default()).await;
    let file = json!({"file": {"gnuBuildId": "abcdef", "type": "TYPE_EXECUTABLE_FULL"}});
    let path = format!("{FILES}/ShouldInitiateUpload");
    // If `profilecli debuginfo upload` receives this text, it does not upload the file.
    let refused = json!({"reason": "DebugInfo upload disabled"});
    assert_eq!(call(&server, &path, "", &file).await, (200, refused));
    for (id, status, code) in [
        ("abcdef", 412, "failed_precondition"),
        ("0123456789abcdef0123456789ABCDEF01234567", 412, "failed_precondition"),
        ("a", 400, "invalid_argument"),
        ("shop", 400, "invalid_argument"),
        ("0123456789abcdef0123456789abcdef012345678", 400, "invalid_argument"),
    ] {
        for prefix in ["", "/profile"] {
            let request = server.post(&format!("{prefix}{FILES}/Upload/{id}"));
            let response = request.body(vec![0; 1 << 20]).send().await.unwrap();
            assert_eq!(response.status(), status, "{prefix} {id}");
            let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(answer["code"], code, "{prefix} {id}");
        }
    }
    assert_eq!(server.get(&format!("{FILES}/Upload/abcdef")).await.0, 405);
}

#[tokio::test]
async fn a_probe_learns_whether_the_server_is_ready_without_a_tenant() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let server = TestServer::start(Arc::new(Nowhere), options).await;
    let check = async |service: &str| {
        let request = health::HealthCheckRequest {
            service: service.to_owned(),
        };
        let route = "/grpc.health.v1.Health/Check";
        let answer: health::HealthCheckResponse = grpc(&server, "", route, Request::new(request)).await.unwrap();
        answer.status()
    };
    assert_eq!(check("").await, health::ServingStatus::Serving);
    assert_eq!(check("querier.v1.QuerierService").await, health::ServingStatus::Serving);
    server.readiness.set_not_ready("it stops");
    assert_eq!(check("").await, health::ServingStatus::NotServing);
    let path = "/grpc.health.v1.Health/Check";
    let as_json = server.post(path).header("content-type", "application/json").body("{}");
    let answer = as_json.send().await.unwrap().text().await.unwrap();
    assert_eq!(answer, r#"{"status":"NOT_SERVING"}"#);
    let watched = web(&server, "/grpc.health.v1.Health/Watch", &[], frame(0, &[])).await;
    assert_eq!(watched.status, Code::Unimplemented, "{}", watched.text);
    let long = server
        .post(path)
        .header("content-type", "application/json")
        .body(" ".repeat(5 << 10));
    assert_eq!(long.send().await.unwrap().status(), 413, "5 KiB are too large");
    for path in ["/version.v1.Version/Version", "/status.v1.StatusService/GetBuildInfo"] {
        let as_json = server.post(path).header("content-type", "application/json").body("{}");
        assert_eq!(as_json.send().await.unwrap().status(), 200, "{path}");
    }
}

#[tokio::test]
async fn rules_and_files_are_those_of_one_tenant() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let server = TestServer::start(Arc::new(Nowhere), options).await;
    for path in [format!("{RULES}/ListRecordingRules"), format!("{FILES}/ListDebuginfo")] {
        for (tenant, status) in [("one", 200), ("one|two", 401), ("", 401)] {
            assert_eq!(
                call(&server, &path, tenant, &json!({})).await.0,
                status,
                "{path} {tenant}"
            );
        }
    }
    let request = server.post(&format!("{FILES}/Upload/abcdef")).body("file");
    assert_eq!(request.send().await.unwrap().status(), 401, "no tenant");
}
