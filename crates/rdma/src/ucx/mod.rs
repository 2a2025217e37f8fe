//! A port of UCX: one worker with its endpoints, the memory that it offers and what is under way.
//!
//! All objects of the library lie in [`Port`], and each call takes `&mut Port`. So no two threads
//! are in a port at once, and no handle outlives what it belongs to. What the library reads or
//! writes while a request is under way (a word, a message) belongs to the port until the request
//! has ended.
//!
//! Every access is one word of 8 bytes at an address that is a multiple of 8.

#[cfg(test)]
mod layouts;
mod raw;

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI8, AtomicU64, Ordering};

use firn_fabric::OwnedRegion;
use parking_lot::Mutex;

/// The number of all messages among the active messages of a worker.
const MESSAGE_ID: c_uint = 7;

/// What the library says of a failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {reason}")]
pub(crate) struct UcxError {
    what: &'static str,
    reason: String,
}

impl UcxError {
    fn of(what: &'static str, status: raw::Status) -> UcxError {
        // SAFETY: the function takes any status, and returns a text that ends with a zero and is
        // never freed.
        let reason = unsafe { CStr::from_ptr(raw::ucs_status_string(status)) };
        UcxError { what, reason: reason.to_string_lossy().into_owned() }
    }

    /// A failure that is not the library's.
    pub(crate) fn here(what: &'static str, reason: &dyn std::fmt::Display) -> UcxError {
        UcxError { what, reason: reason.to_string() }
    }
}

fn check(what: &'static str, status: raw::Status) -> Result<(), UcxError> {
    match status {
        raw::OK => Ok(()),
        status => Err(UcxError::of(what, status)),
    }
}

/// An endpoint of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EndpointId(u64);

/// Memory at the other end of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyId(usize);

/// Memory that other ports may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) address: u64,
    pub(crate) key: Vec<u8>,
}

/// One access to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write(u64),
    CompareAndSwap { expected: u64, new: u64 },
    FetchAdd(u64),
}

/// See the module's head.
pub(crate) struct Port {
    context: *mut raw::Context,
    worker: *mut raw::Worker,
    /// Written by a callback of the library, which has its address.
    inbox: Arc<Inbox>,
    endpoints: HashMap<EndpointId, Endpoint>,
    keys: Vec<*mut raw::RemoteKey>,
    memory: HashMap<String, Memory>,
    sending: Vec<Sending>,
    /// Endpoints that are being closed.
    closing: Vec<*mut c_void>,
    /// Of endpoints that are closed. The library may call back until the worker is destroyed.
    former_failures: Vec<Arc<AtomicI8>>,
    flight: Option<Flight>,
    last_endpoint: u64,
}

// SAFETY: the worker is made for several threads that use it one at a time, which `&mut Port`
// ensures; nothing of the library belongs to a thread.
unsafe impl Send for Port {}

#[derive(Default)]
struct Inbox(Mutex<VecDeque<Vec<u8>>>);

struct Endpoint {
    raw: *mut raw::Endpoint,
    /// The status with which the library gave the endpoint up; 0 before. Written by a callback,
    /// which has its address.
    failure: Arc<AtomicI8>,
}

struct Memory {
    raw: *mut raw::MemoryHandle,
    offered: Offered,
    /// Mapped as long as others may reach it.
    _region: OwnedRegion,
}

struct Sending {
    request: *mut c_void,
    /// Read by the library until the request has ended.
    _message: Arc<[u8]>,
}

/// The access that is under way.
struct Flight {
    endpoint: EndpointId,
    access: Access,
    /// `None` once the library has done what it was asked for last.
    request: Option<*mut c_void>,
    /// The operand and the answer, which the library reads and writes until the request has ended.
    words: Arc<[AtomicU64; 2]>,
    /// Whether a write that has left is being waited for at the other end.
    is_flushing: bool,
}

/// Allocates what the library fills by a pointer.
fn filled<T>(
    what: &'static str,
    fill: impl FnOnce(*mut *mut T) -> raw::Status,
) -> Result<*mut T, UcxError> {
    let mut made = null_mut();
    check(what, fill(&raw mut made))?;
    Ok(made)
}

