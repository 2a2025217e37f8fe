//! A column from its definition in a statement: type, collation, allowed values.

use std::sync::Arc;

use firn_format::value::{CollationId, ColumnType as StoredType, DecimalType};
use firn_sql_collation::Charset;
use firn_sql_grammar::ast;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{IntWidth, Members, SqlType, TypeKind};

use super::super::model::{ColumnModel, DefaultValue, Generated};
use super::super::options::ColumnOptions;
use super::super::type_text;
use super::charset;
use super::{DdlContext, check_identifier, default, deprecated, expression_text};

const MAX_FSP: u8 = 6;
const MAX_DISPLAY_WIDTH: u32 = 255;
const MAX_DECIMAL_PRECISION: u32 = 65;
const MAX_DECIMAL_SCALE: u32 = 30;
const MAX_CHAR_LENGTH: u32 = 255;
const MAX_ROW_BYTES: u32 = 65_535;
const MAX_ENUM_MEMBERS: usize = 65_535;
const MAX_SET_MEMBERS: usize = 64;

/// A column as the statement defines it; `ordinal` is its number in the draft. A primary key
/// elsewhere in the statement is ignored here.
///
/// # Errors
/// What MySQL refuses: types out of range, defaults that do not fit, contradictory attributes.
pub(super) fn column(
    context: &DdlContext<'_>,
    definition: &ast::ColumnDefinition,
    ordinal: u16,
    table_collation: CollationId,
) -> Result<ColumnModel> {
    let name = definition.name.as_str();
    check_column_name(name)?;
    let mut column = ColumnModel {
        on_update_now: definition.on_update_now,
        generated: definition.generated.as_ref().map(generated),
        auto_increment: definition.auto_increment,
        invisible: definition.visible == Some(false),
        comment: definition.comment.as_deref().unwrap_or_default().into(),
        ..blank(name, ordinal)
    };
    check_comment(name, &column.comment)?;
    deprecated::warn(context, definition);
    let kind = set_type(&mut column, &definition.column_type, table_collation)?;
    let not_null =
        definition.nullable == Some(false) || definition.primary_key || definition.auto_increment;
    if definition.primary_key && definition.nullable == Some(true) {
        return Err(null_in_primary_key());
    }
    column.ty = SqlType::of_column(kind, !not_null);
    check_attributes(&column, definition)?;
    column.default = default::of_column(context, &column, definition.default.as_ref())?;
    Ok(column)
}

/// The kind of values of a column type as written.
///
/// # Errors
/// Types out of range.
pub fn kind(name: &str, column_type: &ast::ColumnType, collation: CollationId) -> Result<TypeKind> {
    let mut column = blank(name, 0);
    set_type(&mut column, column_type, collation)
}

pub(super) fn blank(name: &str, ordinal: u16) -> ColumnModel {
    ColumnModel {
        ordinal,
        name: name.into(),
        ty: SqlType::null(),
        default: DefaultValue::None,
        on_update_now: None,
        generated: None,
        auto_increment: false,
        invisible: false,
        hidden: false,
        comment: Arc::default(),
        zerofill: false,
        unsigned: false,
        display_width: None,
        display_decimals: None,
        geometry: Arc::default(),
    }
}

pub(super) fn null_in_primary_key() -> SqlError {
    SqlError::new(
        1171,
        "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead",
    )
}

fn generated(generated: &ast::Generated) -> Generated {
    Generated { text: expression_text(&generated.expression).into(), stored: generated.stored }
}

fn check_column_name(name: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') {
        return Err(incorrect_name(name));
    }
    check_identifier(name)
}

/// How much of a name an error shows.
const SHOWN_NAME_BYTES: usize = 100;

/// Whether a result column with this name can become a table column.
pub(super) fn is_result_name(name: &str) -> bool {
    !name.is_empty() && !name.ends_with(' ') && check_identifier(name).is_ok()
}

/// Refuses a query column's name that no table column can have.
///
/// # Errors
/// 1166.
pub(super) fn check_result_name(name: &str) -> Result<()> {
    if is_result_name(name) { Ok(()) } else { Err(incorrect_name(name)) }
}

fn incorrect_name(name: &str) -> SqlError {
    let name = &name[..name.floor_char_boundary(SHOWN_NAME_BYTES)];
    SqlError::new(1166, format!("Incorrect column name '{name}'"))
}

