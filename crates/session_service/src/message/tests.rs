use super::*;

fn login() -> LoginFacts {
    LoginFacts {
        connection: 7,
        peer: None,
        user: "u".to_owned(),
        account: "u@%".to_owned(),
        schema: Some("s".to_owned()),
        collation: 255,
        capabilities: 3,
        attributes: vec![("a".to_owned(), "b".to_owned())],
        tls: None,
    }
}

#[test]
fn requests_have_these_bytes() {
    let last = Last { last_insert_id: 1, insert_id: 2, row_count: -1, found_rows: 300, written: 4 };
    let attribute = NamedValue { name: Bytes(b"n".to_vec()), value: Value::Int(-1) };
    let query = Command::Query { multi_statements: true, attributes: vec![attribute] };
    let cases: [(Ask, &[u8]); 10] = [
        (Ask::Attach { front: 300 }, &[5, 0, 0xac, 2]),
        (
            Ask::Credentials { user: "u".to_owned(), host: "h".to_owned() },
            &[5, 1, 1, b'u', 1, b'h'],
        ),
        (
            Ask::Attempted { user: "u".to_owned(), host: "h".to_owned(), proved: true },
            &[5, 2, 1, b'u', 1, b'h', 1],
        ),
        (
            Ask::Open {
                front: 5,
                login: login(),
                resumed: Some(Resumed { has_document: true, last, has_left: true }),
            },
            &[
                5, 3, 5, 7, 0, 1, b'u', 3, b'u', b'@', b'%', 1, 1, b's', 0xff, 1, 3, 1, 1, b'a', 1,
                b'b', 0, 1, 1, 1, 2, 1, 0xac, 2, 4, 1,
            ],
        ),
        (Ask::Part { front: 5, session: 7 }, &[5, 4, 5, 7]),
        (
            Ask::Run {
                front: 5,
                session: 7,
                number: 9,
                closes: vec![2],
                last: Some(last),
                command: query,
            },
            &[5, 5, 5, 7, 9, 1, 2, 1, 1, 2, 1, 0xac, 2, 4, 0, 1, 1, 1, b'n', 1, 1],
        ),
        (Ask::Content { front: 5, session: 7, is_end: true }, &[5, 6, 5, 7, 1]),
        (
            Ask::Cancel { front: 5, session: 7, number: 9, reason: Reason::Disconnected },
            &[5, 7, 5, 7, 9, 2],
        ),
        (Ask::Close { front: 5, sessions: vec![7, 8] }, &[5, 8, 5, 2, 7, 8]),
        (Ask::Committed { front: 5, session: 7, number: 300 }, &[5, 9, 5, 7, 0xac, 2]),
    ];
    for (ask, bytes) in cases {
        assert_eq!(encode(&ask), bytes, "{ask:?}");
        let followed = [bytes, b"rest"].concat();
        let (read, rest) = decode::<Ask>(&Payload::from(followed)).unwrap();
        assert_eq!((read, &rest[..]), (ask, &b"rest"[..]));
    }
}

#[test]
fn loopback_of_another_machine_is_not_this_one() {
    let (near, far) = ("127.0.0.1:7000".parse().unwrap(), "10.0.0.9:7000".parse().unwrap());
    let asked = |host: &str, front| {
        let mut ask = Ask::Credentials { user: "root".to_owned(), host: host.to_owned() };
        ask.see_from(front);
        let Ask::Credentials { host, .. } = ask else { unreachable!() };
        host
    };
    assert_eq!(asked("localhost", near), "localhost");
    assert_eq!(asked("localhost", far), "10.0.0.9");
    assert_eq!(asked("::1", far), "10.0.0.9");
    assert_eq!(asked("10.0.0.7", far), "10.0.0.7");
    let opened = |peer, front| {
        let login = LoginFacts { peer, ..login() };
        let mut ask = Ask::Open { front: 1, login, resumed: None };
        ask.see_from(front);
        let Ask::Open { login, .. } = ask else { unreachable!() };
        login.peer
    };
    let other: SocketAddr = "10.0.0.7:9".parse().unwrap();
    assert_eq!(opened(None, near), None);
    assert_eq!(opened(None, far), Some(far));
    assert_eq!(opened(Some("127.0.0.1:9".parse().unwrap()), far), Some(far));
    assert_eq!(opened(Some(other), far), Some(other));
}

#[test]
fn commands_have_these_bytes() {
    let execute = Command::Execute { statement: 2, wants_cursor: true, attributes: Vec::new() };
    let (table, pattern) = (Bytes(b"t".to_vec()), Bytes(Vec::new()));
    let cases: [(Command, &[u8]); 9] = [
        (Command::Prepare { statement: 2 }, &[5, 1, 2]),
        (execute, &[5, 2, 2, 1, 0]),
        (Command::InitDb, &[5, 3]),
        (Command::Reset, &[5, 4]),
        (Command::Statistics, &[5, 5]),
        (Command::Kill { connection: 3 }, &[5, 6, 3]),
        (Command::FieldList { table, pattern }, &[5, 7, 1, b't', 0]),
        (Command::Describe, &[5, 8]),
        (Command::TakeUp, &[5, 9]),
    ];
    for (command, bytes) in cases {
        assert_eq!(encode(&command), bytes, "{command:?}");
        let (read, _) = decode::<Command>(&Payload::from(bytes.to_vec())).unwrap();
        assert_eq!(read, command);
    }
}

