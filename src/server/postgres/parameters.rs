//! The settings of a connection, which clients set and read. None of them changes the engine or the host.
//!
//! In: names and values. Out: success, or PostgreSQL's error. Times are always shown in UTC and dates in ISO format,
//! regardless of the client's settings.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::server::postgres::failure::Failure;

/// The version that clients see. Tools choose their queries by its major version.
const SERVER_VERSION: &str = concat!("15.8 (alluvium ", env!("CARGO_PKG_VERSION"), ")");

/// Settings that the server reports to the client at the start and after each change.
const REPORTED_SETTINGS: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// Settings with a fixed value: name, value and flag. A client may set the fixed value. If the flag is true, any other
/// value is ignored, because clients set such settings automatically. If the flag is false, any other value is an
/// error.
const FIXED: [(&str, &str, bool); 19] = [
    ("server_version", SERVER_VERSION, false),
    ("server_version_num", "150008", false),
    ("server_encoding", "UTF8", false),
    ("client_encoding", "UTF8", false),
    ("DateStyle", "ISO, MDY", true),
    ("IntervalStyle", "postgres", true),
    ("TimeZone", "UTC", true),
    ("integer_datetimes", "on", false),
    ("standard_conforming_strings", "on", false),
    ("in_hot_standby", "off", false),
    ("is_superuser", "off", false),
    ("default_transaction_read_only", "on", true),
    ("transaction_read_only", "on", true),
    ("transaction_isolation", "repeatable read", true),
    ("default_transaction_isolation", "repeatable read", true),
    ("max_identifier_length", "63", false),
    ("search_path", "public", true),
    ("lc_collate", "C", false),
    ("lc_ctype", "C.UTF-8", false),
];

/// Settings that a client may change, with their defaults. The server returns them to the client, but only
/// `statement_timeout` has an effect.
const CLIENT_SETTINGS: [(&str, &str); 18] = [
    ("application_name", ""),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("extra_float_digits", "1"),
    ("client_min_messages", "notice"),
    ("bytea_output", "hex"),
    ("row_security", "on"),
    ("synchronize_seqscans", "on"),
    ("escape_string_warning", "on"),
    ("quote_all_identifiers", "off"),
    ("check_function_bodies", "on"),
    ("default_transaction_deferrable", "off"),
    ("transaction_deferrable", "off"),
    ("jit", "off"),
    ("geqo", "on"),
    ("xmloption", "content"),
    ("default_tablespace", ""),
];

