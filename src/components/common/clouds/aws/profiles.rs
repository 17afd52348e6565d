//! Profiles of AWS, which are named groups of settings in the files `~/.aws/credentials` and `~/.aws/config`.
//!
//! In: the text of both files. Out: the settings of a profile. The credentials file takes precedence.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;

/// The settings of one profile, by name.
pub(super) type Profile = BTreeMap<String, String>;

/// All profiles of both files, by name.
#[derive(Debug)]
pub(super) struct Profiles(BTreeMap<String, Profile>);

impl Profiles {
    /// Reads both files. A missing file has no profiles.
    pub(super) async fn read(environment: &Environment) -> Result<Self, CloudError> {
        let text = async |variable: &str, default: &str| {
            let path = environment.get(variable).map(PathBuf::from);
            let Some(path) = path.or_else(|| environment.at_home(default)) else {
                return Ok(String::new());
            };
            match tokio::fs::read_to_string(&path).await {
                Ok(text) => Ok(text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
                Err(source) => Err(CloudError::File { path, source }),
            }
        };
        let config = text("AWS_CONFIG_FILE", ".aws/config").await?;
        let credentials = text("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials").await?;
        Ok(Self::parse(&config, &credentials))
    }

    /// Returns the profile with this name.
    pub(super) fn get(&self, name: &str) -> Option<&Profile> {
        self.0.get(name)
    }

    fn parse(config: &str, credentials: &str) -> Self {
        let mut profiles = BTreeMap::new();
        let config_name = |section: &str| match section.split_once(char::is_whitespace) {
            Some(("profile", name)) => Some(name.trim().to_owned()),
            None if section == "default" => Some(section.to_owned()),
            _ => None,
        };
        read(config, config_name, &mut profiles);
        read(credentials, |section| Some(section.to_owned()), &mut profiles);
        Self(profiles)
    }
}

/// Adds the settings in a file to `profiles`. `name` converts a section title to a profile name, or returns `None` to
/// skip the section. Indented lines are nested settings and are skipped.
fn read(text: &str, name: impl Fn(&str) -> Option<String>, profiles: &mut BTreeMap<String, Profile>) {
    let mut section = None;
    for line in text.lines() {
        if let Some(title) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name(title.trim());
        } else if !line.starts_with(['#', ';', ' ', '\t'])
            && let (Some(section), Some((key, value))) = (&section, line.split_once('='))
        {
            let profile: &mut Profile = profiles.entry(section.clone()).or_default();
            let value = value.split(" #").next().unwrap_or_default();
            profile.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credentials_file_goes_before_the_other() {
        let config = "[default]\nregion = eu-west-1 # here\naws_access_key_id=old\n[profile build]\ns3 =\n  a = b\n\
            role_arn = arn:x\n[sso-session y]\nregion=no\n[stray]\nregion=no\n";
        let credentials = "# mine\n[default]\naws_access_key_id = new\n[other]\nAWS_SECRET_ACCESS_KEY = s=1\n";
        let profiles = Profiles::parse(config, credentials);
        let shown = |name: &str| format!("{:?}", profiles.get(name));
        assert_eq!(
            shown("default"),
            r#"Some({"aws_access_key_id": "new", "region": "eu-west-1"})"#
        );
        assert_eq!(shown("build"), r#"Some({"role_arn": "arn:x", "s3": ""})"#);
        assert_eq!(shown("other"), r#"Some({"aws_secret_access_key": "s=1"})"#);
        assert_eq!(shown("stray"), "None");
    }
}
