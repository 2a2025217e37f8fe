//! Information about the session, user-level locks, and functions that wait.

use std::time::Duration;

use firn_sql_collation as collation;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::session_facts::{LockAnswer, SleepEnd};
use firn_sql_types::{Coercibility, Datum, SqlType, TypeKind};

use crate::arguments::{bytes, double, int, text, word};
use crate::signature::{self, bigint, first, unsigned};
use crate::{Call, Function, ResolveContext, Volatility, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("CONNECTION_ID", 0..=0, [] => unsigned, |_, call: &Call<'_>| {
        Ok(Datum::UInt(call.context.session.connection_id()))
    })
    .volatile(Volatility::Statement),
    lenient!("USER", 0..=0, [] => system::<288>, |_, call: &Call<'_>| {
        Ok(Datum::text(call.context.session.user()))
    })
    .volatile(Volatility::Statement),
    lenient!("CURRENT_USER", 0..=0, [] => system::<288>, |_, call: &Call<'_>| {
        Ok(Datum::text(call.context.session.current_user()))
    })
    .volatile(Volatility::Statement),
    lenient!("CURRENT_ROLE", 0..=0, [] => system::<16_777_216>, |_, call: &Call<'_>| {
        Ok(Datum::text(call.context.session.current_role()))
    })
    .volatile(Volatility::Statement),
    lenient!("ROLES_GRAPHML", 0..=0, [] => signature::text::<1024>, |_, _| {
        const NO_ROLES: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><graphml />";
        Ok(Datum::text(NO_ROLES))
    })
    .volatile(Volatility::Statement),
    lenient!("DATABASE", 0..=0, [] => system::<64>, |_, call: &Call<'_>| {
        Ok(call.context.session.database().map_or(Datum::Null, Datum::text))
    })
    .volatile(Volatility::Statement),
    lenient!("VERSION", 0..=0, [] => system::<60>, |_, call: &Call<'_>| {
        Ok(Datum::text(call.context.session.version()))
    })
    .volatile(Volatility::Statement),
    lenient!("ICU_VERSION", 0..=0, [] => system::<10>, |_, _| Ok(Datum::text("73.1"))),
    lenient!("LAST_INSERT_ID", 0..=1, [Int] => unsigned, last_insert_id)
        .volatile(Volatility::Session),
    lenient!("ROW_COUNT", 0..=0, [] => bigint, |_, call: &Call<'_>| {
        Ok(Datum::Int(call.context.session.row_count()))
    })
    .volatile(Volatility::Statement),
    lenient!("FOUND_ROWS", 0..=0, [] => bigint, |_, call: &Call<'_>| {
        Ok(Datum::Int(call.context.session.found_rows() as i64))
    })
    .volatile(Volatility::Statement),
    lenient!("PS_CURRENT_THREAD_ID", 0..=0, [] => unsigned, |_, call: &Call<'_>| {
        Ok(Datum::UInt(call.context.session.connection_id()))
    })
    .volatile(Volatility::Statement),
    strict!("PS_THREAD_ID", 1..=1, [Int] => unsigned, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::UInt(word(&a[0])))
    }),
    lenient!("CHARSET", 1..=1, [Any] => signature::system_text::<64>, |_, call: &Call<'_>| {
        Ok(Datum::text(collation_of(call).charset.name()))
    }),
    lenient!("COLLATION", 1..=1, [Any] => signature::system_text::<64>, |_, call: &Call<'_>| {
        Ok(Datum::text(collation_of(call).name))
    }),
    lenient!("COERCIBILITY", 1..=1, [Any] => bigint, |_, call: &Call<'_>| {
        Ok(Datum::Int(call.arguments[0].coercibility.rank().into()))
    }),
    lenient!("NAME_CONST", 2..=2, [Any] => second, |a: &[Datum], _| Ok(a[1].clone())),
    lenient!("BENCHMARK", 2..=2, [Int, Any] => signature::int, |a: &[Datum], _| {
        // The second argument has been evaluated only once, so a measurement with this function is
        // meaningless.
        Ok(if a[0].is_null() || int(&a[0]) < 0 { Datum::Null } else { Datum::Int(0) })
    })
    .volatile(Volatility::Row),
    lenient!("SLEEP", 1..=1, [Double] => signature::int, sleep).volatile(Volatility::Row),
    lenient!("GET_LOCK", 2..=2, [Text, Double] => bigint, get_lock).volatile(Volatility::Row),
    lenient!("RELEASE_LOCK", 1..=1, [Text] => bigint, |a: &[Datum], call: &Call<'_>| {
        let name = lock_name(&a[0])?;
        Ok(Datum::from_bool(call.context.session.release_lock(&name)))
    })
    .volatile(Volatility::Row),
    lenient!("RELEASE_ALL_LOCKS", 0..=0, [] => unsigned, |_, call: &Call<'_>| {
        Ok(Datum::UInt(call.context.session.release_all_locks()))
    })
    .volatile(Volatility::Row),
    lenient!("IS_FREE_LOCK", 1..=1, [Text] => bigint, |a: &[Datum], call: &Call<'_>| {
        let name = lock_name(&a[0])?;
        Ok(Datum::from_bool(call.context.session.lock_owner(&name).is_none()))
    })
    .volatile(Volatility::Row),
    lenient!("IS_USED_LOCK", 1..=1, [Text] => unsigned, |a: &[Datum], call: &Call<'_>| {
        let name = lock_name(&a[0])?;
        Ok(call.context.session.lock_owner(&name).map_or(Datum::Null, Datum::UInt))
    })
    .volatile(Volatility::Row),
    lenient!("ANY_VALUE", 1..=1, [Any] => first, |a: &[Datum], _| Ok(a[0].clone())),
];

