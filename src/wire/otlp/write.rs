//! Converts profiles to an export request.
//!
//! In: labels and decoded profiles. Out: a request whose tables contain each entry once, even if several profiles refer
//! to it. In OTLP, a profile has one sample type, so each sample type becomes a separate profile. Labels become
//! attributes of the resource. The name of the profile becomes an attribute of the profile, because OTLP has no field
//! for it. OTLP has no field for comments, for the patterns of frames that viewers drop or keep, and for folded
//! locations, so these are omitted. Labels that begin with `__`, except `__name__`, are private and are omitted, too.

use std::hash::Hash;

use hashbrown::HashMap;
use uuid::{Builder, Uuid};

use crate::otlp::attributes::{BUILD_ID, SERVICE};
use crate::otlp::columns::{SPAN_ID, TRACE_ID};
use crate::otlp::kind::NAME;
use crate::otlp::messages as otlp;
use crate::otlp::messages::any_value::Value;
use alluvium_profile::Labels;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::pprof::{Location, Profile, SampleLabel, Strings, ValueType};

/// A profile that is to be exported.
pub struct Exported<'a> {
    /// Labels of the series, including `__name__`.
    pub labels: &'a Labels,
    /// Id that the sender gave the profile. Several profiles have one id if they come from one upload.
    pub id: &'a str,
    /// Number of sample types of the profiles with this id before this profile.
    pub first_part: usize,
    /// Number of sample types of all profiles with this id. If there are several, each gets an id that follows from
    /// this id and its number.
    pub part_count: usize,
    /// Decoded stacks and values.
    pub profile: &'a Profile<'a>,
}

/// Names and values of the attributes of a resource.
type Attributes<'a> = Vec<(&'a str, &'a str)>;

/// An export request, and the source of each of its profiles.
pub struct Written {
    /// The request with all profiles.
    pub request: otlp::ExportProfilesServiceRequest,
    /// For each profile of the request, in its order, the index of the [`Exported`] from which it comes.
    pub sources: Vec<usize>,
}

impl Written {
    /// Returns the sources of the series that Pyroscope makes of the request, in Pyroscope's order: one series of each
    /// profile with samples. The result is empty if samples name services, because Pyroscope then splits profiles.
    pub fn series(&self) -> Vec<usize> {
        let dictionary = self.request.dictionary.iter();
        let mut keys = dictionary.flat_map(|dictionary| {
            let attributes = dictionary.attribute_table.iter();
            attributes.filter_map(|attribute| dictionary.string_table.get(attribute.key_strindex as usize))
        });
        if keys.any(|key| key == SERVICE) {
            return Vec::new();
        }
        let scopes = self
            .request
            .resource_profiles
            .iter()
            .flat_map(|resource| &resource.scope_profiles);
        let profiles = scopes.flat_map(|scope| &scope.profiles).zip(&self.sources);
        let with_samples = profiles.filter(|(profile, _)| !profile.samples.is_empty());
        with_samples.map(|(_, source)| *source).collect()
    }
}

