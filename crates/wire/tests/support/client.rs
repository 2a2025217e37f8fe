//! A client that knows packets, and little of what is in them.

#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use firn_wire::Capabilities;

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) id: u32,
    pub(crate) scramble: Vec<u8>,
    pub(crate) capabilities: Capabilities,
    pub(crate) sequence: u8,
    /// What was said, if it is kept.
    transcript: Option<String>,
}

impl Client {
    /// Connects and takes the greeting.
    pub(crate) fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Client {
            stream,
            id: 0,
            scramble: Vec::new(),
            capabilities: Capabilities::PROTOCOL_41
                | Capabilities::SECURE_CONNECTION
                | Capabilities::PLUGIN_AUTH
                | Capabilities::DEPRECATE_EOF
                | Capabilities::SESSION_TRACK
                | Capabilities::LOCAL_FILES
                | Capabilities::MULTI_RESULTS,
            sequence: 0,
            transcript: None,
        };
        let greeting = client.read();
        if greeting[0] != 0xff {
            let version = greeting.iter().position(|&byte| byte == 0).unwrap();
            let rest = &greeting[version + 1..];
            client.id = u32::from_le_bytes(rest[..4].try_into().unwrap());
            client.scramble = [&rest[4..12], &rest[31..43]].concat();
        }
        client
    }

    /// A handshake response of `root`, who has no password.
    pub(crate) fn response(&self, user: &str, answer: &[u8], plugin: &str) -> Vec<u8> {
        let mut response = self.capabilities.bits().to_le_bytes().to_vec();
        response.extend_from_slice(&(1u32 << 30).to_le_bytes());
        response.push(255);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(user.as_bytes());
        response.push(0);
        response.push(answer.len() as u8);
        response.extend_from_slice(answer);
        response.extend_from_slice(plugin.as_bytes());
        response.push(0);
        response
    }

    pub(crate) fn log_in(&mut self) {
        let response = self.response("root", b"", "caching_sha2_password");
        self.write(&response);
        assert_eq!(self.read()[0], 0, "logged in");
    }

    /// From now on everything is written down.
    pub(crate) fn record(&mut self) {
        self.transcript = Some(String::new());
    }

    pub(crate) fn take_transcript(&mut self) -> String {
        self.transcript.take().unwrap_or_default()
    }

    /// Begins a command: its packet is number 0.
    pub(crate) fn command(&mut self, code: u8, rest: &[u8]) {
        self.sequence = 0;
        let payload = [&[code], rest].concat();
        self.write(&payload);
    }

    pub(crate) fn query(&mut self, text: &str) {
        self.command(3, text.as_bytes());
    }

    pub(crate) fn write(&mut self, payload: &[u8]) {
        self.note("client", payload);
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&[&packet, payload].concat()).unwrap();
    }

    pub(crate) fn try_read(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        let [a, b, c, sequence] = header;
        assert_eq!(sequence, self.sequence, "packets in order");
        self.sequence = sequence.wrapping_add(1);
        let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.stream.read_exact(&mut payload)?;
        self.note("server", &payload);
        Ok(payload)
    }

    #[track_caller]
    pub(crate) fn read(&mut self) -> Vec<u8> {
        self.try_read().unwrap()
    }

    /// Reads packets until one that ends a result: OK, ERR, or OK in place of EOF.
    pub(crate) fn read_result(&mut self) -> Vec<Vec<u8>> {
        let mut packets = vec![self.read()];
        if matches!(packets[0][0], 0 | 0xff) {
            return packets;
        }
        loop {
            let packet = self.read();
            let ends = packet[0] == 0xff || packet[0] == 0xfe && packet.len() < 0xff_ffff;
            packets.push(packet);
            if ends {
                return packets;
            }
        }
    }

    /// The code of the error that comes next.
    #[track_caller]
    pub(crate) fn read_error(&mut self) -> u16 {
        let packet = self.read();
        assert_eq!(packet[0], 0xff, "an error: {packet:?}");
        u16::from_le_bytes([packet[1], packet[2]])
    }

    /// Whether the server has closed the connection, or does within a moment.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0; 64]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    fn note(&mut self, who: &str, payload: &[u8]) {
        let sequence = self.sequence;
        let Some(transcript) = &mut self.transcript else { return };
        let number = if who == "server" { sequence.wrapping_sub(1) } else { sequence };
        let _ = writeln!(transcript, "{who} {number}:");
        for line in payload.chunks(16) {
            let numbers: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
            let shown = |&byte: &u8| {
                if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' }
            };
            let characters: String = line.iter().map(shown).collect();
            let _ = writeln!(transcript, "{}", format!("  {numbers:48}|{characters}").trim_end());
        }
    }
}
