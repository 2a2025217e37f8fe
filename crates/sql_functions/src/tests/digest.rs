use super::harness::check;

#[test]
fn digests() {
    check(
        "
        MD5('testing') → ae2b1fca515949e5d54fb22b8ed95575
        SHA1('abc') → a9993e364706816aba3e25717850c26c9cd0d89d
        SHA2('abc', 224) → 23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7
        SHA2('abc', 0) → ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
        SHA2('abc', 17) → NULL ~1583
        CRC32('MySQL') → 3259397556
        CRC32('mysql') → 2501908538
        LENGTH(COMPRESS('')) → 0
        UNCOMPRESS(COMPRESS('any string')) → any string
        UNCOMPRESS('any string') → NULL ~1256
        UNCOMPRESS(x'05000000789c') → NULL ~1259
        UNCOMPRESSED_LENGTH(COMPRESS(REPEAT('a',30))) → 30
        UNCOMPRESSED_LENGTH('a') → 0 ~1259
        AES_DECRYPT(AES_ENCRYPT('text', 'password'), 'password') → text
        LEFT(HEX(AES_ENCRYPT(x'00112233445566778899aabbccddeeff', x'000102030405060708090a0b0c0d0e0f')), 32) → 69C4E0D86A7B0430D8CDB78070B4C55A
        AES_DECRYPT('text', 'password') → NULL
        AES_ENCRYPT(NULL, 'password') → NULL
        LENGTH(RANDOM_BYTES(16)) → 16
        RANDOM_BYTES(0) → !1690
        ",
    );
}

#[test]
fn addresses() {
    check(
        "
        INET_ATON('10.0.5.9') → 167773449
        INET_ATON('127.1') → 2130706433
        INET_ATON('1.2.3.4.5') → NULL ~1411
        INET_ATON('256.0.0.1') → NULL ~1411
        INET_NTOA(167773449) → 10.0.5.9
        INET_NTOA(-1) → NULL ~1411
        HEX(INET6_ATON('fdfe::5a55:caff:fefa:9089')) → FDFE0000000000005A55CAFFFEFA9089
        HEX(INET6_ATON('10.0.5.9')) → 0A000509
        INET6_ATON('nonsense') → NULL ~1411
        INET6_NTOA(INET6_ATON('fdfe::5a55:caff:fefa:9089')) → fdfe::5a55:caff:fefa:9089
        INET6_NTOA(INET6_ATON('10.0.5.9')) → 10.0.5.9
        INET6_NTOA(INET6_ATON('::ffff:198.51.100.1')) → ::ffff:198.51.100.1
        INET6_NTOA('text') → NULL ~1411
        IS_IPV4('10.0.5.9') → 1
        IS_IPV4('10.0.5.256') → 0
        IS_IPV4(NULL) → NULL
        IS_IPV6('::1') → 1
        IS_IPV4_COMPAT(INET6_ATON('::10.0.5.9')) → 1
        IS_IPV4_COMPAT(INET6_ATON('::1')) → 0
        IS_IPV4_MAPPED(INET6_ATON('::ffff:10.0.5.9')) → 1
        ",
    );
}

#[test]
fn identifiers() {
    check(
        "
        IS_UUID('6ccd780c-baba-1026-9564-5b8c656024db') → 1
        IS_UUID('{6ccd780c-baba-1026-9564-5b8c656024db}') → 1
        IS_UUID('6CCD780CBABA102695645B8C656024DB') → 1
        IS_UUID('6ccd780c-baba-1026-9564-5b8c6560') → 0
        IS_UUID('urn:uuid:6ccd780c-baba-1026-9564-5b8c656024db') → 0
        IS_UUID(NULL) → NULL
        HEX(UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db')) → 6CCD780CBABA102695645B8C656024DB
        HEX(UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db', 1)) → 1026BABA6CCD780C95645B8C656024DB
        BIN_TO_UUID(UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db', 1), 1) → 6ccd780c-baba-1026-9564-5b8c656024db
        UUID_TO_BIN('x') → !1411
        BIN_TO_UUID(x'00') → !1411
        IS_UUID(UUID()) → 1
        UUID_TO_BIN(NULL) → NULL
        ",
    );
}

#[test]
fn the_session() {
    check(
        "
        CONNECTION_ID() → 0
        DATABASE() → NULL
        SCHEMA() → NULL
        CURRENT_ROLE() → NONE
        LAST_INSERT_ID(5) → 5
        LAST_INSERT_ID(NULL) → NULL
        ROW_COUNT() → -1
        SLEEP(0) → 0
        SLEEP(-1) → 0 ~1210
        SLEEP(NULL) → 0 ~1210
        GET_LOCK('a', 1) → 1
        GET_LOCK('', 1) → !3057
        GET_LOCK(NULL, 1) → !3057
        IS_FREE_LOCK('a') → 1
        RELEASE_LOCK('a') → NULL
        BENCHMARK(10, 1) → 0
        BENCHMARK(-1, 1) → NULL
        NAME_CONST('x', 14) → 14
        ANY_VALUE(3) → 3
        ",
    );
}
