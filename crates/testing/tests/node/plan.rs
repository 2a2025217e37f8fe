//! The steps of each transaction of each thread, as a pure function of seed, thread and sequence
//! number; and the model with which the verification compares a database.
//! ```text
//!   table tree:  r thread key → tag value     c thread → sequence number  a n → balance, transfers
//!   index tree:  tag thread   → key of the record that has this tag
//! ```
//!
//! Each thread has its own records, so its last sequence number alone determines them. All threads
//! share the accounts: transfers neither create nor lose money, and every transfer is counted.

use std::collections::BTreeMap;

use firn_testing::random::Random;

/// Sizes of the plans.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// The seed of every transaction.
    pub(crate) seed: u64,
    pub(crate) threads: u32,
    /// Records that a thread may have.
    pub(crate) keys: u64,
    /// Accounts that all threads share.
    pub(crate) accounts: u64,
    /// The longest value in bytes.
    pub(crate) value_bytes: u64,
    /// Steps of a long transaction.
    pub(crate) long_steps: u64,
}

/// A change of one record.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The record gets this tag and value.
    Put {
        key: Vec<u8>,
        tag: [u8; 8],
        value: Vec<u8>,
    },
    /// Inserts those of these records that do not exist, all at once.
    Fill(Vec<(Vec<u8>, Tagged)>),
    Delete {
        key: Vec<u8>,
    },
    /// Steps after a savepoint that are rolled back.
    Undone(Vec<Step>),
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) thread: u32,
    pub(crate) sequence: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) transfer: Option<Transfer>,
}

/// A transfer from one account to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) amount: i64,
}

/// The balance of a new account.
pub(crate) const OPENING_BALANCE: i64 = 1_000;

pub(crate) fn record_key(thread: u32, key: u64) -> Vec<u8> {
    let mut bytes = vec![b'r'];
    bytes.extend_from_slice(&thread.to_be_bytes());
    bytes.extend_from_slice(&(key as u32).to_be_bytes());
    bytes.resize(bytes.len() + (key % 23) as usize, b'-');
    bytes
}

pub(crate) fn counter_key(thread: u32) -> Vec<u8> {
    [b"c", &thread.to_be_bytes()[..]].concat()
}

pub(crate) fn account_key(account: u64) -> Vec<u8> {
    [b"a", &account.to_be_bytes()[..]].concat()
}

pub(crate) fn index_key(thread: u32, tag: [u8; 8]) -> Vec<u8> {
    [&tag[..], &thread.to_be_bytes()[..]].concat()
}

pub(crate) fn account_payload(balance: i64, transfers: u64) -> Vec<u8> {
    [balance.to_be_bytes(), transfers.to_be_bytes()].concat()
}

pub(crate) fn parse_account(payload: &[u8]) -> (i64, u64) {
    let word = |at: usize| payload[at..at + 8].try_into().expect("eight bytes");
    (i64::from_be_bytes(word(0)), u64::from_be_bytes(word(8)))
}

impl Plan {
    /// The transaction of `thread` with number `sequence`.
    pub(crate) fn draw(shape: &Shape, thread: u32, sequence: u64) -> Plan {
        let mixed = shape.seed ^ (u64::from(thread) << 48) ^ sequence.wrapping_mul(0x9e37_79b9);
        Plan::draw_from(shape, thread, sequence, &Random::new(mixed).fork())
    }

    /// A random transaction of `thread` that will be rolled back.
    pub(crate) fn draw_from(shape: &Shape, thread: u32, sequence: u64, random: &Random) -> Plan {
        let count = match random.chance(0.01) {
            true => random.between(shape.long_steps / 2, shape.long_steps),
            false => random.between(1, 8),
        };
        let mut steps = Vec::new();
        for _ in 0..count {
            let is_undone = random.chance(0.05);
            let undone = (0..random.between(1, 5)).map(|_| draw_step(shape, thread, random));
            steps.push(if is_undone {
                Step::Undone(undone.collect())
            } else {
                draw_step(shape, thread, random)
            });
        }
        let from = random.below(shape.accounts);
        let to = (from + random.between(1, shape.accounts - 1)) % shape.accounts;
        let transfer = Transfer { from, to, amount: random.between(1, 50) as i64 };
        Plan { thread, sequence, steps, transfer: random.chance(0.3).then_some(transfer) }
    }
}

