//! The values of which one is chosen: of `CASE`, `IF`, `COALESCE`, `GREATEST`, of the sides of a
//! `UNION`.

use crate::expression::Expression;
use crate::types::metadata::NOT_FIXED_DECIMALS;
use crate::types::{Display, SqlType, TypeKind};

use super::super::Binder;

impl Binder<'_> {
    /// One of several values.
    pub(super) fn of_choice<'e>(
        &self,
        values: impl Iterator<Item = &'e Expression>,
        ty: &SqlType,
    ) -> Display {
        let values: Vec<(&SqlType, Display)> =
            values.map(|value| self.shown_operand(value)).collect();
        common_display(&values, ty)
    }
}

/// What values of several types, shown in several ways, are together. `ty` is their common type.
#[must_use]
pub(crate) fn common_display(values: &[(&SqlType, Display)], ty: &SqlType) -> Display {
    let known = || values.iter().filter(|(of, _)| of.kind != TypeKind::Null);
    let longest = known().map(|(_, display)| display.length).max().unwrap_or(0);
    let worked_out = Display::of_expression(ty);
    match &ty.kind {
        TypeKind::Integer { .. } => Display { length: longest, ..worked_out },
        TypeKind::Decimal { .. } => {
            let scale = known().map(|(_, one)| fixed(one.decimals)).max().unwrap_or(0);
            let before = known().map(|(of, display)| digits_before_point(of, display)).max();
            let precision = before.unwrap_or(1).saturating_add(scale.into()).clamp(1, 65) as u8;
            Display::exact(ty, precision, scale)
        }
        TypeKind::Float | TypeKind::Double => {
            let decimals = known().map(|(_, one)| one.decimals).max().unwrap_or(0);
            match decimals {
                NOT_FIXED_DECIMALS => worked_out,
                _ => Display { length: longest, decimals, ..worked_out },
            }
        }
        kind if kind.is_string() && known().all(|(of, _)| counts_characters(of)) => {
            // Bytes beside characters are as many as those characters may have.
            let is_binary = kind.is_binary();
            let length = known().map(|(of, display)| {
                let bytes = of.charset().map_or(1, |charset| charset.max_character_bytes());
                display.length.saturating_mul(if is_binary { bytes } else { 1 })
            });
            Display { length: length.max().unwrap_or(0), ..worked_out }
        }
        _ => worked_out,
    }
}

fn counts_characters(ty: &SqlType) -> bool {
    !matches!(ty.kind, TypeKind::Json | TypeKind::Geometry | TypeKind::Float | TypeKind::Double)
}

fn fixed(decimals: u8) -> u8 {
    if decimals == NOT_FIXED_DECIMALS { 0 } else { decimals }
}

fn digits_before_point(ty: &SqlType, display: &Display) -> u32 {
    let precision = display.precision(&ty.kind);
    u32::from(precision.saturating_sub(fixed(display.decimals)))
}
