//! `discovery.dns`: discovers targets from DNS records.
//!
//! In: names and the type of their records. Out: a target for each record. If the lookup of a name fails, the last
//! targets of this name stay.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use hickory_resolver::proto::rr::{Name, RData, RecordType};

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::outdated::Outdated;
use crate::common::discovery::parts::Parts;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::serving::server::Port;
use alluvium_base::dns::{Lookups, System};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Interval, choose};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Maximum number of concurrent lookups.
const AT_ONCE: usize = 16;

arguments! {
    /// Arguments of `discovery.dns`.
    pub(crate) struct DnsArguments {
        /// Domain names to look up.
        names: Vec<Arc<str>>,
        /// Port in the address of each target. Required for every type except SRV, whose records contain the port.
        port: Port = 0,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "30s",
        /// Type of the records: `SRV`, `A`, `AAAA`, `MX` or `NS`.
        record as "type": Record = "SRV",
    }
    check DnsArguments::check;
}

/// A type of DNS record. Its name is matched without regard to case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record(RecordType);

/// The component's definition.
pub(crate) const DEFINITION: Definition<DnsArguments> = polled::definition::<Dns>(
    "discovery.dns",
    "`discovery.dns` looks up DNS names and exports a target for each record.",
);

struct Dns {
    arguments: DnsArguments,
    system: System,
    parts: Parts,
}

impl FromValue for Record {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let upper = Arc::<str>::from_value(name, value)?.to_uppercase();
        let types = [
            RecordType::SRV,
            RecordType::A,
            RecordType::AAAA,
            RecordType::MX,
            RecordType::NS,
        ];
        let records = types.map(|record| (<&str>::from(record), Self(record)));
        let entry = records.iter().find(|(record, _)| *record == upper);
        entry.map_or_else(|| choose(name, value, &records), |(_, record)| Ok(*record))
    }
}

impl DnsArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let Record(record) = self.record;
        if record != RecordType::SRV && self.port.0 == 0 {
            let message = format!("records of type {record} contain no port: set `port`");
            return Err(ArgumentError::new("port", message));
        }
        Ok(())
    }
}

impl Discovery for Dns {
    type Arguments = DnsArguments;

    fn new(arguments: &DnsArguments, _context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            arguments: arguments.clone(),
            system: System::of_this_machine(),
            parts: Parts::default(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        // Read the resolver configuration at each refresh, because the name servers change when the machine moves to
        // another network.
        let lookups = &self.system.read()?;
        let look_up = async |name: &Arc<str>| (name.clone(), self.look_up(lookups, name).await);
        let mut answers = futures::stream::iter(self.arguments.names.iter().map(look_up)).buffer_unordered(AT_ONCE);
        while let Some((name, answer)) = answers.next().await {
            self.parts.set(&name, answer);
        }
        Ok(self.parts.targets())
    }

    fn failure(&self) -> Option<Outdated> {
        self.parts.failure()
    }
}

impl Dns {
    async fn look_up(&self, lookups: &Lookups, name: &Arc<str>) -> Result<Vec<Target>, DiscoveryError> {
        let records = lookups.records(name, self.arguments.record.0).await?;
        Ok(records.iter().filter_map(|record| self.target(name, record)).collect())
    }

    /// Returns the target of a record, or `None` for an alias (CNAME) in the response.
    fn target(&self, name: &Arc<str>, record: &RData) -> Option<Target> {
        let mut labels = MetaLabels::new("__meta_dns_");
        labels.set("name", name);
        let port = self.arguments.port.0;
        let address = match record {
            RData::SRV(service) => {
                labels
                    .set("srv_record_target", &service.target)
                    .set("srv_record_port", service.port);
                host_port(&host(&service.target), service.port)
            }
            RData::MX(exchange) => {
                labels.set("mx_record_target", &exchange.exchange);
                host_port(&host(&exchange.exchange), port)
            }
            RData::NS(server) => {
                labels.set("ns_record_target", &server.0);
                host_port(&host(&server.0), port)
            }
            RData::A(address) => host_port(&address.to_string(), port),
            RData::AAAA(address) => host_port(&address.to_string(), port),
            _ => return None,
        };
        Some(labels.with_address(address))
    }
}

/// Returns a name without the dot at its end.
fn host(name: &Name) -> String {
    name.to_string().trim_end_matches('.').to_owned()
}
