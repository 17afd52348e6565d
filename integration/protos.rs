//! The Rust code under `src/wire/proto` is generated from `proto/`. This test generates the code again and compares it
//! with the files.
//!
//! In: `proto/**/*.proto`. Out: one file per package, with prost's messages, their JSON form (`wire::json`), and a
//! trait for each service that the server implements. JSON code is generated only for messages of these services. Code
//! that reads JSON is generated only for requests. `UPDATE_EXPECT=1` rewrites the files instead of failing. No `protoc`
//! is needed: protox compiles the text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

/// For each package: its module, its proto file, and the modules of the packages to which the file refers.
const PACKAGES: [(&str, &str, &[&str]); 13] = [
    ("collector", "collector/v1/collector.proto", &[]),
    ("google", "google/v1/profile.proto", &[]),
    ("health", "health/v1/health.proto", &[]),
    ("types", "types/v1/types.proto", &[]),
    ("push", "push/v1/push.proto", &["types"]),
    ("querier", "querier/v1/querier.proto", &["google", "types"]),
    ("version", "version/v1/version.proto", &[]),
    ("capabilities", "capabilities/v1/feature_flags.proto", &[]),
    ("settings", "settings/v1/setting.proto", &["types"]),
    ("status", "status/v1/status.proto", &[]),
    ("vcs", "vcs/v1/vcs.proto", &[]),
    ("debuginfo", "debuginfo/v1alpha1/debuginfo.proto", &[]),
    ("adhocprofiles", "adhocprofiles/v1/adhocprofiles.proto", &[]),
];

/// Services of the server. The test generates a trait for each of them, and a JSON form for their messages.
const SERVED: [&str; 11] = [
    "PusherService",
    "QuerierService",
    "Version",
    "FeatureFlagsService",
    "SettingsService",
    "AdHocProfileService",
    "StatusService",
    "RecordingRulesService",
    "VCSService",
    "DebuginfoService",
    "Health",
];

const HEADER: &str = "\
//! Generated from `proto/SOURCE` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.
";

#[test]
fn the_generated_code_is_that_of_the_proto_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let update = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let sources = PACKAGES.map(|(_, source, _)| source);
    let all = protox::compile(sources, [root.join("proto")]).unwrap();
    let used = Used::by_services(&all);
    let mut stale = Vec::new();
    for (package, source, imports) in PACKAGES {
        let (path, text) = generate(root, package, source, imports, &used);
        if std::fs::read_to_string(&path).unwrap_or_default() == text {
            continue;
        }
        if update {
            std::fs::write(&path, text).unwrap();
        } else {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "stale: {stale:?}; run `UPDATE_EXPECT=1 cargo test --test integration protos`"
    );
}

/// Messages that services use, as full names with a leading dot. `asked` contains those in requests, `all` also
/// those in responses.
struct Used {
    asked: BTreeSet<String>,
    all: BTreeSet<String>,
}

impl Used {
    fn by_services(files: &FileDescriptorSet) -> Self {
        let (mut asked, mut all) = (BTreeSet::new(), BTreeSet::new());
        let services = files.file.iter().flat_map(|file| &file.service);
        for method in services
            .filter(|service| SERVED.contains(&service.name()))
            .flat_map(|service| &service.method)
        {
            add(files, method.input_type(), &mut asked);
            add(files, method.input_type(), &mut all);
            add(files, method.output_type(), &mut all);
        }
        Self { asked, all }
    }
}

