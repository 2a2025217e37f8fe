//! Objects in memory, in a store that has bad days: it is slow, full, down, or loses replies. It
//! never loses an object whose write it acknowledged.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_base::random::{RandomSource, SplitMix};
use firn_base::task::sleep;
use parking_lot::Mutex;

use crate::{ObjectError, ObjectStore};

/// A call that waits looks this often whether the time that it takes was changed.
const WAIT_SLICE: Duration = Duration::from_millis(5);

/// Objects of one process, for tests and the simulator. Clones share them.
#[derive(Clone)]
pub struct MemoryObjects(Arc<Mutex<State>>);

struct State {
    objects: BTreeMap<String, Arc<Vec<u8>>>,
    random: SplitMix,
    delay: Duration,
    /// Of 100 calls, this many fail, half of them after they had their effect.
    failing_percent: u64,
    is_down: bool,
    room_bytes: u64,
    calls: u64,
}

impl MemoryObjects {
    /// An empty store without faults; `seed` decides which calls fail later.
    #[must_use]
    pub fn new(seed: u64) -> MemoryObjects {
        MemoryObjects(Arc::new(Mutex::new(State {
            objects: BTreeMap::new(),
            random: SplitMix::new(seed),
            delay: Duration::ZERO,
            failing_percent: 0,
            is_down: false,
            room_bytes: u64::MAX,
            calls: 0,
        })))
    }

    /// Each call takes this long from now on, one that waits already included.
    pub fn set_delay(&self, delay: Duration) {
        self.0.lock().delay = delay;
    }

    /// Of 100 calls, about this many fail from now on, half of them after they had their effect.
    pub fn set_failing(&self, percent: u64) {
        self.0.lock().failing_percent = percent;
    }

    /// Whether every call fails without an effect from now on.
    pub fn set_down(&self, is_down: bool) {
        self.0.lock().is_down = is_down;
    }

    /// How many bytes of objects fit, those that are there included.
    pub fn set_room(&self, bytes: u64) {
        self.0.lock().room_bytes = bytes;
    }

    /// Changes one bit of an object.
    ///
    /// # Panics
    /// If there is no such object, or it is shorter.
    pub fn damage(&self, name: &str, offset: usize) {
        let mut state = self.0.lock();
        let bytes = state.objects.get_mut(name).expect("an object to damage");
        Arc::make_mut(bytes)[offset] ^= 1;
    }

    /// Another store, with the objects that are here now.
    #[must_use]
    pub fn copied(&self) -> MemoryObjects {
        let copy = MemoryObjects::new(0);
        copy.0.lock().objects = self.0.lock().objects.clone();
        copy
    }

    /// The bytes of all objects.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.0.lock().size_bytes()
    }

    /// The number of calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// Waits as long as a call takes, which can be changed meanwhile.
    fn wait(&self) {
        let mut waited = Duration::ZERO;
        loop {
            let left = self.0.lock().delay.saturating_sub(waited);
            if left.is_zero() {
                return;
            }
            let slice = left.min(WAIT_SLICE);
            sleep(slice);
            waited += slice;
        }
    }

    /// Runs a call with the faults of the moment.
    fn call<T>(
        &self,
        name: &str,
        act: impl FnOnce(&mut State) -> Result<T, ObjectError>,
    ) -> Result<T, ObjectError> {
        self.wait();
        let mut state = self.0.lock();
        state.calls += 1;
        if state.is_down {
            return Err(unavailable(name, "it is down"));
        }
        if state.random.next_u64() % 100 >= state.failing_percent {
            return act(&mut state);
        }
        if state.random.next_u64().is_multiple_of(2) {
            let _ = act(&mut state);
        }
        Err(unavailable(name, "the reply was lost"))
    }
}

const LOCATION: &str = "memory";

fn unavailable(name: &str, reason: &str) -> ObjectError {
    let (location, name) = (LOCATION.to_owned(), name.to_owned());
    ObjectError::Unavailable { location, name, reason: reason.to_owned() }
}

impl State {
    fn size_bytes(&self) -> u64 {
        self.objects.values().map(|bytes| bytes.len() as u64).sum()
    }

    fn get(&self, name: &str) -> Result<Arc<Vec<u8>>, ObjectError> {
        let absent =
            || ObjectError::NotFound { location: LOCATION.to_owned(), name: name.to_owned() };
        self.objects.get(name).cloned().ok_or_else(absent)
    }

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), ObjectError> {
        let (location, name) = (LOCATION.to_owned(), name.to_owned());
        if self.objects.contains_key(&name) {
            return Err(ObjectError::Exists { location, name });
        }
        if self.size_bytes() + bytes.len() as u64 > self.room_bytes {
            let reason = format!("{} bytes are its limit", self.room_bytes);
            return Err(ObjectError::Full { location, name, reason });
        }
        self.objects.insert(name, Arc::new(bytes.to_vec()));
        Ok(())
    }
}

impl ObjectStore for MemoryObjects {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectError> {
        self.call(name, |state| state.put(name, bytes))
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, ObjectError> {
        let bytes = self.call(name, |state| state.get(name))?;
        Ok(bytes.as_ref().clone())
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, ObjectError> {
        let bytes = self.call(name, |state| state.get(name))?;
        let end = (range.end as usize).min(bytes.len());
        Ok(bytes[(range.start as usize).min(end)..end].to_vec())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, ObjectError> {
        let prefix = format!("{folder}/");
        self.call(folder, |state| {
            let names = state.objects.range(prefix.clone()..).map(|(name, _)| name);
            Ok(names.take_while(|name| name.starts_with(&prefix)).cloned().collect())
        })
    }

    fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.call(name, |state| {
            state.objects.remove(name);
            Ok(())
        })
    }

    fn location(&self) -> &str {
        LOCATION
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put_once;

    #[test]
    fn memory_keeps_the_promises_of_an_object_store() {
        crate::conformance::check(&MemoryObjects::new(1));
    }

    #[test]
    fn a_write_that_is_repeated_after_lost_replies_is_there_once() {
        let objects = MemoryObjects::new(2);
        objects.set_failing(60);
        for number in 0..100 {
            let (name, bytes) = (format!("log/{number}"), [number]);
            while let Err(error) = put_once(&objects, &name, &bytes) {
                assert!(error.is_retryable(), "{error}");
            }
        }
        objects.set_failing(0);
        assert_eq!(objects.list("log").unwrap().len(), 100);
        assert_eq!(objects.get("log/77").unwrap(), [77]);
    }

    #[test]
    fn a_full_store_says_so_and_takes_objects_again() {
        let objects = MemoryObjects::new(3);
        objects.set_room(10);
        objects.put("log/a", &[0; 8]).unwrap();
        let full = objects.put("log/b", &[0; 8]).unwrap_err();
        assert!(matches!(full, ObjectError::Full { .. }) && full.is_retryable());
        objects.delete("log/a").unwrap();
        objects.put("log/b", &[0; 8]).unwrap();
    }
}
