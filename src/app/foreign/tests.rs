//! Configuration files of other programs, and the Alloy text that they convert to.
//!
//! We wrote the files ourselves, following the documentation of the programs.

use super::*;
use alluvium_lang::literal::quote;
use alluvium_lang::schema::{Kind, Schema};
use alluvium_pipeline::component::Stability;

fn convert(format: Format, yaml: &str) -> Result<Converted, Refused> {
    let conversion = Conversion::with_arguments(format, "", Problems::Refuse).unwrap();
    let converted = conversion.convert("etc/file.yaml", yaml)?;
    let texts = vec![("file.yaml".to_owned(), converted.text.clone())];
    let diagnostics = alluvium_pipeline::validate(&texts, alluvium_components::ALL, Stability::GenerallyAvailable);
    assert!(
        !diagnostics.has_errors(),
        "{}\n{}",
        converted.text,
        diagnostics.render()
    );
    Ok(converted)
}

fn problems(format: Format, yaml: &str) -> Vec<String> {
    convert(format, yaml).unwrap_err().problems
}

#[test]
fn a_conprof_job_takes_conprofs_profiles() {
    let yaml = "
scrape_configs:
- job_name: shop-api
  scrape_interval: 1m
  static_configs:
  - targets: ['localhost:10902', 'localhost:6060']
    labels: {env: prod, shard: 7}
  profiling_config:
    pprof_config:
      fgprof: {enabled: true, path: /debug/fgprof}
      threadcreate: {enabled: false}
      trace: {enabled: true}
";
    let converted = convert(Format::Conprof, yaml).unwrap();
    let expected = r#"pyroscope.scrape "shop_api" {
	targets = [
		{"__address__" = "localhost:10902", "env" = "prod", "shard" = "7"},
		{"__address__" = "localhost:6060", "env" = "prod", "shard" = "7"},
	]
	forward_to               = [pyroscope.write.default.receiver]
	job_name                 = "shop-api"
	scrape_interval          = "1m"
	scrape_timeout           = "1m"
	delta_profiling_duration = "30000ms"

	profiling_config {
		profile.fgprof {
			enabled = true
			path    = "/debug/fgprof"
			delta   = true
		}

		profile.custom "heap" {
			enabled = true
			path    = "/debug/pprof/heap"
			delta   = false
		}
	}
}

pyroscope.write "default" {
	endpoint {
		url = "http://localhost:4040"
	}
}
"#;
    assert_eq!(converted.text, expected);
    let trace =
        "scrape_configs[0].profiling_config.pprof_config.trace: execution traces are not profiles and are left out";
    assert_eq!(converted.notes, [trace]);
}

#[test]
fn threads_that_conprof_takes_have_a_block_of_their_own() {
    let yaml = "scrape_configs: [{job_name: self, static_configs: [{targets: ['a:1']}]}]";
    let text = convert(Format::Conprof, yaml).unwrap().text;
    assert!(text.contains("profile.threadcreate {\n\t\t\tenabled = true"), "{text}");
}

#[test]
fn labels_times_targets_have_a_bound() {
    let yaml = |targets: usize| {
        let (label, targets) = ("x".repeat(1 << 20), vec!["'a:1'"; targets].join(", "));
        format!(
            "scrape_configs: [{{job_name: many, static_configs: [{{labels: {{a: {label}}}, targets: [{targets}]}}]}}]"
        )
    };
    assert!(convert(Format::Prometheus, &yaml(3)).is_ok());
    let expected = "scrape_configs[0].static_configs[0]: the targets of the file exceed 32 MiB";
    assert_eq!(problems(Format::Prometheus, &yaml(40)), [expected]);
}

