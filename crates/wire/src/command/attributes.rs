//! Query attributes before a text: `COM_QUERY` of a client with
//! [`crate::Capabilities::QUERY_ATTRIBUTES`].
//!
//! ```text
//!   count | 1 | NULL bits | 1 | type, name | type, name | … | value | value | … | text
//! ```
//! Everything between the second count and the text is present only if the first count is not 0.

use smallvec::SmallVec;

use super::parameters::ParameterType;
use crate::packet::{Malformed, PayloadReader};
use crate::value::{Attribute, Parameter};

/// A query's attributes. Most queries have none.
pub(crate) type Attributes<'a> = SmallVec<[Attribute<'a>; 2]>;

/// Takes the attributes off `reader` and leaves the text.
pub(crate) fn take_attributes<'a>(
    reader: &mut PayloadReader<'a>,
) -> Result<Attributes<'a>, Malformed> {
    let count = usize::try_from(reader.length_encoded_integer()?).map_err(|_| Malformed)?;
    if reader.length_encoded_integer()? != 1 {
        return Err(Malformed);
    }
    let mut attributes = Attributes::new();
    if count == 0 {
        return Ok(attributes);
    }
    let nulls = reader.take(count.div_ceil(8))?;
    if reader.u8()? != 1 {
        return Err(Malformed);
    }
    let mut types = SmallVec::<[ParameterType; 2]>::new();
    for _ in 0..count {
        types.push(ParameterType::decode(reader)?);
        attributes.push(Attribute { name: reader.length_encoded_bytes()?, value: Parameter::Null });
    }
    for (number, (attribute, bound)) in attributes.iter_mut().zip(types).enumerate() {
        if !is_null(nulls, number) {
            attribute.value = bound.value(reader)?;
        }
    }
    Ok(attributes)
}

/// Whether a value is `NULL`. The map has a bit for each value.
pub(super) fn is_null(nulls: &[u8], number: usize) -> bool {
    nulls.get(number / 8).is_some_and(|byte| byte >> (number % 8) & 1 != 0)
}
