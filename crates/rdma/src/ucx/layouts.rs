//! The declarations of [`raw`](super::raw) against the headers of this machine: a C compiler
//! compares sizes, offsets, constants, and the types of the functions.

use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::offset_of;
use std::process::{Command, Stdio};

use super::raw;

macro_rules! layout {
    ($source:ident, $ours:ident is $theirs:literal { $($field:ident is $name:literal),* $(,)? }) => {
        must_equal(&mut $source, &format!("sizeof({})", $theirs), size_of::<raw::$ours>() as u64);
        $(must_equal(
            &mut $source,
            &format!("offsetof({}, {})", $theirs, $name),
            offset_of!(raw::$ours, $field) as u64,
        );)*
    };
}

fn must_equal(source: &mut String, theirs: &str, ours: u64) {
    writeln!(source, "_Static_assert({theirs} == {ours}ull, \"{theirs}\");").unwrap();
}

fn layouts() -> String {
    let mut source = String::from("#include <stddef.h>\n#include <ucp/api/ucp.h>\n");
    layout!(source, ContextParameters is "ucp_params_t" {
        field_mask is "field_mask", features is "features", request_size is "request_size",
        request_init is "request_init", request_cleanup is "request_cleanup",
        tag_sender_mask is "tag_sender_mask", mt_workers_shared is "mt_workers_shared",
        estimated_num_eps is "estimated_num_eps", estimated_num_ppn is "estimated_num_ppn",
        name is "name",
    });
    layout!(source, WorkerParameters is "ucp_worker_params_t" {
        field_mask is "field_mask", thread_mode is "thread_mode", cpu_mask is "cpu_mask",
        events is "events", user_data is "user_data", event_fd is "event_fd", flags is "flags",
        name is "name", am_alignment is "am_alignment", client_id is "client_id",
    });
    layout!(source, ErrorHandler is "ucp_err_handler_t" { callback is "cb", argument is "arg" });
    layout!(source, SocketAddress is "ucs_sock_addr_t" { address is "addr", length is "addrlen" });
    layout!(source, EndpointParameters is "ucp_ep_params_t" {
        field_mask is "field_mask", address is "address", error_mode is "err_mode",
        error_handler is "err_handler", user_data is "user_data", flags is "flags",
        sockaddr is "sockaddr", conn_request is "conn_request", name is "name",
        local_sockaddr is "local_sockaddr",
    });
    layout!(source, MemoryParameters is "ucp_mem_map_params_t" {
        field_mask is "field_mask", address is "address", length is "length", flags is "flags",
        protection is "prot", memory_type is "memory_type",
    });
    layout!(source, RequestParameters is "ucp_request_param_t" {
        attributes is "op_attr_mask", flags is "flags", request is "request", callback is "cb",
        datatype is "datatype", user_data is "user_data", reply_buffer is "reply_buffer",
        memory_type is "memory_type", receive_info is "recv_info", memory is "memh",
    });
    layout!(source, Received is "ucp_am_recv_param_t" {
        attributes is "recv_attr", reply_endpoint is "reply_ep",
    });
    layout!(source, HandlerParameters is "ucp_am_handler_param_t" {
        field_mask is "field_mask", id is "id", flags is "flags", callback is "cb",
        argument is "arg",
    });
    must_equal(&mut source, "sizeof(ucs_status_t)", size_of::<raw::Status>() as u64);
    for (name, value) in constants() {
        must_equal(&mut source, name, value);
    }
    source.push_str(FUNCTIONS);
    source
}

