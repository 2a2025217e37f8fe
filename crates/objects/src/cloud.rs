//! Objects in the buckets of a cloud: S3 and what speaks like it, Azure, Google.
//!
//! The library is asynchronous. Its runtime is here, with one thread; a call hands its request over
//! and waits, on whatever thread it is made.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_base::event::Event;
use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, ObjectStore as _, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    RetryConfig,
};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::credentials::Credentials;
use crate::{ObjectError, ObjectStore};

/// A request that takes longer has failed; the caller decides whether to repeat it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the library repeats a request that failed.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES: usize = 2;

/// Objects below a prefix of a bucket.
pub(crate) struct CloudObjects {
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
    store: Arc<dyn object_store::ObjectStore>,
    prefix: Path,
    location: String,
}

impl CloudObjects {
    /// The objects at a URL: `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`.
    /// Asks the store nothing yet.
    pub(crate) fn open(url: &str, credentials: &Credentials) -> Result<CloudObjects, ObjectError> {
        let refuse = |reason: String| ObjectError::Refused {
            location: url.to_owned(),
            name: "its settings".to_owned(),
            reason,
        };
        let store = builder(url, credentials).map_err(|error| refuse(without_secrets(&error)))?;
        let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        let prefix = Path::parse(path.map_or("", |(_, path)| path.trim_end_matches('/')));
        let prefix = prefix.map_err(|error| refuse(error.to_string()))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("firn-objects")
            .enable_all()
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        Ok(CloudObjects { runtime: Some(runtime), store, prefix, location: url.to_owned() })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Runs a request in the runtime and waits for its reply.
    fn wait<T: Send + 'static>(
        &self,
        name: &str,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, ObjectError> {
        let call = Arc::new(Call { reply: Mutex::new(None), ended: Event::new() });
        let ends = Ends(Arc::clone(&call));
        let runtime = self.runtime.as_ref().expect("it is there until this is dropped");
        runtime.spawn(async move {
            let reply = request.await;
            ends.0.reply.lock().get_or_insert(Some(reply));
        });
        call.ended.wait_until(None, || call.reply.lock().is_some());
        match call.reply.lock().take().flatten() {
            Some(reply) => reply.map_err(|error| self.error(name, &error)),
            None => Err(ObjectError::Unavailable {
                location: self.location.clone(),
                name: name.to_owned(),
                reason: "the request ended with a panic".to_owned(),
            }),
        }
    }

    fn error(&self, name: &str, error: &Error) -> ObjectError {
        let (location, name) = (self.location.clone(), name.to_owned());
        let reason = without_secrets(error);
        match error {
            Error::NotFound { .. } => ObjectError::NotFound { location, name },
            Error::AlreadyExists { .. } | Error::Precondition { .. } => {
                ObjectError::Exists { location, name }
            }
            Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::UnknownConfigurationKey { .. } => {
                ObjectError::Refused { location, name, reason }
            }
            _ if reason.contains("507 ") || reason.contains("QuotaExceeded") => {
                ObjectError::Full { location, name, reason }
            }
            _ => ObjectError::Unavailable { location, name, reason },
        }
    }
}

impl Drop for CloudObjects {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A request that the runtime works on.
struct Call<T> {
    /// What it ended with; without a reply if it ended with a panic.
    reply: Mutex<Option<Option<Result<T, Error>>>>,
    ended: Event,
}

/// Wakes the caller, however the request ends.
struct Ends<T>(Arc<Call<T>>);

impl<T> Drop for Ends<T> {
    fn drop(&mut self) {
        self.0.reply.lock().get_or_insert(None);
        self.0.ended.notify_all();
    }
}

/// The library's store for a URL.
fn builder(
    url: &str,
    credentials: &Credentials,
) -> Result<Arc<dyn object_store::ObjectStore>, Error> {
    let retry = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    };
    let client = ClientOptions::new().with_timeout(REQUEST_TIMEOUT);
    macro_rules! with_settings {
        ($builder:ty) => {{
            let builder = <$builder>::new().with_client_options(client).with_url(url);
            let builder = credentials.0.iter().fold(builder, |builder, (name, value)| {
                match name.to_ascii_lowercase().parse() {
                    Ok(key) => builder.with_config(key, value),
                    // A variable of another tool.
                    Err(_) => builder,
                }
            });
            Ok(Arc::new(builder.with_retry(retry).build()?))
        }};
    }
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("gs") => with_settings!(GoogleCloudStorageBuilder),
        Some("az") => with_settings!(MicrosoftAzureBuilder),
        _ => with_settings!(AmazonS3Builder),
    }
}

/// The error's text; signatures in the queries of URLs are left out.
fn without_secrets(error: &Error) -> String {
    let text = error.to_string();
    let words = text.split(' ').map(|word| match (word.contains("://"), word.find('?')) {
        (true, Some(query)) => &word[..query],
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

impl ObjectStore for CloudObjects {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectError> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let payload = PutPayload::from(bytes.to_vec());
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.wait(name, async move { store.put_opts(&path, payload, options).await.map(|_| ()) })
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, ObjectError> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        self.wait(name, async move { Ok(store.get(&path).await?.bytes().await?.to_vec()) })
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, ObjectError> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        self.wait(name, async move { Ok(store.get_range(&path, range).await?.to_vec()) })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, ObjectError> {
        let (store, path) = (Arc::clone(&self.store), self.path(folder));
        let found = self
            .wait(folder, async move { store.list(Some(&path)).try_collect::<Vec<_>>().await })?;
        let leaves = found.iter().filter_map(|object| object.location.filename());
        let mut names: Vec<String> = leaves.map(|leaf| format!("{folder}/{leaf}")).collect();
        names.sort();
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<(), ObjectError> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let deleted = self.wait(name, async move { store.delete(&path).await });
        match deleted {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    }

    fn location(&self) -> &str {
        &self.location
    }
}

#[cfg(test)]
mod tests;