fn check_comment(name: &str, comment: &str) -> Result<()> {
    if comment.chars().count() > 1024 {
        let message = format!("Comment for field '{name}' is too long (max = 1024)");
        return Err(SqlError::new(1629, message));
    }
    Ok(())
}

fn check_attributes(column: &ColumnModel, definition: &ast::ColumnDefinition) -> Result<()> {
    let name = &column.name;
    let kind = &column.ty.kind;
    let can_count = matches!(kind, TypeKind::Integer { .. });
    if column.auto_increment && !can_count {
        return Err(SqlError::new(1063, format!("Incorrect column specifier for column '{name}'")));
    }
    if let Some(fsp) = column.on_update_now {
        let is_point_in_time =
            matches!(kind, TypeKind::DateTime { .. } | TypeKind::Timestamp { .. });
        if !is_point_in_time || kind.fsp() != fsp {
            return Err(SqlError::new(
                1294,
                format!("Invalid ON UPDATE clause for '{name}' column"),
            ));
        }
    }
    if column.generated.is_some() {
        let wrong =
            |what| SqlError::new(1221, format!("Incorrect usage of {what} and generated column"));
        if definition.default.is_some() {
            return Err(wrong("DEFAULT"));
        }
        if column.auto_increment {
            return Err(wrong("AUTO_INCREMENT"));
        }
        if column.on_update_now.is_some() {
            return Err(wrong("ON UPDATE"));
        }
    }
    Ok(())
}

/// Sets the column's properties that follow from the type and returns the kind of its values.
fn set_type(
    column: &mut ColumnModel,
    column_type: &ast::ColumnType,
    table_collation: CollationId,
) -> Result<TypeKind> {
    let name = Arc::clone(&column.name);
    Ok(match column_type {
        ast::ColumnType::Integer(size, width, attributes) => {
            integer(column, *size, *width, *attributes)?
        }
        ast::ColumnType::Decimal(precision, scale, attributes) => {
            set_number_attributes(column, *attributes);
            decimal(&name, *precision, *scale, column.unsigned)?
        }
        ast::ColumnType::Float(digits, attributes) => {
            set_number_attributes(column, *attributes);
            set_float_digits(column, *digits)?;
            TypeKind::Float
        }
        ast::ColumnType::Double(digits, attributes) => {
            set_number_attributes(column, *attributes);
            set_float_digits(column, *digits)?;
            TypeKind::Double
        }
        ast::ColumnType::Bit(bits) => bit(&name, bits.unwrap_or(1))?,
        ast::ColumnType::Char(length, attributes) => {
            let length = length.unwrap_or(1);
            if length > MAX_CHAR_LENGTH {
                return Err(too_long(&name, MAX_CHAR_LENGTH));
            }
            character(attributes, table_collation, Some(length), |collation| match collation {
                CollationId::BINARY => TypeKind::Binary { max_bytes: length },
                collation => TypeKind::Char { max_chars: length, collation },
            })?
        }
        ast::ColumnType::Varchar(length, attributes) => {
            varchar(&name, *length, attributes, table_collation)?
        }
        ast::ColumnType::Text(size, length, attributes) => {
            text(*size, *length, attributes, table_collation)?
        }
        ast::ColumnType::Binary(length) => match length.unwrap_or(1) {
            length if length > MAX_CHAR_LENGTH => return Err(too_long(&name, MAX_CHAR_LENGTH)),
            max_bytes => TypeKind::Binary { max_bytes },
        },
        ast::ColumnType::Varbinary(length) if *length > MAX_ROW_BYTES => {
            return Err(too_long(&name, MAX_ROW_BYTES));
        }
        ast::ColumnType::Varbinary(length) => TypeKind::Varbinary { max_bytes: *length },
        ast::ColumnType::Blob(size, length) => {
            TypeKind::Blob { max_bytes: length.map_or(lob_bytes(*size), lob_bytes_for) }
        }
        ast::ColumnType::Enum(names, attributes) => {
            let collation = collation_of(attributes, table_collation)?;
            let members = members(&name, names, collation, "ENUM", MAX_ENUM_MEMBERS)?;
            TypeKind::Enum { members, collation }
        }
        ast::ColumnType::Set(names, attributes) => {
            let collation = collation_of(attributes, table_collation)?;
            if let Some(illegal) = names.iter().find(|name| name.contains(',')) {
                let message = format!("Illegal set '{illegal}' value found during parsing");
                return Err(SqlError::new(1367, message));
            }
            let members = members(&name, names, collation, "SET", MAX_SET_MEMBERS)?;
            TypeKind::Set { members, collation }
        }
        ast::ColumnType::Date => TypeKind::Date,
        ast::ColumnType::Time(fsp) => TypeKind::Time { fsp: checked_fsp(&name, *fsp)? },
        ast::ColumnType::Datetime(fsp) => TypeKind::DateTime { fsp: checked_fsp(&name, *fsp)? },
        ast::ColumnType::Timestamp(fsp) => TypeKind::Timestamp { fsp: checked_fsp(&name, *fsp)? },
        ast::ColumnType::Year => TypeKind::Year,
        ast::ColumnType::Json => TypeKind::Json,
        ast::ColumnType::Geometry(subtype) => {
            column.geometry = match subtype.to_lowercase() {
                geometry if geometry == "geometry" => Arc::default(),
                collection if collection == "geometrycollection" => "geomcollection".into(),
                other => other.into(),
            };
            TypeKind::Geometry
        }
        ast::ColumnType::Vector(_) => return Err(SqlError::not_supported("VECTOR")),
    })
}

