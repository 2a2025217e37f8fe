//! Settings of a server, and the limits that can change while it runs.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::network::Address;

use crate::channel::TlsMode;

/// Settings of a server that stay as they are while it runs.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to listen: any number of addresses.
    pub listen: Vec<Address>,
    /// Version in the greeting. MySQL clients parse its beginning, such as `8.4.0-firn`.
    pub server_version: String,
    /// The collation that the greeting names; 255 is `utf8mb4_0900_ai_ci`.
    pub collation: u8,
    pub tls: TlsMode,
    /// Whether TCP connections without TLS are refused.
    pub require_secure_transport: bool,
    /// The numbers of connections: `CONNECTION_ID()`. 0 is none.
    pub connection_ids: RangeInclusive<u32>,
    /// The limits, which can change while the server runs.
    pub limits: Arc<Limits>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: Vec::new(),
            server_version: "8.4.0-firn".to_owned(),
            collation: 255,
            tls: TlsMode::default(),
            require_secure_transport: false,
            connection_ids: 1..=u32::MAX,
            limits: Arc::new(Limits::new(&LimitValues::default())),
        }
    }
}

macro_rules! limits {
    ($($(#[$docs:meta])* $name:ident, $set:ident: $kind:ty = $default:expr, $store:expr, $load:expr;)*) => {
        /// Values of [`Limits`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct LimitValues {
            $($(#[$docs])* pub $name: $kind,)*
        }

        impl Default for LimitValues {
            fn default() -> LimitValues {
                LimitValues { $($name: $default,)* }
            }
        }

        /// Limits of a server. They can change at any time (`SET GLOBAL`); each takes effect at its
        /// next use, mostly for new connections.
        #[derive(Debug)]
        pub struct Limits {
            $($name: AtomicU64,)*
        }

        impl Limits {
            /// Limits with the given values.
            #[must_use]
            pub fn new(values: &LimitValues) -> Limits {
                Limits { $($name: AtomicU64::new(($store)(values.$name)),)* }
            }

            $(
                $(#[$docs])*
                #[must_use]
                pub fn $name(&self) -> $kind {
                    ($load)(self.$name.load(Ordering::Relaxed))
                }

                /// Changes the limit of that name.
                pub fn $set(&self, value: $kind) {
                    self.$name.store(($store)(value), Ordering::Relaxed);
                }
            )*
        }
    };
}

fn to_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

limits! {
    /// How many clients can be connected; the next one gets error 1040.
    max_connections, set_max_connections: u64 = 151, |value| value, |value| value;
    /// How many clients can be logging in at once. When one more connects, the one that has been
    /// logging in for longest is disconnected: clients that connect and send nothing cannot lock
    /// others out.
    max_pending_logins, set_max_pending_logins: u64 = 1000, |value| value, |value| value;
    /// How long a client may take from its connection to its login.
    connect_timeout, set_connect_timeout: Duration = Duration::from_secs(10), to_ms, Duration::from_millis;
    /// The longest command that is accepted, in bytes.
    max_allowed_packet, set_max_allowed_packet: u64 = 64 << 20, |value| value, |value| value;
    /// Longest time without progress of an incoming command.
    net_read_timeout, set_net_read_timeout: Duration = Duration::from_secs(30), to_ms, Duration::from_millis;
    /// Longest time without progress of an outgoing reply.
    net_write_timeout, set_net_write_timeout: Duration = Duration::from_secs(60), to_ms, Duration::from_millis;
    /// After how long without a command a connection is closed.
    wait_timeout, set_wait_timeout: Duration = Duration::from_secs(28_800), to_ms, Duration::from_millis;
    /// The `wait_timeout` of clients that announce that a person types.
    interactive_timeout, set_interactive_timeout: Duration = Duration::from_secs(28_800), to_ms, Duration::from_millis;
    /// How many prepared statements all connections together can have open.
    max_prepared_stmt_count, set_max_prepared_stmt_count: u64 = 16_382, |value| value, |value| value;
}
