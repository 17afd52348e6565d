//! XML-RPC: writes calls as text, and reads responses as JSON values.

use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::Event;
use serde_json::{Map, Value};

/// Maximum nesting of elements. A response of Uyuni needs 17 levels.
const MAX_DEPTH: usize = 64;

/// Returns the body of a call. Parameters are strings, integers and lists of these.
pub(super) fn request(method: &str, parameters: &[Value]) -> String {
    let parameters: String = parameters
        .iter()
        .map(|parameter| format!("<param>{}</param>", encoded(parameter)))
        .collect();
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>{method}</methodName><params>{parameters}</params></methodCall>"
    )
}

/// Parses a response and returns its value. Returns an error if the response reports a fault.
pub(super) fn response(body: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the XML is not UTF-8".to_owned())?;
    let document = read(text).map_err(|error| format!("invalid XML: {error}"))?;
    let answer = document
        .child("methodResponse")
        .ok_or("the XML has no element methodResponse")?;
    if let Some(fault) = answer.child("fault").and_then(|fault| fault.child("value")) {
        let fault = fault.value()?;
        return Err(format!("fault {}: {}", fault["faultCode"], fault["faultString"]));
    }
    let parameter = answer.child("params").and_then(|all| all.child("param"));
    let value = parameter
        .and_then(|parameter| parameter.child("value"))
        .ok_or("the response has no value")?;
    value.value()
}

fn encoded(value: &Value) -> String {
    let inner = match value {
        Value::Array(items) => {
            let items: String = items.iter().map(encoded).collect();
            format!("<array><data>{items}</data></array>")
        }
        Value::String(text) => format!("<string>{}</string>", escape(text)),
        other => format!("<int>{other}</int>"),
    };
    format!("<value>{inner}</value>")
}

#[derive(Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

/// Parses the document into an element that has the root as its child.
fn read(text: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text);
    let (mut open, mut current) = (Vec::new(), Element::default());
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(tag) => {
                if open.len() >= MAX_DEPTH {
                    return Err(format!("elements are nested more than {MAX_DEPTH} levels deep"));
                }
                open.push(std::mem::replace(&mut current, Element::new(tag.name().as_ref())));
            }
            Event::Empty(tag) => current.children.push(Element::new(tag.name().as_ref())),
            Event::End(_) => {
                let outer = open.pop().ok_or("end tag without a start tag")?;
                let inner = std::mem::replace(&mut current, outer);
                current.children.push(inner);
            }
            Event::Text(text) => current
                .text
                .push_str(&text.xml_content().map_err(|error| error.to_string())?),
            Event::CData(text) => current
                .text
                .push_str(&text.xml_content().map_err(|error| error.to_string())?),
            Event::GeneralRef(name) => {
                let name_text = name.decode().map_err(|error| error.to_string())?;
                if let Some(character) = name.resolve_char_ref().map_err(|error| error.to_string())? {
                    current.text.push(character);
                } else {
                    let text = resolve_predefined_entity(&name_text);
                    current
                        .text
                        .push_str(text.ok_or_else(|| format!("unknown entity `{name_text}`"))?);
                }
            }
            Event::Eof if open.is_empty() => return Ok(current),
            Event::Eof => return Err("the document ends inside an element".to_owned()),
            _ => {}
        }
    }
}

impl Element {
    fn new(name: &[u8]) -> Self {
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
            ..Self::default()
        }
    }

    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the value of an element `value`. A value without a type element is a string.
    fn value(&self) -> Result<Value, String> {
        let Some(inner) = self.children.first() else {
            return Ok(Value::String(self.text.clone()));
        };
        let text = inner.text.trim();
        match &*inner.name {
            "int" | "i4" | "i8" => {
                let number: i64 = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
                Ok(number.into())
            }
            "boolean" => Ok((text == "1").into()),
            "array" => {
                let items = inner.child("data").into_iter().flat_map(|data| &data.children);
                items.map(Self::value).collect()
            }
            "struct" => inner
                .children
                .iter()
                .map(Self::member)
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object),
            _ => Ok(Value::String(inner.text.clone())),
        }
    }

    fn member(&self) -> Result<(String, Value), String> {
        match (self.child("name"), self.child("value")) {
            (Some(name), Some(value)) => Ok((name.text.clone(), value.value()?)),
            _ => Err("a struct has a member without a name or a value".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(value: &str) -> String {
        format!("<?xml version=\"1.0\"?>\n<methodResponse><params><param>{value}</param></params></methodResponse>")
    }

    #[test]
    fn values_are_read_and_written() {
        let text = request("a.b", &[json!("<&>"), json!(7), json!([1, 2])]);
        assert!(
            text.contains("<param><value><string>&lt;&amp;&gt;</string></value></param>"),
            "{text}"
        );
        assert!(text.contains("<array><data><value><int>1</int></value><value><int>2</int></value></data></array>"));
        let body = answer(
            "<value> <array><data>\n<value><struct><member><name>id</name><value><i4> 7 </i4></value></member>\
             <member><name>on</name><value><boolean>1</boolean></value></member></struct></value>\
             <value>a &lt;b&#62; <![CDATA[<c>]]></value><value><string/></value><value><nil/></value>\
             </data></array> </value>",
        );
        let read = response(body.as_bytes()).unwrap();
        assert_eq!(read, json!([{"id": 7, "on": true}, "a <b> <c>", "", ""]));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = "<methodResponse><fault><value><struct><member><name>faultCode</name><value><int>2950</int></value>\
                     </member><member><name>faultString</name><value>no such user</value></member></struct></value>\
                     </fault></methodResponse>";
        for (body, expected) in [
            (fault.to_owned(), "fault 2950: \"no such user\""),
            (answer("<value><int>x</int></value>"), "`x` is not a whole number"),
            (answer("<value><array>"), "invalid XML: "),
            (
                answer(&"<value><array><data>".repeat(40)),
                "invalid XML: elements are nested more than 64 levels deep",
            ),
            (answer("<value>&bomb;</value>"), "invalid XML: unknown entity `bomb`"),
            ("<html></html>".to_owned(), "the XML has no element methodResponse"),
            (answer(""), "the response has no value"),
        ] {
            let error = response(body.as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{error} for {body}");
        }
    }
}