fn constants() -> [(&'static str, u64); 31] {
    let status = |status: raw::Status| i64::from(status) as u64;
    [
        ("UCS_OK", status(raw::OK)),
        ("UCS_INPROGRESS", status(raw::IN_PROGRESS)),
        ("(uint64_t)UCS_ERR_LAST", status(raw::LAST_ERROR)),
        ("UCP_FEATURE_RMA", raw::FEATURE_RMA),
        ("UCP_FEATURE_AMO64", raw::FEATURE_ATOMIC_64),
        ("UCP_FEATURE_WAKEUP", raw::FEATURE_WAKE_UP),
        ("UCP_FEATURE_AM", raw::FEATURE_MESSAGES),
        ("UCP_PARAM_FIELD_FEATURES", raw::CONTEXT_HAS_FEATURES),
        ("UCP_WORKER_PARAM_FIELD_THREAD_MODE", raw::WORKER_HAS_THREAD_MODE),
        ("UCS_THREAD_MODE_SERIALIZED", raw::THREADS_SERIALIZED as u64),
        ("UCP_EP_PARAM_FIELD_REMOTE_ADDRESS", raw::ENDPOINT_HAS_ADDRESS),
        ("UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE", raw::ENDPOINT_HAS_ERROR_MODE),
        ("UCP_EP_PARAM_FIELD_ERR_HANDLER", raw::ENDPOINT_HAS_ERROR_HANDLER),
        ("UCP_ERR_HANDLING_MODE_PEER", raw::ERROR_MODE_PEER as u64),
        ("UCP_MEM_MAP_PARAM_FIELD_ADDRESS", raw::MEMORY_HAS_ADDRESS),
        ("UCP_MEM_MAP_PARAM_FIELD_LENGTH", raw::MEMORY_HAS_LENGTH),
        ("UCP_OP_ATTR_FIELD_DATATYPE", raw::REQUEST_HAS_DATATYPE.into()),
        ("UCP_OP_ATTR_FIELD_FLAGS", raw::REQUEST_HAS_FLAGS.into()),
        ("UCP_OP_ATTR_FIELD_REPLY_BUFFER", raw::REQUEST_HAS_REPLY_BUFFER.into()),
        ("UCP_EP_CLOSE_FLAG_FORCE", raw::CLOSE_BY_FORCE.into()),
        ("UCP_AM_SEND_FLAG_EAGER", raw::MESSAGE_EAGER.into()),
        ("ucp_dt_make_contig(8)", raw::WORDS),
        ("UCP_AM_HANDLER_PARAM_FIELD_ID", raw::HANDLER_HAS_ID),
        ("UCP_AM_HANDLER_PARAM_FIELD_FLAGS", raw::HANDLER_HAS_FLAGS),
        ("UCP_AM_HANDLER_PARAM_FIELD_CB", raw::HANDLER_HAS_CALLBACK),
        ("UCP_AM_HANDLER_PARAM_FIELD_ARG", raw::HANDLER_HAS_ARGUMENT),
        ("UCP_AM_FLAG_WHOLE_MSG", raw::WHOLE_MESSAGES.into()),
        ("UCP_AM_RECV_ATTR_FLAG_RNDV", raw::RECEIVED_RENDEZVOUS),
        ("UCP_ATOMIC_OP_ADD", raw::ATOMIC_ADD as u64),
        ("UCP_ATOMIC_OP_CSWAP", raw::ATOMIC_COMPARE_AND_SWAP as u64),
        ("(UCP_API_VERSION >= UCP_VERSION(1, 12))", u64::from(raw::API <= (1, 12))),
    ]
}

/// The functions as `raw` declares them. A pointer to one that has another type is an error.
const FUNCTIONS: &str = "
ucs_status_t (*f01)(const char*, const char*, ucp_config_t**) = ucp_config_read;
ucs_status_t (*f02)(ucp_config_t*, const char*, const char*) = ucp_config_modify;
void (*f03)(ucp_config_t*) = ucp_config_release;
ucs_status_t (*f04)(unsigned, unsigned, const ucp_params_t*, const ucp_config_t*, ucp_context_h*)
    = ucp_init_version;
void (*f05)(ucp_context_h) = ucp_cleanup;
ucs_status_t (*f06)(ucp_context_h, const ucp_worker_params_t*, ucp_worker_h*) = ucp_worker_create;
void (*f07)(ucp_worker_h) = ucp_worker_destroy;
ucs_status_t (*f08)(ucp_worker_h, ucp_address_t**, size_t*) = ucp_worker_get_address;
void (*f09)(ucp_worker_h, ucp_address_t*) = ucp_worker_release_address;
unsigned (*f10)(ucp_worker_h) = ucp_worker_progress;
ucs_status_t (*f11)(ucp_worker_h, int*) = ucp_worker_get_efd;
ucs_status_t (*f12)(ucp_worker_h) = ucp_worker_arm;
ucs_status_t (*f13)(ucp_worker_h, const ucp_am_handler_param_t*) = ucp_worker_set_am_recv_handler;
ucs_status_t (*f14)(ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h*) = ucp_ep_create;
void *(*f15)(ucp_ep_h, const ucp_request_param_t*) = ucp_ep_close_nbx;
void *(*f16)(ucp_ep_h, const ucp_request_param_t*) = ucp_ep_flush_nbx;
ucs_status_t (*f17)(ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*) = ucp_mem_map;
ucs_status_t (*f18)(ucp_context_h, ucp_mem_h) = ucp_mem_unmap;
ucs_status_t (*f19)(ucp_context_h, ucp_mem_h, void**, size_t*) = ucp_rkey_pack;
void (*f20)(void*) = ucp_rkey_buffer_release;
ucs_status_t (*f21)(ucp_ep_h, const void*, ucp_rkey_h*) = ucp_ep_rkey_unpack;
void (*f22)(ucp_rkey_h) = ucp_rkey_destroy;
void *(*f23)(ucp_ep_h, unsigned, const void*, size_t, const void*, size_t,
    const ucp_request_param_t*) = ucp_am_send_nbx;
void *(*f24)(ucp_ep_h, const void*, size_t, uint64_t, ucp_rkey_h, const ucp_request_param_t*)
    = ucp_put_nbx;
void *(*f25)(ucp_ep_h, void*, size_t, uint64_t, ucp_rkey_h, const ucp_request_param_t*)
    = ucp_get_nbx;
void *(*f26)(ucp_ep_h, ucp_atomic_op_t, const void*, size_t, uint64_t, ucp_rkey_h,
    const ucp_request_param_t*) = ucp_atomic_op_nbx;
ucs_status_t (*f27)(void*) = ucp_request_check_status;
void (*f28)(void*) = ucp_request_free;
const char *(*f29)(ucs_status_t) = ucs_status_string;
ucp_err_handler_cb_t f30 = (void (*)(void*, ucp_ep_h, ucs_status_t))0;
ucp_am_recv_callback_t f31 = (ucs_status_t (*)(void*, const void*, size_t, void*, size_t,
    const ucp_am_recv_param_t*))0;
";

#[test]
fn declarations_fit_the_headers() {
    let mut compiler = Command::new("cc")
        .args(["-std=gnu11", "-Werror", "-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    compiler.stdin.take().unwrap().write_all(layouts().as_bytes()).unwrap();
    let compiled = compiler.wait_with_output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}
