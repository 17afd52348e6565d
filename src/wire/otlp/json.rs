//! The JSON form of OTLP's messages, by protobuf's rules and with hexadecimal ids.
//!
//! In: JSON text. Out: messages with the fields that Alluvium uses; the reader skips all others. The crate
//! `opentelemetry-proto`, which defines the messages, also derives `serde` for them. These derives fail on JSON that
//! protobuf allows and clients send. The tests list the cases.

use serde::de::MapAccess;

use crate::json::{Field, Fields, FromJson, Hex, HexText, ToJson, Writer};
use crate::otlp::messages::any_value::Value;
use crate::otlp::messages::{
    AnyValue, ArrayValue, ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
    Function, InstrumentationScope, KeyValue, KeyValueAndUnit, Line, Link, Location, Mapping, Profile,
    ProfilesDictionary, Resource, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};

/// Implements the JSON form of messages. Each field is followed by its name in JSON, and possibly by `or` and its name
/// in older versions of OTLP. A field after `#` is an id in hexadecimal.
macro_rules! json_forms {
    (@second $field:ident) => { stringify!($field) };
    (@second $field:ident $older_name:literal) => { $older_name };
    ($($message:ident {
        $($field:ident $name:literal $(or $older_name:literal)?,)*
        $(# $id:ident $id_name:literal,)*
    })*) => {$(
        impl ToJson for $message {
            fn write(&self, out: &mut Writer) {
                out.message(|out| {
                    $(out.field($name, &self.$field);)*
                    $(out.field($id_name, &HexText(&self.$id));)*
                });
            }
        }

        impl Fields for $message {
            const NAMES: &'static [[&'static str; 2]] =
                &[$([$name, json_forms!(@second $field $($older_name)?)],)* $([$id_name, stringify!($id)],)*];

            fn read_field<'de, A: MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
                match Self::NAMES.get(index).map(|names| names[0]) {
                    $(Some($name) => map.next_value_seed(Field(&mut self.$field)),)*
                    $(Some($id_name) => map.next_value_seed(Hex(&mut self.$id)),)*
                    _ => Ok(()),
                }
            }
        }
    )*};
}

json_forms! {
    ExportProfilesServiceRequest { resource_profiles "resourceProfiles", dictionary "dictionary", }
    ExportProfilesServiceResponse { partial_success "partialSuccess", }
    ExportProfilesPartialSuccess {
        rejected_profiles "rejectedProfiles", error_message "errorMessage",
    }
    ProfilesDictionary {
        mapping_table "mappingTable", location_table "locationTable", function_table "functionTable",
        link_table "linkTable", string_table "stringTable", attribute_table "attributeTable",
        stack_table "stackTable",
    }
    ResourceProfiles { resource "resource", scope_profiles "scopeProfiles", }
    Resource { attributes "attributes", }
    ScopeProfiles { scope "scope", profiles "profiles", }
    InstrumentationScope { name "name", version "version", attributes "attributes", }
    Profile {
        sample_type "sampleType", samples "samples" or "sample", time_unix_nano "timeUnixNano",
        duration_nano "durationNano", period_type "periodType", period "period",
        attribute_indices "attributeIndices", # profile_id "profileId",
    }
    Sample {
        stack_index "stackIndex", attribute_indices "attributeIndices", link_index "linkIndex", values "values",
        timestamps_unix_nano "timestampsUnixNano",
    }
    ValueType { type_strindex "typeStrindex", unit_strindex "unitStrindex", }
    Mapping {
        memory_start "memoryStart", memory_limit "memoryLimit", file_offset "fileOffset",
        filename_strindex "filenameStrindex", attribute_indices "attributeIndices",
    }
    Stack { location_indices "locationIndices", }
    Location {
        mapping_index "mappingIndex", address "address", lines "lines" or "line", attribute_indices "attributeIndices",
    }
    Line { function_index "functionIndex", line "line", }
    Function {
        name_strindex "nameStrindex", system_name_strindex "systemNameStrindex",
        filename_strindex "filenameStrindex", start_line "startLine",
    }
    Link { # trace_id "traceId", # span_id "spanId", }
    KeyValueAndUnit { key_strindex "keyStrindex", value "value", unit_strindex "unitStrindex", }
    KeyValue { key "key", value "value", key_strindex "keyStrindex", }
    ArrayValue { values "values", }
}

impl ToJson for AnyValue {
    fn write(&self, out: &mut Writer) {
        // Within `Some`, a text or number is written even if it is the default of its type.
        out.message(|out| match &self.value {
            Some(Value::StringValue(text)) => out.field("stringValue", &Some(text.clone())),
            Some(Value::IntValue(number)) => out.field("intValue", &Some(*number)),
            Some(Value::ArrayValue(list)) => out.field("arrayValue", list),
            Some(Value::StringValueStrindex(index)) => out.field("stringValueStrindex", &Some(*index)),
            _ => {}
        });
    }
}

impl Fields for AnyValue {
    const NAMES: &'static [[&'static str; 2]] = &[
        ["stringValue", "string_value"],
        ["intValue", "int_value"],
        ["arrayValue", "array_value"],
        ["stringValueStrindex", "string_value_strindex"],
    ];

    fn read_field<'de, A: MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error> {
        let value = match index {
            0 => value(map, Value::StringValue)?,
            1 => value(map, Value::IntValue)?,
            2 => value(map, Value::ArrayValue)?,
            3 => value(map, Value::StringValueStrindex)?,
            _ => None,
        };
        if value.is_some() {
            self.value = value;
        }
        Ok(())
    }
}

