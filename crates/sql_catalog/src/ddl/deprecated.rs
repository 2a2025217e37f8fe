//! Warnings for ways to write a column's type that MySQL may drop.

use firn_sql_grammar::ast::{ColumnDefinition, Deprecated};

use super::DdlContext;

/// Warns of what is deprecated in a column's definition.
pub(super) fn warn(context: &DdlContext<'_>, definition: &ColumnDefinition) {
    for deprecated in &definition.deprecated {
        let (code, message) = warning(deprecated);
        context.evaluation.warn(code, || message);
    }
}

fn warning(deprecated: &Deprecated) -> (u16, String) {
    const LATER: &str = "is deprecated and will be removed in a future release.";
    const UNSIGNED: &str = "is deprecated and support for it will be removed in a future release.";
    const UNAMBIGUOUS: &str = "UTF8MB4 in order to be unambiguous.";
    match deprecated {
        Deprecated::Zerofill => {
            let instead = "Use the LPAD function to zero-pad numbers, or store the formatted \
                           numbers in a CHAR column.";
            (1681, format!("The ZEROFILL attribute {LATER} {instead}"))
        }
        Deprecated::DisplayWidth => (1681, format!("Integer display width {LATER}")),
        Deprecated::FloatingDigits => {
            (1681, format!("Specifying number of digits for floating point data types {LATER}"))
        }
        Deprecated::UnsignedFraction => {
            (1681, format!("UNSIGNED for decimal and floating point data types {UNSIGNED}"))
        }
        Deprecated::UnsignedYear => (1681, format!("UNSIGNED for the YEAR data type {UNSIGNED}")),
        Deprecated::YearWidth => (1287, format!("'YEAR(4)' {LATER} Please use YEAR instead")),
        Deprecated::BinaryAttribute => {
            let instead = "Please use a CHARACTER SET clause with _bin collation instead";
            (1287, format!("'BINARY as attribute of a type' {LATER} {instead}"))
        }
        Deprecated::CharsetAttribute(word) => {
            (1287, format!("'{word}' {LATER} Please use CHARACTER SET charset_name instead"))
        }
        Deprecated::National => {
            let why = "NATIONAL/NCHAR/NVARCHAR implies the character set UTF8MB3, which will be \
                       replaced by UTF8MB4 in a future release. Please consider using CHAR(x) \
                       CHARACTER SET";
            (3720, format!("{why} {UNAMBIGUOUS}"))
        }
        Deprecated::Utf8 => {
            let why = "'utf8' is currently an alias for the character set UTF8MB3, but will be an \
                       alias for UTF8MB4 in a future release. Please consider using";
            (3719, format!("{why} {UNAMBIGUOUS}"))
        }
        Deprecated::Utf8mb3 => (1287, format!("'utf8mb3' {LATER} Please use utf8mb4 instead")),
        Deprecated::Utf8mb3Collation(name) => {
            let instead = "Please consider using UTF8MB4 with an appropriate collation instead.";
            let why = "is a collation of the deprecated character set UTF8MB3.";
            (3778, format!("'{name}' {why} {instead}"))
        }
    }
}
