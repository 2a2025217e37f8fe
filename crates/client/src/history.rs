//! Which statements the history file keeps: those without passwords.

use super::words;

/// Words after which a statement may hold a secret.
const SECRET: [&str; 5] =
    ["IDENTIFIED", "PASSWORD", "MASTER_PASSWORD", "SOURCE_PASSWORD", "SECRET"];
/// Functions that take keys.
const KEYED: [&str; 4] = ["AES_ENCRYPT", "AES_DECRYPT", "SHA2", "MD5"];

/// Whether a statement may hold a password or a key.
pub(crate) fn has_secret(text: &str) -> bool {
    words::words(text).any(|word| {
        let is = |known: &&str| known.eq_ignore_ascii_case(word);
        SECRET.iter().chain(&KEYED).any(is)
    })
}

#[cfg(test)]
mod tests {
    use super::has_secret;

    #[test]
    fn passwords_are_seen() {
        for text in [
            "ALTER USER root@localhost IDENTIFIED BY 'x'",
            "create user a identified with caching_sha2_password by 'x'",
            "SET PASSWORD = 'x'",
            "SELECT AES_ENCRYPT('a', 'key')",
        ] {
            assert!(has_secret(text), "{text}");
        }
        for text in ["SELECT 'password'", "SELECT 1", "SELECT passwords FROM t"] {
            assert!(!has_secret(text), "{text}");
        }
    }
}
