//! Indexes of a draft: their parts, names and limits.

use std::sync::Arc;

use firn_format::value::CollationId;
use firn_sql_grammar::ast;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{SqlType, TypeKind};

use super::super::model::{
    ColumnModel, DefaultValue, Generated, IndexModel, IndexPartModel, SpecialIndex, same_name,
};
use super::super::type_text;
use super::column::{blank, null_in_primary_key};
use super::table_builder::{NEW_INDEX, TableDraft, duplicate_column};
use super::{DdlContext, check_identifier, expression_text};

const MAX_INDEXES: usize = 64;
const MAX_PARTS: usize = 16;
/// Bytes of a part, and of a key.
const MAX_KEY_BYTES: u64 = 3072;
/// Characters of a long text in a full-text index's stand-in.
const FULL_TEXT_PREFIX: u32 = 64;

/// Adds an index to the draft. Its name may be missing.
///
/// # Errors
/// What MySQL refuses: unknown columns, parts that cannot be indexed, too many or too long ones,
/// duplicate names.
pub(super) fn add(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    definition: &ast::IndexDefinition,
) -> Result<()> {
    let primary = definition.kind == ast::IndexKind::Primary;
    if primary && draft.primary_key().is_some() {
        return Err(SqlError::new(1068, "Multiple primary key defined"));
    }
    if definition.parts.len() > MAX_PARTS {
        return Err(SqlError::new(1070, "Too many key parts specified; max 16 parts allowed"));
    }
    let name = index_name(draft, definition)?;
    let special = match definition.kind {
        ast::IndexKind::Fulltext => Some(SpecialIndex::FullText),
        ast::IndexKind::Spatial => Some(SpecialIndex::Spatial),
        _ => None,
    };
    let mut parts: Vec<IndexPartModel> = Vec::with_capacity(definition.parts.len());
    for (at, part) in definition.parts.iter().enumerate() {
        let part = index_part(context, draft, part, special, primary, &name, at)?;
        if parts.iter().any(|other| other.ordinal == part.ordinal) {
            let name = draft.numbered(part.ordinal).map_or("", |column| &column.name);
            return Err(duplicate_column(name));
        }
        parts.push(part);
    }
    let index = IndexModel {
        number: NEW_INDEX,
        name,
        unique: matches!(definition.kind, ast::IndexKind::Primary | ast::IndexKind::Unique),
        primary,
        visible: definition.visible != Some(false),
        parts,
        comment: definition.comment.as_deref().unwrap_or_default().into(),
        using: definition.algorithm.as_deref().map(Arc::from),
        implicit: false,
        special,
    };
    push(draft, index)
}

/// Adds an index that is complete.
///
/// # Errors
/// 1069 for too many, 1071 for keys that are too long, 1171 for a primary key that may be NULL,
/// 3522 for an invisible one.
pub(super) fn push(draft: &mut TableDraft, index: IndexModel) -> Result<()> {
    if draft.indexes.len() >= MAX_INDEXES {
        return Err(SqlError::new(1069, "Too many keys specified; max 64 keys allowed"));
    }
    check_key_length(draft, &index)?;
    if index.primary {
        if !index.visible {
            return Err(SqlError::new(3522, "A primary key index cannot be invisible"));
        }
        draft.indexes.insert(0, index);
    } else {
        draft.indexes.push(index);
    }
    Ok(())
}

fn index_name(draft: &TableDraft, definition: &ast::IndexDefinition) -> Result<Arc<str>> {
    if definition.kind == ast::IndexKind::Primary {
        return Ok("PRIMARY".into());
    }
    let Some(name) = &definition.name else {
        let base = match definition.parts.first().map(|part| &part.source) {
            Some(ast::KeySource::Column { name, .. }) => {
                draft.column(name).map_or(name.as_str(), |column| &column.name)
            }
            _ => "functional_index",
        };
        return Ok(free_index_name(draft, base));
    };
    check_identifier(name)?;
    if name.is_empty() || same_name(name, "PRIMARY") || name.ends_with(' ') {
        return Err(SqlError::new(1280, format!("Incorrect index name '{name}'")));
    }
    if has_index(draft, name) {
        return Err(duplicate_index(name));
    }
    Ok(name.as_str().into())
}