impl Port {
    /// Opens a port that uses these transports of the library, separated by commas.
    pub(crate) fn open(transports: &str) -> Result<Port, UcxError> {
        let context = open_context(transports)?;
        let parameters = raw::WorkerParameters {
            field_mask: raw::WORKER_HAS_THREAD_MODE,
            thread_mode: raw::THREADS_SERIALIZED,
            cpu_mask: [0; 16],
            events: 0,
            user_data: null_mut(),
            event_fd: -1,
            flags: 0,
            name: null(),
            am_alignment: 0,
            client_id: 0,
        };
        let worker = filled("a worker cannot be made", |worker| {
            // SAFETY: the context is valid, and both pointers are of this frame.
            unsafe { raw::ucp_worker_create(context, &raw const parameters, worker) }
        });
        let worker = worker.inspect_err(|_| {
            // SAFETY: nothing of the context exists any more.
            unsafe { raw::ucp_cleanup(context) }
        })?;
        let mut port = Port {
            context,
            worker,
            inbox: Arc::default(),
            endpoints: HashMap::new(),
            keys: Vec::new(),
            memory: HashMap::new(),
            sending: Vec::new(),
            closing: Vec::new(),
            former_failures: Vec::new(),
            flight: None,
            last_endpoint: 0,
        };
        port.receive_messages()?;
        Ok(port)
    }

    fn receive_messages(&mut self) -> Result<(), UcxError> {
        let parameters = raw::HandlerParameters {
            field_mask: raw::HANDLER_HAS_ID
                | raw::HANDLER_HAS_FLAGS
                | raw::HANDLER_HAS_CALLBACK
                | raw::HANDLER_HAS_ARGUMENT,
            id: MESSAGE_ID,
            flags: raw::WHOLE_MESSAGES,
            callback: Some(on_message),
            argument: Arc::as_ptr(&self.inbox).cast_mut().cast(),
        };
        // SAFETY: the worker is valid. The inbox stays where it is as long as the worker lives.
        let set =
            unsafe { raw::ucp_worker_set_am_recv_handler(self.worker, &raw const parameters) };
        check("messages cannot be received", set)
    }

