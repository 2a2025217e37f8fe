//! Links that break one promise of the row messages each, and the script or test that notices.
//!
//! ```text
//!   RemoteNode ──► FaultyLink ──► Loopback ──► the node
//!                  decodes, changes or drops, encodes
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::TableId;
use firn_row_service::message::{
    Answer, Call, HandedTable, Message, Reply, Rows, Setting, TransactionCall,
};
use firn_row_service::{Link, LinkError, Loopback, decode, encode};
use parking_lot::Mutex;

use crate::server::{Server, remote};
use crate::waits;

/// What a link does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    LostCancel,
    /// The ends of statements are lost.
    LostEndOfStatement,
    /// The last row of a batch and a row that was found by its key lose their last byte.
    ShortenedRow,
    /// The node hands out the first definition of each table that it has handed out before.
    StaleTable,
    /// The last write of a batch is lost.
    LostWrite,
}

/// What must fail over such a link.
#[derive(Debug, Clone, Copy)]
enum Noticed {
    ByScript(&'static str),
    /// The first of the waits that a `KILL QUERY` ends.
    ByWait,
}

const FAULTS: [(Fault, Noticed); 5] = [
    (Fault::LostCancel, Noticed::ByWait),
    (Fault::LostEndOfStatement, Noticed::ByScript("transactions")),
    (Fault::ShortenedRow, Noticed::ByScript("first")),
    (Fault::StaleTable, Noticed::ByScript("ddl")),
    (Fault::LostWrite, Noticed::ByScript("updates")),
];

/// A link with a fault, or without one.
struct FaultyLink {
    inner: Loopback,
    fault: Option<Fault>,
    /// How often the fault has changed a message.
    changed: AtomicU64,
    /// The first definition of each table.
    first: Mutex<HashMap<TableId, HandedTable>>,
}

impl FaultyLink {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn note(&self) {
        self.changed.fetch_add(1, Ordering::Relaxed);
    }

    /// Loses the ends of statements.
    fn change_settings(&self, settings: &mut Vec<Setting>) {
        if self.has(Fault::LostEndOfStatement) {
            let before = settings.len();
            settings.retain(|setting| *setting != Setting::EndStatement);
            if settings.len() < before {
                self.note();
            }
        }
    }

    fn change_call(&self, call: &mut Call<'_>) {
        let Call::Transaction { before, call, .. } = call else { return };
        self.change_settings(before);
        if let TransactionCall::WriteRows { rows, .. } = call
            && self.has(Fault::LostWrite)
            && rows.pop().is_some()
        {
            self.note();
        }
    }

    fn change_reply(&self, reply: &mut Reply) {
        match &mut reply.outcome {
            Ok(Answer::Row(Some((_, row)))) if self.has(Fault::ShortenedRow) => {
                row.pop();
                self.note();
            }
            Ok(Answer::Batch(Some(Rows::Stored { spans, .. })))
                if self.has(Fault::ShortenedRow) =>
            {
                if let Some(last) = spans.last_mut() {
                    last.row_end -= 1;
                    self.note();
                }
            }
            Ok(Answer::Table(Some(table))) => self.change_table(table),
            Ok(Answer::Tables(Some(tables))) => {
                tables.iter_mut().for_each(|table| self.change_table(table));
            }
            _ => {}
        }
    }

    fn change_table(&self, table: &mut HandedTable) {
        if !self.has(Fault::StaleTable) {
            return;
        }
        let mut first = self.first.lock();
        let first = first.entry(table.table.table).or_insert_with(|| table.clone());
        if *first != *table && first.definition.is_some() {
            table.clone_from(first);
            self.note();
        }
    }
}

impl Link for FaultyLink {
    fn call(&self, message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        let Message::Call { number, mut call } = decode(&message).expect("a message") else {
            unreachable!("the client calls");
        };
        self.change_call(&mut call);
        let changed = encode(&Message::Call { number, call }).expect("a message");
        let reply = self.inner.call(changed)?;
        let mut reply: Reply = decode(&reply).expect("a reply");
        self.change_reply(&mut reply);
        Ok(encode(&reply).expect("a reply"))
    }

    fn cast(&self, message: Vec<u8>) {
        match decode(&message).expect("a message") {
            Message::Cancel(_) if self.has(Fault::LostCancel) => self.note(),
            Message::Tell { transaction, mut settings } => {
                self.change_settings(&mut settings);
                let changed = Message::Tell { transaction, settings };
                self.inner.cast(encode(&changed).expect("a message"));
            }
            _ => self.inner.cast(message),
        }
    }
}

/// What fails over such a link, and how often it has changed a message.
fn failures(fault: Option<Fault>, noticed: Noticed) -> (Vec<String>, u64) {
    let mut link = None;
    let server = Server::start_with(|rows| {
        let faulty = Arc::new(FaultyLink {
            inner: Loopback::to(rows),
            fault,
            changed: AtomicU64::new(0),
            first: Mutex::default(),
        });
        link = Some(Arc::clone(&faulty));
        remote(faulty)
    });
    let failures = match noticed {
        Noticed::ByScript(name) => crate::run_script(server.port(), name),
        Noticed::ByWait => waits::failures(&server, 1),
    };
    (failures, link.expect("a link").changed.load(Ordering::Relaxed))
}

#[test]
fn each_fault_of_a_link_is_noticed() {
    for (fault, noticed) in FAULTS {
        let (without, changed) = failures(None, noticed);
        assert_eq!((without, changed), (Vec::new(), 0), "{noticed:?} without a fault");
        let (with, changed) = failures(Some(fault), noticed);
        let first = with.first().unwrap_or_else(|| panic!("{noticed:?} misses {fault:?}"));
        println!("{fault:?}, {changed} messages: {}\n", first.lines().next().unwrap_or_default());
        assert!(changed > 0, "{fault:?} has changed no message");
    }
}
