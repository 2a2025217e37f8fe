//! A table with two secondary indexes compared with maps, under random operations, savepoints and
//! rollbacks.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
pub(super) enum Step {
    Insert { id: i64, email: Option<u8>, age: Option<u8>, body: usize },
    InsertRows(Vec<(i64, Person)>),
    Update { id: i64, email: Option<Option<u8>>, age: Option<Option<u8>>, body: Option<usize> },
    Move { id: i64, to: i64 },
    Delete { id: i64 },
    Savepoint,
    RollbackToSavepoint,
    Commit,
    Rollback,
    Purge,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Person {
    email: Option<u8>,
    age: Option<u8>,
    body: usize,
}

type People = BTreeMap<i64, Person>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = || 0..12_i64;
    let small = || proptest::option::of(0..6_u8);
    let body = || prop_oneof![4 => 0..50_usize, 1 => 4000..40_000_usize];
    let step = prop_oneof![
        6 => (id(), small(), small(), body())
            .prop_map(|(id, email, age, body)| Step::Insert { id, email, age, body }),
        3 => proptest::collection::vec((id(), small(), small(), body()), 1..8).prop_map(|rows| {
            let row = |(id, email, age, body)| (id, Person { email, age, body });
            Step::InsertRows(rows.into_iter().map(row).collect())
        }),
        5 => (
            id(),
            proptest::option::of(small()),
            proptest::option::of(small()),
            proptest::option::of(body()),
        )
            .prop_map(|(id, email, age, body)| Step::Update { id, email, age, body }),
        2 => (id(), id()).prop_map(|(id, to)| Step::Move { id, to }),
        3 => id().prop_map(|id| Step::Delete { id }),
        1 => Just(Step::Savepoint),
        1 => Just(Step::RollbackToSavepoint),
        2 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => Just(Step::Purge),
    ];
    proptest::collection::vec(step, 1..80)
}

fn email_of(number: u8) -> String {
    format!("{number}@firn.example")
}

/// The email in the order of the index.
fn bytes_of_email(person: &Person) -> Option<Vec<u8>> {
    person.email.map(|number| email_of(number).into_bytes())
}

fn body_of(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ length) as u8).collect()
}

fn optional_int(number: Option<u8>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, |number| int(i64::from(number)))
}

/// Whether another row of `people` has that email.
fn is_taken(people: &People, id: i64, email: Option<u8>) -> bool {
    email.is_some() && people.iter().any(|(other, person)| *other != id && person.email == email)
}

pub(super) struct Run {
    database: Database,
    table: Arc<Table>,
    buffers: WriteBuffers,
    trx: Option<Transaction>,
    committed: People,
    people: People,
    savepoint: Option<(crate::transaction::Savepoint, People)>,
}

impl Run {
    pub(super) fn new(database: Database) -> Run {
        let table = people(&database);
        Run {
            trx: Some(database.begin()),
            database,
            table,
            buffers: WriteBuffers::default(),
            committed: People::new(),
            people: People::new(),
            savepoint: None,
        }
    }

    fn trx(&mut self) -> &mut Transaction {
        self.trx.as_mut().unwrap()
    }

