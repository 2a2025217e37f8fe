//! The content of the dictionary's trees, and how it is found.
//!
//! ```text
//!   tree       key                             value
//!   tables     u64 table ‖ u16 part            part of the encoded definition, ≤ 4000 bytes
//!   names      schema ‖ 00 ‖ name              u64 table
//!   schemas    schema                          the SQL layer's own bytes
//!   counters   u8 kind ‖ u64 table             u64, little endian: everything below was handed out
//!   drops      u64 index                       –
//! ```
//!
//! Numbers in keys are big endian, so that keys sort as numbers. `docs/formats/dictionary.md` draws
//! the bytes.

use std::ops::Bound;
use std::sync::Arc;

use firn_api::rows::Fetched;
use firn_base::{IndexId, PageId, PageNo, SpaceId, TableId};
use firn_format::definition::TableDefinition;
use firn_format::key::prefix_successor;
use firn_format::page::PageBuf;
use firn_format::space::{DICTIONARY_SPACE, HEADER_PAGE, SpaceHeader, SpacePurpose};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::pages::ReadPages;
use crate::transaction::{
    Cursor, Direction, KeyRange, ReadMode, RecordReader, Transaction, TransactionSystem,
};
use crate::tree::Forest;

/// The longest part of a definition, which fits in an entry of a tree.
const PART_BYTES: usize = 4000;
/// The format's number in the header page of the dictionary's space.
const FORMAT: u32 = 1;
const TREES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemTrees {
    /// Encoded definitions, in parts.
    pub tables: IndexId,
    /// The id of each table by name.
    pub names: IndexId,
    pub schemas: IndexId,
    pub counters: IndexId,
    /// Trees whose pages are not free yet.
    pub drops: IndexId,
}

impl SystemTrees {
    #[must_use]
    pub fn all(&self) -> [IndexId; TREES] {
        [self.tables, self.names, self.schemas, self.counters, self.drops]
    }

    fn from_roots(roots: [IndexId; TREES]) -> SystemTrees {
        let [tables, names, schemas, counters, drops] = roots;
        SystemTrees { tables, names, schemas, counters, drops }
    }

