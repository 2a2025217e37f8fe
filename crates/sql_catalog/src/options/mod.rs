//! The properties of schemas, tables, columns and indexes that only SQL knows, as bytes inside a
//! node's definitions.
//!
//! ```text
//!   TableDefinition                SchemaOptions   TableOptions   ColumnOptions   IndexOptions
//!     options, columns[].options ◄───────────── encode / decode ──────────────►
//!     columns[].default          ◄─ encode_default / decode_default ─► DefaultValue
//! ```
//!
//! Default values are not written, so a plain column's options take no bytes, and new fields of a
//! later version cost older tables nothing. `docs/formats/sql-options.md` draws the bytes.

pub(super) mod codec;
mod default;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use firn_format::value::{CollationId, ColumnType};
use firn_sql_types::error::Result;
use firn_sql_types::{Members, TypeKind};

use super::properties::{
    CheckModel, CheckOption, ForeignKeyModel, Generated, ReferentialAction, SpecialIndex,
    ViewAlgorithm, ViewModel,
};
use codec::{Body, Reader, Writer, damaged, each_field};

pub use default::{decode_default, encode_default};
pub(super) use default::{read_datum, write_datum};

/// `utf8mb4_0900_ai_ci`, the default.
pub const DEFAULT_COLLATION: CollationId = CollationId(255);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaOptions {
    /// The collation of tables that name none.
    pub collation: CollationId,
    /// `READ ONLY = 1`
    pub read_only: bool,
}

impl Default for SchemaOptions {
    fn default() -> SchemaOptions {
        SchemaOptions { collation: DEFAULT_COLLATION, read_only: false }
    }
}

/// Of a table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// The collation of columns that name none.
    pub collation: CollationId,
    pub comment: Arc<str>,
    /// `ROW_FORMAT` as written.
    pub row_format: Arc<str>,
    /// The ordinals in the order that users see; empty if that is the order of ordinals.
    pub order: Vec<u16>,
    /// `CHECK`s.
    pub checks: Vec<CheckModel>,
    pub foreign_keys: Vec<ForeignKeyModel>,
    /// The query, if this is a view.
    pub view: Option<ViewModel>,
    /// Schema and name of a temporary table, as its session sees them.
    pub temporary: Option<(Arc<str>, Arc<str>)>,
    /// When it was created: microseconds since 1970-01-01 UTC.
    pub created_us: u64,
    /// Other options that are only shown again.
    pub other: Vec<(Arc<str>, Arc<str>)>,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            collation: DEFAULT_COLLATION,
            comment: Arc::default(),
            row_format: Arc::default(),
            order: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            view: None,
            temporary: None,
            created_us: 0,
            other: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnOptions {
    pub auto_increment: bool,
    pub invisible: bool,
    /// The column of a functional index part.
    pub hidden: bool,
    pub zerofill: bool,
    /// `UNSIGNED` of a decimal or float.
    pub unsigned: bool,
    /// Names of an enum's or set's members.
    pub members: Vec<Box<str>>,
    /// How they compare.
    pub member_collation: Option<CollationId>,
    pub comment: Arc<str>,
    /// `GENERATED ALWAYS AS`
    pub generated: Option<Generated>,
    /// `ON UPDATE CURRENT_TIMESTAMP(fsp)`
    pub on_update_now: Option<u8>,
    /// `TINYINT(1)`: the first number.
    pub display_width: Option<u16>,
    /// `FLOAT(7,4)`: the second number.
    pub display_decimals: Option<u8>,
    /// The subtype of a geometry.
    pub geometry: Arc<str>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexOptions {
    pub invisible: bool,
    /// Made for a foreign key.
    pub implicit: bool,
    pub comment: Arc<str>,
    /// `USING`, as written.
    pub using: Option<Arc<str>>,
    /// `FULLTEXT`, `SPATIAL`
    pub special: Option<SpecialIndex>,
}

impl SchemaOptions {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        if self.collation != DEFAULT_COLLATION {
            writer.field(1, |body| body.u16(self.collation.0));
        }
        if self.read_only {
            writer.field(2, |_| {});
        }
        writer.finish()
    }

    /// Reads what [`SchemaOptions::encode`] wrote. The bytes are untrusted.
    ///
    /// # Errors
    /// 1712 for bytes that are not options.
    pub fn decode(bytes: &[u8]) -> Result<SchemaOptions> {
        let mut options = SchemaOptions::default();
        each_field(bytes, |tag, body| {
            match tag {
                1 => options.collation = CollationId(body.u16()?),
                2 => options.read_only = true,
                _ => return Err(damaged("unknown field")),
            }
            Ok(())
        })?;
        Ok(options)
    }
}

