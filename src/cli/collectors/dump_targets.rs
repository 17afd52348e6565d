//! The targets whose goroutines a collector scrapes, as its API shows them, and the choice of one of them.
//!
//! In: JSON of `/api/v0/web`. Out: plain values. The module does no I/O.

use std::collections::BTreeSet;

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

/// Maximum number of targets that an error lists.
const MAX_LISTED: usize = 10;

/// A target that can send a goroutine dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DumpTarget {
    /// Full id of the component that scrapes the target.
    pub component: String,
    /// URL of the goroutine profile.
    pub url: String,
    /// The labels, as `{name="value", ...}`.
    pub labels: String,
    /// The values of the labels.
    #[serde(skip)]
    values: Vec<String>,
}

/// Returns the full id of a listed component if it is a `pyroscope.scrape`.
pub(super) fn scrape_id(component: &Value) -> Option<String> {
    let local = component["localID"].as_str()?;
    (component["name"] == "pyroscope.scrape").then(|| match component["moduleID"].as_str() {
        None | Some("") => local.to_owned(),
        Some(module) => format!("{module}/{local}"),
    })
}

/// Returns the ids of the modules that a listed component created.
pub(super) fn modules(component: &Value) -> impl Iterator<Item = &str> {
    let ids = component["createdModuleIDs"].as_array();
    ids.into_iter().flatten().filter_map(Value::as_str)
}

/// Reads the targets from the debug info of a component.
pub(super) fn read(id: &str, component: &Value) -> Vec<DumpTarget> {
    let blocks = fields(&component["debugInfo"]).filter(|block| block["name"] == "targets");
    let targets = blocks.filter_map(|block| {
        let body = &block["body"];
        let has_goroutines = attribute(body, "goroutine_dump")?.as_bool()?;
        let url = attribute(body, "url")?.as_str()?.to_owned();
        let labels = fields(body).find(|field| field["name"] == "labels");
        let pairs: Vec<(&str, &str)> = labels
            .into_iter()
            .flat_map(|labels| fields(&labels["body"]))
            .filter_map(|label| Some((label["name"].as_str()?, label["value"]["value"].as_str()?)))
            .collect();
        let shown: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        has_goroutines.then(|| DumpTarget {
            component: id.to_owned(),
            url,
            labels: format!("{{{}}}", shown.join(", ")),
            values: pairs.iter().map(|(_, value)| (*value).to_owned()).collect(),
        })
    });
    targets.collect()
}

/// Returns the target that `text` names. Whole URLs, addresses and label values take precedence over parts of them.
pub(super) fn choose<'a>(targets: &'a [DumpTarget], text: &str) -> anyhow::Result<&'a DumpTarget> {
    let mut named: Vec<&DumpTarget> = targets.iter().filter(|target| target.is_named(text)).collect();
    if named.is_empty() {
        named = targets.iter().filter(|target| target.contains(text)).collect();
    }
    // Several loops, also of several components, may scrape the same URL. The first of them is as good as the others.
    let urls: BTreeSet<&str> = named.iter().map(|target| target.url.as_str()).collect();
    match (urls.len(), named.first()) {
        (1, Some(target)) => Ok(target),
        (0, _) | (_, None) => bail!("no target has `{text}` in its URL or labels: run without TARGET for a list"),
        (count, _) => {
            let urls: Vec<&str> = urls.into_iter().take(MAX_LISTED).collect();
            let dots = if count > MAX_LISTED { "\n  ..." } else { "" };
            bail!("`{text}` stands for {count} targets:\n  {}{dots}", urls.join("\n  "))
        }
    }
}

impl DumpTarget {
    /// Returns true if `text` is the whole URL, the address, or the value of a label.
    fn is_named(&self, text: &str) -> bool {
        let authority = self.url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        self.url == text || authority == Some(text) || self.values.iter().any(|value| value == text)
    }

    fn contains(&self, text: &str) -> bool {
        self.url.contains(text) || self.labels.contains(text)
    }
}

