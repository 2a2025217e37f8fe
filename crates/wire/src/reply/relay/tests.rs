use std::io::Read;
use std::sync::Arc;

use firn_base::clock::SystemClock;
use parking_lot::Mutex;

use super::*;
use crate::reply::{ColumnDefinition, Completion, EncodedColumns, ReplyRecorder};
use crate::value::ColumnType;

/// Keeps what is written, and brings a file.
#[derive(Clone, Default)]
struct Kept {
    written: Arc<Mutex<Vec<u8>>>,
    file: Arc<Mutex<Vec<u8>>>,
}

impl RelayStream for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Cut where no packet ends.
        let taken = bytes.len().min(7);
        self.written.lock().extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock();
        let taken = file.len().min(3).min(buffer.len());
        buffer[..taken].copy_from_slice(&file[..taken]);
        file.drain(..taken);
        Ok(taken)
    }
}

const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::DEPRECATE_EOF)
    .union(Capabilities::LOCAL_FILES)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS);

fn channel() -> RelayChannel {
    RelayChannel::new(&Arc::default(), CAPABILITIES, Arc::new(SystemClock))
}

fn rows(replies: &mut Replies<'_>, count: u64, text: &[u8]) -> Result<(), WireError> {
    let columns = [
        ColumnDefinition::new("a", ColumnType::LongLong),
        ColumnDefinition::new("b", ColumnType::VarString),
    ];
    let mut set = replies.columns(&columns)?;
    for number in 0..count {
        let mut row = set.row()?;
        row.uint(number);
        row.bytes(text);
        row.end();
    }
    set.finish(&Completion::default())
}

/// What a client gets directly.
fn direct(answer: impl FnOnce(&mut Replies<'_>) -> Result<(), WireError>) -> Vec<u8> {
    let mut recorder = ReplyRecorder::new(RowFormat::Text).with_capabilities(CAPABILITIES);
    answer(&mut recorder.replies()).unwrap();
    recorder.take()
}

/// What a client gets of relayed bytes that come in pieces of that length.
fn relayed(bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut recorder = ReplyRecorder::new(RowFormat::Text).with_capabilities(CAPABILITIES);
    let mut replies = recorder.replies();
    for piece in bytes.chunks(piece) {
        replies.relay(piece).unwrap();
    }
    replies.end_relay(None);
    assert!(replies.is_answered());
    recorder.take()
}

fn sent(answer: impl FnOnce(&mut Replies<'_>) -> Result<(), WireError>) -> Vec<u8> {
    let stream = Kept::default();
    let answered = channel().answer(Box::new(stream.clone()), RowFormat::Text, false, answer);
    assert!(answered.unwrap().is_none());
    let written = stream.written.lock();
    written.clone()
}

#[test]
fn a_client_gets_the_bytes_of_a_direct_answer() {
    let answer = |replies: &mut Replies<'_>| {
        replies.set_more_results(true);
        rows(replies, 700, b"some text")?;
        replies.set_more_results(false);
        rows(replies, 3, &[b'x'; 300])
    };
    let (wanted, bytes) = (direct(answer), sent(answer));
    for piece in [1, 2, 3, 11, 4096, usize::MAX] {
        assert!(relayed(&bytes, piece) == wanted, "in pieces of {piece} bytes");
    }
}

#[test]
fn a_payload_of_several_packets_is_numbered_as_a_direct_one() {
    for length in [MAX_PAYLOAD_LENGTH - 8, MAX_PAYLOAD_LENGTH + 10] {
        let text = vec![b'x'; length];
        let answer = |replies: &mut Replies<'_>| rows(replies, 2, &text);
        let (wanted, bytes) = (direct(answer), sent(answer));
        assert!(relayed(&bytes, 1 << 20) == wanted);
        assert!(relayed(&bytes, 5_000_001) == wanted);
    }
}

#[test]
fn an_answer_that_is_cut_off_ends_with_a_whole_packet() {
    let bytes = sent(|replies| rows(replies, 3, b"text"));
    let mut recorder = ReplyRecorder::new(RowFormat::Text).with_capabilities(CAPABILITIES);
    let mut replies = recorder.replies();
    replies.relay(&bytes[..bytes.len() - 20]).unwrap();
    replies.error(&ServerError::server_shutdown()).unwrap();
    let sent = recorder.take();
    let (length, count) = whole_packets(&sent);
    assert_eq!(length, sent.len());
    assert_eq!(count, 6, "a number of columns, two definitions, two rows, an error");
}

#[test]
fn a_cursor_gets_the_rows() {
    let stream = Kept::default();
    let mut channel = channel();
    let cursor = channel.answer(Box::new(stream.clone()), RowFormat::Binary, true, |replies| {
        assert!(replies.wants_cursor());
        rows(replies, 5, b"text")
    });
    let cursor = cursor.unwrap().expect("rows for the cursor");
    let end = cursor.end();
    let head = std::mem::take(&mut *stream.written.lock());
    channel.send_rows(cursor).unwrap();
    let bytes = stream.written.lock().clone();

    let mut recorder = ReplyRecorder::new(RowFormat::Binary).with_capabilities(CAPABILITIES);
    let mut rows = None;
    let mut replies = recorder.replies().with_cursor(&mut rows);
    replies.relay(&head).unwrap();
    for piece in bytes.chunks(9) {
        replies.relay_rows(piece).unwrap();
    }
    replies.end_relay(Some(end));
    let mut rows = rows.expect("rows");
    assert_eq!(rows.status, end.status);
    for number in 0..5 {
        assert_eq!(rows.fetch().expect("a row")[2], number, "after the header and the NULL bits");
    }
    assert!(rows.is_exhausted());
}

#[test]
fn a_file_of_the_client_is_read() {
    let stream = Kept::default();
    stream.file.lock().extend_from_slice(b"1,2\n3,4\n");
    let mut content = String::new();
    let answered = channel().answer(Box::new(stream.clone()), RowFormat::Text, false, |replies| {
        let mut file = replies.local_infile(b"data.csv")?;
        file.read_to_string(&mut content)?;
        drop(file);
        replies.ok(&Completion::default())
    });
    answered.unwrap();
    assert_eq!(content, "1,2\n3,4\n");
    let written = stream.written.lock();
    assert_eq!(&written[4..13], b"\xfbdata.csv");
}

#[test]
fn columns_are_read_from_their_packets() {
    let mut column = ColumnDefinition::new("price", ColumnType::Double);
    (column.decimals, column.length_bytes) = (2, 12);
    column.flags = crate::ColumnFlags::ZEROFILL;
    let columns = EncodedColumns::new(&[column, ColumnDefinition::new("n", ColumnType::Json)]);
    let read = EncodedColumns::from_packets(columns.packets().to_vec()).unwrap();
    assert_eq!(read.definitions(), columns.definitions());
    assert_eq!(format!("{:?}", read.kinds()), format!("{:?}", columns.kinds()));
    for length in 0..columns.packets().len() {
        assert!(EncodedColumns::from_packets(columns.packets()[..length].to_vec()).is_err());
    }
}