fn set_number_attributes(column: &mut ColumnModel, attributes: ast::NumberAttributes) {
    column.unsigned = attributes.unsigned || attributes.zerofill;
    column.zerofill = attributes.zerofill;
}

fn integer(
    column: &mut ColumnModel,
    size: ast::IntegerSize,
    width: Option<u32>,
    attributes: ast::NumberAttributes,
) -> Result<TypeKind> {
    set_number_attributes(column, attributes);
    if width.is_some_and(|width| width > MAX_DISPLAY_WIDTH) {
        return Err(display_width_out_of_range(&column.name, MAX_DISPLAY_WIDTH));
    }
    let (stored, zerofill_width) = match size {
        ast::IntegerSize::Tiny => (IntWidth::One, 3),
        ast::IntegerSize::Small => (IntWidth::Two, 5),
        ast::IntegerSize::Medium => (IntWidth::Three, 8),
        ast::IntegerSize::Int => (IntWidth::Four, 10),
        ast::IntegerSize::Big => (IntWidth::Eight, 20),
    };
    // Display widths are shown only where they change how a client interprets the column.
    column.display_width = match width {
        _ if column.zerofill => Some(width.map_or(zerofill_width, |width| width as u16)),
        Some(1) if stored == IntWidth::One && !column.unsigned => Some(1),
        _ => None,
    };
    Ok(TypeKind::Integer { width: stored, unsigned: column.unsigned })
}

fn decimal(
    name: &str,
    precision: Option<u32>,
    scale: Option<u32>,
    unsigned: bool,
) -> Result<TypeKind> {
    let scale = scale.unwrap_or(0);
    let precision = match precision {
        None | Some(0) => 10,
        Some(precision) => precision,
    };
    if scale > MAX_DECIMAL_SCALE {
        let message =
            format!("Too big scale {scale} specified for column '{name}'. Maximum is 30.");
        return Err(SqlError::new(1425, message));
    }
    if precision > MAX_DECIMAL_PRECISION {
        return Err(too_precise(name, precision, MAX_DECIMAL_PRECISION));
    }
    if scale > precision {
        return Err(scale_over_precision(name));
    }
    Ok(TypeKind::Decimal { precision: precision as u8, scale: scale as u8, unsigned })
}

fn scale_over_precision(name: &str) -> SqlError {
    let message =
        format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{name}').");
    SqlError::new(1427, message)
}

fn set_float_digits(column: &mut ColumnModel, digits: Option<(u32, u32)>) -> Result<()> {
    let Some((width, decimals)) = digits else { return Ok(()) };
    if width > MAX_DISPLAY_WIDTH {
        return Err(display_width_out_of_range(&column.name, MAX_DISPLAY_WIDTH));
    }
    if decimals > MAX_DECIMAL_SCALE {
        let name = &column.name;
        let message =
            format!("Too big scale {decimals} specified for column '{name}'. Maximum is 30.");
        return Err(SqlError::new(1425, message));
    }
    if decimals > width {
        return Err(scale_over_precision(&column.name));
    }
    column.display_width = Some(width as u16);
    column.display_decimals = Some(decimals as u8);
    Ok(())
}

fn bit(name: &str, bits: u32) -> Result<TypeKind> {
    match bits {
        0 => Err(SqlError::new(3013, format!("Invalid size for column '{name}'."))),
        1..=64 => Ok(TypeKind::Bit { bits: bits as u8 }),
        _ => Err(display_width_out_of_range(name, 64)),
    }
}

