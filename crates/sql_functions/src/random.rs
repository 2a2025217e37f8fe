//! `RAND`: from the session, or from a seed.

use firn_sql_types::error::Result;
use firn_sql_types::{Datum, SqlType};

use crate::arguments::word;
use crate::{Call, Function, ResolveContext, Volatility, lenient};

pub(super) const FUNCTIONS: &[Function] =
    &[lenient!("RAND", 0..=1, [Int] => random_type, rand).volatile(Volatility::Row)];

fn random_type(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::double().not_null()
}

fn rand(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    const BITS: u32 = 53;
    Ok(Datum::Double(match a.first() {
        None => (call.context.session.random_u64() >> (64 - BITS)) as f64 / (1_u64 << BITS) as f64,
        Some(seed) => {
            let site = std::ptr::from_ref(call.result).addr();
            call.context.random_sequences.next(site, word(seed) as u32)
        }
    }))
}
