//! `discovery.http` and `discovery.dns`: targets from a web service and from the domain name system.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::discovery;
use crate::components::common::http_client::HttpClientArguments;
use crate::components::common::http_values::HttpUrl;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{FromValue, choose};
use crate::lang::body::arguments;
use crate::lang::schema::Kind;
use crate::lang::value::Value;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.http`.
    pub(crate) struct HttpArguments {
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// URL that answers with targets as JSON.
        url: HttpUrl,
    }
    shared { client: HttpClientArguments }
}

arguments! {
    /// Arguments of `discovery.dns`.
    pub(crate) struct DnsArguments {
        /// Domain names to look up.
        names: Vec<Arc<str>>,
        /// Port of the targets; must be given for every type but SRV, which knows it.
        port: i64 = 0,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "30s",
        /// Type of the records: SRV, A, AAAA, MX or NS.
        record as "type": Record = "SRV",
    }
    check DnsArguments::check;
}

/// A type of records, in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record(&'static str);

impl FromValue for Record {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let upper = Arc::<str>::from_value(name, value)?.to_uppercase();
        let records = ["SRV", "A", "AAAA", "MX", "NS"].map(|record| (record, Self(record)));
        let found = records.iter().find(|(record, _)| *record == upper);
        found.map_or_else(|| choose(name, value, &records), |(_, record)| Ok(*record))
    }
}

impl DnsArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let Record(record) = self.record;
        if record != "SRV" && self.port == 0 {
            let message = format!("records of type {record} know no port: give port");
            return Err(ArgumentError::new("port", message));
        }
        Ok(())
    }
}

/// The definition of `discovery.http`.
pub(crate) const HTTP: Definition<HttpArguments> = Definition {
    name: "discovery.http",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.http` asks a web service for targets, in the format of `discovery.file`.",
};

/// The definition of `discovery.dns`.
pub(crate) const DNS: Definition<DnsArguments> = Definition {
    name: "discovery.dns",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.dns` looks names up and takes the answers for targets.",
};