/// Text about the server itself: its coercibility is weaker than a column's and stronger than a
/// literal's.
fn system<const N: u32>(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    let utf8mb3_general_ci = firn_format::value::CollationId(33);
    SqlType::varchar(N, utf8mb3_general_ci).with_coercibility(Coercibility::SystemConstant)
}

fn second(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    types
        .get(1)
        .map_or_else(SqlType::null, |ty| ty.clone().with_coercibility(Coercibility::Implicit))
}

fn collation_of(call: &Call<'_>) -> &'static collation::Collation {
    let ty = call.arguments[0];
    let binary = firn_format::value::CollationId::BINARY;
    let id = match ty.kind {
        TypeKind::Json => firn_format::value::CollationId(46),
        _ => ty.collation().unwrap_or(binary),
    };
    collation::get(id)
}

fn last_insert_id(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let session = &call.context.session;
    let Some(id) = arguments.first() else { return Ok(Datum::UInt(session.last_insert_id())) };
    session.set_last_insert_id(word(id));
    Ok(if id.is_null() { Datum::Null } else { Datum::UInt(word(id)) })
}

/// 0 if the time has passed, 1 if the statement was killed.
fn sleep(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    const MOST_SECONDS: f64 = 31_536_000.0;
    let seconds = double(&arguments[0]);
    if arguments[0].is_null() || seconds < 0.0 {
        let message = || "Incorrect arguments to sleep.".to_owned();
        if call.context.is_strict_write() {
            return Err(SqlError::new(1210, message()));
        }
        call.context.warn(1210, message);
        return Ok(Datum::Int(0));
    }
    let duration = Duration::from_secs_f64(seconds.min(MOST_SECONDS));
    match call.context.session.sleep(duration) {
        SleepEnd::Elapsed => Ok(Datum::Int(0)),
        SleepEnd::Killed => Ok(Datum::Int(1)),
        SleepEnd::Cut => Err(SqlError::interrupted()),
    }
}

/// Names are case-insensitive and have at most 64 characters.
fn lock_name(datum: &Datum) -> Result<String> {
    let is_null = datum.is_null();
    let name = match is_null {
        true => String::new(),
        false => String::from_utf8_lossy(&collation::lower(bytes(datum))).into_owned(),
    };
    if name.is_empty() || name.chars().count() > 64 {
        let shown = if is_null { "NULL".into() } else { text(datum) };
        return Err(SqlError::new(3057, format!("Incorrect user-level lock name '{shown}'.")));
    }
    Ok(name)
}

fn get_lock(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    const MOST_SECONDS: f64 = 31_536_000.0;
    let name = lock_name(&arguments[0])?;
    let seconds = double(&arguments[1]);
    let timeout = (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(MOST_SECONDS)));
    match call.context.session.get_lock(&name, timeout) {
        LockAnswer::Granted => Ok(Datum::Int(1)),
        LockAnswer::TimedOut => Ok(Datum::Int(0)),
        LockAnswer::Killed => Err(SqlError::interrupted()),
        LockAnswer::Deadlock => Err(SqlError::new(
            3058,
            "Deadlock found when trying to get user-level lock; try rolling back \
             transaction/releasing locks and restarting lock acquisition.",
        )),
    }
}