impl TableOptions {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        if self.collation != DEFAULT_COLLATION {
            writer.field(1, |body| body.u16(self.collation.0));
        }
        writer.text(2, &self.comment);
        writer.text(3, &self.row_format);
        writer.list(4, &self.order, |body, ordinal| body.u16(*ordinal));
        writer.list(5, &self.checks, write_check);
        writer.list(6, &self.foreign_keys, write_foreign_key);
        if let Some(view) = &self.view {
            writer.field(7, |body| write_view(body, view));
        }
        if let Some((schema, name)) = &self.temporary {
            writer.field(8, |body| {
                body.text(schema);
                body.text(name);
            });
        }
        if self.created_us != 0 {
            writer.field(9, |body| body.u64(self.created_us));
        }
        writer.list(10, &self.other, |body, (name, value)| {
            body.text(name);
            body.text(value);
        });
        writer.finish()
    }

    /// Reads what [`TableOptions::encode`] wrote. The bytes are untrusted.
    ///
    /// # Errors
    /// 1712 for bytes that are not options.
    pub fn decode(bytes: &[u8]) -> Result<TableOptions> {
        let mut options = TableOptions::default();
        each_field(bytes, |tag, body| options.read_field(tag, body))?;
        Ok(options)
    }

    fn read_field(&mut self, tag: u8, body: &mut Reader<'_>) -> Result<()> {
        match tag {
            1 => self.collation = CollationId(body.u16()?),
            2 => self.comment = body.rest_text()?.into(),
            3 => self.row_format = body.rest_text()?.into(),
            4 => self.order = body.list(Reader::u16)?,
            5 => self.checks = body.list(read_check)?,
            6 => self.foreign_keys = body.list(read_foreign_key)?,
            7 => self.view = Some(read_view(body)?),
            8 => self.temporary = Some((body.text()?.into(), body.text()?.into())),
            9 => self.created_us = body.u64()?,
            10 => self.other = body.list(|body| Ok((body.text()?.into(), body.text()?.into())))?,
            _ => return Err(damaged("unknown field")),
        }
        Ok(())
    }
}

const AUTO_INCREMENT: u8 = 1;
const INVISIBLE: u8 = 1 << 1;
const HIDDEN: u8 = 1 << 2;
const ZEROFILL: u8 = 1 << 3;
const UNSIGNED: u8 = 1 << 4;
const ALL_COLUMN_FLAGS: u8 = AUTO_INCREMENT | INVISIBLE | HIDDEN | ZEROFILL | UNSIGNED;

impl ColumnOptions {
    /// The values of a column of this stored type with these options.
    #[must_use]
    pub fn type_kind(&self, column_type: ColumnType) -> TypeKind {
        let is_named = matches!(column_type, ColumnType::Enum { .. } | ColumnType::Set { .. });
        let members = is_named.then(|| {
            let members = Members::new(self.members.iter().cloned());
            (Arc::new(members), self.member_collation.unwrap_or(DEFAULT_COLLATION))
        });
        TypeKind::from_column_type(column_type, members, self.unsigned)
    }

    fn flags(&self) -> u8 {
        let flag = |set, bit| if set { bit } else { 0 };
        flag(self.auto_increment, AUTO_INCREMENT)
            | flag(self.invisible, INVISIBLE)
            | flag(self.hidden, HIDDEN)
            | flag(self.zerofill, ZEROFILL)
            | flag(self.unsigned, UNSIGNED)
    }

    fn set_flags(&mut self, flags: u8) -> Result<()> {
        if flags & !ALL_COLUMN_FLAGS != 0 {
            return Err(damaged("column flags"));
        }
        self.auto_increment = flags & AUTO_INCREMENT != 0;
        self.invisible = flags & INVISIBLE != 0;
        self.hidden = flags & HIDDEN != 0;
        self.zerofill = flags & ZEROFILL != 0;
        self.unsigned = flags & UNSIGNED != 0;
        Ok(())
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        if self.flags() != 0 {
            writer.field(1, |body| body.u8(self.flags()));
        }
        writer.list(2, &self.members, |body, name| body.text(name));
        if let Some(collation) = self.member_collation {
            writer.field(3, |body| body.u16(collation.0));
        }
        writer.text(4, &self.comment);
        if let Some(generated) = &self.generated {
            writer.field(5, |body| {
                body.u8(generated.stored.into());
                body.rest(generated.text.as_bytes());
            });
        }
        if let Some(fsp) = self.on_update_now {
            writer.field(6, |body| body.u8(fsp));
        }
        if let Some(width) = self.display_width {
            writer.field(7, |body| body.u16(width));
        }
        if let Some(decimals) = self.display_decimals {
            writer.field(8, |body| body.u8(decimals));
        }
        writer.text(9, &self.geometry);
        writer.finish()
    }

    /// Reads what [`ColumnOptions::encode`] wrote. The bytes are untrusted.
    ///
    /// # Errors
    /// 1712 for bytes that are not options.
    pub fn decode(bytes: &[u8]) -> Result<ColumnOptions> {
        let mut options = ColumnOptions::default();
        each_field(bytes, |tag, body| options.read_field(tag, body))?;
        Ok(options)
    }

