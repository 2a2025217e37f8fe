//! Objects in a store elsewhere: named bytes that are written once, read in whole or in part,
//! listed and removed.
//!
//! ```text
//!   file:///backup/firn     FolderObjects    files of a local or mounted directory
//!   s3:// az:// gs://       CloudObjects     buckets; only with the feature `cloud`
//!   (tests, simulator)      MemoryObjects    memory that is slow, full, down or loses replies
//! ```
//!
//! What a caller may rely on:
//!
//! * an object is there as a whole or not at all, and never changes;
//! * when [`ObjectStore::put`] returns, the object survives the store's crash;
//! * of several writers of one name, one succeeds and the others get [`ObjectError::Exists`];
//! * after [`ObjectError::Unavailable`], a write may or may not have happened. [`put_once`] finds
//!   out.
//!
//! All calls block. An implementation with an asynchronous library keeps its runtime to itself.

#[cfg(feature = "cloud")]
mod cloud;
#[cfg(test)]
mod conformance;
mod credentials;
mod error;
mod folder;
mod memory;
mod url;

pub use credentials::Credentials;
pub use error::ObjectError;
pub use folder::FolderObjects;
pub use memory::MemoryObjects;
pub use url::{ObjectUrl, UrlError};

use std::ops::Range;

/// A store of objects.
///
/// A name is `folder/leaf`, both made of lower-case letters, digits, `-` and `.`; the leaf does not
/// begin with a dot.
pub trait ObjectStore: Send + Sync {
    /// Writes an object that does not exist yet, durably.
    ///
    /// # Errors
    /// [`ObjectError::Exists`] if there is an object of this name, possibly from an earlier attempt
    /// that seemed to fail; or any other error but [`ObjectError::NotFound`].
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectError>;

    /// Reads a whole object.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`], [`ObjectError::Unavailable`] or [`ObjectError::Refused`].
    fn get(&self, name: &str) -> Result<Vec<u8>, ObjectError>;

    /// Reads the bytes of `range`, or as many of them as the object has.
    ///
    /// # Errors
    /// As [`ObjectStore::get`].
    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, ObjectError>;

    /// The names of all objects in a folder, sorted. Empty if there is no such folder.
    ///
    /// # Errors
    /// [`ObjectError::Unavailable`] or [`ObjectError::Refused`].
    fn list(&self, folder: &str) -> Result<Vec<String>, ObjectError>;

    /// Removes an object. No error if there is none.
    ///
    /// # Errors
    /// [`ObjectError::Unavailable`] or [`ObjectError::Refused`].
    fn delete(&self, name: &str) -> Result<(), ObjectError>;

    /// Where the store is, for messages. Has no credentials.
    fn location(&self) -> &str;
}

/// Writes an object whose earlier attempt may have succeeded unnoticed: an object that exists with
/// the same bytes is taken for that attempt's.
///
/// # Errors
/// As [`ObjectStore::put`]; [`ObjectError::Exists`] only if the existing bytes are others.
pub fn put_once(store: &dyn ObjectStore, name: &str, bytes: &[u8]) -> Result<(), ObjectError> {
    match store.put(name, bytes) {
        Err(error @ ObjectError::Exists { .. }) => match store.get(name)? == bytes {
            true => Ok(()),
            false => Err(error),
        },
        other => other,
    }
}