fn collation_of(attributes: &ast::TextAttributes, table: CollationId) -> Result<CollationId> {
    let named = charset::resolve(attributes.charset.as_deref(), attributes.collation.as_deref())?;
    let collation = named.unwrap_or(table);
    if attributes.binary {
        return Ok(charset::binary_collation(type_text::charset(collation)));
    }
    Ok(collation)
}

fn character(
    attributes: &ast::TextAttributes,
    table: CollationId,
    _length: Option<u32>,
    kind: impl FnOnce(CollationId) -> TypeKind,
) -> Result<TypeKind> {
    Ok(kind(collation_of(attributes, table)?))
}

fn varchar(
    name: &str,
    length: u32,
    attributes: &ast::TextAttributes,
    table: CollationId,
) -> Result<TypeKind> {
    let collation = collation_of(attributes, table)?;
    let max = MAX_ROW_BYTES / type_text::charset(collation).max_character_bytes();
    if length > max {
        return Err(too_long(name, max));
    }
    Ok(match collation {
        CollationId::BINARY => TypeKind::Varbinary { max_bytes: length },
        collation => TypeKind::Varchar { max_chars: length, collation },
    })
}

fn text(
    size: ast::LobSize,
    length: Option<u64>,
    attributes: &ast::TextAttributes,
    table: CollationId,
) -> Result<TypeKind> {
    let collation = collation_of(attributes, table)?;
    let charset = type_text::charset(collation);
    let bytes = length.map(|length| length.saturating_mul(charset.max_character_bytes().into()));
    let max_bytes = bytes.map_or(lob_bytes(size), lob_bytes_for);
    Ok(match charset {
        Charset::Binary => TypeKind::Blob { max_bytes },
        _ => TypeKind::Text { max_bytes, collation },
    })
}

fn lob_bytes(size: ast::LobSize) -> u32 {
    match size {
        ast::LobSize::Tiny => 0xff,
        ast::LobSize::Normal => 0xffff,
        ast::LobSize::Medium => 0xff_ffff,
        ast::LobSize::Long => u32::MAX,
    }
}

/// The smallest type for this many bytes.
fn lob_bytes_for(bytes: u64) -> u32 {
    match bytes {
        0 => 0xffff,
        1..=0xff => 0xff,
        0x100..=0xffff => 0xffff,
        0x1_0000..=0xff_ffff => 0xff_ffff,
        _ => u32::MAX,
    }
}

fn members(
    column: &str,
    names: &[String],
    collation: CollationId,
    what: &str,
    max: usize,
) -> Result<Arc<Members>> {
    if names.len() > max {
        let message = format!("Too many strings for column {column} and {what}");
        return Err(SqlError::new(1097, message));
    }
    let collation = firn_sql_collation::get(collation);
    let names: Vec<&str> = names.iter().map(|name| name.trim_end_matches(' ')).collect();
    for (at, name) in names.iter().enumerate() {
        if names[..at].iter().any(|other| collation.equal(other.as_bytes(), name.as_bytes())) {
            let message = format!("Column '{column}' has duplicated value '{name}' in {what}");
            return Err(SqlError::new(1291, message));
        }
    }
    Ok(Arc::new(Members::new(names)))
}

fn checked_fsp(name: &str, fsp: u8) -> Result<u8> {
    if fsp > MAX_FSP {
        return Err(too_precise(name, fsp.into(), MAX_FSP.into()));
    }
    Ok(fsp)
}

fn too_precise(name: &str, precision: u32, max: u32) -> SqlError {
    let message =
        format!("Too-big precision {precision} specified for '{name}'. Maximum is {max}.");
    SqlError::new(1426, message)
}

fn too_long(name: &str, max: u32) -> SqlError {
    let message = format!(
        "Column length too big for column '{name}' (max = {max}); use BLOB or TEXT instead"
    );
    SqlError::new(1074, message)
}

fn display_width_out_of_range(name: &str, max: u32) -> SqlError {
    SqlError::new(1439, format!("Display width out of range for column '{name}' (max = {max})"))
}