    fn read_field(&mut self, tag: u8, body: &mut Reader<'_>) -> Result<()> {
        match tag {
            1 => self.set_flags(body.u8()?)?,
            2 => self.members = body.list(|body| Ok(body.text()?.into()))?,
            3 => self.member_collation = Some(CollationId(body.u16()?)),
            4 => self.comment = body.rest_text()?.into(),
            5 => {
                let stored = body.u8()? != 0;
                self.generated = Some(Generated { stored, text: body.rest_text()?.into() });
            }
            6 => self.on_update_now = Some(body.u8()?),
            7 => self.display_width = Some(body.u16()?),
            8 => self.display_decimals = Some(body.u8()?),
            9 => self.geometry = body.rest_text()?.into(),
            _ => return Err(damaged("unknown field")),
        }
        Ok(())
    }
}

impl IndexOptions {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let flags = u8::from(self.invisible) | u8::from(self.implicit) << 1;
        if flags != 0 {
            writer.field(1, |body| body.u8(flags));
        }
        writer.text(2, &self.comment);
        if let Some(using) = &self.using {
            writer.field(3, |body| body.rest(using.as_bytes()));
        }
        if let Some(special) = self.special {
            writer.field(4, |body| body.u8(special as u8));
        }
        writer.finish()
    }

    /// Reads what [`IndexOptions::encode`] wrote. The bytes are untrusted.
    ///
    /// # Errors
    /// 1712 for bytes that are not options.
    pub fn decode(bytes: &[u8]) -> Result<IndexOptions> {
        let mut options = IndexOptions::default();
        each_field(bytes, |tag, body| options.read_field(tag, body))?;
        Ok(options)
    }

    fn read_field(&mut self, tag: u8, body: &mut Reader<'_>) -> Result<()> {
        match tag {
            1 => {
                let flags = body.u8()?;
                (self.invisible, self.implicit) = (flags & 1 != 0, flags & 2 != 0);
            }
            2 => self.comment = body.rest_text()?.into(),
            3 => self.using = Some(body.rest_text()?.into()),
            4 => {
                self.special = Some(match body.u8()? {
                    0 => SpecialIndex::FullText,
                    1 => SpecialIndex::Spatial,
                    _ => return Err(damaged("kind of index")),
                });
            }
            _ => return Err(damaged("unknown field")),
        }
        Ok(())
    }
}

fn write_check(body: &mut Body, check: &CheckModel) {
    body.text(&check.name);
    body.text(&check.text);
    body.u8(check.enforced.into());
}

fn read_check(body: &mut Reader<'_>) -> Result<CheckModel> {
    let (name, text) = (body.text()?.into(), body.text()?.into());
    Ok(CheckModel { name, text, enforced: body.u8()? != 0 })
}

fn write_foreign_key(body: &mut Body, key: &ForeignKeyModel) {
    body.text(&key.name);
    body.list(&key.columns, |body, ordinal| body.u16(*ordinal));
    body.text(&key.parent_schema);
    body.text(&key.parent_table);
    body.list(&key.parent_columns, |body, name| body.text(name));
    body.u8(key.on_delete as u8);
    body.u8(key.on_update as u8);
}

fn read_foreign_key(body: &mut Reader<'_>) -> Result<ForeignKeyModel> {
    Ok(ForeignKeyModel {
        name: body.text()?.into(),
        columns: body.list(Reader::u16)?,
        parent_schema: body.text()?.into(),
        parent_table: body.text()?.into(),
        parent_columns: body.list(|body| Ok(body.text()?.into()))?,
        on_delete: read_action(body)?,
        on_update: read_action(body)?,
    })
}

fn read_action(body: &mut Reader<'_>) -> Result<ReferentialAction> {
    Ok(match body.u8()? {
        0 => ReferentialAction::NoAction,
        1 => ReferentialAction::Restrict,
        2 => ReferentialAction::Cascade,
        3 => ReferentialAction::SetNull,
        4 => ReferentialAction::SetDefault,
        _ => return Err(damaged("referential action")),
    })
}

fn write_view(body: &mut Body, view: &ViewModel) {
    body.text(&view.body);
    body.text(&view.schema);
    body.text(&view.definer);
    body.u8(view.security_definer.into());
    body.u8(view.algorithm as u8);
    body.u8(view.check_option as u8);
}

fn read_view(body: &mut Reader<'_>) -> Result<ViewModel> {
    Ok(ViewModel {
        body: body.text()?.into(),
        schema: body.text()?.into(),
        definer: body.text()?.into(),
        security_definer: body.u8()? != 0,
        algorithm: match body.u8()? {
            0 => ViewAlgorithm::Undefined,
            1 => ViewAlgorithm::Merge,
            2 => ViewAlgorithm::TemporaryTable,
            _ => return Err(damaged("algorithm of a view")),
        },
        check_option: match body.u8()? {
            0 => CheckOption::None,
            1 => CheckOption::Local,
            2 => CheckOption::Cascaded,
            _ => return Err(damaged("check option of a view")),
        },
    })
}