#[test]
fn parcas_defaults_and_rules_are_said() {
    let yaml = "
object_storage:
  bucket: {type: FILESYSTEM, config: {directory: ./data}}
scrape_configs:
  - job_name: pods
    scrape_interval: 3s
    scheme: https
    tls_config: {ca: PEM, insecure_skip_verify: true}
    kubernetes_sd_configs:
      - role: pod
        namespaces: {names: [shop]}
        selectors: [{role: pod, label: app=api}]
    consul_sd_configs: [{server: 'localhost:8500', refresh_interval: 1d}]
    relabel_configs:
      - source_labels: [__meta_kubernetes_pod_annotation_parca_dev_scrape]
        action: keep
        regex: true
      - target_label: shard
        modulus: 4
        action: hashmod
        source_labels: [__address__]
    profiling_config:
      path_prefix: /admin
      pprof_config:
        memory: {enabled: true, path: /debug/pprof/allocs, keep_sample_type: [{type: inuse_space, unit: bytes}]}
        block: {enabled: false}
";
    let Converted { text, notes } = convert(Format::Parca, yaml).unwrap();
    for part in [
        "discovery.kubernetes \"pods\" {\n\trole = \"pod\"\n\n\tnamespaces {\n\t\tnames = [\"shop\"]\n\t}",
        "refresh_interval = \"24h\"",
        "targets = array.concat(discovery.consul.pods.targets, discovery.kubernetes.pods.targets)",
        "regex         = \"true\"",
        "modulus       = 4",
        "targets         = discovery.relabel.pods.output",
        "scheme          = \"https\"",
        "scrape_timeout  = \"6000ms\"",
        "path_prefix = \"/admin\"",
        "profile.block {\n\t\t\tenabled = false",
        "ca_pem               = \"PEM\"",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("profile.memory"), "{text}");
    assert_eq!(notes.len(), 2, "{notes:?}");
}

#[test]
fn where_parca_stores_is_left_out_in_all_its_versions() {
    for key in ["object_storage", "debug_info"] {
        let notes = convert(Format::Parca, &format!("{key}: {{bucket: {{type: FILESYSTEM}}}}"))
            .unwrap()
            .notes;
        assert!(notes[0].starts_with(key) && notes.len() == 1, "{notes:?}");
    }
}

