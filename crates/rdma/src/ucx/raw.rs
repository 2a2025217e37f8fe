//! The few functions of UCX's `ucp.h` that this crate calls, declared by hand as version 1.12 and
//! all later ones of UCX 1 have them. A caller sets in `field_mask` which fields of a structure it
//! has filled, so that a later release may append others. The test `declarations_fit_the_headers`
//! compares them with the headers of this machine.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the interface that these declarations have.
pub(super) const API: (c_uint, c_uint) = (1, 12);

/// `ucs_status_t`, a packed enumeration.
pub(super) type Status = i8;
pub(super) const OK: Status = 0;
pub(super) const IN_PROGRESS: Status = 1;
/// The lowest error.
pub(super) const LAST_ERROR: Status = -100;

/// `ucs_status_ptr_t`: null, an error as an address, or a request.
pub(super) type StatusPointer = *mut c_void;

macro_rules! opaque {
    ($($name:ident)*) => {$(
        /// Known to the library alone.
        #[repr(C)]
        pub(super) struct $name {
            _opaque: [u8; 0],
        }
    )*};
}
opaque! { Address Config Context Endpoint MemoryHandle RemoteKey Worker }

// Features of a context.
pub(super) const FEATURE_RMA: u64 = 1 << 1;
pub(super) const FEATURE_ATOMIC_64: u64 = 1 << 3;
pub(super) const FEATURE_WAKE_UP: u64 = 1 << 4;
pub(super) const FEATURE_MESSAGES: u64 = 1 << 6;

pub(super) const CONTEXT_HAS_FEATURES: u64 = 1;

/// `ucp_params_t`
#[repr(C)]
pub(super) struct ContextParameters {
    pub(super) field_mask: u64,
    pub(super) features: u64,
    pub(super) request_size: usize,
    pub(super) request_init: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(super) request_cleanup: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(super) tag_sender_mask: u64,
    pub(super) mt_workers_shared: c_int,
    pub(super) estimated_num_eps: usize,
    pub(super) estimated_num_ppn: usize,
    pub(super) name: *const c_char,
}

pub(super) const WORKER_HAS_THREAD_MODE: u64 = 1;
/// Several threads, one at a time.
pub(super) const THREADS_SERIALIZED: c_int = 1;

/// `ucp_worker_params_t`
#[repr(C)]
pub(super) struct WorkerParameters {
    pub(super) field_mask: u64,
    pub(super) thread_mode: c_int,
    pub(super) cpu_mask: [u64; 16],
    pub(super) events: c_uint,
    pub(super) user_data: *mut c_void,
    pub(super) event_fd: c_int,
    pub(super) flags: u64,
    pub(super) name: *const c_char,
    pub(super) am_alignment: usize,
    pub(super) client_id: u64,
}

pub(super) const ENDPOINT_HAS_ADDRESS: u64 = 1;
pub(super) const ENDPOINT_HAS_ERROR_MODE: u64 = 1 << 1;
pub(super) const ENDPOINT_HAS_ERROR_HANDLER: u64 = 1 << 2;
/// A request to a peer that has gone ends with an error.
pub(super) const ERROR_MODE_PEER: c_int = 1;

pub(super) type ErrorCallback = unsafe extern "C" fn(*mut c_void, *mut Endpoint, Status);

/// `ucp_err_handler_t`
#[repr(C)]
pub(super) struct ErrorHandler {
    pub(super) callback: Option<ErrorCallback>,
    pub(super) argument: *mut c_void,
}

/// `ucs_sock_addr_t`
#[repr(C)]
pub(super) struct SocketAddress {
    pub(super) address: *const c_void,
    pub(super) length: u32,
}

