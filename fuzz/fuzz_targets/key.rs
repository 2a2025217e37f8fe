//! A key under any layout: any bytes are a key or refused, and a key has the same length whether it
//! is measured or read.

#![no_main]

use firn_format::key::{BinaryCollation, KeyLayout, KeyPart, SecondaryLayout};
use firn_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let parts: Vec<KeyPart> = (0..input.u8() % 5).map(|number| part(number, &mut input)).collect();
    let Ok(layout) = KeyLayout::new(parts) else { return };
    let secondary = SecondaryLayout::new(layout.clone(), input.flag(), &layout);
    let length = usize::from(input.u8());
    let (value, key) = (input.take(length), input.take_all());
    let _ = secondary.primary_key(key, value);
    let measured = layout.parts_length(key, layout.parts().len());
    if layout.decode(key, &BinaryCollation).is_ok() {
        let measured = measured.expect("a key that can be read has a length");
        assert!(measured <= key.len());
        assert!(layout.decode(&key[..measured], &BinaryCollation).is_ok());
    }
});

fn part(column: u8, input: &mut Input<'_>) -> KeyPart {
    let column_type = input.column_type();
    let choices = input.u8();
    let part = KeyPart::ascending(u16::from(column), column_type, choices & 1 != 0);
    let part = if choices & 2 != 0 { part.descending() } else { part };
    if choices & 4 != 0 { part.prefix(u32::from(choices >> 3)) } else { part }
}
