//! The block bodies with which each component of `crate::ALL` is started and updated. A component without a row fails
//! the test.
//!
//! Placeholders: `{api}` is the address of a server that never responds successfully, `{port}` its port, `{ok}` the
//! address of a server that responds successfully, `{taken}` a port in use, `{folder}` a folder of this test, and
//! `{missing}` a file that does not exist. `sink` is a receiver.

/// One component of `crate::ALL`, and its bodies.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Text that all bodies contain.
    pub(super) common: &'static str,
    /// Additional text of the first body.
    pub(super) first: &'static str,
    /// Additional text of another valid body.
    pub(super) other: &'static str,
    /// Additional text of a body that matches the schema, but that the component refuses. Empty if there is no such
    /// body.
    pub(super) invalid: &'static str,
}

/// Arguments of an HTTP client that cannot be built.
const NO_CERTIFICATE: &str = "tls_config {\n ca_file = \"{missing}\"\n}";
/// Arguments of an HTTP client that cannot be built, in a block `client`.
const NO_CLIENT: &str = "client {\n tls_config {\n ca_file = \"{missing}\"\n }\n}";

const fn row(
    name: &'static str,
    common: &'static str,
    (first, other, invalid): (&'static str, &'static str, &'static str),
) -> Row {
    Row {
        name,
        common,
        first,
        other,
        invalid,
    }
}

/// Returns the row of a discovery component that polls. The first body has a short interval.
const fn polled(name: &'static str, common: &'static str) -> Row {
    row(
        name,
        common,
        (
            "refresh_interval = \"10ms\"",
            "refresh_interval = \"1h\"",
            NO_CERTIFICATE,
        ),
    )
}

/// Returns the row of a discovery component that polls and has no `invalid` body, because its HTTP client can always be
/// built.
const fn plain(name: &'static str, common: &'static str) -> Row {
    row(
        name,
        common,
        ("refresh_interval = \"10ms\"", "refresh_interval = \"1h\"", ""),
    )
}

/// All rows, sorted by name.
pub(super) const ROWS: &[Row] = &[
    polled(
        "discovery.aws",
        "role = \"msk\"\nregion = \"eu-west-1\"\nendpoint = \"http://{api}\"\naccess_key = \"a\"\nsecret_key = \"s\"",
    ),
    polled(
        "discovery.azure",
        "subscription_id = \"s\"\nproxy_url = \"http://{api}\"\noauth {\n client_id = \"c\"\n client_secret = \"s\"\n \
         tenant_id = \"t\"\n}",
    ),
    polled("discovery.consul", "server = \"{api}\""),
    polled("discovery.consulagent", "server = \"{api}\""),
    plain(
        "discovery.digitalocean",
        "proxy_url = \"http://{api}\"\nbearer_token = \"t\"",
    ),
    plain("discovery.dns", "names = [\"localhost\"]\ntype = \"A\"\nport = 1"),
    polled("discovery.docker", "host = \"tcp://{api}\""),
    polled("discovery.dockerswarm", "host = \"tcp://{api}\"\nrole = \"tasks\""),
    polled(
        "discovery.ec2",
        "region = \"eu-west-1\"\nendpoint = \"http://{api}\"\naccess_key = \"a\"\nsecret_key = \"s\"",
    ),
    polled("discovery.eureka", "server = \"http://{api}\""),
    row(
        "discovery.file",
        "",
        (
            "files = [\"{folder}/*.json\"]",
            "files = [\"{folder}/other/*.yml\"]",
            "",
        ),
    ),
    plain("discovery.gce", "project = \"p\"\nzone = \"z\""),
    polled(
        "discovery.hetzner",
        "role = \"hcloud\"\nproxy_url = \"http://{api}\"\nbearer_token = \"t\"",
    ),
    polled("discovery.http", "url = \"http://{api}/targets\""),
    polled(
        "discovery.ionos",
        "datacenter_id = \"d\"\nproxy_url = \"http://{api}\"\nbearer_token = \"t\"",
    ),
    polled("discovery.kubelet", "url = \"http://{api}\""),
    row(
        "discovery.kubernetes",
        "api_server = \"http://{api}\"",
        (
            "role = \"pod\"",
            "role = \"endpoints\"",
            "role = \"pod\"\ntls_config {\n ca_file = \"{missing}\"\n}",
        ),
    ),
    polled("discovery.kuma", "server = \"http://{api}\""),
    polled(
        "discovery.lightsail",
        "region = \"eu-west-1\"\nendpoint = \"http://{api}\"\naccess_key = \"a\"\nsecret_key = \"s\"",
    ),
    polled("discovery.linode", "proxy_url = \"http://{api}\"\nbearer_token = \"t\""),
    polled("discovery.marathon", "servers = [\"http://{api}\"]"),
    row(
        "discovery.nerve",
        "servers = [\"{api}\"]",
        ("paths = [\"/a\"]", "paths = [\"/b\", \"/c\"]", ""),
    ),
    polled("discovery.nomad", "server = \"http://{api}\""),
    polled(
        "discovery.openstack",
        "role = \"instance\"\nregion = \"r\"\nidentity_endpoint = \"http://{api}/v3\"\nusername = \"u\"\n\
         password = \"p\"\ndomain_name = \"d\"",
    ),
    plain(
        "discovery.ovhcloud",
        "service = \"vps\"\nendpoint = \"http://{api}\"\napplication_key = \"k\"\napplication_secret = \"s\"\n\
         consumer_key = \"c\"",
    ),
    plain("discovery.process", ""),
    row(
        "discovery.profiles",
        "api_server = \"http://{api}\"",
        ("", "namespaces {\n names = [\"a\", \"b\"]\n}", NO_CERTIFICATE),
    ),
    polled(
        "discovery.puppetdb",
        "url = \"http://{api}\"\nquery = \"resources { }\"",
    ),
    row(
        "discovery.relabel",
        "targets = [{\"__address__\" = \"a:1\"}]",
        ("", "rule {\n target_label = \"a\"\n replacement = \"b\"\n}", ""),
    ),
    polled(
        "discovery.scaleway",
        "role = \"instance\"\nproject_id = \"p\"\naccess_key = \"SCWXXXXXXXXXXXXXXXXX\"\n\
         secret_key = \"11111111-1111-1111-1111-111111111111\"\napi_url = \"http://{api}\"",
    ),
    row(
        "discovery.serverset",
        "servers = [\"{api}\"]",
        ("paths = [\"/a\"]", "paths = [\"/b\", \"/c\"]", ""),
    ),
    polled(
        "discovery.triton",
        "account = \"a\"\ndns_suffix = \"b.c\"\nendpoint = \"127.0.0.1\"\nport = {port}",
    ),
    polled(
        "discovery.uyuni",
        "server = \"http://{api}\"\nusername = \"u\"\npassword = \"p\"",
    ),
    row(
        "import.file",
        "",
        (
            "filename = \"{folder}/module.alloy\"",
            "filename = \"{folder}\"",
            "filename = \"{missing}\"",
        ),
    ),
    row(
        "import.git",
        "repository = \"{folder}/repository\"\npath = \"module.alloy\"",
        (
            "pull_frequency = \"10ms\"",
            "pull_frequency = \"1h\"",
            "revision = \"nowhere\"",
        ),
    ),
    row(
        "import.http",
        "url = \"http://{ok}/text\"",
        ("poll_frequency = \"11s\"", "poll_frequency = \"1h\"", NO_CLIENT),
    ),
    row("import.string", "", ("content = \"\"", "content = \"// none\"", "")),
    row(
        "local.file",
        "",
        (
            "filename = \"{folder}/module.alloy\"",
            "filename = \"{folder}/module.alloy\"\ndetector = \"poll\"\npoll_frequency = \"10ms\"",
            "filename = \"{missing}\"",
        ),
    ),
    row(
        "local.file_match",
        "path_targets = [{\"__path__\" = \"{folder}/**\"}]",
        ("sync_period = \"10ms\"", "sync_period = \"1h\"", ""),
    ),
    row(
        "otelcol.exporter.otlp",
        "",
        (
            "client {\n endpoint = \"http://{api}\"\n}\ntimeout = \"50ms\"",
            "client {\n endpoint = \"http://{ok}\"\n}",
            "client {\n endpoint = \"{api}\"\n tls {\n ca_file = \"{missing}\"\n }\n}",
        ),
    ),
    row(
        "otelcol.exporter.otlphttp",
        "",
        (
            "client {\n endpoint = \"http://{api}\"\n timeout = \"50ms\"\n}",
            "client {\n endpoint = \"http://{ok}/b\"\n}",
            "client {\n endpoint = \"http://{api}\"\n tls {\n ca_file = \"{missing}\"\n }\n}",
        ),
    ),
    row(
        "otelcol.receiver.otlp",
        "output {\n profiles = [sink]\n}",
        (
            "grpc {\n endpoint = \"127.0.0.1:0\"\n}",
            "http {\n endpoint = \"127.0.0.1:0\"\n}\ngrpc {\n endpoint = \"127.0.0.1:0\"\n}",
            "http {\n endpoint = \"127.0.0.1:{taken}\"\n}",
        ),
    ),
    row("prometheus.exporter.self", "", ("", "", "")),
    // The first body has no targets, so `lazy_mode` keeps the component idle. Otherwise it would profile the whole
    // machine.
    row(
        "pyroscope.ebpf",
        "forward_to = [sink]\nlazy_mode = true",
        ("targets = []", "targets = [{\"__process_pid__\" = \"1\"}]", ""),
    ),
    row(
        "pyroscope.enrich",
        "forward_to = [sink]\ntargets = [{\"a\" = \"b\"}]",
        ("target_match_label = \"a\"", "target_match_label = \"b\"", ""),
    ),
    row(
        "pyroscope.java",
        "forward_to = [sink]",
        ("targets = []", "targets = [{\"__process_pid__\" = \"999999999\"}]", ""),
    ),
    row(
        "pyroscope.receive_http",
        "forward_to = [sink]",
        (
            "http {\n listen_address = \"127.0.0.1\"\n listen_port = 0\n}",
            "http {\n listen_address = \"127.0.0.1\"\n listen_port = 0\n conn_limit = 7\n}",
            "http {\n listen_address = \"127.0.0.1\"\n listen_port = {taken}\n}",
        ),
    ),
    row(
        "pyroscope.relabel",
        "forward_to = [sink]",
        ("", "rule {\n target_label = \"a\"\n replacement = \"b\"\n}", ""),
    ),
    row(
        "pyroscope.scrape",
        "forward_to = [sink]\ntargets = [{\"__address__\" = \"{api}\"}]\nscrape_timeout = \"1h\"\nprofiling_config {\n \
         profile.process_cpu {\n  enabled = false\n }\n}",
        (
            "scrape_interval = \"10ms\"",
            "scrape_interval = \"20ms\"",
            NO_CERTIFICATE,
        ),
    ),
    row(
        "pyroscope.write",
        "",
        (
            "endpoint {\n url = \"http://{api}\"\n remote_timeout = \"50ms\"\n}",
            "endpoint {\n url = \"http://{api}\"\n remote_timeout = \"1s\"\n}\nendpoint {\n url = \"http://{ok}/b\"\n}",
            "endpoint {\n url = \"http://{api}\"\n tls_config {\n  ca_file = \"{missing}\"\n }\n}",
        ),
    ),
    row(
        "remote.http",
        "url = \"http://{ok}/text\"",
        ("poll_frequency = \"11s\"", "poll_frequency = \"1h\"", NO_CLIENT),
    ),
    row(
        "remote.kubernetes.configmap",
        "namespace = \"shop\"\nname = \"db\"",
        (
            "poll_frequency = \"10ms\"\nclient {\n api_server = \"http://{ok}\"\n}",
            "client {\n api_server = \"http://{ok}\"\n}",
            "client {\n api_server = \"http://{ok}\"\n tls_config {\n  ca_file = \"{missing}\"\n }\n}",
        ),
    ),
    row(
        "remote.kubernetes.secret",
        "namespace = \"shop\"\nname = \"db\"",
        (
            "poll_frequency = \"10ms\"\nclient {\n api_server = \"http://{ok}\"\n}",
            "client {\n api_server = \"http://{ok}\"\n}",
            "client {\n api_server = \"http://{ok}\"\n tls_config {\n  ca_file = \"{missing}\"\n }\n}",
        ),
    ),
    row(
        "remote.s3",
        "client {\n endpoint = \"http://{ok}\"\n region = \"r\"\n key = \"k\"\n secret = \"s\"\n}",
        (
            "path = \"s3://text/a\"",
            "path = \"s3://text/b\"",
            "path = \"s3://none/a\"",
        ),
    ),
    row(
        "remote.vault",
        "server = \"http://{ok}\"\nauth.token {\n token = \"t\"\n}\nclient_options {\n max_retries = 0\n}",
        (
            "path = \"text/a\"\nreread_frequency = \"10ms\"",
            "path = \"text/b\"",
            "path = \"none/a\"",
        ),
    ),
];
