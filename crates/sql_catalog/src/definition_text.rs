//! Parts of definitions as MySQL shows them, for definitions and messages.

use std::fmt::Write as _;

use firn_sql_types::{Datum, TypeKind};

use super::model::{ColumnModel, DefaultValue, ForeignKeyModel, ReferentialAction};
use super::notation::{current_timestamp, hex, identifier, identifiers, literal_text};

/// The text for `COLUMN_DEFAULT` and `SHOW COLUMNS`: the value without quotes; `None` for no
/// default and NULL.
#[must_use]
pub fn default_text(column: &ColumnModel) -> Option<String> {
    match &column.default {
        DefaultValue::None | DefaultValue::Null => None,
        DefaultValue::Expression(text) => Some(text.to_string()),
        DefaultValue::CurrentTimestamp { fsp } => Some(current_timestamp(*fsp)),
        DefaultValue::Literal(datum) => Some(match (&column.ty.kind, datum) {
            (TypeKind::Bit { .. }, Datum::UInt(bits)) => format!("b'{bits:b}'"),
            (kind, Datum::Text(bytes)) if kind.is_binary() && bytes.as_str().is_none() => {
                hex(bytes)
            }
            _ => value_text(datum, column),
        }),
    }
}

/// The text of a column's value: a double has the digits of the definition.
#[must_use]
pub fn value_text(datum: &Datum, column: &ColumnModel) -> String {
    match (datum, column.display_decimals) {
        (Datum::Double(number), Some(decimals)) => {
            format!("{number:.decimals$}", decimals = decimals.into())
        }
        _ => literal_text(datum, &column.ty),
    }
}

/// ``CONSTRAINT `c` FOREIGN KEY (`a`) REFERENCES `p` (`id`) ON DELETE CASCADE``, as in definitions
/// and errors; `schema` is the child's.
#[must_use]
pub fn foreign_key_text(key: &ForeignKeyModel, columns: &[ColumnModel], schema: &str) -> String {
    let named = |ordinal: &u16| columns.iter().find(|column| column.ordinal == *ordinal);
    let children = key.columns.iter().filter_map(named).map(|column| &*column.name);
    let parent = match *key.parent_schema == *schema {
        true => identifier(&key.parent_table),
        false => format!("{}.{}", identifier(&key.parent_schema), identifier(&key.parent_table)),
    };
    let mut text = format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {parent} ({})",
        identifier(&key.name),
        spaced(&identifiers(children)),
        spaced(&identifiers(key.parent_columns.iter().map(|name| &**name)))
    );
    for (action, what) in [(key.on_delete, "DELETE"), (key.on_update, "UPDATE")] {
        if let Some(action) = action_text(action) {
            let _ = write!(text, " ON {what} {action}");
        }
    }
    text
}

/// Foreign keys have a space after each comma, indexes have none.
fn spaced(names: &str) -> String {
    names.replace("`,`", "`, `")
}

/// `CASCADE` and others as definitions show them; `NO ACTION` is not shown.
#[must_use]
pub fn action_text(action: ReferentialAction) -> Option<&'static str> {
    match action {
        ReferentialAction::NoAction => None,
        ReferentialAction::Restrict => Some("RESTRICT"),
        ReferentialAction::Cascade => Some("CASCADE"),
        ReferentialAction::SetNull => Some("SET NULL"),
        ReferentialAction::SetDefault => Some("SET DEFAULT"),
    }
}
