use proptest::prelude::*;

use super::crypt::sha256_crypt;
use super::{AuthPlugin, Credentials, RsaKey, caching_sha2, native, scramble};

/// The expected hashes are those of `openssl passwd -5 -salt …`, without the prefix.
#[test]
fn sha256_crypt_agrees_with_others() {
    let check = |password: &str, salt: &str, hash: &str| {
        let made = sha256_crypt(password.as_bytes(), salt.as_bytes(), 5000);
        assert_eq!(std::str::from_utf8(&made), Ok(hash));
    };
    check("Hello world!", "abcdefghijklmnop", "WygOm0vZdIKWH9yI98DLdhsSwAIlXFRF1LLg5KLHb58");
    check("secret", "saltstring", "C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi.");
    check(&"long ".repeat(20), "0123456789abcdef", "2TnKzxQjw.WBqZXJW/fAHeRJol5BGuIW/KGuZn4r8L4");
}

#[test]
fn a_native_password_is_kept_as_mysql_keeps_it() {
    let plugin = AuthPlugin::NativePassword;
    assert_eq!(
        plugin.authentication_string(b"password"),
        "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
    );
    assert_eq!(plugin.authentication_string(b""), "");
    assert!(plugin.accepts("*2470c0c06dee42fd1618bb99005adca2ec9d1e19"));
    assert!(!plugin.accepts("2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"));
    assert!(!plugin.accepts("*2470"));
}

fn native_answer(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    use sha1::{Digest, Sha1};
    let hash = Sha1::digest(password);
    let mask = Sha1::new_with_prefix(challenge).chain_update(Sha1::digest(hash)).finalize();
    hash.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

fn sha2_answer(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(password);
    let mask = Sha256::new_with_prefix(Sha256::digest(hash)).chain_update(challenge);
    hash.iter().zip(mask.finalize()).map(|(byte, mask)| byte ^ mask).collect()
}

#[test]
fn a_native_answer_is_right_for_one_password_and_one_challenge() {
    let stored = native::authentication_string(b"secret");
    let challenge = scramble();
    let verify = |answer: &[u8]| native::verify(stored.as_bytes(), &challenge, answer);
    assert!(verify(&native_answer(b"secret", &challenge)));
    assert!(!verify(&native_answer(b"Secret", &challenge)));
    assert!(!verify(&native_answer(b"secret", &[1; 20])));
    assert!(!verify(b""));
}

#[test]
fn a_kept_sha2_password_is_recognised() {
    let stored = caching_sha2::authentication_string(b"secret");
    assert_eq!((stored.len(), &stored[..7]), (70, "$A$005$"));
    assert!(AuthPlugin::CachingSha2Password.accepts(&stored));
    assert!(caching_sha2::verify_password(stored.as_bytes(), b"secret"));
    assert!(!caching_sha2::verify_password(stored.as_bytes(), b"secret "));
    assert_ne!(stored, caching_sha2::authentication_string(b"secret"));
}

#[test]
fn the_fast_way_needs_the_digest_of_the_kept_password() {
    let (cache, challenge) = (caching_sha2::DigestCache::default(), scramble());
    cache.insert("a@%", b"stored", b"secret");
    let digest = cache.get("a@%", b"stored").unwrap();
    let verify = |answer: &[u8]| caching_sha2::verify_fast(&digest, &challenge, answer);
    assert!(verify(&sha2_answer(b"secret", &challenge)));
    assert!(!verify(&sha2_answer(b"other", &challenge)));
    assert!(!verify(b""));
    assert_eq!(cache.get("a@%", b"changed"), None);
    assert_eq!(cache.get("b@%", b"stored"), None);
}

#[test]
fn nobody_has_a_password_that_fits() {
    let nobody = Credentials::nobody();
    assert!(caching_sha2::Stored::parse(&nobody.authentication_string).is_some());
    assert!(!caching_sha2::verify_password(&nobody.authentication_string, b""));
}

#[test]
fn a_password_crosses_the_wire_encrypted() {
    use rsa::pkcs8::DecodePublicKey;
    let (key, challenge) = (RsaKey::default(), scramble());
    let public = rsa::RsaPublicKey::from_public_key_pem(key.public_pem().unwrap()).unwrap();
    let masked: Vec<_> =
        b"secret\0".iter().zip(challenge).map(|(byte, mask)| byte ^ mask).collect();
    let padding = rsa::Oaep::new::<sha1::Sha1>();
    let sent = public.encrypt(&mut rsa::rand_core::OsRng, padding, &masked).unwrap();
    assert_eq!(key.decrypt_password(&sent, &challenge).as_deref(), Some(&b"secret"[..]));
    assert_eq!(key.decrypt_password(&sent[1..], &challenge), None);
    assert_eq!(key.decrypt_password(&[], &challenge), None);
}

#[test]
fn challenges_have_no_byte_that_ends_or_separates() {
    let challenges: Vec<_> = (0..100).flat_map(|_| scramble()).collect();
    assert!(challenges.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'$'));
}

proptest! {
    #[test]
    fn any_kept_string_and_any_answer_are_checked(stored: Vec<u8>, answer: Vec<u8>) {
        prop_assert!(!native::verify(&stored, &[7; 20], &answer));
        prop_assert!(!caching_sha2::verify_password(&stored, &answer));
        prop_assert!(!caching_sha2::verify_fast(&[7; 32], &[7; 20], &answer));
    }
}
