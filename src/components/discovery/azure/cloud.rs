//! The public and national clouds of Azure, and their base URLs.

use std::sync::Arc;

use url::Url;

use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, wrong};
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;

/// A cloud. Its name is matched without regard to case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloudName {
    /// The public cloud, which serves most of the world.
    Public,
    /// The cloud of mainland China.
    China,
    /// The cloud of the United States government.
    UsGovernment,
}

/// Base URLs of a cloud's services.
#[derive(Clone, Debug)]
pub(super) struct Cloud {
    /// Base URL of the server that issues tokens.
    pub(super) login: Url,
    /// Base URL of the Resource Manager. The scope of the requested tokens is derived from this URL.
    pub(super) manager: Url,
}

impl FromValue for CloudName {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        match text.to_ascii_uppercase().as_str() {
            "AZURECLOUD" | "AZUREPUBLICCLOUD" | "AZUREGERMANCLOUD" => Ok(Self::Public),
            "AZURECHINACLOUD" => Ok(Self::China),
            "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => Ok(Self::UsGovernment),
            _ => Err(wrong(format!(
                "unknown {name} \"{text}\": must be one of AzurePublicCloud, AzureChinaCloud, AzureUSGovernment"
            ))),
        }
    }
}

impl CloudName {
    /// Returns the base URLs of the cloud's services.
    pub(super) fn cloud(self) -> Result<Cloud, url::ParseError> {
        let (login, manager) = match self {
            Self::Public => ("https://login.microsoftonline.com/", "https://management.azure.com/"),
            Self::China => (
                "https://login.chinacloudapi.cn/",
                "https://management.chinacloudapi.cn/",
            ),
            Self::UsGovernment => (
                "https://login.microsoftonline.us/",
                "https://management.usgovcloudapi.net/",
            ),
        };
        Ok(Cloud {
            login: login.parse()?,
            manager: manager.parse()?,
        })
    }
}