#[test]
fn a_job_of_prometheus_is_profiled_where_it_is_scraped() {
    let yaml = "
global: {scrape_interval: 30s, evaluation_interval: 30s}
rule_files: [rules.yml]
scrape_configs:
- job_name: files
  honor_labels: true
  metrics_path: /custom
  basic_auth: {username: me, password: 1234}
  params: {seconds_hint: ['5']}
  file_sd_configs: [{files: [targets/*.json, /abs/*.yml]}]
- job_name: files
  scrape_interval: 5s
  static_configs: [{targets: ['localhost:9090']}]
";
    let Converted { text, notes } = convert(Format::Prometheus, yaml).unwrap();
    for part in [
        "files = [\"etc/targets/*.json\", \"/abs/*.yml\"]",
        "pyroscope.scrape \"files_2\"",
        "scrape_interval = \"30s\"",
        "scrape_interval = \"5s\"",
        "password = \"1234\"",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let left_out: Vec<&str> = notes.iter().filter_map(|note| note.split(':').next()).collect();
    assert_eq!(
        left_out,
        [
            "global.evaluation_interval",
            "rule_files",
            "scrape_configs[0].honor_labels",
            "scrape_configs[0].metrics_path"
        ]
    );
}

#[test]
fn settings_of_histograms_are_left_out() {
    for key in [
        "scrape_native_histograms",
        "extra_scrape_metrics",
        "scrape_classic_histograms",
    ] {
        let yaml = format!("scrape_configs: [{{job_name: a, {key}: true}}]");
        let notes = convert(Format::Prometheus, &yaml).unwrap().notes;
        assert_eq!(
            notes,
            [format!("scrape_configs[0].{key}: concerns metrics and is left out")]
        );
    }
}

#[test]
fn an_authorization_becomes_the_bearer_token_of_a_component_without_that_block() {
    let item = |authorization: &str| {
        format!("scrape_configs: [{{job_name: a, digitalocean_sd_configs: [{{authorization: {authorization}}}]}}]")
    };
    for (authorization, expected) in [
        ("{credentials: 0123}", "bearer_token = \"0123\""),
        ("{type: Bearer, credentials: abc}", "bearer_token = \"abc\""),
        (
            "{type: null, credentials_file: /etc/token}",
            "bearer_token_file = \"/etc/token\"",
        ),
    ] {
        let text = convert(Format::Prometheus, &item(authorization)).unwrap().text;
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert_eq!(
        problems(Format::Prometheus, &item("{type: Token, credentials: abc}")),
        ["scrape_configs[0].digitalocean_sd_configs[0].authorization: `discovery.digitalocean` has no such argument"]
    );
}

#[test]
fn files_are_relative_to_the_folder_of_the_configuration() {
    let yaml = "
scrape_configs:
- job_name: one
  basic_auth: {username: me, password_file: password}
  tls_config: {ca_file: /abs/ca.pem, cert_file: tls/one.pem, key_file: tls/one.key}
  puppetdb_sd_configs:
  - {url: 'https://localhost', query: x, tls_config: {ca_file: ca.pem}}
  kubernetes_sd_configs: [{role: pod, kubeconfig_file: kube/config}]
";
    for format in [Format::Conprof, Format::Parca, Format::Prometheus] {
        let text = convert(format, yaml).unwrap().text;
        for path in [
            "\"etc/password\"",
            "\"/abs/ca.pem\"",
            "\"etc/tls/one.pem\"",
            "\"etc/ca.pem\"",
            "\"etc/kube/config\"",
        ] {
            assert!(text.contains(path), "{path} is not in\n{text}");
        }
    }
}

#[test]
fn a_file_may_have_any_number_of_lines_of_comment() {
    let comments = "  # a line of comment\n".repeat(500);
    let job = format!(
        "scrape_configs:\n{comments}- job_name: a\n  static_configs:\n{comments}  - targets: ['localhost:1']\n"
    );
    for format in [Format::Conprof, Format::Parca, Format::Prometheus] {
        assert!(convert(format, &job).unwrap().text.contains("localhost:1"));
    }
    let pod = format!("kind: Pod\nmetadata:\n{comments}  name: shop\n  annotations:\n{comments}");
    let scrape = "    coroot.com/profile-scrape: 'true'\n    coroot.com/profile-port: '6060'\n";
    let pod = format!("{pod}{scrape}{comments}");
    assert!(
        convert(Format::Coroot, &pod)
            .unwrap()
            .text
            .contains("discovery.profiles")
    );
}

#[test]
fn every_key_that_cannot_be_said_is_a_problem_with_its_path() {
    let yaml = "
scrape_configs:
- job_name: one
  colour: red
  vultr_sd_configs: [{}]
  dns_sd_configs: [{names: x, depth: 3}]
  static_configs: [{targets: ['http://localhost/x']}]
  relabel_configs: [{source_labels: [__profile_path__], action: drop}]
  scrape_interval: soon
- 5
storage: {}
";
    assert_eq!(
        problems(Format::Conprof, yaml),
        [
            "scrape_configs[0].dns_sd_configs[0].names: \"x\" is not a list",
            "scrape_configs[0].dns_sd_configs[0].depth: `discovery.dns` has no such argument",
            "scrape_configs[0].static_configs[0].targets: \"http://localhost/x\" is not a HOST:PORT",
            "scrape_configs[0].vultr_sd_configs: there is no component `discovery.vultr`",
            "scrape_configs[0].relabel_configs[0]: the label __profile_path__ is not set: rules run once per target, \
             not once per profile",
            "scrape_configs[0].scrape_interval: `soon` is not a duration",
            "scrape_configs[0].colour: `pyroscope.scrape` has no such argument",
            "scrape_configs[1]: must be a mapping",
            "storage: cannot be converted",
        ]
    );
    assert_eq!(problems(Format::Parca, "- 1"), ["the file must be a mapping"]);
    assert_eq!(problems(Format::Parca, "a: [").len(), 1);
}

#[test]
fn problems_become_notes_when_asked() {
    let conversion = Conversion::with_arguments(Format::Conprof, "push-url=https://in.example:1/x", Problems::Note);
    let converted = conversion
        .unwrap()
        .convert("f", "scrape_configs: [{job_name: a, colour: red}]")
        .unwrap();
    assert_eq!(
        converted.notes,
        ["scrape_configs[0].colour: `pyroscope.scrape` has no such argument"]
    );
    assert!(converted.text.contains("url = \"https://in.example:1/x\""));
    for arguments in ["push-url=", "push-url=nowhere", "url"] {
        let error = Conversion::with_arguments(Format::Conprof, arguments, Problems::Note).unwrap_err();
        assert!(error.to_string().contains("push-url=URL"), "{error}");
    }
}

#[test]
fn an_interval_below_two_seconds_has_no_profile_over_time() {
    let yaml = "scrape_configs: [{job_name: self, scrape_interval: 1s, static_configs: [{targets: ['a:1']}]}]";
    let Converted { text, notes } = convert(Format::Conprof, yaml).unwrap();
    assert!(text.contains("profile.process_cpu {\n\t\t\tenabled = false"), "{text}");
    assert!(
        notes[0].contains("`profile` covers a time span, for which the scrape interval of 1000 ms is too short"),
        "{notes:?}"
    );
}

#[test]
fn durations_get_the_units_that_go_knows() {
    for (prometheus, go) in [
        ("1d12h", "36h"),
        ("1y", "8760h"),
        ("2w3d1m5s", "408h1m5s"),
        ("250ms", "250ms"),
        ("0", "0s"),
    ] {
        assert_eq!(blocks::duration(prometheus).as_deref(), Ok(go));
    }
    for text in ["", "5", "1.5h", "h", "99999999999999999999s", "9999999999999999999y"] {
        assert!(blocks::duration(text).is_err(), "{text}");
    }
}

/// A manifest like the one in kube-profefe's documentation, but written by us.
const KPROFEFE: &str = "
apiVersion: batch/v1beta1
kind: CronJob
metadata: {name: kprofefe, namespace: ops}
spec:
  schedule: '*/15 * * * *'
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: kprofefe
            image: registry.example.com/tools/kprofefe:v1
            args: ['--profefe-hostport', 'http://profefe-collector:10100', '-n', shop, '-l=tier in (web)', '-n', bank]
---
apiVersion: v1
kind: Service
metadata: {name: profefe-collector}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  template:
    metadata:
      annotations: {profefe.com/enable: 'yes', profefe.com/ports: '6060'}
    spec: {containers: [{name: cart, image: cart}]}
";

#[test]
fn kprofefes_schedule_and_flags_become_annotated_pods() {
    let converted = convert(Format::KubeProfefe, KPROFEFE).unwrap();
    let expected = r#"discovery.profiles "pods" {
	namespaces {
		names = ["bank", "shop"]
	}

	selectors {
		role  = "pod"
		label = "tier in (web)"
	}
}

pyroscope.scrape "pods" {
	targets                  = discovery.profiles.pods.targets
	forward_to               = [pyroscope.write.default.receiver]
	scrape_interval          = "15m"
	delta_profiling_duration = "30s"

	profiling_config {
		profile.threadcreate {
			enabled = true
		}
	}
}

pyroscope.write "default" {
	endpoint {
		url = "http://localhost:4040"
	}
}
"#;
    assert_eq!(converted.text, expected);
    assert_eq!(
        converted.notes,
        [
            "Deployment cart: profefe.com/enable: is `yes`, but only `true` enables profiling",
            "Deployment cart: profefe.com/ports: is left out: the agent does not support this annotation",
            "CronJob kprofefe: --profefe-hostport: is left out: profiles go to push-url, not to profefe's collector",
        ]
    );
}

#[test]
fn each_kprofefe_looks_at_its_own_pods_and_what_cannot_be_said_is_a_problem() {
    let job = |arguments: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: once}}\nspec: {{containers: [{{image: x, command: [sh, -c, 'exec']}}, \
             {{image: kprofefe, command: [/kprofefe, {arguments}]}}]}}\n---\n"
        )
    };
    let jobs = job("-A") + &job("influxdb-v2");
    let text = convert(Format::KubeProfefe, &jobs).unwrap().text;
    let names = [
        "discovery.profiles \"pods\" { }",
        "discovery.profiles \"pods_2\"",
        "own_namespace = true",
    ];
    let all = [
        &names[..],
        &["\"metadata.name=influxdb-v2\"", "scrape_interval          = \"10m\""],
    ]
    .concat();
    for part in all {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(
        problems(Format::KubeProfefe, &job("--context, far, a, b")),
        [
            "Pod once: --context: cannot be converted",
            "Pod once: names several pods: use a label selector"
        ]
    );
    let nothing = "the file: has neither kprofefe nor a pod with the annotation profefe.com/enable";
    assert_eq!(problems(Format::KubeProfefe, "kind: Service"), [nothing]);
    let weekly = KPROFEFE.replace("*/15 * * * *", "0 3 * * 1");
    let notes = convert(Format::KubeProfefe, &weekly).unwrap().notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("`0 3 * * 1` does not mean every N minutes or every hour")),
        "{notes:?}"
    );
}

