//! Groups samples by the service that they name. Each service gets a separate profile.

use hashbrown::HashMap;

use crate::otlp::attributes::{SERVICE, Value};
use crate::otlp::budget::Budget;
use crate::otlp::dictionary::Dictionary;
use crate::otlp::error::ExportError;
use crate::otlp::messages::{Profile, Sample};
use alluvium_profile::pprof::Strings;

/// Samples of one service.
pub(super) struct Group<'m> {
    /// Service that the samples name. It is `None` for samples that name no service, or the common one.
    pub service: Option<&'m str>,
    /// Samples in the order of the request.
    pub samples: Vec<&'m Sample>,
}

/// Memory in bytes of a sample in its group, doubled for growth.
const SAMPLE_BYTES: usize = 2 * size_of::<&Sample>();

/// Memory in bytes of a group: entries in the table and the list.
const GROUP_BYTES: usize = 256;

/// Groups the samples of a profile by service, in the order in which the services occur. `common_service` is the
/// service of samples that name none. No group is empty, and no two groups have the same service.
pub(super) fn group_by_service<'m>(
    profile: &'m Profile,
    common_service: &str,
    dictionary: &Dictionary<'m>,
    budget: &mut Budget,
) -> Result<Vec<Group<'m>>, ExportError> {
    budget.take(profile.samples.len(), SAMPLE_BYTES)?;
    let mut groups: Vec<Group<'m>> = Vec::new();
    // Many samples may refer to one long service name, which `Strings` recognises by its address.
    let mut services = Strings::default();
    let common = services.index(common_service);
    let mut indices: HashMap<Option<i64>, usize> = HashMap::new();
    for sample in &profile.samples {
        let service = if dictionary.has_services() {
            service_of(sample, dictionary)?
        } else {
            None
        };
        // Samples that name the common service belong to the group of samples that name none.
        let key = service
            .map(|service| services.index(service))
            .filter(|key| *key != common);
        let index = if let Some(index) = indices.get(&key) {
            *index
        } else {
            budget.take(1, GROUP_BYTES)?;
            groups.push(Group {
                service: service.filter(|_| key.is_some()),
                samples: Vec::new(),
            });
            indices.insert(key, groups.len() - 1);
            groups.len() - 1
        };
        if let Some(group) = groups.get_mut(index) {
            group.samples.push(sample);
        }
    }
    Ok(groups)
}

fn service_of<'m>(sample: &Sample, dictionary: &Dictionary<'m>) -> Result<Option<&'m str>, ExportError> {
    for index in &sample.attribute_indices {
        let attribute = dictionary.attribute(*index)?;
        if attribute.name == SERVICE
            && let Value::Text(service) = attribute.value
            && !service.is_empty()
        {
            return Ok(Some(service));
        }
    }
    Ok(None)
}