/// Adds a message and the messages in its fields.
fn add(files: &FileDescriptorSet, name: &str, messages: &mut BTreeSet<String>) {
    if !messages.insert(name.to_owned()) {
        return;
    }
    for file in &files.file {
        for message in &file.message_type {
            if full_name(file, message) == name {
                let fields = message.field.iter().filter(|field| field.r#type() == Type::Message);
                fields.for_each(|field| add(files, field.type_name(), messages));
            }
        }
    }
}

fn full_name(file: &FileDescriptorProto, message: &DescriptorProto) -> String {
    format!(".{}.{}", file.package(), message.name())
}

fn generate(root: &Path, package: &str, source: &str, imports: &[&str], used: &Used) -> (PathBuf, String) {
    let descriptors = protox::compile([source], [root.join("proto")]).unwrap();
    let file = descriptors.file.iter().find(|file| file.name() == source).unwrap();
    let json = file.message_type.iter().map(|message| json_form(file, message, used));
    let json: String = json.collect();

    let scratch = tempfile::tempdir().unwrap();
    let mut messages = prost_build::Config::new();
    messages
        .out_dir(scratch.path())
        .bytes(["."])
        .service_generator(Box::new(Services));
    for import in imports {
        messages.extern_path(format!(".{import}.v1"), format!("crate::proto::{import}"));
    }
    messages.compile_fds(descriptors.clone()).unwrap();
    let messages = std::fs::read_to_string(scratch.path().join(format!("{}.rs", file.package()))).unwrap();
    let messages = messages.replace("// This file is @generated by prost-build.\n", "");
    let header = HEADER.replace("SOURCE", source);
    let path = root.join(format!("src/wire/proto/{package}.rs"));
    (path, format!("{header}\n{messages}{json}"))
}

/// Generates the JSON form of a message that a service uses, one line per field. If a request contains the message, the
/// code can also read it.
fn json_form(file: &FileDescriptorProto, message: &DescriptorProto, used: &Used) -> String {
    let name = full_name(file, message);
    let mut out = String::new();
    if !used.all.contains(&name) {
        return out;
    }
    assert!(
        message.field.len() <= 64,
        "{name}: `wire::json` supports at most 64 fields, because it has a bit for each field in a 64-bit number"
    );
    let real_oneofs = message
        .field
        .iter()
        .filter(|field| field.oneof_index.is_some() && !field.proto3_optional());
    assert_eq!(real_oneofs.count(), 0, "{name}: `wire::json` supports no oneof yet");
    let _ = write!(
        out,
        "
impl crate::json::ToJson for {} {{
    fn write(&self, out: &mut crate::json::Writer) {{
        out.message(|out| {{
",
        rust_type(message.name())
    );
    for field in &message.field {
        let (name, rust) = (field.json_name(), rust_name(field));
        let value = match enumeration(field) {
            None => format!("self.{rust}"),
            Some(kind) => enum_to_json(field, &rust, kind),
        };
        let _ = writeln!(out, "            out.field({name:?}, &{value});");
    }
    out.push_str("        });\n    }\n}\n");
    if used.asked.contains(&name) {
        read_form(&mut out, message);
    }
    if message.field.is_empty() {
        out = out
            .replace("|out| {\n        }", "|_| {}")
            .replace("map: &mut A", "_: &mut A");
    }
    out
}

fn read_form(out: &mut String, message: &DescriptorProto) {
    let _ = write!(
        out,
        "
impl crate::json::Fields for {} {{
    const NAMES: &'static [[&'static str; 2]] = &[",
        rust_type(message.name())
    );
    let names = message
        .field
        .iter()
        .map(|field| format!("[{:?}, {:?}]", field.json_name(), field.name()));
    let _ = writeln!(out, "{}];", names.collect::<Vec<_>>().join(", "));
    out.push_str(
        "
    fn read_field<'de, A: serde::de::MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        match index {
",
    );
    for (index, field) in message.field.iter().enumerate() {
        let rust = rust_name(field);
        let seed = match enumeration(field) {
            None => format!("Field(&mut self.{rust})"),
            Some(kind) => {
                format!("Enum(&mut self.{rust}, |name| {kind}::from_str_name(name).map(Into::into))")
            }
        };
        let _ = writeln!(out, "            {index} => map.next_value_seed(crate::json::{seed}),");
    }
    out.push_str("            _ => Ok(()),\n        }\n    }\n}\n");
}

/// Returns the path of the type of an enum field.
fn enumeration(field: &FieldDescriptorProto) -> Option<String> {
    if field.r#type() != Type::Enum {
        return None;
    }
    assert_ne!(
        field.label(),
        Label::Repeated,
        "`wire::json` does not support lists of enumerations yet"
    );
    let mut parts = field.type_name().rsplit('.');
    let name = parts.next().unwrap();
    let package = parts.nth(1).unwrap();
    Some(format!("crate::proto::{package}::{name}"))
}

/// Returns the code that converts an enum value to its name.
fn enum_to_json(field: &FieldDescriptorProto, rust: &str, kind: String) -> String {
    let name = format!("{kind}::try_from(value).map(|value| value.as_str_name()).map_err(|_| value)");
    if field.proto3_optional() {
        format!("self.{rust}.map(|value| {name})")
    } else {
        format!("Some(self.{rust}).filter(|value| *value != 0).map(|value| {name})")
    }
}

/// Returns prost's name of a message, for example `GoPgo` for `GoPGO`.
fn rust_type(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let is_upper = |index: usize| letters.get(index).is_none_or(char::is_ascii_uppercase);
    let lowered = letters.iter().enumerate().map(|(index, letter)| {
        let is_inside = index > 0 && is_upper(index - 1) && is_upper(index + 1);
        if is_inside {
            letter.to_ascii_lowercase()
        } else {
            *letter
        }
    });
    lowered.collect()
}

/// Returns prost's name of a field, for example `profile_type_id` for `profile_typeID`.
fn rust_name(field: &FieldDescriptorProto) -> String {
    let mut name = String::new();
    let mut was_lower = false;
    for character in field.name().chars() {
        if character.is_ascii_uppercase() && was_lower {
            name.push('_');
        }
        was_lower = character.is_ascii_lowercase();
        name.push(character.to_ascii_lowercase());
    }
    if matches!(name.as_str(), "type" | "async" | "match" | "enum" | "move" | "ref") {
        name.insert_str(0, "r#");
    }
    name
}

/// Generates the trait of a service that the server implements.
struct Services;

impl prost_build::ServiceGenerator for Services {
    fn generate(&mut self, service: prost_build::Service, out: &mut String) {
        if !SERVED.contains(&service.proto_name.as_str()) {
            return;
        }
        let full_name = format!("{}.{}", service.package, service.proto_name);
        let _ = write!(
            out,
            "/// The calls of `{full_name}`.
pub trait {}: Clone + Send + Sync + 'static {{
",
            service.name
        );
        for method in &service.methods {
            assert!(
                !method.client_streaming && !method.server_streaming,
                "streams are not served yet"
            );
            let (name, ask, reply) = (&method.name, &method.input_type, &method.output_type);
            let _ = writeln!(
                out,
                "    fn {name}(&self, call: crate::service::Call<{ask}>) -> impl Future<Output = \
                    crate::service::CallResult<{reply}>> + Send;"
            );
        }
        out.push_str(
            "
    fn route(&self, routes: &mut impl crate::service::Routes) {
",
        );
        for method in &service.methods {
            let (name, proto_name) = (&method.name, &method.proto_name);
            let _ = write!(
                out,
                "        let service = self.clone();
        routes.unary(\"{full_name}/{proto_name}\", move |call| {{
            let service = service.clone();
            async move {{ service.{name}(call).await }}
        }});
"
            );
        }
        out.push_str("    }\n}\n");
    }
}
