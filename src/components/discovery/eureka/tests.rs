//! Tests against a fake registry. Its response follows the documentation of Eureka's REST operations.

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_pipeline::component::HealthState;

const APPS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<applications>
  <versions__delta>1</versions__delta>
  <apps__hashcode>UP_2_</apps__hashcode>
  <application>
    <name>SHOP</name>
    <instance>
      <instanceId>shop:1</instanceId>
      <hostName>shop.example</hostName>
      <app>SHOP</app>
      <ipAddr>10.0.0.1</ipAddr>
      <status>UP</status>
      <overriddenstatus>UNKNOWN</overriddenstatus>
      <port enabled="true">7001</port>
      <securePort enabled="false">-1</securePort>
      <countryId>1</countryId>
      <dataCenterInfo class="com.netflix.appinfo.AmazonInfo">
        <name>Amazon</name>
        <metadata><availability-zone>eu-1a</availability-zone></metadata>
      </dataCenterInfo>
      <leaseInfo><durationInSecs>90</durationInSecs></leaseInfo>
      <metadata class="java.util.HashMap">
        <pprof.path>/debug &amp; more</pprof.path>
        <empty/>
      </metadata>
      <homePageUrl>http://shop.example:7001/</homePageUrl>
      <statusPageUrl>http://shop.example:7001/info</statusPageUrl>
      <healthCheckUrl>http://shop.example:7001/health</healthCheckUrl>
      <vipAddress>shop</vipAddress>
      <secureVipAddress>shop-s</secureVipAddress>
      <actionType>ADDED</actionType>
    </instance>
    <instance><instanceId>shop:2</instanceId><hostName>fd00::2</hostName><metadata/></instance>
  </application>
  <application><name>EMPTY</name></application>
</applications>"#;

#[tokio::test]
async fn each_instance_of_each_application_is_a_target() {
    let apps = |headers: HeaderMap| async move {
        assert_eq!(headers["accept"], "application/xml");
        APPS
    };
    let broken = || async { "<applications><application>" };
    let router = Router::new()
        .route("/eureka/apps", get(apps))
        .route("/broken/apps", get(broken));
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.eureka.test", folder.path());
    let body = Body::new().text("server", &format!("{base}/eureka"));
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    let targets = recorder.exported_targets("targets");
    let shortened: Vec<String> = targets
        .iter()
        .map(|target| target.replace("__meta_eureka_app_", ""))
        .collect();
    assert_eq!(
        shortened,
        [
            "{__address__=shop.example:7001,instance_country_id=1,\
             instance_datacenterinfo_metadata_availability_zone=eu-1a,instance_datacenterinfo_name=Amazon,\
             instance_healthcheck_url=http://shop.example:7001/health,\
             instance_homepage_url=http://shop.example:7001/,instance_hostname=shop.example,instance_id=shop:1,\
             instance_ip_addr=10.0.0.1,instance_metadata_empty=,instance_metadata_pprof_path=/debug & more,\
             instance_port=7001,instance_port_enabled=true,instance_secure_port=-1,\
             instance_secure_port_enabled=false,instance_secure_vip_address=shop-s,instance_status=UP,\
             instance_statuspage_url=http://shop.example:7001/info,instance_vip_address=shop,name=SHOP,\
             instance=shop:1}",
            "{__address__=[fd00::2]:80,instance_country_id=0,instance_healthcheck_url=,instance_homepage_url=,\
             instance_hostname=fd00::2,instance_id=shop:2,instance_ip_addr=,instance_secure_vip_address=,\
             instance_status=,instance_statuspage_url=,instance_vip_address=,name=SHOP,instance=shop:2}",
        ],
        "{}",
        recorder.health().1
    );
    let broken = Body::new().text("server", &format!("{base}/broken/"));
    running.component.update(broken.arguments(&DEFINITION)).unwrap();
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    let expected = format!("{base}/broken/apps answered with invalid XML: ");
    assert!(recorder.health().1.starts_with(&expected), "{}", recorder.health().1);
    assert_eq!(recorder.exported_targets("targets"), targets);
    running.stop().await;
}
