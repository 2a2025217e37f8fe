//! Authentication of clients: the server's side of `mysql_native_password` and
//! `caching_sha2_password`, without the network.
//!
//! The session layer stores the results of [`caching_sha2::authentication_string`] and
//! [`native::authentication_string`], and returns them in [`Credentials`].

pub mod caching_sha2;
mod crypt;
pub mod native;
mod rsa_key;

pub(crate) use rsa_key::RsaKey;

/// The length of the server's challenge.
pub(crate) const SCRAMBLE_LENGTH: usize = 20;

/// The longest password that is checked, as in MySQL.
pub(crate) const MAX_PASSWORD_BYTES: usize = 256;

/// A method of authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AuthPlugin {
    /// SHA-256 with salt, and a fast path for passwords that were verified before.
    #[default]
    CachingSha2Password,
    /// SHA-1 without salt, for old clients.
    NativePassword,
}

impl AuthPlugin {
    /// The plugin's name in the protocol and in account definitions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AuthPlugin::CachingSha2Password => "caching_sha2_password",
            AuthPlugin::NativePassword => "mysql_native_password",
        }
    }

    /// The plugin with this name, if this server has it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<AuthPlugin> {
        [AuthPlugin::CachingSha2Password, AuthPlugin::NativePassword]
            .into_iter()
            .find(|plugin| plugin.name() == name)
    }

    /// The stored string of a password; empty for an empty password.
    #[must_use]
    pub fn authentication_string(self, password: &[u8]) -> String {
        match self {
            AuthPlugin::CachingSha2Password => caching_sha2::authentication_string(password),
            AuthPlugin::NativePassword => native::authentication_string(password),
        }
    }

    /// Whether a stored string has this plugin's format.
    #[must_use]
    pub fn accepts(self, authentication_string: &str) -> bool {
        authentication_string.is_empty()
            || match self {
                AuthPlugin::CachingSha2Password => {
                    caching_sha2::Stored::parse(authentication_string.as_bytes()).is_some()
                }
                AuthPlugin::NativePassword => native::parse(authentication_string).is_some(),
            }
    }
}

/// The stored facts with which a client is authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The account's own name, such as `app@%`. It comes back in [`crate::Login::account`], and is
    /// the key under which a right password is remembered.
    pub account: String,
    /// How the account proves itself.
    pub plugin: AuthPlugin,
    /// The stored string; empty if there is no password.
    pub authentication_string: Vec<u8>,
    /// Whether the account may only come over TLS or the Unix socket.
    pub requires_secure_transport: bool,
    /// Whether there is such an account at all.
    pub(crate) exists: bool,
}

impl Credentials {
    pub fn new(
        account: impl Into<String>,
        plugin: AuthPlugin,
        authentication_string: impl Into<Vec<u8>>,
    ) -> Credentials {
        Credentials {
            account: account.into(),
            plugin,
            authentication_string: authentication_string.into(),
            requires_secure_transport: false,
            exists: true,
        }
    }

    /// Whether there is such an account.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// Credentials of a user without an account: no password matches, and the check takes as long
    /// as a real one. They look like an account of `caching_sha2_password`; a client can
    /// distinguish them from an account of `mysql_native_password`.
    #[must_use]
    pub fn nobody() -> Credentials {
        let unmatched = caching_sha2::UNMATCHED.to_vec();
        let mut credentials = Credentials::new("", AuthPlugin::default(), unmatched);
        credentials.exists = false;
        credentials
    }
}

/// Compares in a time that does not depend on where the two differ.
pub(crate) fn equal_in_constant_time(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && std::hint::black_box(left.iter().zip(right).fold(0, |all, (a, b)| all | (a ^ b))) == 0
}

/// Unpredictable bytes.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    use rsa::rand_core::RngCore;
    let mut bytes = [0; N];
    rsa::rand_core::OsRng.fill_bytes(&mut bytes);
    bytes
}

/// A random challenge of printable characters: clients take no byte of it for the end of a string.
pub(crate) fn scramble() -> [u8; SCRAMBLE_LENGTH] {
    random_bytes().map(printable)
}

/// One of the 94 printable characters without `$`, which separates the parts of a stored password.
fn printable(byte: u8) -> u8 {
    match b'!' + byte % 93 {
        b'$' => b'~',
        other => other,
    }
}

#[cfg(test)]
mod tests;
