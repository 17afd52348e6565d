//! XML-RPC: writes calls as text, and reads responses as JSON values.

use std::str::Utf8Error;

use quick_xml::Reader;
use quick_xml::encoding::EncodingError;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::Event;
use serde_json::{Map, Value};

/// Maximum nesting of elements. A response of Uyuni needs 17 levels.
const MAX_DEPTH: usize = 64;

/// The reason why a response has no usable value.
#[derive(Debug, thiserror::Error)]
pub(super) enum XmlRpcError {
    /// The response is not UTF-8.
    #[error("the XML is not UTF-8")]
    Encoding(#[source] Utf8Error),
    /// The response is invalid XML.
    #[error("invalid XML: {0}")]
    Xml(#[from] XmlError),
    /// The response is not an XML-RPC response.
    #[error("the XML has no element methodResponse")]
    NoResponse,
    /// The response has no value.
    #[error("the response has no value")]
    NoValue,
    /// The server reports a fault.
    #[error("fault {code}: {text}")]
    Fault {
        /// Code of the fault, as the server sent it.
        code: Value,
        /// Description of the fault, as the server sent it.
        text: Value,
    },
    #[error("`{0}` is not a whole number")]
    Number(String),
    /// A member of a struct is incomplete.
    #[error("a struct has a member without a name or a value")]
    Member,
}

/// The reason why a document is invalid XML.
#[derive(Debug, thiserror::Error)]
pub(super) enum XmlError {
    /// A tag or reference is invalid.
    #[error(transparent)]
    Syntax(#[from] quick_xml::Error),
    /// A text cannot be decoded.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// Elements are nested too deeply.
    #[error("elements are nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// An end tag has no start tag.
    #[error("end tag without a start tag")]
    StrayEnd,
    /// A reference names no predefined entity.
    #[error("unknown entity `{0}`")]
    Entity(String),
    /// The document ends inside an element.
    #[error("the document ends inside an element")]
    Unclosed,
}

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
pub(super) fn response(body: &[u8]) -> Result<Value, XmlRpcError> {
    let text = std::str::from_utf8(body).map_err(XmlRpcError::Encoding)?;
    let document = read(text)?;
    let answer = document.child("methodResponse").ok_or(XmlRpcError::NoResponse)?;
    if let Some(fault) = answer.child("fault").and_then(|fault| fault.child("value")) {
        let fault = fault.value()?;
        return Err(XmlRpcError::Fault {
            code: fault["faultCode"].clone(),
            text: fault["faultString"].clone(),
        });
    }
    let parameter = answer.child("params").and_then(|all| all.child("param"));
    let value = parameter
        .and_then(|parameter| parameter.child("value"))
        .ok_or(XmlRpcError::NoValue)?;
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
fn read(text: &str) -> Result<Element, XmlError> {
    let mut reader = Reader::from_str(text);
    let (mut open, mut current) = (Vec::new(), Element::default());
    loop {
        match reader.read_event()? {
            Event::Start(tag) => {
                if open.len() >= MAX_DEPTH {
                    return Err(XmlError::TooDeep);
                }
                open.push(std::mem::replace(&mut current, Element::new(tag.name().as_ref())));
            }
            Event::Empty(tag) => current.children.push(Element::new(tag.name().as_ref())),
            Event::End(_) => {
                let outer = open.pop().ok_or(XmlError::StrayEnd)?;
                let inner = std::mem::replace(&mut current, outer);
                current.children.push(inner);
            }
            Event::Text(text) => current.text.push_str(&text.xml_content()?),
            Event::CData(text) => current.text.push_str(&text.xml_content()?),
            Event::GeneralRef(name) => {
                let name_text = name.decode()?;
                if let Some(character) = name.resolve_char_ref()? {
                    current.text.push(character);
                } else {
                    let text = resolve_predefined_entity(&name_text);
                    current
                        .text
                        .push_str(text.ok_or_else(|| XmlError::Entity(name_text.into_owned()))?);
                }
            }
            Event::Eof if open.is_empty() => return Ok(current),
            Event::Eof => return Err(XmlError::Unclosed),
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
    fn value(&self) -> Result<Value, XmlRpcError> {
        let Some(inner) = self.children.first() else {
            return Ok(Value::String(self.text.clone()));
        };
        let text = inner.text.trim();
        match &*inner.name {
            "int" | "i4" | "i8" => {
                let number: i64 = text.parse().map_err(|_| XmlRpcError::Number(text.to_owned()))?;
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

    fn member(&self) -> Result<(String, Value), XmlRpcError> {
        match (self.child("name"), self.child("value")) {
            (Some(name), Some(value)) => Ok((name.text.clone(), value.value()?)),
            _ => Err(XmlRpcError::Member),
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
            let error = response(body.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error} for {body}");
        }
    }
}