pub(super) fn has_index(draft: &TableDraft, name: &str) -> bool {
    draft.indexes.iter().any(|index| same_name(&index.name, name))
}

/// `a`, or `a_2`, `a_3` … if that name exists.
pub(super) fn free_index_name(draft: &TableDraft, base: &str) -> Arc<str> {
    if !has_index(draft, base) && !same_name(base, "PRIMARY") {
        return base.into();
    }
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    numbered.into_iter().find(|name| !has_index(draft, name)).unwrap_or_default().into()
}

/// `Duplicate key name 'k'`
pub(super) fn duplicate_index(name: &str) -> SqlError {
    SqlError::new(1061, format!("Duplicate key name '{name}'"))
}

fn index_part(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    part: &ast::KeyPart,
    special: Option<SpecialIndex>,
    primary: bool,
    index: &str,
    at: usize,
) -> Result<IndexPartModel> {
    let (ordinal, prefix) = match &part.source {
        ast::KeySource::Column { name, prefix_length } => {
            let column = draft.column(name).ok_or_else(|| {
                SqlError::new(1072, format!("Key column '{name}' doesn't exist in table"))
            })?;
            (column.ordinal, checked_prefix(column, *prefix_length, special)?)
        }
        ast::KeySource::Expression(_) if primary => {
            return Err(SqlError::new(3756, "The primary key cannot be a functional index"));
        }
        ast::KeySource::Expression(expression) => {
            let name = format!("!hidden!{index}!{at}!0");
            (add_hidden_column(context, draft, expression, &name)?, None)
        }
    };
    if primary {
        let column = draft.columns.iter_mut().find(|column| column.ordinal == ordinal);
        column.map_or(Ok(()), require_not_null)?;
    }
    Ok(IndexPartModel { ordinal, prefix, descending: part.descending })
}

/// A column of a primary key is NOT NULL without saying so.
fn require_not_null(column: &mut ColumnModel) -> Result<()> {
    if column.default == DefaultValue::Null {
        column.default = DefaultValue::None;
    }
    if column.generated.as_ref().is_some_and(|generated| !generated.stored) {
        let what = "Defining a virtual generated column as primary key";
        return Err(SqlError::new(
            3106,
            format!("'{what}' is not supported for generated columns."),
        ));
    }
    column.ty.nullable = false;
    Ok(())
}

/// Refuses an explicit `NULL` on a primary key column.
pub(super) fn check_primary_columns(
    definition: &ast::CreateTable,
    draft: &TableDraft,
) -> Result<()> {
    let Some(primary) = draft.primary_key() else { return Ok(()) };
    for element in &definition.elements {
        let ast::TableElement::Column(column) = element else { continue };
        let is_in_key = primary.parts.iter().any(|part| {
            draft.numbered(part.ordinal).is_some_and(|own| same_name(&own.name, &column.name))
        });
        if is_in_key && column.nullable == Some(true) {
            return Err(null_in_primary_key());
        }
    }
    Ok(())
}

fn add_hidden_column(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    expression: &ast::Expr,
    name: &str,
) -> Result<u16> {
    let text = expression_text(expression);
    let ty = context.expression_type(draft, expression)?;
    if matches!(ty.kind, TypeKind::Text { .. } | TypeKind::Blob { .. }) {
        let message = "Cannot create a functional index on an expression that returns a BLOB or \
                       TEXT. Please consider using CAST.";
        return Err(SqlError::new(3757, message));
    }
    if matches!(ty.kind, TypeKind::Json) {
        let message =
            "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.";
        return Err(SqlError::new(3753, message));
    }
    let ordinal = draft.take_number();
    let column = ColumnModel {
        ty: SqlType { nullable: true, ..ty },
        generated: Some(Generated { text: text.into(), stored: false }),
        invisible: true,
        hidden: true,
        ..blank(name, ordinal)
    };
    draft.add_column(column, None)?;
    Ok(ordinal)
}

