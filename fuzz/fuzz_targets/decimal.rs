//! A stored decimal: any bytes are valid or refused; a valid one is written back unchanged.

#![no_main]

use firn_format::value::Decimal;
use firn_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let decimal_type = input.decimal_type();
    let encoded = input.take_all();
    let _ = decimal_type.unpack_i128(encoded);
    if let Ok(decimal) = Decimal::read(decimal_type, encoded) {
        assert_eq!(&*decimal.encoded(), encoded);
    }
});
