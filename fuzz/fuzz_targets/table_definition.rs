//! A table's definition: any bytes are valid or refused; a valid one is written back unchanged, and
//! lays out its rows and keys or says why not.

#![no_main]

use firn_format::definition::TableDefinition;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(definition) = TableDefinition::decode(bytes) {
        assert_eq!(definition.encode().as_deref(), Ok(bytes));
        let _ = definition.layout();
    }
});