/// Returns the attributes and blocks of a list in the form of the API.
fn fields(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the value of an attribute.
fn attribute<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    let field = fields(list).find(|field| field["name"] == name)?;
    Some(&field["value"]["value"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target(url: &str, service: &str, pod: &str, dump: bool) -> Value {
        let text = |name: &str, value: &str| {
            let value = json!({"type": "string", "value": value});
            json!({"name": name, "type": "attr", "value": value})
        };
        let mut body = vec![
            text("url", url),
            json!({"name": "labels", "type": "block", "body": [text("service_name", service), text("pod", pod)]}),
        ];
        if dump {
            body.push(json!({"name": "goroutine_dump", "type": "attr", "value": {"type": "bool", "value": true}}));
        }
        json!({"name": "targets", "type": "block", "body": body})
    }

    fn targets() -> Vec<DumpTarget> {
        let component = json!({"debugInfo": [
            target("http://10.0.0.1:6060/debug/pprof/goroutine", "shop", "shop-1", true),
            target("http://10.0.0.1:6060/debug/pprof/allocs", "shop", "shop-1", false),
            target("http://10.0.0.2:6060/debug/pprof/goroutine", "shop", "shop-12", true),
            target("http://10.0.0.3:6060/debug/pprof/goroutine", "cart", "cart-1", true),
            {"name": "clustering", "type": "block", "body": []},
        ]});
        read("pyroscope.scrape.default", &component)
    }

    #[test]
    fn targets_are_those_whose_goroutines_are_scraped() {
        let targets = targets();
        assert_eq!(targets.len(), 3);
        assert_eq!(targets[2].component, "pyroscope.scrape.default");
        assert_eq!(targets[2].labels, r#"{service_name="cart", pod="cart-1"}"#);
        assert_eq!(read("x", &Value::Null), []);
        assert_eq!(
            read("x", &json!({"debugInfo": [{"name": "targets", "type": "attr"}]})),
            []
        );
    }

    #[test]
    fn a_text_names_one_target_or_none() {
        let targets = targets();
        for (text, host) in [
            ("10.0.0.2:6060", "10.0.0.2"),
            ("http://10.0.0.3:6060/debug/pprof/goroutine", "10.0.0.3"),
            ("shop-1", "10.0.0.1"),
            ("shop-12", "10.0.0.2"),
            ("cart", "10.0.0.3"),
            ("service_name=\"cart\"", "10.0.0.3"),
            ("0.3:", "10.0.0.3"),
        ] {
            let url = &choose(&targets, text).unwrap().url;
            assert!(url.contains(host), "{text}: {url}");
        }
        let error = choose(&targets, "shop").unwrap_err().to_string();
        assert!(
            error.starts_with("`shop` stands for 2 targets:\n  http://10.0.0.1:6060/"),
            "{error}"
        );
        let error = choose(&targets, "nobody").unwrap_err().to_string();
        assert!(error.starts_with("no target has `nobody`"), "{error}");
        // The same URL with other labels is the same dump.
        let same = [
            targets[0].clone(),
            DumpTarget {
                labels: String::new(),
                ..targets[0].clone()
            },
        ];
        assert_eq!(choose(&same, "10.0.0.1:6060").unwrap(), &targets[0]);
    }

    #[test]
    fn components_have_full_ids_and_modules() {
        let component = json!({
            "name": "pyroscope.scrape", "localID": "pyroscope.scrape.a", "moduleID": "pipe.one",
            "createdModuleIDs": ["pipe.one/x.y"],
        });
        assert_eq!(scrape_id(&component).as_deref(), Some("pipe.one/pyroscope.scrape.a"));
        assert_eq!(modules(&component).collect::<Vec<_>>(), ["pipe.one/x.y"]);
        assert_eq!(
            scrape_id(&json!({"name": "pyroscope.write", "localID": "pyroscope.write.a"})),
            None
        );
    }
}