/// Reads the field of one variant of [`Value`]. Returns `None` for `null`.
fn value<'de, A: MapAccess<'de>, T: FromJson + Default>(
    map: &mut A,
    case: fn(T) -> Value,
) -> Result<Option<Value>, A::Error> {
    let mut content: Option<T> = None;
    map.next_value_seed(Field(&mut content))?;
    Ok(content.map(case))
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;
    use crate::json::read;

    fn any(value: Value) -> AnyValue {
        AnyValue { value: Some(value) }
    }

    fn text(message: &impl ToJson) -> String {
        let mut out = Writer::with_capacity(0);
        message.write(&mut out);
        String::from_utf8(out.into_bytes()).unwrap()
    }

    #[test]
    fn ids_of_otlp_are_hexadecimal_and_the_cases_of_a_value_are_fields() {
        let link = Link {
            trace_id: vec![0x00, 0xab, 0x10],
            span_id: Vec::new(),
        };
        assert_eq!(text(&link), r#"{"traceId":"00ab10"}"#);
        let read_link = |id: &str| read::<Link>(format!(r#"{{"traceId":{id}}}"#).as_bytes());
        assert_eq!(read_link(r#""00aB10""#).unwrap(), link);
        assert_eq!(read_link("null").unwrap(), Link::default());
        for id in [r#""abc""#, r#""zz""#, r#""\u00e4""#, "7"] {
            let error = read_link(id).unwrap_err().to_string();
            assert!(error.contains("bytes in hexadecimal"), "{id}: {error}");
        }
        let attribute: KeyValue = read(br#"{"key":"pid","value":{"intValue":"7"}}"#).unwrap();
        assert_eq!(attribute.value, Some(any(Value::IntValue(7))));
    }

    #[test]
    fn each_case_of_a_value_is_written_and_read_again() {
        for (value, form) in [
            (Value::StringValue(String::new()), r#"{"stringValue":""}"#),
            (Value::IntValue(0), r#"{"intValue":"0"}"#),
            (Value::ArrayValue(ArrayValue::default()), r#"{"arrayValue":{}}"#),
            (Value::StringValueStrindex(0), r#"{"stringValueStrindex":0}"#),
        ] {
            let value = any(value);
            assert_eq!(text(&value), form);
            assert_eq!(read::<AnyValue>(form.as_bytes()).unwrap(), value);
        }
        for (form, expected) in [
            (r#"{"stringValue":null,"intValue":7}"#, Some(Value::IntValue(7))),
            (r#"{"intValue":7,"stringValue":null}"#, Some(Value::IntValue(7))),
            (r#"{"boolValue":true,"of_tomorrow":{"x":[1]}}"#, None),
            ("{}", None),
        ] {
            assert_eq!(read::<AnyValue>(form.as_bytes()).unwrap().value, expected, "{form}");
        }
        assert!(read::<AnyValue>(br#"{"intValue":"7","int_value":"7"}"#).is_err());
    }

    /// Checks that our reader reads the message `expected` from a text. Returns the message that the crate's derives
    /// read from the same text, or `None` if they fail.
    fn read_with_crate<M>(form: &str, expected: &M) -> Option<M>
    where
        M: FromJson + Default + DeserializeOwned + PartialEq + Debug,
    {
        assert_eq!(&read::<M>(form.as_bytes()).unwrap(), expected, "{form}");
        serde_json::from_str(form).ok()
    }

    /// When this test fails for all cases, the crate can read them as well, and this file is no longer needed.
    #[test]
    fn the_reader_of_the_crate_fails_these_cases() {
        fn fails<M>(case: &str, form: &str, expected: M)
        where
            M: FromJson + Default + DeserializeOwned + PartialEq + Debug,
        {
            let crate_result = read_with_crate(form, &expected);
            assert_ne!(crate_result, Some(expected), "the crate can read {case}: {form}");
        }
        let line = Line {
            function_index: 1,
            line: 9,
            column: 0,
        };
        let sample = Sample {
            stack_index: 1,
            values: vec![3],
            ..Sample::default()
        };
        fails("fields left out", r#"{"stackIndex":1,"values":[3]}"#, sample.clone());
        fails(
            "numbers as texts",
            r#"{"functionIndex":1,"line":"9","column":"0"}"#,
            line,
        );
        fails(
            "lists of numbers as texts",
            r#"{"stackIndex":1,"attributeIndices":[],"linkIndex":0,"values":["3"],"timestampsUnixNano":[]}"#,
            sample,
        );
        fails(
            "integers with a fraction of zero",
            r#"{"functionIndex":1.0,"line":9.0,"column":0}"#,
            line,
        );
        fails(
            "null",
            r#"{"functionIndex":1,"line":null,"column":0}"#,
            Line { line: 0, ..line },
        );
        fails("null for a list", r#"{"locationIndices":null}"#, Stack::default());
        fails(
            "names of the proto file",
            r#"{"function_index":1,"line":9,"column":0}"#,
            line,
        );
        fails(
            "a name of the proto file in a value",
            r#"{"string_value":"a"}"#,
            any(Value::StringValue("a".to_owned())),
        );
        fails(
            "ids of a link",
            r#"{"traceId":"00ab10","spanId":"01"}"#,
            Link {
                trace_id: vec![0x00, 0xab, 0x10],
                span_id: vec![0x01],
            },
        );
        fails(
            "a value in the table of texts",
            r#"{"stringValueStrindex":6}"#,
            any(Value::StringValueStrindex(6)),
        );
        fails(
            "a key in the table of texts",
            r#"{"keyStrindex":3,"value":{"intValue":7}}"#,
            KeyValue {
                key_strindex: 3,
                value: Some(any(Value::IntValue(7))),
                ..KeyValue::default()
            },
        );
    }

    #[test]
    fn the_reader_of_the_crate_agrees_on_the_other_cases() {
        fn agrees<M>(form: &str, expected: M)
        where
            M: FromJson + Default + DeserializeOwned + PartialEq + Debug,
        {
            assert_eq!(read_with_crate(form, &expected), Some(expected), "{form}");
        }
        agrees(
            r#"{"resourceProfiles":[],"unknown":{"x":[1,{}]}}"#,
            ExportProfilesServiceRequest::default(),
        );
        agrees(
            r#"{"samples":[],"timeUnixNano":7,"durationNano":0,"period":-1,"profileId":"00aB10","attributeIndices":[],
                "droppedAttributesCount":0,"originalPayloadFormat":"","originalPayload":[]}"#,
            Profile {
                time_unix_nano: 7,
                period: -1,
                profile_id: vec![0x00, 0xab, 0x10],
                ..Profile::default()
            },
        );
        for (form, value) in [
            (r#"{"stringValue":""}"#, Value::StringValue(String::new())),
            (r#"{"intValue":"-7"}"#, Value::IntValue(-7)),
            (r#"{"intValue":7}"#, Value::IntValue(7)),
            (
                r#"{"arrayValue":{"values":[{"intValue":7}]}}"#,
                Value::ArrayValue(ArrayValue {
                    values: vec![any(Value::IntValue(7))],
                }),
            ),
        ] {
            agrees(form, any(value));
        }
    }
}
