//! The argument `clusters` of the role `elasticache`: ARNs of caches.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The caches to discover.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Names of serverless caches.
    pub(super) serverless: BTreeSet<String>,
    /// Identifiers of cache clusters.
    pub(super) clusters: BTreeSet<String>,
    /// Identifiers of replication groups. Each selects all cache clusters of the group.
    pub(super) groups: BTreeSet<String>,
}

/// A text is not the ARN of a cache.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the ARN of a serverless cache, a replication group or a cache cluster")]
pub(crate) struct ArnError(String);

impl Selection {
    /// Reads ARNs. Empty texts are skipped. Returns `None` if no ARN is left, which selects all caches.
    pub(super) fn read(arns: &[Arc<str>]) -> Result<Option<Self>, ArnError> {
        let mut selection = Self::default();
        for arn in arns.iter().filter(|arn| !arn.is_empty()) {
            selection.add(arn).ok_or_else(|| ArnError(arn.to_string()))?;
        }
        Ok(Some(selection).filter(|selection| *selection != Self::default()))
    }

    fn add(&mut self, arn: &str) -> Option<()> {
        let parts: Vec<&str> = arn.splitn(7, ':').collect();
        let ["arn", _, "elasticache", _, _, kind, name] = parts[..] else {
            return None;
        };
        let names = match kind {
            _ if name.is_empty() => return None,
            "serverlesscache" => &mut self.serverless,
            "cluster" => &mut self.clusters,
            "replicationgroup" => &mut self.groups,
            _ => return None,
        };
        names.insert(name.to_owned());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Option<Selection>, String> {
        let arns: Vec<Arc<str>> = texts.iter().map(|text| Arc::from(*text)).collect();
        Selection::read(&arns).map_err(|error| error.to_string())
    }

    #[test]
    fn an_arn_selects_a_cache_by_its_kind_and_no_arn_selects_all() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let arns = [
            "arn:aws:elasticache:eu-central-1:42:serverlesscache:carts",
            "arn:aws-cn:elasticache:cn-north-1:42:replicationgroup:sessions",
            "",
            "arn:aws:elasticache:eu-central-1:42:cluster:pages",
            "arn:aws:elasticache:eu-central-1:42:cluster:pages",
        ];
        let expected = Selection {
            serverless: names(&["carts"]),
            clusters: names(&["pages"]),
            groups: names(&["sessions"]),
        };
        assert_eq!(read(&arns), Ok(Some(expected)));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[""]), Ok(None));
    }

    #[test]
    fn a_text_that_is_not_the_arn_of_a_cache_is_an_error() {
        for text in [
            "pages",
            "arn:aws:elasticache:eu-central-1:42:cluster",
            "arn:aws:elasticache:eu-central-1:42:cluster:",
            "arn:aws:elasticache:eu-central-1:42:snapshot:pages",
            "arn:aws:rds:eu-central-1:42:cluster:pages",
        ] {
            let message = "is not the ARN of a serverless cache, a replication group or a cache cluster";
            assert_eq!(read(&[text]), Err(format!("`{text}` {message}")));
        }
    }
}