#[test]
fn values_have_these_bytes() {
    let bytes = |text: &[u8]| Bytes(text.to_vec());
    let cases: [(Value, &[u8]); 11] = [
        (Value::Null, &[5, 0]),
        (Value::Int(-1), &[5, 1, 1]),
        (Value::UInt(300), &[5, 2, 0xac, 2]),
        (Value::Float(1.0), &[5, 3, 0, 0, 0x80, 0x3f]),
        (Value::Double(1.0), &[5, 4, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
        (Value::Decimal(bytes(b"1.5")), &[5, 5, 3, b'1', b'.', b'5']),
        (Value::Text(bytes(b"a")), &[5, 6, 1, b'a']),
        (Value::Bytes(bytes(&[0xff])), &[5, 7, 1, 0xff]),
        (Value::Date(2026, 11, 26), &[5, 8, 0xea, 0x0f, 11, 26]),
        (Value::DateTime(2026, 1, 2, 3, 4, 5, 6), &[5, 9, 0xea, 0x0f, 1, 2, 3, 4, 5, 6]),
        (Value::Time(true, 1, 2, 3, 4), &[5, 10, 1, 1, 2, 3, 4]),
    ];
    for (value, bytes) in cases {
        assert_eq!(encode(&value), bytes, "{value:?}");
        let (read, _) = decode::<Value>(&Payload::from(bytes.to_vec())).unwrap();
        assert_eq!(read, value);
        assert_eq!(Value::from(&read.parameter()), value, "as a parameter and back");
    }
}

#[test]
fn answers_have_these_bytes() {
    let fault = || Fault { code: 300, sqlstate: *b"42000", message: "m".to_owned() };
    let field = Field {
        names: ["s", "t", "o", "n", "c"].map(str::to_owned),
        collation: 63,
        length_bytes: 11,
        column_type: 3,
        flags: 1,
        decimals: 0,
        default: None,
    };
    let outcomes: [(Outcome, &[u8]); 10] = [
        (Outcome::Answered, &[5, 0]),
        (Outcome::Cursor { status: 2, warnings: 1 }, &[5, 1, 2, 1]),
        (
            Outcome::Prepared { parameters: Bytes(vec![9]), columns: Bytes(vec![8]), warnings: 1 },
            &[5, 2, 1, 9, 1, 8, 1],
        ),
        (
            Outcome::Fields(vec![field]),
            &[5, 3, 1, 1, b's', 1, b't', 1, b'o', 1, b'n', 1, b'c', 63, 11, 3, 1, 0, 0],
        ),
        (Outcome::Line("l".to_owned()), &[5, 4, 1, b'l']),
        (Outcome::Refused(fault()), &[5, 5, 0xac, 2, b'4', b'2', b'0', b'0', b'0', 1, b'm']),
        (Outcome::Fatal(fault()), &[5, 6, 0xac, 2, b'4', b'2', b'0', b'0', b'0', 1, b'm']),
        (Outcome::Lost, &[5, 7]),
        (Outcome::Described(None), &[5, 8, 0]),
        (Outcome::Described(Some(Bytes(b"d".to_vec()))), &[5, 8, 1, 1, b'd']),
    ];
    for (outcome, bytes) in outcomes {
        assert_eq!(encode(&outcome), bytes, "{outcome:?}");
        let (read, _) = decode::<Outcome>(&Payload::from(bytes.to_vec())).unwrap();
        assert_eq!(read, outcome);
    }
    let done = Done {
        outcome: Outcome::Answered,
        status: 2,
        last: Last::default(),
        document: Some(Bytes(b"{}".to_vec())),
        is_bound: true,
        reads_at_home: false,
        ends: false,
        wait_timeout_ms: 300,
    };
    let bytes = [5, 0, 2, 0, 0, 0, 0, 0, 1, 2, b'{', b'}', 1, 0, 0, 0xac, 2];
    assert_eq!(encode(&done), bytes);
    assert_eq!(encode(&Event::Welcome), [5, 0]);
    assert_eq!(encode(&Event::Killed { session: 7 }), [5, 1, 7]);
    assert_eq!(encode(&Event::Leaving), [5, 2]);
    assert_eq!(encode(&Event::Interrupted { session: 7 }), [5, 3, 7]);
    let described = Event::Described { session: 7, transaction: Bytes(b"d".to_vec()) };
    assert_eq!(encode(&described), [5, 4, 7, 1, b'd']);
    let info = "i".to_owned();
    let committed = Fate::Committed { affected_rows: 1, found_rows: 2, last_insert_id: 300, info };
    assert_eq!(encode(&Fate::NotCommitted), [5, 0]);
    assert_eq!(encode(&committed), [5, 1, 1, 2, 0xac, 2, 1, b'i']);
    let refused = [5, 2, 0xac, 2, b'4', b'2', b'0', b'0', b'0', 1, b'm'];
    assert_eq!(encode(&Fate::Refused(fault())), refused);
    let account = Found::Account {
        account: "a".to_owned(),
        plugin: "p".to_owned(),
        authentication: Bytes(vec![9]),
        requires_secure_transport: true,
    };
    assert_eq!(encode(&Found::Nobody), [5, 0]);
    assert_eq!(encode(&account), [5, 1, 1, b'a', 1, b'p', 1, 9, 1]);
}

#[test]
fn other_bytes_are_refused() {
    let ask = Ask::Cancel { front: 5, session: 7, number: 9, reason: Reason::Disconnected };
    let bytes = encode(&ask);
    for length in 0..bytes.len() {
        assert!(decode::<Ask>(&Payload::from(bytes[..length].to_vec())).is_err());
    }
    let other = [&[2], &bytes[1..]].concat();
    assert!(decode::<Ask>(&Payload::from(other)).is_err());
}