    /// Where other ports reach this one.
    pub(crate) fn address(&mut self) -> Result<Vec<u8>, UcxError> {
        let mut length = 0;
        let address = filled("the worker's address is not known", |address| {
            // SAFETY: the worker is valid, and both pointers are of this frame.
            unsafe { raw::ucp_worker_get_address(self.worker, address, &raw mut length) }
        })?;
        // SAFETY: the library has written an address of this length.
        let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length) }.to_vec();
        // SAFETY: the address is this worker's, and was not released before.
        unsafe { raw::ucp_worker_release_address(self.worker, address) };
        Ok(bytes)
    }

    /// Becomes readable after [`Port::arm`] when the port has something to do.
    pub(crate) fn descriptor(&mut self) -> Result<OwnedFd, UcxError> {
        let mut descriptor: RawFd = -1;
        // SAFETY: the worker is valid, and the pointer is of this frame.
        let found = unsafe { raw::ucp_worker_get_efd(self.worker, &raw mut descriptor) };
        check("the worker cannot be waited for", found)?;
        // SAFETY: the descriptor is the worker's, which lives longer than this borrow.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let failed = |error| UcxError::here("the worker cannot be waited for", &error);
        borrowed.try_clone_to_owned().map_err(failed)
    }

    /// False if there is something to do now.
    pub(crate) fn arm(&mut self) -> bool {
        // SAFETY: the worker is valid.
        unsafe { raw::ucp_worker_arm(self.worker) == raw::OK }
    }

    /// Does the work that is at hand. False: there was none.
    pub(crate) fn progress(&mut self) -> bool {
        // SAFETY: the worker is valid. Callbacks reach the inbox and the endpoints' failures alone,
        // which are shared references to them.
        let events = unsafe { raw::ucp_worker_progress(self.worker) };
        self.sending.retain(|sending| end(sending.request).is_none());
        self.closing.retain(|request| end(*request).is_none());
        events > 0
    }

    /// The next message that has arrived.
    pub(crate) fn received(&mut self) -> Option<Vec<u8>> {
        self.inbox.0.lock().pop_front()
    }

    /// Makes an endpoint to the port at this address. Does not wait for it.
    pub(crate) fn connect(&mut self, address: &[u8]) -> Result<EndpointId, UcxError> {
        let failure = Arc::new(AtomicI8::new(raw::OK));
        let none = || raw::SocketAddress { address: null(), length: 0 };
        let parameters = raw::EndpointParameters {
            field_mask: raw::ENDPOINT_HAS_ADDRESS
                | raw::ENDPOINT_HAS_ERROR_MODE
                | raw::ENDPOINT_HAS_ERROR_HANDLER,
            address: address.as_ptr().cast(),
            error_mode: raw::ERROR_MODE_PEER,
            error_handler: raw::ErrorHandler {
                callback: Some(on_failure),
                argument: Arc::as_ptr(&failure).cast_mut().cast(),
            },
            user_data: null_mut(),
            flags: 0,
            sockaddr: none(),
            conn_request: null_mut(),
            name: null(),
            local_sockaddr: none(),
        };
        let raw = filled("an endpoint cannot be made", |endpoint| {
            // SAFETY: the worker is valid, and the pointers are of this frame. The failure stays
            // where it is until the worker is destroyed. The library trusts the address, which
            // comes from a node of this cluster.
            unsafe { raw::ucp_ep_create(self.worker, &raw const parameters, endpoint) }
        })?;
        self.last_endpoint += 1;
        let id = EndpointId(self.last_endpoint);
        self.endpoints.insert(id, Endpoint { raw, failure });
        Ok(id)
    }

    /// Why the library has given an endpoint up.
    pub(crate) fn failure(&self, endpoint: EndpointId) -> Option<UcxError> {
        let Some(endpoint) = self.endpoints.get(&endpoint) else { return Some(closed()) };
        match endpoint.failure.load(Ordering::Relaxed) {
            raw::OK => None,
            status => Some(UcxError::of("the connection has ended", status)),
        }
    }

    /// Sends a message. Does not wait for its arrival.
    pub(crate) fn send(&mut self, endpoint: EndpointId, message: Vec<u8>) -> Result<(), UcxError> {
        let endpoint = self.usable(endpoint)?;
        let message: Arc<[u8]> = message.into();
        let parameters = raw::RequestParameters {
            attributes: raw::REQUEST_HAS_FLAGS,
            flags: raw::MESSAGE_EAGER,
            ..no_parameters()
        };
        // SAFETY: the endpoint is valid. The message stays where it is until the request has ended.
        let sent = unsafe {
            raw::ucp_am_send_nbx(
                endpoint,
                MESSAGE_ID,
                null(),
                0,
                message.as_ptr().cast(),
                message.len(),
                &raw const parameters,
            )
        };
        if let Some(request) = begun("a message cannot be sent", sent)? {
            self.sending.push(Sending { request, _message: message });
        }
        Ok(())
    }

    /// Whether messages of this port may not have left.
    pub(crate) fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    fn usable(&self, endpoint: EndpointId) -> Result<*mut raw::Endpoint, UcxError> {
        match self.failure(endpoint) {
            Some(failure) => Err(failure),
            None => Ok(self.endpoints[&endpoint].raw),
        }
    }

    /// Lets other ports reach a region's memory, its header first. `None` if the region is of this
    /// process alone.
    pub(crate) fn offer(
        &mut self,
        name: &str,
        region: OwnedRegion,
    ) -> Result<Option<Offered>, UcxError> {
        if let Some(memory) = self.memory.get(name) {
            return Ok(Some(memory.offered.clone()));
        }
        let Some(words) = region.memory() else { return Ok(None) };
        let address = words.as_ptr();
        let parameters = raw::MemoryParameters {
            field_mask: raw::MEMORY_HAS_ADDRESS | raw::MEMORY_HAS_LENGTH,
            address: address.cast_mut().cast(),
            length: size_of_val(words),
            flags: 0,
            protection: 0,
            memory_type: 0,
        };
        let raw = filled("memory cannot be offered", |memory| {
            // SAFETY: the context is valid, and the pointers are of this frame. The memory is kept
            // with the handle, and all of it is atomic words.
            unsafe { raw::ucp_mem_map(self.context, &raw const parameters, memory) }
        })?;
        let key = self.packed_key(raw).inspect_err(|_| {
            // SAFETY: the handle is of this context, and nothing uses it.
            unsafe { raw::ucp_mem_unmap(self.context, raw) };
        })?;
        let offered = Offered { address: address as u64, key };
        let memory = Memory { raw, offered: offered.clone(), _region: region };
        self.memory.insert(name.to_owned(), memory);
        Ok(Some(offered))
    }

    fn packed_key(&self, memory: *mut raw::MemoryHandle) -> Result<Vec<u8>, UcxError> {
        let mut length = 0;
        let buffer = filled("a key of memory cannot be made", |buffer| {
            // SAFETY: context and handle are valid, and the pointers are of this frame.
            unsafe { raw::ucp_rkey_pack(self.context, memory, buffer, &raw mut length) }
        })?;
        // SAFETY: the library has written a key of this length.
        let key = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) }.to_vec();
        // SAFETY: the buffer comes from the library, and was not released before.
        unsafe { raw::ucp_rkey_buffer_release(buffer) };
        Ok(key)
    }

    /// Takes the key of memory that the other end of an endpoint offers.
    pub(crate) fn take_key(&mut self, endpoint: EndpointId, key: &[u8]) -> Result<KeyId, UcxError> {
        let endpoint = self.usable(endpoint)?;
        let raw = filled("a key of memory cannot be used", |made| {
            // SAFETY: the endpoint is valid, and the pointers are of this frame. The library trusts
            // the key, which comes from the owner's port.
            unsafe { raw::ucp_ep_rkey_unpack(endpoint, key.as_ptr().cast(), made) }
        })?;
        self.keys.push(raw);
        Ok(KeyId(self.keys.len() - 1))
    }

    /// Begins an access to a word. One is under way at a time.
    ///
    /// # Panics
    /// If another one is under way.
    pub(crate) fn begin(
        &mut self,
        endpoint: EndpointId,
        key: KeyId,
        address: u64,
        access: Access,
    ) -> Result<(), UcxError> {
        assert!(self.flight.is_none(), "one access at a time");
        let raw_endpoint = self.usable(endpoint)?;
        let key = self.keys[key.0];
        let words = Arc::new(operands(access).map(AtomicU64::new));
        let (operand, answer) = (words[0].as_ptr().cast(), words[1].as_ptr().cast());
        let plain = no_parameters();
        let atomic = raw::RequestParameters {
            attributes: raw::REQUEST_HAS_DATATYPE | raw::REQUEST_HAS_REPLY_BUFFER,
            datatype: raw::WORDS,
            reply_buffer: answer,
            ..no_parameters()
        };
        // SAFETY: endpoint and key are valid and belong together. The words stay where they are
        // until the request has ended.
        let status = unsafe {
            match access {
                Access::Read => {
                    raw::ucp_get_nbx(raw_endpoint, answer, WORD, address, key, &raw const plain)
                }
                Access::Write(_) => {
                    raw::ucp_put_nbx(raw_endpoint, operand, WORD, address, key, &raw const plain)
                }
                Access::CompareAndSwap { .. } | Access::FetchAdd(_) => raw::ucp_atomic_op_nbx(
                    raw_endpoint,
                    operation(access),
                    operand,
                    1,
                    address,
                    key,
                    &raw const atomic,
                ),
            }
        };
        let request = begun("an access was refused", status)?;
        self.flight = Some(Flight { endpoint, access, request, words, is_flushing: false });
        Ok(())
    }

    /// Whether an access is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.flight.is_some()
    }

    /// How the access has ended: with the word that it found. `None` while it is under way, and if
    /// there is none.
    pub(crate) fn ended(&mut self) -> Option<Result<u64, UcxError>> {
        let failed = |what, status| Some(Err(UcxError::of(what, status)));
        loop {
            let flight = self.flight.as_mut()?;
            if let Some(request) = flight.request {
                let status = end(request)?;
                flight.request = None;
                if status != raw::OK {
                    self.flight = None;
                    return failed("an access has failed", status);
                }
            }
            if flight.is_flushing || !matches!(flight.access, Access::Write(_)) {
                let found = flight.words[1].load(Ordering::Relaxed);
                self.flight = None;
                return Some(Ok(found));
            }
            // A write that was handed over is not yet one that the owner sees.
            flight.is_flushing = true;
            let endpoint = flight.endpoint;
            let flushed = self.usable(endpoint).and_then(|endpoint| {
                let parameters = no_parameters();
                // SAFETY: the endpoint is valid, and the pointer is of this frame.
                let status = unsafe { raw::ucp_ep_flush_nbx(endpoint, &raw const parameters) };
                begun("an access was refused", status)
            });
            match flushed {
                Ok(request) => self.flight.as_mut().expect("it is under way").request = request,
                Err(error) => {
                    self.flight = None;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Gives an endpoint up. What is under way on it ends with an error.
    pub(crate) fn close(&mut self, endpoint: EndpointId) {
        let Some(endpoint) = self.endpoints.remove(&endpoint) else { return };
        let parameters = raw::RequestParameters {
            attributes: raw::REQUEST_HAS_FLAGS,
            flags: raw::CLOSE_BY_FORCE,
            ..no_parameters()
        };
        // SAFETY: the endpoint is valid, and is not used after this.
        let status = unsafe { raw::ucp_ep_close_nbx(endpoint.raw, &raw const parameters) };
        if let Ok(Some(request)) = begun("an endpoint cannot be closed", status) {
            self.closing.push(request);
        }
        self.former_failures.push(endpoint.failure);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let endpoints: Vec<_> = self.endpoints.keys().copied().collect();
        endpoints.into_iter().for_each(|endpoint| self.close(endpoint));
        // Closing by force does not wait for the other end.
        for _ in 0..CLOSING_ROUNDS {
            self.progress();
            let _ = self.ended();
            if self.flight.is_none() && self.closing.is_empty() && self.sending.is_empty() {
                break;
            }
        }
        if self.flight.is_none() {
            for key in std::mem::take(&mut self.keys) {
                // SAFETY: the key is valid, and no access with it is under way.
                unsafe { raw::ucp_rkey_destroy(key) };
            }
        }
        // The library may still use what has not ended.
        std::mem::forget(self.flight.take());
        std::mem::forget(std::mem::take(&mut self.sending));
        for memory in std::mem::take(&mut self.memory).into_values() {
            // SAFETY: the handle is of this context. Its memory is unmapped after this.
            unsafe { raw::ucp_mem_unmap(self.context, memory.raw) };
        }
        // SAFETY: all endpoints are closed; nothing uses the worker any more. The inbox is dropped
        // later.
        unsafe { raw::ucp_worker_destroy(self.worker) };
        // SAFETY: the only worker of the context is destroyed.
        unsafe { raw::ucp_cleanup(self.context) };
    }
}

const WORD: usize = size_of::<u64>();
/// How often a port that is dropped looks whether its endpoints are closed.
const CLOSING_ROUNDS: usize = 100_000;

fn closed() -> UcxError {
    UcxError::here("the connection has ended", &"it is closed")
}

/// The operand of an access, and what stands at first where its answer will be.
fn operands(access: Access) -> [u64; 2] {
    match access {
        Access::Read => [0; 2],
        Access::Write(word) | Access::FetchAdd(word) => [word, 0],
        Access::CompareAndSwap { expected, new } => [expected, new],
    }
}

fn operation(access: Access) -> c_int {
    match access {
        Access::CompareAndSwap { .. } => raw::ATOMIC_COMPARE_AND_SWAP,
        _ => raw::ATOMIC_ADD,
    }
}

fn no_parameters() -> raw::RequestParameters {
    raw::RequestParameters {
        attributes: 0,
        flags: 0,
        request: null_mut(),
        callback: null_mut(),
        datatype: 0,
        user_data: null_mut(),
        reply_buffer: null_mut(),
        memory_type: 0,
        receive_info: null_mut(),
        memory: null_mut(),
    }
}

/// What a call that begins something returned: a request that is under way, or nothing if it was
/// done at once.
fn begun(what: &'static str, pointer: raw::StatusPointer) -> Result<Option<*mut c_void>, UcxError> {
    match pointer as isize {
        0 => Ok(None),
        error if (isize::from(raw::LAST_ERROR)..0).contains(&error) => {
            Err(UcxError::of(what, error as raw::Status))
        }
        _ => Ok(Some(pointer)),
    }
}

/// The status of a request that has ended, which is freed; `None` while it is under way.
fn end(request: *mut c_void) -> Option<raw::Status> {
    // SAFETY: requests of this module are valid until they have been seen to have ended.
    let status = unsafe { raw::ucp_request_check_status(request) };
    if status == raw::IN_PROGRESS {
        return None;
    }
    // SAFETY: the request has ended, and its owner forgets it.
    unsafe { raw::ucp_request_free(request) };
    Some(status)
}

fn open_context(transports: &str) -> Result<*mut raw::Context, UcxError> {
    let config = filled("its settings cannot be read", |config| {
        // SAFETY: null stands for the defaults, and the pointer is of the caller's frame.
        unsafe { raw::ucp_config_read(null(), null(), config) }
    })?;
    let context = set(config, "TLS", transports)
        // Atomic accesses of the owner's processor and of peers exclude each other.
        .and_then(|()| set(config, "ATOMIC_MODE", "cpu"))
        .and_then(|()| set(config, "KEEPALIVE_INTERVAL", "1s"))
        // The settings name hardware that a machine need not have.
        .and_then(|()| set(config, "WARN_INVALID_CONFIG", "n"))
        .and_then(|()| set_failure_reports(config, transports))
        .and_then(|()| {
            let parameters = context_parameters();
            filled("no transport can be used", |context| {
                let (major, minor) = raw::API;
                // SAFETY: the settings are valid, and the pointers are of this frame.
                unsafe {
                    raw::ucp_init_version(major, minor, &raw const parameters, config, context)
                }
            })
        });
    // SAFETY: the settings come from the library, and nothing uses them any more.
    unsafe { raw::ucp_config_release(config) };
    context
}

/// Has messages in shared memory report a peer that has ended, which is off by default. The library
/// warns of a setting that none of the transports has.
fn set_failure_reports(config: *mut raw::Config, transports: &str) -> Result<(), UcxError> {
    let has_shared = transports.split(',').any(|name| matches!(name, "posix" | "sysv"));
    if has_shared { set(config, "MM_ERROR_HANDLING", "y") } else { Ok(()) }
}

fn context_parameters() -> raw::ContextParameters {
    raw::ContextParameters {
        field_mask: raw::CONTEXT_HAS_FEATURES,
        features: raw::FEATURE_RMA
            | raw::FEATURE_ATOMIC_64
            | raw::FEATURE_WAKE_UP
            | raw::FEATURE_MESSAGES,
        request_size: 0,
        request_init: None,
        request_cleanup: None,
        tag_sender_mask: 0,
        mt_workers_shared: 0,
        estimated_num_eps: 0,
        estimated_num_ppn: 0,
        name: null(),
    }
}

fn set(config: *mut raw::Config, name: &str, value: &str) -> Result<(), UcxError> {
    let text = |text: &str| {
        CString::new(text).map_err(|error| UcxError::here("a setting was refused", &error))
    };
    let (name, value) = (text(name)?, text(value)?);
    // SAFETY: the settings are valid, and both texts end with a zero.
    check("a setting was refused", unsafe {
        raw::ucp_config_modify(config, name.as_ptr(), value.as_ptr())
    })
}

/// Puts a message into the inbox that is the callback's argument.
///
/// # Safety
/// For the library: the argument is the inbox of a port that lives; the data are as long as it
/// says.
unsafe extern "C" fn on_message(
    argument: *mut c_void,
    _: *const c_void,
    _: usize,
    data: *mut c_void,
    length: usize,
    received: *const raw::Received,
) -> raw::Status {
    // SAFETY: as above; the library passes valid parameters.
    let (inbox, attributes) = unsafe { (&*argument.cast::<Inbox>(), (*received).attributes) };
    // What this crate sends comes whole. Data that would have to be fetched are another program's.
    if attributes & raw::RECEIVED_RENDEZVOUS != 0 || length > MOST_MESSAGE_BYTES {
        return raw::OK;
    }
    let mut message = Vec::with_capacity(length);
    if length > 0 {
        // SAFETY: the library has `length` bytes at `data` until the callback returns.
        message.extend_from_slice(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) });
    }
    inbox.0.lock().push_back(message);
    raw::OK
}

/// Longer messages are none of this crate's.
const MOST_MESSAGE_BYTES: usize = 1 << 16;

/// Notes that an endpoint has failed.
///
/// # Safety
/// For the library: the argument is the failure of an endpoint.
unsafe extern "C" fn on_failure(argument: *mut c_void, _: *mut raw::Endpoint, status: raw::Status) {
    // SAFETY: as above; a failure lives until its worker is destroyed.
    unsafe { &*argument.cast::<AtomicI8>() }.store(status, Ordering::Relaxed);
}