#[test]
fn pods_that_are_annotated_are_enough() {
    let pod = |annotation: &str| {
        format!(
            "kind: List\nitems:\n- kind: StatefulSet\n  metadata: {{name: db, namespace: shop}}\n  \
             spec: {{template: {{metadata: {{annotations: {{{annotation}: 'true'}}}}}}}}\n"
        )
    };
    for (format, annotation, interval) in [
        (Format::KubeProfefe, "profefe.com/enable", "10m"),
        (Format::Coroot, "coroot.com/profile-scrape", "60s"),
    ] {
        let text = convert(format, &pod(annotation)).unwrap().text;
        assert!(text.contains("names = [\"shop\"]"), "{text}");
        assert!(
            text.contains(&format!("scrape_interval          = \"{interval}\"")),
            "{text}"
        );
    }
}

#[test]
fn coroots_agents_become_what_takes_the_same_profiles() {
    let yaml = "
kind: DaemonSet
metadata: {name: coroot-node-agent}
spec:
  template:
    spec:
      containers:
      - image: ghcr.io/coroot/coroot-node-agent:1.26
        args: [--cgroupfs-root=/host/sys/fs/cgroup, --enable-java-async-profiler]
        env: [{name: API_KEY, value: hush}, {name: GO_HEAP_PROFILER, value: force}]
---
kind: Deployment
metadata: {name: coroot-cluster-agent}
spec:
  template:
    spec:
      containers:
      - image: ghcr.io/coroot/coroot-cluster-agent
        args: [--profiles-scrape-interval, 30s]
        env: [{name: PROFILES_SCRAPE_INTERVAL, value: 5m}, {name: PROFILES_SCRAPE_TIMEOUT, value: 20s}]
---
kind: Deployment
metadata: {name: quiet}
spec: {template: {spec: {containers: [{image: quiet, env: [{name: COROOT_EBPF_PROFILING, value: disabled}]}]}}}
";
    let converted = convert(Format::Coroot, yaml).unwrap();
    for part in [
        "scrape_interval          = \"30s\"",
        "scrape_timeout           = \"20s\"",
        "delta_profiling_duration = \"10s\"",
        "pyroscope.ebpf \"node\"",
        "sample_rate      = 100",
        "pyroscope.java \"node\"",
        "field = \"spec.nodeName=\" + sys.env(\"NODE_NAME\")",
    ] {
        assert!(converted.text.contains(part), "{part}\n{}", converted.text);
    }
    assert!(!converted.text.contains("hush") && !converted.notes.iter().any(|note| note.contains("hush")));
    assert_eq!(
        converted.notes,
        [
            "DaemonSet coroot-node-agent: api-key: is left out: profiles go to push-url, not to Coroot",
            "DaemonSet coroot-node-agent: cgroupfs-root: is left out: it does not concern profiles",
            "DaemonSet coroot-node-agent: go-heap-profiler: has no counterpart: to get Go heap profiles, annotate pods \
             that serve them over HTTP",
            "Deployment quiet: COROOT_EBPF_PROFILING: has no counterpart: drop the targets of the workload's pods with \
             a rule of discovery.relabel",
        ]
    );
    let operated = "apiVersion: coroot.com/v1\nkind: Coroot\nmetadata: {name: coroot}\nspec: {clusterAgent: {env: [{\
        name: PROFILES_SCRAPE_INTERVAL, value: '0'}]}}";
    let operated = convert(Format::Coroot, operated).unwrap();
    assert!(operated.text.contains("pyroscope.ebpf") && !operated.text.contains("discovery.profiles"));
    assert_eq!(
        operated.notes,
        ["Coroot coroot: has the scrape interval 0, so annotated pods are not scraped"]
    );
    assert!(problems(Format::Coroot, "kind: Service")[0].contains("has neither an agent of Coroot"));
}

