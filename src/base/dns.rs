//! Looks up names with the system's resolver configuration: servers, search domains and `ndots`.
//!
//! A lookup tries the name itself and the name in each search domain, and uses the first of these full names that
//! exists. If none exists, or the first that exists has no records of the requested type, the lookup returns an empty
//! list. If a server fails or does not respond, the lookup fails, unless a later full name exists.

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{self, NetError};
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::rr::rdata::{CNAME, SRV};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::system_conf::read_system_conf;

/// Maximum length of a chain of aliases (CNAME) to SRV records.
const MAX_ALIASES: u32 = 8;

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

/// A resolver with its configuration.
pub struct Lookups {
    resolver: TokioResolver,
    config: ResolverConfig,
    options: ResolverOpts,
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
        let resolver = resolver(config.clone(), options.clone());
        Ok(Lookups {
            resolver: resolver.map_err(|error| DnsError::Resolver(Box::new(error)))?,
            config,
            options,
        })
    }
}

impl Lookups {
    /// Returns the records of a name. For an alias, returns the alias (CNAME) and the records of its target.
    pub async fn records(&self, name: &str, record: RecordType) -> Result<Vec<RData>, DnsError> {
        let mut failure = None;
        for candidate in self.candidates(name)? {
            match self.lookup(candidate.clone(), record).await {
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

    /// Looks up a full name. For SRV records, follows aliases, because the resolver does not: it takes the target of an
    /// SRV record in the response for the next name of the alias, and looks up the SRV records of that name.
    async fn lookup(&self, mut name: Name, record: RecordType) -> Result<Lookup, NetError> {
        let mut aliases = 0;
        loop {
            let error = match self.ask(&name, record).await {
                Err(error) if record == RecordType::SRV && aliases < MAX_ALIASES => error,
                found => return found,
            };
            let Ok(alias) = self.ask(&name, RecordType::CNAME).await else {
                return Err(error);
            };
            let target = |answer: &Record| match &answer.data {
                RData::CNAME(CNAME(target)) => Some(target.clone()),
                _ => None,
            };
            let Some(target) = alias.answers().iter().find_map(target) else {
                return Err(error);
            };
            name = target;
            aliases += 1;
        }
    }

    /// Asks the servers for the records of a full name. The resolver asks two servers at a time and returns the first
    /// response, even if the response is an error. If it is an error, asks one server after the other, because another
    /// server may know the name.
    async fn ask(&self, name: &Name, record: RecordType) -> Result<Lookup, NetError> {
        let refused = match self.resolver.lookup(name.clone(), record).await {
            Err(error) if is_refused(&error) && self.config.name_servers().len() > 1 => error,
            found => return found,
        };
        for server in self.config.name_servers() {
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![server.clone()]);
            let mut options = self.options.clone();
            options.attempts = 0;
            if let Ok(resolver) = resolver(config, options) {
                match resolver.lookup(name.clone(), record).await {
                    Err(error) if !error.is_no_records_found() => {}
                    found => return found,
                }
            }
        }
        Err(refused)
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
        let mut candidates: Vec<Name> = self
            .config
            .search()
            .iter()
            .filter_map(|domain| in_domain(domain).ok())
            .collect();
        let has_enough_dots = name.matches('.').count() >= self.options.ndots;
        let index = if has_enough_dots { 0 } else { candidates.len() };
        let mut absolute = parsed.clone();
        absolute.set_fqdn(true);
        candidates.insert(index, absolute);
        Ok(candidates)
    }
}

fn resolver(config: ResolverConfig, options: ResolverOpts) -> Result<TokioResolver, NetError> {
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.with_options(options).build()
}

/// Returns true if a server responded with an error, such as SERVFAIL or REFUSED.
fn is_refused(error: &NetError) -> bool {
    matches!(error, NetError::Dns(net::DnsError::ResponseCode(_)))
}
