//! Foreign keys of a VARCHAR column that refers to a CHAR column.
//!
//! MySQL's server looks up a child's text among the keys of the parent, where a text of `CHAR(n)`
//! is padded with spaces to `n` bytes. So under a collation without padding, only a child that has
//! these spaces has a parent; under every collation, a cascade passes them on. In the other
//! direction, and between two columns of the same type, texts are compared as they are.
//!
//! ```text
//!   parent CHAR(4)      'x'    filled  'x   '      as in MySQL 9.7, innodb_native_foreign_keys off
//!   child  VARCHAR(10)  'x'    no parent           (NO PAD)
//!                       'x   ' its child; after UPDATE parent SET a = 'xy' it is 'xy  '
//! ```

use firn_format::value::{Value, ValueRef};
use smallvec::SmallVec;

use super::model::TableModel;
use firn_sql_collation as collation;
use firn_sql_types::TypeKind;

/// For each part of a foreign key, how its parent's texts are padded; `None` if they are not.
pub struct FilledTexts(SmallVec<[Option<Filling>; 2]>);

#[derive(Clone, Copy)]
struct Filling {
    length_bytes: usize,
    /// The most bytes that a child has room for.
    child_bytes: usize,
    /// Whether texts with and without the spaces are equal anyway.
    collation_pads: bool,
}

impl FilledTexts {
    /// For a foreign key over `child_columns` that refers to `parent_columns`, both by ordinals.
    pub fn of(
        parent: &TableModel,
        parent_columns: &[u16],
        child: &TableModel,
        child_columns: &[u16],
    ) -> FilledTexts {
        let filling = |(of_parent, of_child): (&u16, &u16)| {
            let kind = |table: &TableModel, ordinal: u16| {
                table.by_ordinal(ordinal).map(|column| column.ty.kind.clone())
            };
            match (kind(parent, *of_parent)?, kind(child, *of_child)?) {
                (
                    TypeKind::Char { max_chars, collation: id },
                    TypeKind::Varchar { max_chars: child_chars, .. },
                ) => Some(Filling {
                    length_bytes: max_chars as usize,
                    child_bytes: child_chars as usize,
                    collation_pads: collation::get(id).pads_with_spaces(),
                }),
                _ => None,
            }
        };
        FilledTexts(parent_columns.iter().zip(child_columns).map(filling).collect())
    }

    /// Converts the values of a child to those of its parent. False if no parent can have them.
    pub fn as_of_parent(&self, child: &mut [ValueRef<'_>]) -> bool {
        let fillings = self.0.iter().zip(child).filter_map(|(filling, value)| match *value {
            ValueRef::Bytes(text) => Some(((*filling)?, text, value)),
            _ => None,
        });
        let mut fillings = fillings.filter(|(filling, ..)| !filling.collation_pads);
        fillings.all(|(filling, text, value)| {
            let length = text.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1);
            *value = ValueRef::Bytes(&text[..length]);
            text.len() == length.max(filling.length_bytes)
        })
    }

    /// The values of a parent as its children have them.
    pub fn as_of_children(&self, parent: &[Value]) -> SmallVec<[Value; 2]> {
        let filled = |(filling, value): (&Option<Filling>, &Value)| match (filling, value) {
            (Some(filling), Value::Bytes(text)) => {
                let mut text = text.to_vec();
                text.resize(text.len().max(filling.length_bytes.min(filling.child_bytes)), b' ');
                Value::Bytes(text.into())
            }
            _ => value.clone(),
        };
        self.0.iter().zip(parent).map(filled).collect()
    }
}
