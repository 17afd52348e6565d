//! Looks up names with the system's resolver configuration: servers, search domains and `ndots`.
//!
//! A lookup tries the name itself and the name in each search domain, and uses the first of these full names that
//! exists. If none exists, or the first that exists has no records of the requested type, the lookup returns an empty
//! list. If a server fails or does not respond, the lookup fails, unless a later full name exists.

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf::read_system_conf;

type Configuration = (ResolverConfig, ResolverOpts);

/// The reason why names cannot be looked up.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// The configuration of the resolver cannot be read.
    #[error("cannot read /etc/resolv.conf: {0}")]
    Configuration(#[source] Box<NetError>),
    /// No resolver can be created from the configuration.
    #[error("cannot look up names: {0}")]
    Resolver(#[source] Box<NetError>),
    /// The text cannot be a name.
    #[error("`{name}` is not a domain name: {source}")]
    Name { name: String, source: Box<ProtoError> },
    /// A server failed, or did not respond in time.
    #[error("cannot look up {record} of {name}: {source}")]
    Failed {
        record: RecordType,
        /// Full name for which the query failed.
        name: String,
        source: Box<NetError>,
    },
}

/// Source of the resolver configuration.
pub struct System(Box<dyn Fn() -> Result<Configuration, NetError> + Send + Sync>);

/// A resolver with the search domains of the configuration.
pub struct Lookups {
    resolver: TokioResolver,
    search: Vec<Name>,
    dots: usize,
}

impl System {
    /// Creates the source for this machine, which reads `/etc/resolv.conf`.
    pub fn of_this_machine() -> Self {
        Self::new(read_system_conf)
    }

    pub fn new(read: impl Fn() -> Result<Configuration, NetError> + Send + Sync + 'static) -> Self {
        Self(Box::new(read))
    }

    /// Reads the current configuration and creates a resolver.
    pub fn read(&self) -> Result<Lookups, DnsError> {
        let (config, mut options) = (self.0)().map_err(|error| DnsError::Configuration(Box::new(error)))?;
        // The cache is off, because every lookup must return the current records. The hosts file is off, because it
        // contains only addresses, and no records of other types.
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        let (search, dots) = (config.search().to_vec(), options.ndots);
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let resolver = builder.with_options(options).build();
        Ok(Lookups {
            resolver: resolver.map_err(|error| DnsError::Resolver(Box::new(error)))?,
            search,
            dots,
        })
    }
}

impl Lookups {
    /// Returns the records of a name. For an alias, returns the alias (CNAME) and the records of its target.
    pub async fn records(&self, name: &str, record: RecordType) -> Result<Vec<RData>, DnsError> {
        let mut failure = None;
        for candidate in self.candidates(name)? {
            match self.resolver.lookup(candidate.clone(), record).await {
                Ok(lookup) => return Ok(lookup.answers().iter().map(|answer| answer.data.clone()).collect()),
                Err(error) if error.is_nx_domain() => {}
                Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
                Err(error) => {
                    failure = Some(DnsError::Failed {
                        record,
                        name: candidate.to_string(),
                        source: Box::new(error),
                    });
                }
            }
        }
        failure.map_or(Ok(Vec::new()), Err)
    }

    /// Returns host and port of each SRV record of a name.
    pub async fn services(&self, name: &str) -> Result<Vec<(String, u16)>, DnsError> {
        let records = self.records(name, RecordType::SRV).await?;
        let service = |record| match record {
            RData::SRV(SRV { target, port, .. }) => Some((target.to_string(), port)),
            _ => None,
        };
        Ok(records.into_iter().filter_map(service).collect())
    }

    /// Returns the full names to look up for a name, in this order. If the name has at least `ndots` dots, the name
    /// itself comes first, otherwise last.
    fn candidates(&self, name: &str) -> Result<Vec<Name>, DnsError> {
        let parsed = Name::from_ascii(name).or_else(|_| Name::from_utf8(name));
        let parsed = parsed.map_err(|error| DnsError::Name {
            name: name.to_owned(),
            source: Box::new(error),
        })?;
        if parsed.is_fqdn() {
            return Ok(vec![parsed]);
        }
        let in_domain = |domain: &Name| parsed.clone().append_domain(domain);
        // If a search domain makes the name too long, that candidate cannot exist.
        let mut candidates: Vec<Name> = self.search.iter().filter_map(|domain| in_domain(domain).ok()).collect();
        let has_enough_dots = name.matches('.').count() >= self.dots;
        let index = if has_enough_dots { 0 } else { candidates.len() };
        let mut absolute = parsed.clone();
        absolute.set_fqdn(true);
        candidates.insert(index, absolute);
        Ok(candidates)
    }
}