/// Gives each string attribute of a schema the YAML value `scalar`, converts the attribute, and checks that the Alloy
/// text contains `expected` as its value. Returns the number of attributes.
fn check_texts(name: &str, schema: &Schema, path: &str, scalar: &str, expected: &str) -> usize {
    let mut checked = 0;
    for attribute in schema.attributes {
        let (yaml, written) = match attribute.kind {
            Kind::String | Kind::Secret | Kind::OptionalSecret => (scalar.to_owned(), quote(expected)),
            Kind::List(Kind::String) => (format!("[{scalar}]"), format!("[{}]", quote(expected))),
            Kind::Map(Kind::String) => (format!("{{k: {scalar}}}"), format!("{{\"k\" = {}}}", quote(expected))),
            _ => continue,
        };
        let Ok(Value::Object(mapping)) = yaml::document(&format!("{}: {yaml}\n", attribute.name)) else {
            panic!("{path}.{}: {yaml} is not read", attribute.name);
        };
        let (mut writer, mut findings) = (Writer::default(), Findings::default());
        blocks::body(name, schema, (path, &mapping), &mut writer, &mut findings);
        // A key without a value keeps the default, which is an empty string.
        let is_left_out = mapping.get(attribute.name).is_some_and(Value::is_null);
        let line = if is_left_out {
            String::new()
        } else {
            format!("{} = {written}\n", attribute.name)
        };
        assert_eq!(
            (writer.finish(), findings.problems),
            (line, Vec::new()),
            "{path}.{}: {yaml}",
            attribute.name
        );
        checked += 1;
    }
    let inner = schema
        .blocks
        .iter()
        .filter(|block| !path.contains(&format!(".{}", block.name)));
    let inner = inner.map(|block| {
        check_texts(
            block.name,
            block.schema,
            &format!("{path}.{}", block.name),
            scalar,
            expected,
        )
    });
    checked + inner.sum::<usize>()
}

