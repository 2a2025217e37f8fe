//! Finding a customer by number or last name, as Payment and Order-Status do.

use super::input::ByWhat;
use crate::client::{Command, Session, Value, whole};
use crate::error::BenchError;

const BY_NAME: &str =
    "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";

pub(crate) struct FindCustomer {
    by_name: Command,
}

impl FindCustomer {
    pub(crate) fn prepare(session: &mut Session) -> Result<FindCustomer, BenchError> {
        Ok(FindCustomer { by_name: session.prepare(BY_NAME)? })
    }

    /// The customer's number. Of several with the same last name, it is the one in the middle,
    /// rounded up (2.5.2.2).
    pub(crate) fn id(
        &self,
        session: &mut Session,
        (warehouse, district): (i64, i64),
        customer: &ByWhat,
    ) -> Result<i64, BenchError> {
        let name = match customer {
            ByWhat::Id(id) => return Ok(*id),
            ByWhat::LastName(name) => name,
        };
        let values = [Value::from(warehouse), Value::from(district), Value::from(name.as_str())];
        let rows = session.rows(&self.by_name, &values)?;
        match rows.get(rows.len().saturating_sub(1) / 2) {
            Some(row) => whole(&row[0]),
            None => {
                Err(BenchError::Wrong(format!("nobody is named {name} in {warehouse}/{district}")))
            }
        }
    }
}
