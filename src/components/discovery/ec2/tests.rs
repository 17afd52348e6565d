//! Tests against a fake server. Its responses follow the documentation of EC2.

use axum::http::StatusCode;

use super::DEFINITION;
use crate::common::clouds::aws::testing::Amazon;
use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;
use alluvium_wire::client::Credential;

const ZONES: &str = "<DescribeAvailabilityZonesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">
    <requestId>1</requestId><availabilityZoneInfo><item><zoneName>eu-central-1a</zoneName><zoneId>euc1-az2</zoneId>
    </item></availabilityZoneInfo></DescribeAvailabilityZonesResponse>";

const FIRST: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<DescribeInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">
  <reservationSet>
    <item><ownerId>42</ownerId><groupSet/><instancesSet><item>
      <instanceId>i-1</instanceId><imageId>ami-1</imageId>
      <instanceState><code>16</code><name>running</name></instanceState>
      <privateDnsName>one.internal</privateDnsName><dnsName>one.example.com</dnsName>
      <instanceType>m5.large</instanceType><platform>windows</platform>
      <placement><availabilityZone>eu-central-1a</availabilityZone><tenancy>default</tenancy></placement>
      <subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><architecture>x86_64</architecture>
      <instanceLifecycle>spot</instanceLifecycle>
      <privateIpAddress>10.0.0.7</privateIpAddress><ipAddress>192.0.2.7</ipAddress>
      <tagSet><item><key>app.name</key><value>shop &amp; co</value></item><item><key>empty</key><value/></item></tagSet>
      <networkInterfaceSet>
        <item><subnetId>subnet-1</subnetId><attachment><deviceIndex>1</deviceIndex></attachment>
          <ipv6AddressesSet><item><ipv6Address>2001:db8::1</ipv6Address><isPrimaryIpv6>true</isPrimaryIpv6></item>
            <item><ipv6Address>2001:db8::2</ipv6Address><isPrimaryIpv6>false</isPrimaryIpv6></item></ipv6AddressesSet>
        </item>
        <item><subnetId>subnet-2</subnetId></item><item><subnetId>subnet-1</subnetId></item>
      </networkInterfaceSet>
    </item></instancesSet></item>
  </reservationSet>
  <nextToken>more</nextToken>
</DescribeInstancesResponse>";

const SECOND: &str = "<DescribeInstancesResponse><reservationSet>
    <item><instancesSet>
      <item><instanceId>i-2</instanceId><instanceState><name>pending</name></instanceState></item>
      <item><instanceId>i-3</instanceId><vpcId>vpc-1</vpcId><networkInterfaceSet><item><subnetId>subnet-3</subnetId>
        <ipv6AddressesSet><item><ipv6Address>2001:db8::3</ipv6Address></item></ipv6AddressesSet></item>
      </networkInterfaceSet></item>
    </instancesSet></item></reservationSet></DescribeInstancesResponse>";

fn answer(request: &str) -> (StatusCode, String) {
    let text = match request {
        _ if request.starts_with("DescribeAvailabilityZones") => ZONES,
        _ if request.ends_with("NextToken=more") => SECOND,
        _ => FIRST,
    };
    (StatusCode::OK, text.to_owned())
}

fn arguments(endpoint: &str, secret: &str) -> Body {
    let values = Value::array([Value::string("shop"), Value::string("bank")]);
    Body::new()
        .text("endpoint", endpoint)
        .text("region", "eu-central-1")
        .text("access_key", "AKID")
        .with("secret_key", Value::Secret(secret.into()))
        .text("refresh_interval", "1h")
        .block("filter", Body::new().text("name", "tag:app").with("values", values))
}

#[tokio::test]
async fn instances_of_all_pages_become_targets_and_a_refusal_keeps_them() {
    let amazon = Amazon::start("ec2", &[("AKID", "hush")], answer).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.ec2.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &arguments(&amazon.url, "hush"));
    let expected = [
        "{__address__=10.0.0.7:80,__meta_ec2_ami=ami-1,__meta_ec2_architecture=x86_64,\
        __meta_ec2_availability_zone=eu-central-1a,__meta_ec2_availability_zone_id=euc1-az2,\
        __meta_ec2_default_ipv6_address=2001:db8::1,__meta_ec2_instance_id=i-1,__meta_ec2_instance_lifecycle=spot,\
        __meta_ec2_instance_state=running,__meta_ec2_instance_type=m5.large,\
        __meta_ec2_ipv6_addresses=,2001:db8::1,2001:db8::2,,__meta_ec2_owner_id=42,__meta_ec2_platform=windows,\
        __meta_ec2_primary_ipv6_addresses=,,2001:db8::1,,__meta_ec2_primary_subnet_id=subnet-1,\
        __meta_ec2_private_dns_name=one.internal,__meta_ec2_private_ip=10.0.0.7,\
        __meta_ec2_public_dns_name=one.example.com,__meta_ec2_public_ip=192.0.2.7,__meta_ec2_region=eu-central-1,\
        __meta_ec2_subnet_id=,subnet-1,subnet-2,,__meta_ec2_tag_app_name=shop & co,__meta_ec2_tag_empty=,\
        __meta_ec2_vpc_id=vpc-1}",
        "{__address__=[2001:db8::3]:80,__meta_ec2_default_ipv6_address=2001:db8::3,__meta_ec2_instance_id=i-3,\
        __meta_ec2_ipv6_addresses=,2001:db8::3,,__meta_ec2_region=eu-central-1,__meta_ec2_subnet_id=,subnet-3,,\
        __meta_ec2_vpc_id=vpc-1}",
    ];
    eventually("two targets", || recorder.exported_targets("targets").len() == 2).await;
    assert_eq!(recorder.exported_targets("targets"), expected);
    let filter = "Version=2016-11-15&Filter.1.Name=tag%3Aapp&Filter.1.Value.1=shop&Filter.1.Value.2=bank";
    assert_eq!(
        amazon.requests(),
        [
            format!("DescribeInstances&{filter}&MaxResults=1000"),
            format!("DescribeInstances&{filter}&MaxResults=1000&NextToken=more"),
            "DescribeAvailabilityZones&Version=2016-11-15".to_owned(),
        ]
    );

    let invalid = arguments(&amazon.url, "other").arguments(&DEFINITION);
    running.component.update(invalid).unwrap();
    eventually("a refusal", || recorder.health().0 == HealthState::Unhealthy).await;
    let refused = format!(
        "DescribeInstances: request to {}/ failed: the server answered 401 Unauthorized: \
         AuthFailure: the signature is not right",
        amazon.url
    );
    assert_eq!(recorder.health().1, refused);
    assert_eq!(recorder.exported_targets("targets"), expected);
    running.stop().await;
}

#[test]
fn a_key_without_its_secret_is_refused() {
    let error = Body::new().text("access_key", "AKID").read(&DEFINITION).unwrap_err();
    assert_eq!(error, "access_key: access_key needs secret_key");
}

#[test]
fn credentials_of_http_clients_are_read_but_not_used() {
    let token = || Body::new().with("bearer_token", Value::Secret("hush".into()));
    let arguments = token().read(&DEFINITION).unwrap();
    let options = arguments.client.options(&"test".into());
    assert!(matches!(options.credential, Credential::None));

    let both = token().block("basic_auth", Body::new().text("username", "ann"));
    let error = both.read(&DEFINITION).unwrap_err();
    assert!(error.contains("at most one of basic_auth"), "{error}");
}