fn checked_prefix(
    column: &ColumnModel,
    prefix: Option<u32>,
    special: Option<SpecialIndex>,
) -> Result<Option<u32>> {
    let name = &column.name;
    let kind = &column.ty.kind;
    let incorrect = || {
        SqlError::new(
            1089,
            "Incorrect prefix key; the used key part isn't a string, the used length is longer than \
             the key part, or the storage engine doesn't support unique prefix keys",
        )
    };
    if matches!(kind, TypeKind::Json) {
        let message = format!(
            "JSON column '{name}' supports indexing only via generated columns on a specified JSON path."
        );
        return Err(SqlError::new(3152, message));
    }
    let is_long =
        matches!(kind, TypeKind::Text { .. } | TypeKind::Blob { .. } | TypeKind::Geometry);
    match special {
        Some(_) if is_long => return Ok(Some(FULL_TEXT_PREFIX)),
        Some(SpecialIndex::FullText) if !kind.is_text() => {
            let message = format!("Column '{name}' cannot be part of FULLTEXT index");
            return Err(SqlError::new(1283, message));
        }
        Some(_) => {
            return Ok(length_of(kind)
                .filter(|length| *length > FULL_TEXT_PREFIX)
                .map(|_| FULL_TEXT_PREFIX));
        }
        None => {}
    }
    let Some(prefix) = prefix else {
        if is_long {
            let message =
                format!("BLOB/TEXT column '{name}' used in key specification without a key length");
            return Err(SqlError::new(1170, message));
        }
        return Ok(None);
    };
    if prefix == 0 {
        return Err(SqlError::new(1391, format!("Key part '{name}' length cannot be 0")));
    }
    if !kind.is_string() {
        return Err(incorrect());
    }
    match length_of(kind) {
        Some(length) if prefix > length => Err(incorrect()),
        Some(length) if prefix == length => Ok(None),
        _ => Ok(Some(prefix)),
    }
}

/// The maximal length of values; a prefix of that length is not a prefix.
fn length_of(kind: &TypeKind) -> Option<u32> {
    match kind {
        TypeKind::Char { max_chars, .. } | TypeKind::Varchar { max_chars, .. } => Some(*max_chars),
        TypeKind::Binary { max_bytes } | TypeKind::Varbinary { max_bytes } => Some(*max_bytes),
        _ => None,
    }
}

fn check_key_length(draft: &TableDraft, index: &IndexModel) -> Result<()> {
    if index.special.is_some() {
        return Ok(());
    }
    let bytes = index.parts.iter().map(|part| {
        draft.numbered(part.ordinal).map_or(0, |column| part_bytes(column, part.prefix))
    });
    let bytes: Vec<u64> = bytes.collect();
    if bytes.iter().any(|bytes| *bytes > MAX_KEY_BYTES) || bytes.iter().sum::<u64>() > MAX_KEY_BYTES
    {
        let message = "Specified key was too long; max key length is 3072 bytes";
        return Err(SqlError::new(1071, message));
    }
    Ok(())
}

fn part_bytes(column: &ColumnModel, prefix: Option<u32>) -> u64 {
    let of_characters = |characters: u32, collation: CollationId| {
        u64::from(characters) * u64::from(type_text::charset(collation).max_character_bytes())
    };
    match &column.ty.kind {
        TypeKind::Char { max_chars, collation } | TypeKind::Varchar { max_chars, collation } => {
            of_characters(prefix.unwrap_or(*max_chars), *collation)
        }
        TypeKind::Text { collation, .. } => of_characters(prefix.unwrap_or(0), *collation),
        TypeKind::Binary { max_bytes } | TypeKind::Varbinary { max_bytes } => {
            prefix.unwrap_or(*max_bytes).into()
        }
        TypeKind::Blob { .. } => prefix.unwrap_or(0).into(),
        _ => super::column::row_bytes(column),
    }
}

/// Refuses key lengths that a change of their columns has made too long.
pub(super) fn check_all_lengths(draft: &TableDraft) -> Result<()> {
    draft.indexes.iter().try_for_each(|index| check_key_length(draft, index))
}
