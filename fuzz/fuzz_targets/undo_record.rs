//! An undo record: any bytes are a record or refused, a record is written back unchanged, and the
//! old payload is restored from any new one or refused.

#![no_main]

use firn_format::undo::{UndoOperation, UndoRecord};
use firn_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let length = usize::from(input.u8());
    let new_payload = input.take(length);
    let body = input.take_all();
    // The length is the only field that no mutation gets right by chance.
    let mut framed = (body.len() as u16 + 2).to_le_bytes().to_vec();
    framed.extend_from_slice(&body[..body.len().min(usize::from(u16::MAX) - 2)]);
    for bytes in [body, &framed[..]] {
        check_record(bytes, new_payload);
    }
});

fn check_record(bytes: &[u8], new_payload: &[u8]) {
    let Ok(record) = UndoRecord::parse(bytes) else { return };
    let mut written = Vec::new();
    record.encode(&mut written);
    assert_eq!(written, bytes);
    if let UndoOperation::Update { payload, .. } = record.operation {
        let _ = payload.restore(new_payload, &mut Vec::new());
    }
}