    fn change(&mut self, id: i64, changes: &[(usize, ValueRef<'_>)]) -> Result<bool, EngineError> {
        let key = key_of(&self.table, id);
        let trx = self.trx.as_mut().unwrap();
        self.table.update(trx, &key, changes, &mut self.buffers)
    }

    pub(super) fn step(&mut self, step: &Step) {
        match *step {
            Step::Insert { id, email, age, body } => self.insert(id, Person { email, age, body }),
            Step::InsertRows(ref rows) => self.insert_rows(rows),
            Step::Update { id, email, age, body } => self.update(id, email, age, body),
            Step::Move { id, to } => self.shift(id, to),
            Step::Delete { id } => {
                let key = key_of(&self.table, id);
                let trx = self.trx.as_mut().unwrap();
                let deleted = self.table.delete(trx, &key, &mut self.buffers).unwrap();
                assert_eq!(deleted, self.people.remove(&id).is_some());
            }
            Step::Savepoint => {
                self.savepoint = Some((self.trx().savepoint(), self.people.clone()));
            }
            Step::RollbackToSavepoint => {
                if let Some((savepoint, people)) = self.savepoint.take() {
                    self.trx().rollback_to(savepoint).unwrap();
                    self.people = people;
                }
            }
            Step::Commit => {
                self.trx.take().unwrap().commit().unwrap();
                self.committed = self.people.clone();
                self.begin();
            }
            Step::Rollback => {
                self.trx.take().unwrap().rollback().unwrap();
                self.people = self.committed.clone();
                self.begin();
            }
            Step::Purge => self.database.clean_up(),
        }
    }

    fn begin(&mut self) {
        self.savepoint = None;
        self.trx = Some(self.database.begin());
    }

    fn insert(&mut self, id: i64, person: Person) {
        let (email, body) = (person.email.map(email_of), body_of(person.body));
        let email = email.as_deref().map_or(ValueRef::Null, text);
        let row = [int(id), email, optional_int(person.age), ValueRef::Bytes(&body)];
        let trx = self.trx.as_mut().unwrap();
        let inserted = self.table.insert(trx, &row, &mut self.buffers);
        let taken = self.people.contains_key(&id) || is_taken(&self.people, id, person.email);
        assert_eq!(inserted.is_err(), taken, "{inserted:?}");
        if !taken {
            self.people.insert(id, person);
        }
    }

    fn insert_rows(&mut self, rows: &[(i64, Person)]) {
        let texts = rows.iter().map(|(_, one)| (one.email.map(email_of), body_of(one.body)));
        let texts: Vec<(Option<String>, Vec<u8>)> = texts.collect();
        let values: Vec<ValueRef<'_>> = rows
            .iter()
            .zip(&texts)
            .flat_map(|((id, person), (email, body))| {
                let email = email.as_deref().map_or(ValueRef::Null, text);
                [int(*id), email, optional_int(person.age), ValueRef::Bytes(body)]
            })
            .collect();
        let trx = self.trx.as_mut().unwrap();
        let inserted = self.table.insert_rows(trx, &values, &mut self.buffers);
        let mut people = self.people.clone();
        let all_new = rows.iter().all(|(id, person)| {
            let is_new = !people.contains_key(id) && !is_taken(&people, *id, person.email);
            people.insert(*id, person.clone());
            is_new
        });
        assert_eq!(inserted.is_ok(), all_new, "{inserted:?}");
        if all_new {
            self.people = people;
        }
    }

    fn update(
        &mut self,
        id: i64,
        email: Option<Option<u8>>,
        age: Option<Option<u8>>,
        body: Option<usize>,
    ) {
        let (text_of, body_bytes) = (email.map(|email| email.map(email_of)), body.map(body_of));
        let mut changes = Vec::new();
        if let Some(email) = &text_of {
            changes.push((EMAIL, email.as_deref().map_or(ValueRef::Null, text)));
        }
        changes.extend(age.map(|age| (AGE, optional_int(age))));
        changes.extend(body_bytes.as_ref().map(|body| (BODY, ValueRef::Bytes(body))));
        let updated = self.change(id, &changes);
        let taken = is_taken(&self.people, id, email.flatten());
        let Some(person) = self.people.get_mut(&id) else {
            return assert!(!updated.unwrap());
        };
        assert_eq!(updated.is_err(), taken, "{updated:?}");
        if !taken {
            person.email = email.unwrap_or(person.email);
            person.age = age.unwrap_or(person.age);
            person.body = body.unwrap_or(person.body);
        }
    }

    fn shift(&mut self, id: i64, to: i64) {
        let moved = self.change(id, &[(ID, int(to))]);
        let taken = id != to && self.people.contains_key(&to);
        if !self.people.contains_key(&id) {
            return assert!(!moved.unwrap());
        }
        assert_eq!(moved.is_err(), taken, "{moved:?}");
        if !taken {
            let person = self.people.remove(&id).unwrap();
            self.people.insert(to, person);
        }
    }

    /// Compares everything that the transaction sees with the maps.
    pub(super) fn check(&mut self) {
        let (table, people) = (Arc::clone(&self.table), self.people.clone());
        let trx = self.trx.as_mut().unwrap();
        let ids: Vec<i64> = people.keys().copied().collect();
        assert_eq!(scan(&table, trx, ScanOptions::all()), ids);
        for (id, person) in &people {
            let row = get(&table, trx, *id).unwrap();
            let body = body_of(person.body);
            assert!(row[BODY].as_ref() == ValueRef::Bytes(&body), "the body of {id}");
            assert_eq!(row[AGE].as_ref(), optional_int(person.age));
        }
        for (index, columns) in table.secondary().iter().zip([EMAIL as u16, AGE as u16]) {
            let mut expected: Vec<_> = match columns as usize {
                EMAIL => people.iter().map(|(id, person)| (bytes_of_email(person), *id)).collect(),
                _ => people.iter().map(|(id, one)| (one.age.map(|age| vec![age]), *id)).collect(),
            };
            expected.sort_unstable();
            let expected: Vec<i64> = expected.into_iter().map(|(_, id)| id).collect();
            let all = ScanOptions { index: Some(*index), ..ScanOptions::all() };
            assert_eq!(scan(&table, trx, all.clone()), expected);
            let covering = ScanOptions { columns: Some([columns, ID as u16].into()), ..all };
            assert_eq!(scan(&table, trx, covering), expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_what_its_maps_are(steps in steps()) {
        let mut run = Run::new(Database::new());
        for step in &steps {
            run.step(step);
            run.check();
        }
        run.trx.take().unwrap().rollback().unwrap();
        run.people = run.committed.clone();
        run.begin();
        run.check();
        for id in run.people.clone().into_keys() {
            run.step(&Step::Delete { id });
        }
        run.step(&Step::Commit);
        run.trx = None;
        run.database.clean_up();
        prop_assert_eq!(used_pages(&run.database, &run.table), 2 + 3);
    }
}
