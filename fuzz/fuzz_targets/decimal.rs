//! A stored decimal: any bytes are valid or refused; a valid one is the same number once it is
//! written back.

#![no_main]

use firn_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let decimal_type = input.decimal_type();
    let encoded = input.take_all();
    let _ = decimal_type.unpack_i128(encoded);
    let mut digits = vec![0; usize::from(decimal_type.precision())];
    if let Ok(negative) = decimal_type.unpack_digits(encoded, &mut digits) {
        let mut again = vec![0; encoded.len()];
        decimal_type.pack_digits(negative, &digits, &mut again).expect("digits that were read");
        let mut same = digits.clone();
        assert_eq!(decimal_type.unpack_digits(&again, &mut same), Ok(negative));
        assert_eq!(same, digits);
    }
});
