//! The server's RSA key. Clients without TLS encrypt a password with it for full
//! `caching_sha2_password`. It is made at the first request, because that takes a while.

use std::sync::OnceLock;

use rsa::pkcs8::{EncodePublicKey, LineEnding};
use rsa::rand_core::OsRng;
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;

use super::{MAX_PASSWORD_BYTES, SCRAMBLE_LENGTH};

const KEY_BITS: usize = 2048;

/// The key. It is made when it is first needed.
#[derive(Default)]
pub(crate) struct RsaKey {
    pair: OnceLock<Option<(RsaPrivateKey, String)>>,
}

impl RsaKey {
    fn pair(&self) -> Option<&(RsaPrivateKey, String)> {
        self.pair
            .get_or_init(|| {
                let key = RsaPrivateKey::new(&mut OsRng, KEY_BITS).ok()?;
                let pem = key.to_public_key().to_public_key_pem(LineEnding::LF).ok()?;
                Some((key, pem))
            })
            .as_ref()
    }

    /// The public key in PEM.
    pub(crate) fn public_pem(&self) -> Option<&str> {
        self.pair().map(|(_, pem)| pem.as_str())
    }

    /// The password that a client has masked with the challenge and encrypted.
    pub(crate) fn decrypt_password(
        &self,
        encrypted: &[u8],
        challenge: &[u8; SCRAMBLE_LENGTH],
    ) -> Option<Vec<u8>> {
        let (key, _) = self.pair()?;
        let masked = key.decrypt_blinded(&mut OsRng, Oaep::new::<Sha1>(), encrypted).ok()?;
        let mut password: Vec<u8> =
            masked.iter().zip(challenge.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        (password.pop() == Some(0) && password.len() <= MAX_PASSWORD_BYTES).then_some(password)
    }
}