/// Builds the request for these profiles.
pub fn to_request(profiles: &[Exported<'_>]) -> Written {
    let mut tables = Tables::default();
    let mut resources: Vec<(Attributes<'_>, Vec<otlp::Profile>, Vec<usize>)> = Vec::new();
    let mut indices: HashMap<Attributes<'_>, usize> = HashMap::new();
    for (source, exported) in profiles.iter().enumerate() {
        let attributes = resource(exported.labels);
        let index = *indices.entry(attributes.clone()).or_insert_with(|| {
            resources.push((attributes, Vec::new(), Vec::new()));
            resources.len() - 1
        });
        if let Some((_, written, sources)) = resources.get_mut(index) {
            tables.add(exported, written);
            sources.resize(written.len(), source);
        }
    }
    let sources = resources.iter().flat_map(|(_, _, sources)| sources.clone()).collect();
    let resource_profiles = resources
        .into_iter()
        .map(|(attributes, profiles, _)| otlp::ResourceProfiles {
            resource: Some(otlp::Resource {
                attributes: attributes.into_iter().map(key_value).collect(),
                ..otlp::Resource::default()
            }),
            scope_profiles: vec![otlp::ScopeProfiles {
                scope: Some(otlp::InstrumentationScope {
                    name: "alluvium".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    ..otlp::InstrumentationScope::default()
                }),
                profiles,
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        });
    let request = otlp::ExportProfilesServiceRequest {
        resource_profiles: resource_profiles.collect(),
        dictionary: Some(tables.finish()),
    };
    Written { request, sources }
}

/// Returns the resource attributes for these labels, sorted by the labels' names.
fn resource(labels: &Labels) -> Attributes<'_> {
    let public_labels = labels.iter().filter(|(name, _)| !name.starts_with("__"));
    let attributes = public_labels.map(|(name, value)| match name {
        SERVICE_NAME => (SERVICE, value),
        name => (name, value),
    });
    attributes.collect()
}

fn key_value((name, value): (&str, &str)) -> otlp::KeyValue {
    otlp::KeyValue {
        key: name.to_owned(),
        value: Some(text(value)),
        key_strindex: 0,
    }
}

fn text(value: &str) -> otlp::AnyValue {
    otlp::AnyValue {
        value: Some(Value::StringValue(value.to_owned())),
    }
}

fn number(value: i64) -> otlp::AnyValue {
    otlp::AnyValue {
        value: Some(Value::IntValue(value)),
    }
}

/// Distinct rows with their indices. The first row is the empty one, which stands for "none".
struct Table<Row> {
    indices: HashMap<Row, i32>,
    rows: Vec<Row>,
}

impl<Row: Clone + Default + Eq + Hash> Default for Table<Row> {
    fn default() -> Self {
        Self {
            indices: HashMap::from_iter([(Row::default(), 0)]),
            rows: vec![Row::default()],
        }
    }
}

impl<Row: Clone + Eq + Hash> Table<Row> {
    fn index(&mut self, row: Row) -> i32 {
        let next = self.rows.len() as i32;
        *self.indices.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            next
        })
    }
}

/// The value of an attribute.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Content<'a> {
    #[default]
    None,
    Text(&'a str),
    Number(i64),
}

/// Start, limit, offset, file, and attribute with the build id.
type MappingRow = (u64, u64, u64, i32, i32);
/// Mapping, address, and function and line of each frame.
type LocationRow = (i32, u64, Vec<(i32, i64)>);
/// Name, system name, file and start line.
type FunctionRow = (i32, i32, i32, i64);
/// Key, value and unit of an attribute.
type AttributeRow<'a> = (i32, Content<'a>, i32);
/// Trace id and span id of a link.
type LinkRow = (Vec<u8>, Vec<u8>);

/// The dictionary that is being built.
#[derive(Default)]
struct Tables<'a> {
    strings: Strings<'a>,
    mappings: Table<MappingRow>,
    locations: Table<LocationRow>,
    functions: Table<FunctionRow>,
    attributes: Table<AttributeRow<'a>>,
    stacks: Table<Vec<i32>>,
    links: Table<LinkRow>,
}

impl<'a> Tables<'a> {
    /// Adds a separate profile for each sample type.
    fn add(&mut self, exported: &'a Exported<'_>, out: &mut Vec<otlp::Profile>) {
        let profile = exported.profile;
        let locations = self.locations_of(profile);
        let samples: Vec<otlp::Sample> = (0..profile.sample_count())
            .map(|sample| self.sample(profile, sample, &locations))
            .collect();
        let name = exported.labels.get(PROFILE_NAME).unwrap_or_default();
        let attribute_indices = vec![self.attribute(NAME, Content::Text(name), "")];
        let period_type = (profile.period_type != ValueType::default()).then(|| self.value_type(profile.period_type));
        let id = Uuid::parse_str(exported.id).ok();
        for (index, kind) in profile.sample_types.iter().enumerate() {
            let samples = samples.iter().enumerate().map(|(sample, written)| otlp::Sample {
                values: profile.values_of(sample).get(index).copied().into_iter().collect(),
                ..written.clone()
            });
            out.push(otlp::Profile {
                sample_type: Some(self.value_type(*kind)),
                samples: samples.collect(),
                time_unix_nano: u64::try_from(profile.time_nanos).unwrap_or_default(),
                duration_nano: u64::try_from(profile.duration_nanos).unwrap_or_default(),
                period_type,
                period: profile.period,
                profile_id: id.map_or_else(Vec::new, |id| {
                    let id = match exported.part_count {
                        0 | 1 => id,
                        _ => part_id(id, exported.first_part + index),
                    };
                    id.into_bytes().to_vec()
                }),
                attribute_indices: attribute_indices.clone(),
                ..otlp::Profile::default()
            });
        }
    }

    fn string(&mut self, text: &'a str) -> i32 {
        self.strings.index(text) as i32
    }

    fn value_type(&mut self, value_type: ValueType<'a>) -> otlp::ValueType {
        otlp::ValueType {
            type_strindex: self.string(value_type.kind),
            unit_strindex: self.string(value_type.unit),
        }
    }