#[test]
fn every_field_of_text_gets_the_text_that_stands_in_the_file() {
    assert!(yaml::tests::SCALARS.len() >= 60);
    for (scalar, expected) in yaml::tests::SCALARS {
        let checked: usize = alluvium_components::ALL
            .iter()
            .filter(|component| component.name().starts_with("discovery.") || component.name() == "pyroscope.scrape")
            .map(|component| {
                check_texts(
                    component.name(),
                    component.arguments(),
                    component.name(),
                    scalar,
                    expected,
                )
            })
            .sum();
        assert!(checked > 200, "only {checked} string attributes were checked");
    }
}

#[test]
fn scalars_of_a_job_keep_their_texts() {
    let yaml = "
scrape_configs:
- job_name: j
  basic_auth: {username: no, password: 0123456}
  params: {gc: [on], v: [1.10]}
  static_configs:
  - targets: ['a:1']
    labels: {version: 1.10, build: 0010, country: NO, sha: 1e3, id: 12345678901234567890123, hex: 0x1F, rack: }
  relabel_configs:
  - {source_labels: [y, n], regex: 1.10, replacement: off, target_label: n}
  - {source_labels: [a], regex: 08, target_label: b, modulus: 0x10, action: hashmod}
- job_name: true
- job_name: 0123
- job_name: 'null'
";
    let text = convert(Format::Prometheus, yaml).unwrap().text;
    for expected in [
        r#"username = "no""#,
        r#"password = "0123456""#,
        r#"["on"]"#,
        r#"["1.10"]"#,
        r#""version" = "1.10""#,
        r#""build" = "0010""#,
        r#""country" = "NO""#,
        r#""sha" = "1e3""#,
        r#""id" = "12345678901234567890123""#,
        r#""hex" = "0x1F""#,
        r#"["y", "n"]"#,
        r#"= "off""#,
        r#"= "08""#,
        "= 16",
        r#"pyroscope.scrape "_true""#,
        r#"pyroscope.scrape "_0123""#,
        r#"pyroscope.scrape "_null""#,
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains("rack"), "{text}");
    let expected = "scrape_configs[0]: job_name is missing";
    assert_eq!(
        problems(Format::Prometheus, "scrape_configs: [{job_name: null}]"),
        [expected]
    );
}
