//! URLs of object stores.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use firn_base::Environment;

use crate::credentials::Credentials;
use crate::{FolderObjects, ObjectError, ObjectStore};

/// Why a text does not name an object store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// There is no known scheme.
    #[error("an archive is a URL such as file:///backup/firn or s3://bucket/prefix, not {0:?}")]
    Scheme(String),
    /// There is something in it that may be a secret.
    #[error("the URL has an @ or a ?; give credentials in the environment, not in the URL")]
    Credentials,
    /// A relative path or a host in a URL of a folder.
    #[error("file:// is followed by an absolute path, as in file:///backup/firn")]
    Path,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectUrl {
    /// A directory of this machine.
    Folder(PathBuf),
    /// A prefix of a cloud's bucket, `s3://bucket/prefix`, `az://…` or `gs://…`.
    Cloud(String),
}

impl FromStr for ObjectUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<ObjectUrl, UrlError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(UrlError::Scheme(text.to_owned()));
        };
        match scheme {
            "file" if rest.starts_with('/') => Ok(ObjectUrl::Folder(PathBuf::from(rest))),
            "file" => Err(UrlError::Path),
            "s3" | "az" | "gs" if rest.contains(['@', '?']) => Err(UrlError::Credentials),
            "s3" | "az" | "gs" if !rest.is_empty() => Ok(ObjectUrl::Cloud(text.to_owned())),
            // The rest may have a password in it.
            _ => Err(UrlError::Scheme(format!("{scheme}://…"))),
        }
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectUrl::Folder(path) => write!(f, "file://{}", path.display()),
            ObjectUrl::Cloud(url) => f.write_str(url),
        }
    }
}

impl ObjectUrl {
    /// Connects to the store. Does not ask it anything yet. `credentials` are for stores that want
    /// some.
    ///
    /// # Errors
    /// [`ObjectError::Refused`] if the settings cannot be used.
    pub fn open(
        &self,
        environment: &Environment,
        credentials: &Credentials,
    ) -> Result<Arc<dyn ObjectStore>, ObjectError> {
        match self {
            ObjectUrl::Folder(path) => Ok(Arc::new(FolderObjects::new(environment, path))),
            ObjectUrl::Cloud(url) => open_cloud(url, credentials),
        }
    }
}

#[cfg(feature = "cloud")]
fn open_cloud(url: &str, credentials: &Credentials) -> Result<Arc<dyn ObjectStore>, ObjectError> {
    Ok(Arc::new(crate::cloud::CloudObjects::open(url, credentials)?))
}

#[cfg(not(feature = "cloud"))]
fn open_cloud(url: &str, _: &Credentials) -> Result<Arc<dyn ObjectStore>, ObjectError> {
    Err(ObjectError::Refused {
        location: url.to_owned(),
        name: "its scheme".to_owned(),
        reason: "this build has no clouds; build it with --features cloud".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_folder() {
        let url: ObjectUrl = "file:///backup/firn".parse().unwrap();
        assert_eq!(url, ObjectUrl::Folder(PathBuf::from("/backup/firn")));
        assert_eq!(url.to_string(), "file:///backup/firn");
        let url: ObjectUrl = "s3://bucket/prefix".parse().unwrap();
        assert_eq!(url.to_string(), "s3://bucket/prefix");
    }

    #[test]
    fn what_is_no_url_is_refused_without_its_secrets() {
        assert_eq!("file://backup".parse::<ObjectUrl>(), Err(UrlError::Path));
        assert!("/backup".parse::<ObjectUrl>().is_err());
        assert!("s3://".parse::<ObjectUrl>().is_err());
        assert_eq!("s3://me:secret@bucket".parse::<ObjectUrl>(), Err(UrlError::Credentials));
        assert_eq!("az://bucket?sig=secret".parse::<ObjectUrl>(), Err(UrlError::Credentials));
        let refused = "ftp://me:secret@host/x".parse::<ObjectUrl>().unwrap_err();
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}
