//! The dictionary: its trees, and whether names, definitions and memory agree.

use std::collections::BTreeMap;

use firn_base::{PageId, PageNo, TableId};
use firn_format::space::{DICTIONARY_SPACE, SpacePurpose};

use super::Checker;
use super::census::Census;
use crate::dictionary::stored;
use crate::error::EngineError;
use crate::transaction::{IsolationLevel, KeyRange, ReadMode, Transaction};

impl Checker<'_> {
    pub(super) fn check_dictionary(&mut self) -> Result<(), EngineError> {
        let mut census = Census::new(DICTIONARY_SPACE);
        let Some(header) = self.check_header(&mut census) else { return Ok(()) };
        if header.purpose != SpacePurpose::Dictionary {
            self.problem(dictionary_page(), "it is not the header of the dictionary's space");
        }
        for tree in self.dictionary.trees().all() {
            self.check_tree(&mut census, tree, |_| Ok(()));
        }
        self.check_maps(&mut census, &header);
        self.check_definitions()
    }

    /// Reads the trees by one snapshot, so a concurrent DDL does no harm. The definitions in memory
    /// may be newer.
    fn check_definitions(&mut self) -> Result<(), EngineError> {
        let version = self.dictionary.version();
        let trees = *self.dictionary.trees();
        let system = self.dictionary.system();
        let mut trx = Transaction::begin(system, IsolationLevel::RepeatableRead)?;
        let definitions = stored::read_definitions(&mut trx, &trees)?;
        let mut names = BTreeMap::new();
        let (all, mode) = (KeyRange::all(), ReadMode::Consistent);
        stored::for_each(&mut trx, trees.names, all, mode, |name, id| {
            let id = id.try_into().map_or(0, u64::from_le_bytes);
            names.insert(TableId(id), name.to_vec());
        })?;
        for definition in &definitions {
            let name = stored::name_key(&definition.schema_name, &definition.name);
            if names.remove(&definition.table_id).as_deref() != Some(&name[..]) {
                let what = format!("table {} is not found by its name", definition.name);
                self.problem(trees.names.root(), what);
            }
            let in_memory = self.dictionary.table(definition.table_id);
            let is_same = in_memory.is_some_and(|table| table.definition() == definition);
            if !is_same && version == self.dictionary.version() {
                let what = format!("table {} is stored otherwise than it is used", definition.name);
                self.problem(trees.tables.root(), what);
            }
        }
        for (table, name) in names {
            let name = String::from_utf8_lossy(&name).replace('\0', ".");
            self.problem(
                trees.names.root(),
                format!("{name} names table {table}, which does not exist"),
            );
        }
        trx.commit()
    }
}

fn dictionary_page() -> PageId {
    PageId::new(DICTIONARY_SPACE, PageNo(0))
}
