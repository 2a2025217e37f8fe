//! The bytes of items, and what is refused.

use super::*;

/// The golden bytes of `docs/formats/link.md`.
#[test]
fn items_have_these_bytes() {
    #[rustfmt::skip]
    let golden: &[&[u8]] = &[
        &[1, 0],                          // kind: call; zero
        &[0x02, 0x01],                    // service
        &[3, 0, 0, 0],                    // length of the payload
        &[9, 0, 0, 0, 0, 0, 0, 0],        // number
        &[0x40, 0x42, 0x0f, 0, 0, 0, 0, 0], // microseconds left
        b"get",                           // payload
        &[5, 0],                          // kind: refused; zero
        &[2, 0],                          // code
        &[2, 0, 0, 0],                    // length of the payload
        &[8, 0, 0, 0, 0, 0, 0, 0],        // number
        &[0, 0, 0, 0, 0, 0, 0, 0],        // zero
        b"no",                            // payload
        &[8, 0],                          // kind: credit; zero
        &[0, 0],                          // zero
        &[0, 0, 0, 0],                    // zero
        &[0, 0, 0, 0, 0, 0, 0, 0],        // number: requests
        &[0, 1, 0, 0, 0, 0, 0, 0],        // bytes
        &[11, 0],                         // kind: exchange; zero
        &[0x02, 0x01],                    // service
        &[3, 0, 0, 0],                    // length of the payload
        &[1, 0, 0, 0, 0, 0, 0, 0],        // number
        &[0, 0, 8, 0, 0, 0, 0, 0],        // window for pushes
        b"run",                           // payload
    ];
    let golden = golden.concat();
    check_any_bytes(&golden);
    let items: Vec<_> = Items::of(golden).map(Result::unwrap).collect();
    let call = Kind::Call { number: 9, service: ServiceId(0x102), time_left: 1_000_000 };
    assert_eq!((items[0].kind, &items[0].payload[..]), (call, &b"get"[..]));
    let refused = Kind::Refused { number: 8, code: 2 };
    assert_eq!((items[1].kind, &items[1].payload[..]), (refused, &b"no"[..]));
    assert_eq!(items[2].kind, Kind::Credit { number: 0, bytes: 256 });
    let exchange = Kind::Exchange { number: 1, service: ServiceId(0x102), window: 512 << 10 };
    assert_eq!((items[3].kind, &items[3].payload[..]), (exchange, &b"run"[..]));
    assert_eq!(items.len(), 4);
}

fn every_kind() -> Vec<Kind> {
    let (number, service) = (7, ServiceId(3));
    vec![
        Kind::Call { number, service, time_left: 5 },
        Kind::Cast { number, service },
        Kind::Follow { number, service, window: 5 },
        Kind::Exchange { number, service, window: 5 },
        Kind::Reply { number },
        Kind::Refused { number, code: 4 },
        Kind::Push { number },
        Kind::Cancel { number },
        Kind::Credit { number, bytes: 5 },
        Kind::Ping,
        Kind::Pong,
    ]
}

#[test]
fn every_kind_is_read_as_it_is_written() {
    for kind in every_kind() {
        let header = kind.header(&Body::default());
        assert_eq!(Kind::decode(&header), Ok((kind, 0)));
        for at in 0..header.len() * 8 {
            let mut damaged = header;
            damaged[at / 8] ^= 1 << (at % 8);
            check_any_bytes(&damaged);
        }
        assert!(Items::of(header[..23].to_vec()).next().unwrap().is_err());
    }
    let with_payload = Kind::Ping.header(&Body::from(&b"x"[..]));
    assert!(Items::of([&with_payload[..], b"x"].concat()).next().unwrap().is_err());
}

#[test]
fn payloads_share_the_memory_of_their_message() {
    let header = Kind::Reply { number: 1 }.header(&Body::from(&b"abc"[..]));
    let message = [&header[..], b"abc"].concat();
    let memory = message.as_ptr_range();
    let item = Items::of(message).next().unwrap().unwrap();
    assert!(memory.contains(&item.payload.as_ptr()));
    assert_eq!(item.payload.part(1..3).into_vec(), b"bc");
}
