//! `XA` statements.

use firn_api::rows::DatabaseNode;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::error::from_rows;
use firn_sql::grammar::ast::{Xa, Xid};
use firn_sql::types::hexadecimal::hexadecimal_digits;
use firn_sql::types::{Datum, SqlType};

use super::answers::{Table, text_type};
use super::locked_tables::LockedTables;
use super::rights::Rights;
use super::runner::StatementRunner;
use super::settings::Settings;
use super::transaction::{Transactions, XaState, decode_xid, encode_xid};
use crate::session_facts::Facts;

/// Runs `XA` statements in a session.
pub(super) struct XaStatements<'s> {
    transactions: &'s mut Transactions,
    locked: &'s LockedTables,
    rights: &'s Rights,
    settings: &'s Settings,
    facts: &'s Facts,
    node: &'s dyn DatabaseNode,
}

impl<'s> XaStatements<'s> {
    pub(super) fn of(runner: &'s mut StatementRunner) -> XaStatements<'s> {
        let StatementRunner { transactions, locked, rights, settings, facts, instance, .. } =
            runner;
        XaStatements { transactions, locked, rights, settings, facts, node: &*instance.node }
    }

    /// Executes an `XA` statement; returns the rows of `XA RECOVER`.
    ///
    /// # Errors
    /// 1397 for unknown identifiers, 1399 in the wrong state, 1400 inside a transaction, 1440 for
    /// an identifier that already exists.
    pub(super) fn run_xa(&mut self, statement: &Xa) -> Result<Option<Table>> {
        match statement {
            Xa::Start { join, resume, .. } if *join || *resume => {
                return Err(SqlError::new(
                    1398,
                    "XAER_INVAL: Invalid arguments (or unsupported command)",
                ));
            }
            Xa::Start { xid, .. } => self.xa_start(xid)?,
            Xa::End { xid, suspend: false, .. } => self.transactions.xa_end(xid)?,
            Xa::End { .. } => {
                return Err(SqlError::new(
                    1398,
                    "XAER_INVAL: Invalid arguments (or unsupported command)",
                ));
            }
            Xa::Prepare(xid) => self.transactions.xa_prepare(xid)?,
            Xa::Commit { xid, one_phase: true } => self.transactions.xa_commit_one_phase(xid)?,
            Xa::Commit { xid, one_phase: false } => {
                self.refuse_inside()?;
                let commit = || self.node.commit_prepared(&encode_xid(xid), None);
                self.facts.cancelled.while_confirming(commit).map_err(from_rows)?;
            }
            Xa::Rollback(xid) => {
                if !self.transactions.xa_roll_back(xid)? {
                    let roll_back = || self.node.rollback_prepared(&encode_xid(xid));
                    self.facts.cancelled.while_confirming(roll_back).map_err(from_rows)?;
                }
            }
            Xa::Recover { .. } if !self.rights.grants.has_dynamic("XA_RECOVER_ADMIN") => {
                return Err(SqlError::new(
                    1401,
                    "XAER_RMERR: Fatal error occurred in the transaction branch - check your data for consistency",
                ));
            }
            Xa::Recover { convert_xid } => return Ok(Some(self.xa_recover(*convert_xid)?)),
        }
        Ok(None)
    }

    fn refuse_inside(&self) -> Result<()> {
        match self.transactions.xa {
            Some(_) => Err(self.transactions.wrong_xa_state()),
            None => Ok(()),
        }
    }

    fn xa_start(&mut self, xid: &Xid) -> Result<()> {
        self.refuse_inside()?;
        if self.transactions.is_lasting() || !self.locked.is_empty() {
            let why = "XAER_OUTSIDE: Some work is done outside global transaction";
            return Err(SqlError::new(1400, why));
        }
        let taken = encode_xid(xid);
        let prepared = self.node.prepared_transactions().map_err(from_rows)?;
        if prepared.iter().any(|other| **other == *taken) {
            return Err(SqlError::new(1440, "XAER_DUPID: The XID already exists"));
        }
        self.transactions.begin(self.node, self.settings, self.facts, true, None)?;
        self.transactions.xa = Some(XaState::Active(xid.clone()));
        Ok(())
    }

    fn xa_recover(&self, convert: bool) -> Result<Table> {
        let number = SqlType::bigint();
        let columns = [
            ("formatID", number.clone()),
            ("gtrid_length", number.clone()),
            ("bqual_length", number),
            ("data", text_type()),
        ];
        let columns = columns.map(|(name, ty)| (name.to_owned(), ty)).into();
        let xids = self.node.prepared_transactions().map_err(from_rows)?;
        let rows = xids.iter().filter_map(|bytes| decode_xid(bytes)).map(|xid| {
            let data = [xid.global.as_slice(), xid.branch.as_slice()].concat();
            let data = if convert { hexadecimal(&data).into_bytes() } else { data };
            vec![
                Datum::Int(xid.format as i64),
                Datum::Int(xid.global.len() as i64),
                Datum::Int(xid.branch.len() as i64),
                Datum::text(data.as_slice()),
            ]
        });
        Ok(Table { columns, rows: rows.collect(), ..Table::default() })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    format!("0x{}", hexadecimal_digits(bytes))
}
