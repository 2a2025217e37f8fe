//! The display of a type's values, if nothing more is known of an expression.

use super::decimal::{MAX_PRECISION, MAX_SCALE};
use super::display::{Display, NOT_FIXED_DECIMALS};
use super::sql_type::{IntWidth, SqlType, TypeKind};

/// The length of computed doubles.
const WORKED_OUT_DOUBLE_CHARS: u32 = 23;
const FLOAT_CHARS: u32 = 12;
const DOUBLE_CHARS: u32 = 22;

impl Display {
    /// The values of an expression of a type, if nothing more is known.
    #[must_use]
    pub fn of_expression(ty: &SqlType) -> Display {
        let length = match &ty.kind {
            TypeKind::Float | TypeKind::Double => WORKED_OUT_DOUBLE_CHARS,
            // One more than a column has.
            TypeKind::Integer { width: IntWidth::Eight, .. } => 21,
            _ => Display::of_column(ty).length,
        };
        Display { length, stored: false, ..Display::of_column(ty) }
    }

    /// The values of a column of a type, if nothing more is known.
    #[must_use]
    pub fn of_column(ty: &SqlType) -> Display {
        let length = match &ty.kind {
            TypeKind::Float => FLOAT_CHARS,
            TypeKind::Double => DOUBLE_CHARS,
            TypeKind::Bit { bits } => (*bits).into(),
            TypeKind::Decimal { precision, scale, unsigned } => {
                number_chars(*precision, *scale, *unsigned)
            }
            _ => ty.max_text_chars(),
        };
        Display {
            length,
            operand_length: None,
            decimals: match &ty.kind {
                TypeKind::Float | TypeKind::Double => NOT_FIXED_DECIMALS,
                kind => kind.scale(),
            },
            unsigned: ty.kind.is_unsigned() && ty.kind.is_numeric(),
            zerofill: ty.kind == TypeKind::Year,
            stored: true,
            nullable: None,
            type_code: None,
            keeps_type: false,
        }
    }

    /// A whole number of at most `length` characters, including its sign.
    #[must_use]
    pub fn integer(ty: &SqlType, length: u32) -> Display {
        Display { length, decimals: 0, ..Display::of_expression(ty) }
    }

    /// An exact number of `precision` digits, `scale` of them after the point.
    #[must_use]
    pub fn exact(ty: &SqlType, precision: u8, scale: u8) -> Display {
        let unsigned = ty.kind.is_unsigned();
        let length = number_chars(precision, scale, unsigned);
        Display { length, decimals: scale, ..Display::of_expression(ty) }
    }

    /// The same values converted to text: doubles get the width of a column of doubles, however few
    /// digits they have.
    #[must_use]
    pub fn as_text_of(self, ty: &SqlType) -> Display {
        match ty.kind == TypeKind::Double {
            true => Display { length: DOUBLE_CHARS, ..self },
            false => self,
        }
    }

    /// All digits of a number of a type that is displayed like this.
    #[must_use]
    pub fn precision(&self, kind: &TypeKind) -> u8 {
        let fixed = match kind {
            TypeKind::Date => Some(8),
            TypeKind::Time { fsp } => Some(7 + fsp),
            TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => Some(14 + fsp),
            _ => None,
        };
        fixed.unwrap_or_else(|| {
            let others = u32::from(self.decimals > 0) + u32::from(!self.unsigned);
            let most = if kind.scale() > MAX_SCALE { 81 } else { u32::from(MAX_PRECISION) };
            let length = self.operand_length.unwrap_or(self.length);
            length.saturating_sub(others).clamp(1, most) as u8
        })
    }
}

/// Characters of a number: its digits, a point and a sign.
fn number_chars(precision: u8, scale: u8, unsigned: bool) -> u32 {
    u32::from(precision) + u32::from(scale > 0) + u32::from(!unsigned)
}