fn draw_step(shape: &Shape, thread: u32, random: &Random) -> Step {
    let number = random.below(shape.keys);
    if random.chance(0.05) {
        let end = (number + random.between(2, 40)).min(shape.keys);
        let record = |number| (record_key(thread, number), draw_tagged(shape, random));
        return Step::Fill((number..end).map(record).collect());
    }
    let key = record_key(thread, number);
    if random.chance(0.25) {
        return Step::Delete { key };
    }
    let (tag, value) = draw_tagged(shape, random);
    Step::Put { key, tag, value }
}

/// A tag and a value.
pub(crate) type Tagged = ([u8; 8], Vec<u8>);

fn draw_tagged(shape: &Shape, random: &Random) -> Tagged {
    let tag = random.word().to_be_bytes();
    let length = match random.chance(0.1) {
        true => random.below(shape.value_bytes),
        false => random.below(shape.value_bytes / 10 + 1),
    };
    (tag, vec![tag[0]; length as usize])
}

/// The expected content of the database.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) shape: Shape,
    /// The last committed transaction of each thread.
    pub(crate) sequences: Vec<u64>,
    /// Each thread's records: tag and value.
    records: Vec<BTreeMap<Vec<u8>, Tagged>>,
    accounts: Vec<(i64, u64)>,
}

impl Model {
    pub(crate) fn new(shape: &Shape) -> Model {
        let threads = shape.threads as usize;
        Model {
            shape: shape.clone(),
            sequences: vec![0; threads],
            records: vec![BTreeMap::new(); threads],
            accounts: vec![(OPENING_BALANCE, 0); shape.accounts as usize],
        }
    }

    /// Commits the transactions of `thread` up to `sequence`.
    pub(crate) fn advance(&mut self, thread: u32, sequence: u64) {
        while self.sequences[thread as usize] < sequence {
            let next = self.sequences[thread as usize] + 1;
            self.apply(&Plan::draw(&self.shape, thread, next));
            self.sequences[thread as usize] = next;
        }
    }

    fn apply(&mut self, plan: &Plan) {
        let records = &mut self.records[plan.thread as usize];
        for step in &plan.steps {
            match step {
                Step::Put { key, tag, value } => {
                    records.insert(key.clone(), (*tag, value.clone()));
                }
                Step::Fill(new) => {
                    for (key, tagged) in new {
                        records.entry(key.clone()).or_insert_with(|| tagged.clone());
                    }
                }
                Step::Delete { key } => {
                    records.remove(key);
                }
                Step::Undone(_) => {}
            }
        }
        if let Some(transfer) = plan.transfer {
            for (account, amount) in
                [(transfer.from, -transfer.amount), (transfer.to, transfer.amount)]
            {
                let account = &mut self.accounts[account as usize];
                *account = (account.0 + amount, account.1 + 1);
            }
        }
    }

    /// The content of the table tree.
    pub(crate) fn table(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut table = BTreeMap::new();
        for (thread, records) in self.records.iter().enumerate() {
            let sequence = self.sequences[thread].to_be_bytes().to_vec();
            table.insert(counter_key(thread as u32), sequence);
            for (key, (tag, value)) in records {
                table.insert(key.clone(), [&tag[..], value].concat());
            }
        }
        for (account, (balance, transfers)) in self.accounts.iter().enumerate() {
            table.insert(account_key(account as u64), account_payload(*balance, *transfers));
        }
        table
    }

    /// The content of the index tree.
    pub(crate) fn index(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut index = BTreeMap::new();
        for (thread, records) in self.records.iter().enumerate() {
            for (key, (tag, _)) in records {
                index.insert(index_key(thread as u32, *tag), key.clone());
            }
        }
        index
    }
}