/// `ucp_ep_params_t`
#[repr(C)]
pub(super) struct EndpointParameters {
    pub(super) field_mask: u64,
    pub(super) address: *const Address,
    pub(super) error_mode: c_int,
    pub(super) error_handler: ErrorHandler,
    pub(super) user_data: *mut c_void,
    pub(super) flags: c_uint,
    pub(super) sockaddr: SocketAddress,
    pub(super) conn_request: *mut c_void,
    pub(super) name: *const c_char,
    pub(super) local_sockaddr: SocketAddress,
}

pub(super) const MEMORY_HAS_ADDRESS: u64 = 1;
pub(super) const MEMORY_HAS_LENGTH: u64 = 1 << 1;

/// `ucp_mem_map_params_t`
#[repr(C)]
pub(super) struct MemoryParameters {
    pub(super) field_mask: u64,
    pub(super) address: *mut c_void,
    pub(super) length: usize,
    pub(super) flags: c_uint,
    pub(super) protection: c_uint,
    pub(super) memory_type: c_int,
}

pub(super) const REQUEST_HAS_DATATYPE: u32 = 1 << 3;
pub(super) const REQUEST_HAS_FLAGS: u32 = 1 << 4;
pub(super) const REQUEST_HAS_REPLY_BUFFER: u32 = 1 << 5;
/// A flag of `ucp_ep_close_nbx`: without waiting for the peer.
pub(super) const CLOSE_BY_FORCE: u32 = 1;
/// A flag of `ucp_am_send_nbx`: the data travel with the message.
pub(super) const MESSAGE_EAGER: u32 = 1 << 1;
/// `ucp_dt_make_contig(8)`
pub(super) const WORDS: u64 = 8 << 3;

/// `ucp_request_param_t`
#[repr(C)]
pub(super) struct RequestParameters {
    pub(super) attributes: u32,
    pub(super) flags: u32,
    pub(super) request: *mut c_void,
    pub(super) callback: *mut c_void,
    pub(super) datatype: u64,
    pub(super) user_data: *mut c_void,
    pub(super) reply_buffer: *mut c_void,
    pub(super) memory_type: c_int,
    pub(super) receive_info: *mut c_void,
    pub(super) memory: *mut MemoryHandle,
}

pub(super) const HANDLER_HAS_ID: u64 = 1;
pub(super) const HANDLER_HAS_FLAGS: u64 = 1 << 1;
pub(super) const HANDLER_HAS_CALLBACK: u64 = 1 << 2;
pub(super) const HANDLER_HAS_ARGUMENT: u64 = 1 << 3;
/// The callback gets a message whole.
pub(super) const WHOLE_MESSAGES: u32 = 1;
/// The data of the message have not arrived: it is none of this crate's.
pub(super) const RECEIVED_RENDEZVOUS: u64 = 1 << 17;

/// `ucp_am_recv_param_t`
#[repr(C)]
pub(super) struct Received {
    pub(super) attributes: u64,
    pub(super) reply_endpoint: *mut Endpoint,
}

pub(super) type MessageCallback = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    usize,
    *mut c_void,
    usize,
    *const Received,
) -> Status;

/// `ucp_am_handler_param_t`
#[repr(C)]
pub(super) struct HandlerParameters {
    pub(super) field_mask: u64,
    pub(super) id: c_uint,
    pub(super) flags: u32,
    pub(super) callback: Option<MessageCallback>,
    pub(super) argument: *mut c_void,
}

/// `ucp_atomic_op_t`
pub(super) const ATOMIC_ADD: c_int = 0;
pub(super) const ATOMIC_COMPARE_AND_SWAP: c_int = 2;

#[link(name = "ucs")]
unsafe extern "C" {
    pub(super) fn ucs_status_string(status: Status) -> *const c_char;
}

