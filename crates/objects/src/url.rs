//! URLs of object stores.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use firn_base::Environment;

use crate::{FolderObjects, ObjectError, ObjectStore};

/// Why a text does not name an object store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// There is no known scheme.
    #[error("an archive is a URL such as file:///backup/firn, not {0:?}")]
    Scheme(String),
    /// A relative path or a host in a URL of a folder.
    #[error("file:// is followed by an absolute path, as in file:///backup/firn")]
    Path,
}

/// Names and values that a store is opened with, such as `AWS_ACCESS_KEY_ID`. Never in a message.
#[derive(Clone, Default)]
pub struct Credentials(pub Vec<(String, String)>);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectUrl {
    /// A directory of this machine.
    Folder(PathBuf),
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
            // The rest may have a password in it.
            _ => Err(UrlError::Scheme(format!("{scheme}://…"))),
        }
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectUrl::Folder(path) => write!(f, "file://{}", path.display()),
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
        let _ = credentials;
        match self {
            ObjectUrl::Folder(path) => Ok(Arc::new(FolderObjects::new(environment, path))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_folder() {
        let url: ObjectUrl = "file:///backup/firn".parse().unwrap();
        assert_eq!(url, ObjectUrl::Folder(PathBuf::from("/backup/firn")));
        assert_eq!(url.to_string(), "file:///backup/firn");
    }

    #[test]
    fn what_is_no_url_is_refused_without_its_secrets() {
        assert_eq!("file://backup".parse::<ObjectUrl>(), Err(UrlError::Path));
        assert!("/backup".parse::<ObjectUrl>().is_err());
        let refused = "ftp://me:secret@host/x".parse::<ObjectUrl>().unwrap_err();
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}