    fn attribute(&mut self, key: &'a str, value: Content<'a>, unit: &'a str) -> i32 {
        let row = (self.string(key), value, self.string(unit));
        self.attributes.index(row)
    }

    /// Returns the table index of each location of a profile.
    fn locations_of(&mut self, profile: &'a Profile<'_>) -> Vec<i32> {
        let mut functions = Vec::with_capacity(profile.functions.len());
        for function in &profile.functions {
            let row = (
                self.string(function.name),
                self.string(function.system_name),
                self.string(function.file),
                function.start_line,
            );
            functions.push(self.functions.index(row));
        }
        let mut mappings = Vec::with_capacity(profile.mappings.len());
        for mapping in &profile.mappings {
            let build_id = match mapping.build_id {
                "" => 0,
                id => self.attribute(BUILD_ID, Content::Text(id), ""),
            };
            let file = self.string(mapping.file);
            let row = (mapping.start, mapping.limit, mapping.offset, file, build_id);
            mappings.push(self.mappings.index(row));
        }
        let index = |table: &[i32], index: u32| table.get(index as usize).copied().unwrap_or_default();
        let rows = profile.locations.iter().map(|location| {
            let mapping = match location.mapping {
                Location::NO_MAPPING => 0,
                mapping => index(&mappings, mapping),
            };
            let lines = profile.lines_of(location).iter();
            let lines = lines
                .map(|line| (index(&functions, line.function), line.line))
                .collect();
            (mapping, location.address, lines)
        });
        rows.map(|row| self.locations.index(row)).collect()
    }

    /// Returns a sample without its value.
    fn sample(&mut self, profile: &'a Profile<'_>, sample: usize, locations: &[i32]) -> otlp::Sample {
        let stack = profile.stack(sample).iter();
        let stack = stack.map(|location| locations.get(*location as usize).copied().unwrap_or_default());
        let stack_index = self.stacks.index(stack.collect());
        let mut attribute_indices = Vec::new();
        let mut link = LinkRow::default();
        for label in profile.labels_of(sample) {
            match *label {
                SampleLabel::Text(TRACE_ID, id) if id_of(id, 16).is_some() => {
                    link.0 = id_of(id, 16).unwrap_or_default();
                }
                SampleLabel::Text(SPAN_ID, id) if id_of(id, 8).is_some() => {
                    link.1 = id_of(id, 8).unwrap_or_default();
                }
                SampleLabel::Text(key, value) => attribute_indices.push(self.attribute(key, Content::Text(value), "")),
                SampleLabel::Number(key, value, unit) => {
                    attribute_indices.push(self.attribute(key, Content::Number(value), unit));
                }
            }
        }
        otlp::Sample {
            stack_index,
            attribute_indices,
            link_index: self.links.index(link),
            ..otlp::Sample::default()
        }
    }

    fn finish(self) -> otlp::ProfilesDictionary {
        let mappings = self.mappings.rows.into_iter();
        let mapping = |(start, limit, offset, file, build_id): MappingRow| otlp::Mapping {
            memory_start: start,
            memory_limit: limit,
            file_offset: offset,
            filename_strindex: file,
            attribute_indices: (build_id != 0).then_some(build_id).into_iter().collect(),
        };
        let locations = self.locations.rows.into_iter();
        let location = |(mapping_index, address, lines): LocationRow| otlp::Location {
            mapping_index,
            address,
            lines: lines
                .into_iter()
                .map(|(function_index, line)| otlp::Line {
                    function_index,
                    line,
                    column: 0,
                })
                .collect(),
            attribute_indices: Vec::new(),
        };
        let functions = self.functions.rows.into_iter();
        let function = |(name, system_name, file, start_line): FunctionRow| otlp::Function {
            name_strindex: name,
            system_name_strindex: system_name,
            filename_strindex: file,
            start_line,
        };
        let attributes = self.attributes.rows.into_iter();
        let attribute = |(key, value, unit): AttributeRow<'_>| otlp::KeyValueAndUnit {
            key_strindex: key,
            value: match value {
                Content::None => None,
                Content::Text(value) => Some(text(value)),
                Content::Number(value) => Some(number(value)),
            },
            unit_strindex: unit,
        };
        let stacks = self.stacks.rows.into_iter();
        let links = self.links.rows.into_iter();
        let link = |(trace, span): LinkRow| otlp::Link {
            trace_id: trace,
            span_id: span,
        };
        otlp::ProfilesDictionary {
            mapping_table: mappings.map(mapping).collect(),
            location_table: locations.map(location).collect(),
            function_table: functions.map(function).collect(),
            link_table: links.map(link).collect(),
            string_table: self.strings.into_texts(),
            attribute_table: attributes.map(attribute).collect(),
            stack_table: stacks
                .map(|location_indices| otlp::Stack { location_indices })
                .collect(),
        }
    }
}