/// How the values of a column are stored, and the properties that only SQL knows.
pub(crate) fn stored(column: &ColumnModel) -> Result<(StoredType, ColumnOptions)> {
    let mut options = ColumnOptions {
        auto_increment: column.auto_increment,
        invisible: column.invisible && !column.hidden,
        hidden: column.hidden,
        zerofill: column.zerofill,
        unsigned: column.unsigned && !matches!(column.ty.kind, TypeKind::Integer { .. }),
        comment: Arc::clone(&column.comment),
        generated: column.generated.clone(),
        on_update_now: column.on_update_now,
        display_width: column.display_width,
        display_decimals: column.display_decimals,
        geometry: Arc::clone(&column.geometry),
        ..ColumnOptions::default()
    };
    if let TypeKind::Enum { members, collation } | TypeKind::Set { members, collation } =
        &column.ty.kind
    {
        options.members = members.names().to_vec();
        options.member_collation =
            (*collation != super::super::options::DEFAULT_COLLATION).then_some(*collation);
    }
    Ok((stored_type(&column.ty.kind)?, options))
}

fn stored_type(kind: &TypeKind) -> Result<StoredType> {
    Ok(match kind {
        TypeKind::Integer { width, unsigned: false } => StoredType::Int(*width),
        TypeKind::Integer { width, unsigned: true } => StoredType::UInt(*width),
        TypeKind::Bit { bits } => StoredType::Bit { bits: *bits },
        TypeKind::Year => StoredType::Year,
        TypeKind::Decimal { precision, scale, .. } => {
            let decimal = DecimalType::new(*precision, *scale);
            StoredType::Decimal(decimal.ok_or_else(|| SqlError::new(1426, "impossible DECIMAL"))?)
        }
        TypeKind::Float => StoredType::Float,
        TypeKind::Double => StoredType::Double,
        TypeKind::Char { max_chars, collation } => {
            StoredType::Char { max_chars: *max_chars, collation: *collation }
        }
        TypeKind::Varchar { max_chars, collation } => {
            StoredType::Varchar { max_chars: *max_chars, collation: *collation }
        }
        TypeKind::Text { max_bytes, collation } => {
            StoredType::Text { max_bytes: *max_bytes, collation: *collation }
        }
        // A NULL without a type is stored as in MySQL, in a string of length zero.
        TypeKind::Null => StoredType::Binary { max_bytes: 0 },
        TypeKind::Binary { max_bytes } => StoredType::Binary { max_bytes: *max_bytes },
        TypeKind::Varbinary { max_bytes } => StoredType::Varbinary { max_bytes: *max_bytes },
        TypeKind::Blob { max_bytes } => StoredType::Blob { max_bytes: *max_bytes },
        TypeKind::Date => StoredType::Date,
        TypeKind::Time { fsp } => StoredType::Time { fsp: *fsp },
        TypeKind::DateTime { fsp } => StoredType::DateTime { fsp: *fsp },
        TypeKind::Timestamp { fsp } => StoredType::Timestamp { fsp: *fsp },
        TypeKind::Enum { members, .. } => {
            StoredType::Enum { members: u16::try_from(members.names().len()).unwrap_or(u16::MAX) }
        }
        TypeKind::Set { members, .. } => {
            StoredType::Set { members: members.names().len().clamp(1, 64) as u8 }
        }
        TypeKind::Json => StoredType::Json,
        TypeKind::Geometry => StoredType::Geometry,
    })
}

/// The bytes of a column in MySQL's longest row, as its documentation counts them.
pub(super) fn row_bytes(column: &ColumnModel) -> u64 {
    let bytes = |characters: u32, collation: CollationId| {
        u64::from(characters) * u64::from(type_text::charset(collation).max_character_bytes())
    };
    let with_length = |bytes: u64| bytes + if bytes > 255 { 2 } else { 1 };
    match &column.ty.kind {
        TypeKind::Char { max_chars, collation } => bytes(*max_chars, *collation),
        TypeKind::Varchar { max_chars, collation } => with_length(bytes(*max_chars, *collation)),
        TypeKind::Binary { max_bytes } => (*max_bytes).into(),
        TypeKind::Varbinary { max_bytes } => with_length((*max_bytes).into()),
        TypeKind::Text { max_bytes, .. } | TypeKind::Blob { max_bytes } => match max_bytes {
            0..=0xff => 9,
            0x100..=0xffff => 10,
            0x1_0000..=0xff_ffff => 11,
            _ => 12,
        },
        TypeKind::Json | TypeKind::Geometry => 12,
        TypeKind::Timestamp { fsp } => 4 + u64::from(fsp.div_ceil(2)),
        TypeKind::Enum { members, .. } if members.names().len() < 256 => 1,
        TypeKind::Set { members, .. } if members.names().len() > 32 => 8,
        kind => stored_type(kind).ok().and_then(StoredType::fixed_length).unwrap_or(8) as u64,
    }
}