/// The settings of one connection.
pub(super) struct Settings {
    user: String,
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    pub(super) fn new(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            values: CLIENT_SETTINGS
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        }
    }

    /// Sets a value, and returns the canonical form of the name.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<&'static str, Failure> {
        let value = value.trim();
        if let Some((proper, fixed, is_lenient)) = FIXED.iter().find(|row| row.0.eq_ignore_ascii_case(name)) {
            let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', '"', '\''], "");
            let is_unchanged = plain(value) == plain(fixed) || value.eq_ignore_ascii_case("default");
            let is_unchanged = is_unchanged || *proper == "client_encoding" && plain(value) == "unicode";
            if is_unchanged || *is_lenient {
                return Ok(proper);
            }
            return Err(Failure::error(
                "22023",
                format!("{proper} has the fixed value {fixed} and cannot be `{value}`"),
            ));
        }
        let Some((proper, default)) = CLIENT_SETTINGS.iter().find(|row| row.0.eq_ignore_ascii_case(name)) else {
            return Err(Failure::error(
                "42704",
                format!("there is no setting `{name}` that a client may change"),
            ));
        };
        let value = if value.eq_ignore_ascii_case("default") {
            default
        } else {
            value
        };
        if *proper == "statement_timeout" {
            timeout(value)?;
        }
        if value.len() > 1000 {
            return Err(Failure::error("22023", format!("the value of {proper} is too long")));
        }
        self.values.insert(proper, value.to_owned());
        Ok(proper)
    }

    /// Applies `-c name=value` and `--name=value` from the startup parameter `options`.
    pub(super) fn set_options(&mut self, options: &str) -> Result<(), Failure> {
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            let pair = match word {
                "-c" => words.next(),
                _ => word.strip_prefix("-c").or_else(|| word.strip_prefix("--")),
            };
            let Some((name, value)) = pair.and_then(|pair| pair.split_once('=')) else {
                return Err(Failure::fatal("22023", format!("cannot parse the option `{word}`")));
            };
            self.set(&name.replace('-', "_"), value)?;
        }
        Ok(())
    }

    /// Resets one setting, or all if `None`, to its initial value.
    pub(super) fn reset(&mut self, name: Option<&str>) -> Result<(), Failure> {
        match name {
            None => *self = Self::new(&self.user),
            Some(name) => {
                self.set(name, "default")?;
            }
        }
        Ok(())
    }

    /// Returns the canonical name and the value of a setting.
    pub(super) fn get(&self, name: &str) -> Option<(&'static str, String)> {
        if name.eq_ignore_ascii_case("session_authorization") {
            return Some(("session_authorization", self.user.clone()));
        }
        let fixed = FIXED.iter().find(|row| row.0.eq_ignore_ascii_case(name));
        if let Some((proper, value, _)) = fixed {
            return Some((proper, (*value).to_owned()));
        }
        let free = self
            .values
            .iter()
            .find(|(setting, _)| setting.eq_ignore_ascii_case(name));
        free.map(|(proper, value)| (*proper, value.clone()))
    }

    /// Returns the name and the value of every setting.
    pub(super) fn all(&self) -> Vec<(&'static str, String)> {
        let fixed = FIXED.iter().map(|row| (row.0, row.1.to_owned()));
        let free = self.values.iter().map(|(name, value)| (*name, value.clone()));
        let mut all: Vec<_> = fixed.chain(free).collect();
        all.sort();
        all
    }

    /// Returns the settings that the server sends to the client at the start.
    pub(super) fn reported(&self) -> Vec<(String, String)> {
        let settings = REPORTED_SETTINGS.iter().filter_map(|name| self.get(name));
        settings.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns true if the server reports changes of the setting to the client.
    pub(super) fn is_reported(name: &str) -> bool {
        REPORTED_SETTINGS.contains(&name)
    }

    /// Returns the client's own timeout for statements.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        let text = self.values.get("statement_timeout")?;
        timeout(text).ok().flatten()
    }
}

/// Parses a timeout in PostgreSQL's format: milliseconds, or a number with a unit. 0 means no timeout.
fn timeout(text: &str) -> Result<Option<Duration>, Failure> {
    let timeout_error = || {
        Failure::error(
            "22023",
            format!("`{text}` is not a timeout; write for example 5000, '30s' or '5min'"),
        )
    };
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| timeout_error())?;
    let unit: u64 = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(timeout_error()),
    };
    let millis = number.checked_mul(unit).ok_or_else(timeout_error)?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_may_set_what_is_theirs_and_nothing_of_the_host() {
        let mut settings = Settings::new("ada");
        for (name, value) in [
            ("extra_float_digits", "3"),
            ("application_name", "psql"),
            ("client_encoding", "utf-8"),
            ("timezone", "Europe/Berlin"),
            ("DateStyle", "ISO"),
            ("search_path", "public, pg_catalog"),
            ("standard_conforming_strings", "on"),
            ("statement_timeout", "5s"),
        ] {
            assert!(settings.set(name, value).is_ok(), "{name}");
        }
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(5)));
        assert_eq!(settings.get("timezone").unwrap(), ("TimeZone", "UTC".to_owned()));
        for (name, value, code) in [
            ("datafusion.execution.batch_size", "1", "42704"),
            ("session_preload_libraries", "x", "42704"),
            ("client_encoding", "LATIN1", "22023"),
            ("server_version", "1", "22023"),
            ("statement_timeout", "soon", "22023"),
            ("is_superuser", "on", "22023"),
        ] {
            assert_eq!(settings.set(name, value).unwrap_err().code, code, "{name}");
        }
        settings.reset(None).unwrap();
        assert_eq!(settings.statement_timeout(), None);
        assert!(
            settings
                .set_options("-c statement_timeout=100 --lock-timeout=5")
                .is_ok()
        );
        assert_eq!(settings.statement_timeout(), Some(Duration::from_millis(100)));
        assert!(settings.set_options("-x").is_err());
    }
}