#[link(name = "ucp")]
unsafe extern "C" {
    pub(super) fn ucp_config_read(
        prefix: *const c_char,
        file: *const c_char,
        config: *mut *mut Config,
    ) -> Status;
    pub(super) fn ucp_config_modify(
        config: *mut Config,
        name: *const c_char,
        value: *const c_char,
    ) -> Status;
    pub(super) fn ucp_config_release(config: *mut Config);
    pub(super) fn ucp_init_version(
        major: c_uint,
        minor: c_uint,
        parameters: *const ContextParameters,
        config: *const Config,
        context: *mut *mut Context,
    ) -> Status;
    pub(super) fn ucp_cleanup(context: *mut Context);

    pub(super) fn ucp_worker_create(
        context: *mut Context,
        parameters: *const WorkerParameters,
        worker: *mut *mut Worker,
    ) -> Status;
    pub(super) fn ucp_worker_destroy(worker: *mut Worker);
    pub(super) fn ucp_worker_get_address(
        worker: *mut Worker,
        address: *mut *mut Address,
        length: *mut usize,
    ) -> Status;
    pub(super) fn ucp_worker_release_address(worker: *mut Worker, address: *mut Address);
    pub(super) fn ucp_worker_progress(worker: *mut Worker) -> c_uint;
    pub(super) fn ucp_worker_get_efd(worker: *mut Worker, descriptor: *mut c_int) -> Status;
    pub(super) fn ucp_worker_arm(worker: *mut Worker) -> Status;
    pub(super) fn ucp_worker_set_am_recv_handler(
        worker: *mut Worker,
        parameters: *const HandlerParameters,
    ) -> Status;

    pub(super) fn ucp_ep_create(
        worker: *mut Worker,
        parameters: *const EndpointParameters,
        endpoint: *mut *mut Endpoint,
    ) -> Status;
    pub(super) fn ucp_ep_close_nbx(
        endpoint: *mut Endpoint,
        parameters: *const RequestParameters,
    ) -> StatusPointer;
    pub(super) fn ucp_ep_flush_nbx(
        endpoint: *mut Endpoint,
        parameters: *const RequestParameters,
    ) -> StatusPointer;

    pub(super) fn ucp_mem_map(
        context: *mut Context,
        parameters: *const MemoryParameters,
        memory: *mut *mut MemoryHandle,
    ) -> Status;
    pub(super) fn ucp_mem_unmap(context: *mut Context, memory: *mut MemoryHandle) -> Status;
    pub(super) fn ucp_rkey_pack(
        context: *mut Context,
        memory: *mut MemoryHandle,
        buffer: *mut *mut c_void,
        length: *mut usize,
    ) -> Status;
    pub(super) fn ucp_rkey_buffer_release(buffer: *mut c_void);
    pub(super) fn ucp_ep_rkey_unpack(
        endpoint: *mut Endpoint,
        buffer: *const c_void,
        key: *mut *mut RemoteKey,
    ) -> Status;
    pub(super) fn ucp_rkey_destroy(key: *mut RemoteKey);

    pub(super) fn ucp_am_send_nbx(
        endpoint: *mut Endpoint,
        id: c_uint,
        header: *const c_void,
        header_length: usize,
        buffer: *const c_void,
        count: usize,
        parameters: *const RequestParameters,
    ) -> StatusPointer;
    pub(super) fn ucp_put_nbx(
        endpoint: *mut Endpoint,
        buffer: *const c_void,
        count: usize,
        remote: u64,
        key: *mut RemoteKey,
        parameters: *const RequestParameters,
    ) -> StatusPointer;
    pub(super) fn ucp_get_nbx(
        endpoint: *mut Endpoint,
        buffer: *mut c_void,
        count: usize,
        remote: u64,
        key: *mut RemoteKey,
        parameters: *const RequestParameters,
    ) -> StatusPointer;
    pub(super) fn ucp_atomic_op_nbx(
        endpoint: *mut Endpoint,
        operation: c_int,
        buffer: *const c_void,
        count: usize,
        remote: u64,
        key: *mut RemoteKey,
        parameters: *const RequestParameters,
    ) -> StatusPointer;
    pub(super) fn ucp_request_check_status(request: *mut c_void) -> Status;
    pub(super) fn ucp_request_free(request: *mut c_void);
}
