//! Tests against a fake discovery endpoint. Its responses follow the documentation of Triton.

use axum::http::StatusCode;

use super::{DEFINITION, Triton};
use crate::common::discovery::polled::Discovery as _;
use crate::common::testing::{Body, Recorder, serve_api, shorten};
use alluvium_lang::value::Value;

#[tokio::test]
async fn containers_and_compute_nodes_become_targets() {
    let (url, _server) = serve_api(|request, _| {
        let text = match request.uri.to_string().as_str() {
            "/v1/discover?groups=web%2Cdb" => {
                r#"{"containers": [{"server_uuid": "s1", "vm_alias": "one", "vm_brand": "lx", "vm_image_uuid": "i1",
                "vm_uuid": "m1", "groups": ["web", "db"]}]}"#
            }
            "/v1/gz/discover" => r#"{"cns": [{"server_uuid": "s1", "server_hostname": "node1"}]}"#,
            _ => return (StatusCode::FORBIDDEN, "no such account".to_owned()),
        };
        (StatusCode::OK, text.to_owned())
    })
    .await;
    let targets = async |body: Body| {
        let body = body
            .text("account", "me")
            .text("dns_suffix", "cns.example.com")
            .text("endpoint", "cmon.example.com");
        let triton = Triton::with_url(&url, &body.arguments(&DEFINITION), &Recorder::context()).unwrap();
        triton.targets().await.map(|targets| shorten(&targets))
    };
    let groups = Value::array([Value::string("web"), Value::string("db")]);
    assert_eq!(
        targets(Body::new().with("groups", groups)).await.unwrap(),
        [
            "{__address__=m1.cns.example.com:9163,__meta_triton_groups=,web,db,,__meta_triton_machine_alias=one,\
            __meta_triton_machine_brand=lx,__meta_triton_machine_id=m1,__meta_triton_machine_image=i1,\
            __meta_triton_server_id=s1}"
        ]
    );
    assert_eq!(
        targets(Body::new().text("role", "cn")).await.unwrap(),
        ["{__address__=s1.cns.example.com:9163,__meta_triton_machine_alias=node1,__meta_triton_machine_id=s1}"]
    );
    let error = targets(Body::new()).await.unwrap_err().to_string();
    assert!(error.ends_with("403 Forbidden: no such account"), "{error}");
}
