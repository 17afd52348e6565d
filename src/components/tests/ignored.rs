//! Tests of arguments that have no effect: a check and a load of a configuration warn about them, each once.

use crate::ALL;
use alluvium_lang::Diagnostics;
use alluvium_lang::codes::ARGUMENT_WITHOUT_EFFECT;
use alluvium_lang::schema::Schema;
use alluvium_pipeline::component::Stability;
use alluvium_pipeline::{Controller, Options, validate};

const CONFIG: &str = r#"pyroscope.write "store" {
	endpoint {
		url                       = "http://127.0.0.1:1"
		debug_info_upload_timeout = "5m"
	}

	tracing { }
}

declare "shop" {
	pyroscope.write "store" {
		endpoint {
			url                       = "http://127.0.0.1:1"
			debug_info_upload_timeout = "2m"
		}
	}
}

shop "one" { }

shop "two" { }
"#;

fn sources() -> Vec<(String, String)> {
    vec![("main.alloy".to_owned(), CONFIG.to_owned())]
}

/// Returns the warnings about arguments without effect as `FILE:LINE:COLUMN: MESSAGE`.
fn warnings(diagnostics: &Diagnostics) -> Vec<String> {
    assert!(!diagnostics.has_errors(), "{}", diagnostics.render());
    let ignored = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.code == ARGUMENT_WITHOUT_EFFECT);
    ignored.map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_check_and_a_load_warn_about_the_same_arguments() {
    let timeout = "argument `endpoint.debug_info_upload_timeout` has no effect: no component uploads debug files";
    let expected = [
        format!("main.alloy:4:3: {timeout}"),
        "main.alloy:7:2: block `tracing` has no effect: profiles carry no trace context".to_owned(),
        format!("main.alloy:14:4: {timeout}"),
    ];
    let checked = validate(&sources(), ALL, Stability::GenerallyAvailable);
    assert_eq!(warnings(&checked), expected);

    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::new(ALL, Options::new(folder.path().join("storage")));
    let loaded = controller.load(sources()).await.unwrap();
    assert_eq!(warnings(&loaded), expected);
}

#[test]
fn a_configuration_with_defaults_causes_no_warning() {
    let text = "pyroscope.write \"store\" {\n\tendpoint {\n\t\turl = \"http://127.0.0.1:1\"\n\t}\n}\n";
    let checked = validate(
        &[("main.alloy".to_owned(), text.to_owned())],
        ALL,
        Stability::GenerallyAvailable,
    );
    assert_eq!(warnings(&checked), Vec::<String>::new());
}

#[test]
fn reasons_continue_the_sentence_of_the_warning() {
    fn check(path: &str, schema: &Schema) {
        let attributes = schema.attributes.iter();
        let attributes = attributes.map(|attribute| (attribute.name, attribute.doc, attribute.no_effect));
        let blocks = schema.blocks.iter();
        let blocks = blocks.map(|block| (block.name, block.doc, block.no_effect));
        for (name, doc, reason) in attributes.chain(blocks) {
            assert!(!doc.contains("without an effect"), "{path}.{name}: declare the reason");
            if let Some(reason) = reason {
                assert!(!reason.is_empty() && !reason.ends_with('.'), "{path}.{name}: {reason}");
            }
        }
        for block in schema.blocks {
            check(&format!("{path}.{}", block.name), block.schema);
        }
    }
    for definition in ALL {
        check(definition.name(), definition.arguments());
    }
}