/// Returns the id of a part of a profile: the parts must not share an id, and a part that is sent again must have the
/// same id. The id has version 8, so it differs from all ids of whole profiles that are random or contain a time.
fn part_id(id: Uuid, part: usize) -> Uuid {
    let mut bytes = id.into_bytes();
    let number = (part as u16).to_be_bytes();
    for (byte, number) in bytes.iter_mut().rev().zip(number.iter().rev()) {
        *byte ^= number;
    }
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Parses an id of `length` bytes in lower-case hexadecimal. Returns `None` for any other text, and for zeros.
fn id_of(text: &str, length: usize) -> Option<Vec<u8>> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    let id: Vec<u8> = pairs.collect::<Option<_>>()?;
    (id.len() == length && id.iter().any(|byte| *byte != 0)).then_some(id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::otlp::ExportBatch;
    use alluvium_profile::pprof::{Builder, Function, Line, Mapping};

    /// Returns samples of one type as a reader sees them: frames, mapping and address of each location, labels, and
    /// value.
    fn describe_samples(profile: &Profile<'_>, kind: usize) -> Vec<String> {
        let sample = |sample: usize| {
            let stack = profile.stack(sample).iter().map(|index| {
                let location = &profile.locations[*index as usize];
                let mapping = match location.mapping {
                    Location::NO_MAPPING => Mapping::default(),
                    index => profile.mappings[index as usize],
                };
                let lines = profile.lines_of(location).iter();
                let lines = lines.map(|line| (profile.functions[line.function as usize], line.line));
                let mapping_fields = (
                    mapping.start,
                    mapping.limit,
                    mapping.offset,
                    mapping.file,
                    mapping.build_id,
                );
                format!(
                    "{} {mapping_fields:?} {:?}",
                    location.address,
                    lines.collect::<Vec<_>>()
                )
            });
            let mut labels: Vec<String> = profile
                .labels_of(sample)
                .iter()
                .map(|label| format!("{label:?}"))
                .collect();
            labels.sort();
            format!(
                "{:?} {labels:?} {}",
                stack.collect::<Vec<_>>(),
                profile.values_of(sample)[kind]
            )
        };
        (0..profile.sample_count()).map(sample).collect()
    }

    fn value_type<'a>(pair: &(&'a str, &'a str)) -> ValueType<'a> {
        ValueType {
            kind: pair.0,
            unit: pair.1,
        }
    }

    const TYPES: [(&str, &str); 4] = [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
        ("alloc_space", "bytes"),
        ("off_cpu", "nanoseconds"),
    ];
    const TRACE: &str = "0123456789abcdef0123456789abcdef";

    #[derive(Debug, Clone)]
    struct Drawn {
        types: usize,
        frames: Vec<(usize, i64, u64, bool)>,
        samples: Vec<(Vec<usize>, usize, i64)>,
        period: i64,
    }

    fn drawn() -> impl Strategy<Value = Drawn> {
        let frame = (0..6usize, 0..50i64, 1..9u64, any::<bool>());
        let sample = (prop::collection::vec(0..8usize, 0..6), 0..6usize, any::<i64>());
        (
            1..TYPES.len() + 1,
            prop::collection::vec(frame, 8),
            prop::collection::vec(sample, 1..9),
            0..1000i64,
        )
            .prop_map(|(types, frames, samples, period)| Drawn {
                types,
                frames,
                samples,
                period,
            })
    }

    fn profile(drawn: &Drawn) -> Profile<'static> {
        let names = ["main", "work", "alloc", "std::vec", "\u{e4}", "a b"];
        let labels = [
            SampleLabel::Text("thread.name", "one"),
            SampleLabel::Number("bytes", -7, "bytes"),
            SampleLabel::Text(TRACE_ID, TRACE),
            SampleLabel::Text(SPAN_ID, "00000000000000ff"),
            SampleLabel::Text(SPAN_ID, "no id"),
        ];
        let mut builder = Builder::new(Profile {
            sample_types: TYPES[..drawn.types].iter().map(value_type).collect(),
            period_type: value_type(&TYPES[drawn.period as usize % 2]),
            period: drawn.period,
            time_nanos: 1_700_000_000_000_000_007,
            duration_nanos: 15_000_000_000,
            ..Profile::default()
        });
        let mapping = builder.mapping(Mapping {
            start: 0x1000,
            limit: 0x2000,
            offset: 7,
            file: "/bin/shop",
            build_id: "00ff",
            ..Mapping::default()
        });
        let frames: Vec<u32> = drawn
            .frames
            .iter()
            .map(|(name, line, address, is_mapped)| {
                let function = builder.function(Function {
                    name: names[*name],
                    system_name: names[name / 2],
                    file: "shop.rs",
                    start_line: *line,
                });
                let line = Line { function, line: *line };
                let mapping = if *is_mapped { mapping } else { Location::NO_MAPPING };
                builder.location(mapping, *address, &[line, line][..=name % 2])
            })
            .collect();
        for (stack, label, value) in &drawn.samples {
            let values = (0..drawn.types)
                .map(|kind| value.wrapping_add(kind as i64))
                .collect::<Vec<_>>();
            let stack = stack.iter().map(|frame| frames[*frame]);
            builder.sample(stack, labels.get(*label).copied(), &values);
        }
        builder.finish()
    }

    #[test]
    fn series_are_numbered_in_the_order_of_the_request() {
        let labels = ["shop", "cart"].map(|service| Labels::from_pairs([("service_name", service)]));
        let profile = |types: usize, samples: usize, label: Option<SampleLabel<'static>>| {
            let mut builder = Builder::new(Profile {
                sample_types: TYPES[..types].iter().map(value_type).collect(),
                ..Profile::default()
            });
            let frame = builder.named("main");
            for _ in 0..samples {
                builder.sample([frame], label, &vec![1; types]);
            }
            builder.finish()
        };
        let series = |profiles: &[(usize, Profile<'static>)]| {
            let exported = profiles.iter().map(|(service, profile)| Exported {
                labels: &labels[*service],
                id: "",
                first_part: 0,
                part_count: profile.sample_types.len(),
                profile,
            });
            to_request(&exported.collect::<Vec<_>>()).series()
        };
        // Profiles of one service are together, each sample type is a series, and a profile without samples is none.
        let mut profiles = vec![
            (0, profile(2, 1, None)),
            (1, profile(1, 1, None)),
            (0, profile(3, 0, None)),
            (0, profile(1, 2, None)),
        ];
        assert_eq!(series(&profiles), [0, 0, 3, 1]);
        profiles.push((1, profile(1, 1, Some(SampleLabel::Text("service.name", "other")))));
        assert!(series(&profiles).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(first in drawn(), second in drawn()) {
            let labels = Labels::from_pairs([
                ("__name__", "process_cpu"), ("__delta__", "false"), ("service_name", "shop"), ("zone", "eu"),
            ]);
            let id = "0190163d-8694-739b-aea5-966c26f8ad91";
            let profiles = [profile(&first), profile(&second)];
            let exported = profiles.each_ref().map(|profile| Exported {
                labels: &labels,
                id,
                first_part: 0,
                part_count: profile.sample_types.len(),
                profile,
            });
            let batch = ExportBatch::read(&to_request(&exported).request, 0).unwrap();
            let repeated = ExportBatch::read(&to_request(&exported).request, 0).unwrap();
            let ids = |batch: &ExportBatch| batch.profiles.iter().map(|profile| profile.id.clone()).collect::<Vec<_>>();
            prop_assert_eq!(ids(&batch), ids(&repeated));
            let mut decoded = batch.profiles.iter();
            for profile in &profiles {
                let mut part_ids = HashSet::new();
                for (kind, sample_type) in profile.sample_types.iter().enumerate() {
                    let actual = decoded.next().unwrap();
                    let columns = actual.columns.get();
                    prop_assert_eq!(&columns.sample_types, &[*sample_type]);
                    prop_assert_eq!(
                        (columns.period_type, columns.period, columns.time_nanos, columns.duration_nanos),
                        (profile.period_type, profile.period, profile.time_nanos, profile.duration_nanos)
                    );
                    prop_assert_eq!(describe_samples(columns, 0), describe_samples(profile, kind));
                    let expected = labels.with("__otel__", "true");
                    prop_assert_eq!(&actual.labels, &expected);
                    prop_assert!(Uuid::parse_str(&actual.id).is_ok());
                    prop_assert!(part_ids.insert(actual.id.clone()), "two parts have one id");
                    prop_assert_eq!(&*actual.id == id, profile.sample_types.len() == 1);
                }
            }
            prop_assert!(decoded.next().is_none());
        }
    }
}
