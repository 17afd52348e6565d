//! Addresses to listen on or to send to, in the form of OpenTelemetry's components: `host:port`.

use std::sync::Arc;

use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, wrong};
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;

/// An address to listen on or to send to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    /// Host name or IP address; an IPv6 address has brackets. An empty text means all addresses.
    pub host: Arc<str>,
    /// The port; 0 for any free port.
    pub port: u16,
}

impl FromValue for HostPort {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        let parsed = text.rsplit_once(':').and_then(|(host, port)| {
            let is_bracketed = host.starts_with('[') && host.ends_with(']');
            let is_host = is_bracketed || !host.contains([':', '[', ']', '/', ' ']);
            Some((host, port.parse().ok()?)).filter(|_| is_host)
        });
        let (host, port) = parsed.ok_or_else(|| wrong(format!("`{text}` is not an address, use host:port")))?;
        Ok(Self {
            host: host.into(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port_are_read_and_other_texts_are_not() {
        let read = |text: &str| HostPort::from_value("endpoint", &Value::string(text));
        for (text, host, port) in [
            ("0.0.0.0:4317", "0.0.0.0", 4317),
            ("[::1]:0", "[::1]", 0),
            (":4318", "", 4318),
            ("collector:65535", "collector", 65_535),
        ] {
            let expected = HostPort {
                host: host.into(),
                port,
            };
            assert_eq!(read(text).unwrap(), expected);
        }
        for text in ["", "collector", "::1:80", "http://a:80", "a:65536", "a:-1", "a b:1"] {
            let message = read(text).unwrap_err().message;
            assert!(message.contains("host:port"), "{text}: {message}");
        }
    }
}