    /// Finds the trees; `None` if they do not exist yet. Blocks for I/O.
    pub(super) fn find(pages: &ReadPages) -> Result<Option<SystemTrees>, EngineError> {
        let header = PageId::new(DICTIONARY_SPACE, HEADER_PAGE);
        match pages.run(|| read_roots(&*pages.pool.shared(header)?).map_err(Into::into)) {
            Ok(roots) => Ok(roots.map(SystemTrees::from_roots)),
            Err(error) if error.is_absent_page() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Finds the trees, or creates them. Blocks.
    pub(super) fn open(forest: &Forest) -> Result<SystemTrees, EngineError> {
        let (pages, spaces) = (forest.pages(), forest.spaces());
        match spaces.prepare(DICTIONARY_SPACE) {
            Err(error) if error.is_absent_page() => {
                spaces.create(DICTIONARY_SPACE, SpacePurpose::Dictionary, TableId(0))?;
            }
            other => other?,
        }
        SystemTrees::find(pages)?.map_or_else(|| create(forest), Ok)
    }
}

/// Creates all trees and names them in the header page, in one log group: after a crash either all
/// exist or none.
fn create(forest: &Forest) -> Result<SystemTrees, EngineError> {
    let pages = forest.pages();
    forest.spaces().prepare(DICTIONARY_SPACE)?;
    let mut frames = pages.pool.reserve(TREES);
    let roots = pages.run(|| {
        let mut mtr = MiniTransaction::begin(pages, Purpose::Forward)?;
        let header = mtr.exclusive(PageId::new(DICTIONARY_SPACE, HEADER_PAGE))?;
        let mut roots = [IndexId(0); TREES];
        let mut area = FORMAT.to_le_bytes().to_vec();
        for root in &mut roots {
            *root = forest.create_root(&mut mtr, &mut frames, DICTIONARY_SPACE)?;
            area.extend_from_slice(&root.root().page_no.0.to_le_bytes());
        }
        let at = SpaceHeader::OWNER_AREA_AT;
        mtr.change(header, &firn_format::redo::Change::WriteBytes { at, bytes: &area });
        let _ = mtr.commit();
        Ok(roots)
    })?;
    Ok(SystemTrees::from_roots(roots))
}

/// The roots that the header page names; `None` if it names none yet.
fn read_roots(page: &PageBuf) -> Result<Option<[IndexId; TREES]>, EngineError> {
    let at = usize::from(SpaceHeader::OWNER_AREA_AT);
    match page.get_u32(at) {
        0 => Ok(None),
        FORMAT => Ok(Some(std::array::from_fn(|number| {
            let page_no = PageNo(page.get_u32(at + 4 * (number + 1)));
            IndexId::from(PageId::new(DICTIONARY_SPACE, page_no))
        }))),
        format => Err(EngineError::Invalid(format!(
            "the dictionary has format {format}, which this version of Firn does not know"
        ))),
    }
}

/// The key of a table's name.
pub(crate) fn name_key(schema: &str, name: &str) -> Vec<u8> {
    [schema.as_bytes(), &[0], name.as_bytes()].concat()
}

fn part_key(table: TableId, part: u16) -> [u8; 10] {
    let mut key = [0; 10];
    key[..8].copy_from_slice(&table.0.to_be_bytes());
    key[8..].copy_from_slice(&part.to_be_bytes());
    key
}

/// Writes a definition over the former one, if there is one.
pub(super) fn put_definition(
    trx: &mut Transaction,
    trees: &SystemTrees,
    definition: &TableDefinition,
) -> Result<(), EngineError> {
    let bytes = definition.encode()?;
    let mut part = 0;
    for chunk in bytes.chunks(PART_BYTES) {
        put(trx, trees.tables, &part_key(definition.table_id, part), chunk)?;
        part += 1;
    }
    delete_parts(trx, trees, definition.table_id, part)
}

/// Deletes a definition's parts from `part` on.
pub(super) fn delete_parts(
    trx: &mut Transaction,
    trees: &SystemTrees,
    table: TableId,
    mut part: u16,
) -> Result<(), EngineError> {
    while trx.delete(trees.tables, &part_key(table, part))? {
        part += 1;
    }
    Ok(())
}

/// Inserts or replaces a record.
pub(super) fn put(
    trx: &mut Transaction,
    tree: IndexId,
    key: &[u8],
    value: &[u8],
) -> Result<(), EngineError> {
    loop {
        if trx.update(tree, key, value)? {
            return Ok(());
        }
        match trx.insert(tree, key, value) {
            Err(EngineError::DuplicateKey { .. }) => {}
            other => return other,
        }
    }
}

/// All definitions that the transaction sees.
pub(crate) fn read_definitions(
    trx: &mut impl RecordReader,
    trees: &SystemTrees,
) -> Result<Vec<TableDefinition>, EngineError> {
    let mut definitions = Vec::new();
    let mut current: Option<([u8; 8], Vec<u8>)> = None;
    for_each(trx, trees.tables, KeyRange::all(), ReadMode::Consistent, |key, part| {
        let table: [u8; 8] = key.get(..8).and_then(|id| id.try_into().ok()).unwrap_or_default();
        if current.as_ref().is_none_or(|(other, _)| *other != table) {
            definitions.extend(current.take().map(|(_, bytes)| bytes));
            current = Some((table, Vec::new()));
        }
        if let Some((_, bytes)) = &mut current {
            bytes.extend_from_slice(part);
        }
    })?;
    definitions.extend(current.map(|(_, bytes)| bytes));
    definitions.iter().map(|bytes| Ok(TableDefinition::decode(bytes)?)).collect()
}

/// The definition of a table, if the transaction sees it.
pub(super) fn read_definition(
    trx: &mut impl RecordReader,
    trees: &SystemTrees,
    table: TableId,
) -> Result<Option<TableDefinition>, EngineError> {
    let low = table.0.to_be_bytes().to_vec();
    let high = prefix_successor(&low).map_or(Bound::Unbounded, Bound::Excluded);
    let parts = KeyRange { low: Bound::Included(low), high };
    let mut bytes = Vec::new();
    for_each(trx, trees.tables, parts, ReadMode::Consistent, |_, part| {
        bytes.extend_from_slice(part);
    })?;
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(TableDefinition::decode(&bytes)?))
}

/// A schema's name with the SQL layer's bytes.
type NamedSchema = (Box<str>, Arc<[u8]>);

/// The schemas that the transaction sees, with the SQL layer's bytes.
pub(super) fn read_schemas(
    trx: &mut impl RecordReader,
    trees: &SystemTrees,
) -> Result<Vec<NamedSchema>, EngineError> {
    let mut schemas = Vec::new();
    for_each(trx, trees.schemas, KeyRange::all(), ReadMode::Consistent, |name, options| {
        schemas.push((String::from_utf8_lossy(name).into_owned().into_boxed_str(), options.into()));
    })?;
    Ok(schemas)
}

/// Passes every record of a range that the transaction sees to `visit`.
pub(crate) fn for_each(
    trx: &mut impl RecordReader,
    tree: IndexId,
    range: KeyRange,
    mode: ReadMode,
    mut visit: impl FnMut(&[u8], &[u8]),
) -> Result<(), EngineError> {
    let mut cursor = Cursor::new(tree, range, Direction::Forward, mode);
    while trx.fetch(&mut cursor, None)? != Fetched::End {
        cursor.rows().for_each(|(key, value)| visit(key, value));
    }
    Ok(())
}

/// The names of a schema's tables as a range of the tree of names.
pub(super) fn names_of(schema: &str) -> KeyRange {
    let low = name_key(schema, "");
    let high = prefix_successor(&low).map_or(Bound::Unbounded, Bound::Excluded);
    KeyRange { low: Bound::Included(low), high }
}

/// Trees whose pages are not free yet.
pub(super) fn read_drops(
    trx: &mut impl RecordReader,
    trees: &SystemTrees,
) -> Result<Vec<IndexId>, EngineError> {
    let mut drops = Vec::new();
    for_each(trx, trees.drops, KeyRange::all(), ReadMode::Consistent, |key, _| {
        drops.extend(key.try_into().ok().map(|id| IndexId(u64::from_be_bytes(id))));
    })?;
    Ok(drops)
}

/// The key of a tree in the tree of drops.
pub(super) fn drop_key(index: IndexId) -> [u8; 8] {
    index.0.to_be_bytes()
}

/// The first space of a user's table; the engine uses those below.
pub(super) const FIRST_TABLE_SPACE: SpaceId = SpaceId(16);

/// Creates the root of a tree in `space`. If the operation fails later, the caller drops it.
pub(super) fn create_tree(
    system: &TransactionSystem,
    space: SpaceId,
    purpose: Purpose,
) -> Result<IndexId, EngineError> {
    let (forest, pages) = (system.forest(), system.pages());
    forest.spaces().prepare(space)?;
    let mut frames = pages.pool.reserve(1);
    pages.run(|| {
        let mut mtr = MiniTransaction::begin(pages, purpose)?;
        let index = forest.create_root(&mut mtr, &mut frames, space)?;
        let _ = mtr.commit();
        Ok(index)
    })
}
