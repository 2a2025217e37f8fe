//! The content of virtual tables about accounts and privileges, and the privileges that plans need.

use std::sync::Arc;

use firn_api::report::ArchiveReport;
use firn_sql::plan::{NeededPrivilege, PlanNeed};
use firn_sql::types::Datum;

use crate::accounts::need::Need;
use crate::accounts::{Account, AccountName, Grants, Privilege, PrivilegeSet};
use crate::instance::Instance;

/// A plan's need in the terms of accounts.
pub(super) fn need(need: &PlanNeed) -> Need {
    let privilege = match need.privilege {
        NeededPrivilege::Select => Privilege::SELECT,
        NeededPrivilege::Insert => Privilege::INSERT,
        NeededPrivilege::Update => Privilege::UPDATE,
        NeededPrivilege::Delete => Privilege::DELETE,
    };
    let (of, columns, through) = (need.of, need.columns.clone(), need.through.clone());
    Need { of, columns, through, ..Need::on_table(privilege, &need.schema, &need.table) }
}

/// The rows of a virtual table of the session layer.
pub(super) fn rows(
    instance: &Instance,
    account: &AccountName,
    grants: &Grants,
    schema: &str,
    table: &str,
) -> Vec<Vec<Datum>> {
    let sees_all = grants.on_schema("mysql").contains(Privilege::SELECT);
    let accounts = instance.accounts.all();
    let seen = accounts.iter().filter(|one| sees_all || one.name == *account);
    match (schema, table.to_ascii_uppercase().as_str()) {
        ("information_schema", "USER_PRIVILEGES") => seen.flat_map(user_privileges).collect(),
        ("information_schema", "SCHEMA_PRIVILEGES") => seen.flat_map(schema_privileges).collect(),
        ("information_schema", "TABLE_PRIVILEGES") => seen.flat_map(table_privileges).collect(),
        ("information_schema", "COLUMN_PRIVILEGES") => seen.flat_map(column_privileges).collect(),
        ("information_schema", "USER_ATTRIBUTES") => seen.map(attribute_row).collect(),
        ("information_schema", "FIRN_ARCHIVE") if grants.global.contains(Privilege::PROCESS) => {
            let report = instance.node.report().ok();
            report.and_then(|report| report.archive).iter().map(archive_row).collect()
        }
        ("information_schema", name)
            if super::cluster_tables::is_one(name)
                && grants.global.contains(Privilege::PROCESS) =>
        {
            let report = instance.cluster.as_ref().map(|cluster| cluster.report());
            report.map(|report| super::cluster_tables::rows(&report, name)).unwrap_or_default()
        }
        ("mysql", "USER") => seen.map(user_row).collect(),
        _ => Vec::new(),
    }
}

fn text(text: &str) -> Datum {
    Datum::text(text.as_bytes())
}

fn attribute_row(account: &Arc<Account>) -> Vec<Datum> {
    let attribute = account.attribute.as_deref().map_or(Datum::Null, text);
    vec![text(&account.name.user), text(&account.name.host), attribute]
}

fn archive_row(archive: &ArchiveReport) -> Vec<Datum> {
    let or_null = |value: &str| if value.is_empty() { Datum::Null } else { text(value) };
    let error = archive.progress.error.as_deref().unwrap_or_default();
    let numbers = [
        archive.archived.0,
        archive.progress.as_of_ms,
        archive.progress.behind_ms,
        archive.progress.behind_bytes,
        archive.progress.log_objects,
        archive.progress.sets,
        archive.progress.size_bytes,
        archive.progress.sent_bytes,
        archive.progress.failures,
    ];
    let mut row = vec![or_null(&archive.node)];
    row.extend(numbers.map(Datum::UInt));
    row.push(or_null(error));
    row
}

fn grantee(account: &Account) -> Datum {
    text(&account.name.in_message())
}

fn yes(on: bool) -> Datum {
    text(if on { "YES" } else { "NO" })
}

/// The names of a set's privileges, and whether they may be granted to others.
fn listed(set: PrivilegeSet) -> impl Iterator<Item = (&'static str, Datum)> {
    let grantable = set.contains(Privilege::GRANT_OPTION);
    let names = set.iter().filter(|privilege| *privilege != Privilege::GRANT_OPTION);
    names.map(move |privilege| (privilege.name, yes(grantable)))
}

fn user_privileges(account: &Arc<Account>) -> Vec<Vec<Datum>> {
    let row = |name: &str, grantable| vec![grantee(account), text("def"), text(name), grantable];
    let set = account.grants.global;
    let mut rows: Vec<Vec<Datum>> =
        listed(set).map(|(name, grantable)| row(name, grantable)).collect();
    if rows.is_empty() && account.grants.dynamic.is_empty() {
        rows.push(row("USAGE", yes(false)));
    }
    let dynamic = account.grants.dynamic.iter();
    rows.extend(dynamic.map(|(name, grantable)| row(name, yes(*grantable))));
    rows
}

fn schema_privileges(account: &Arc<Account>) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for (schema, set) in &account.grants.schemas {
        for (name, grantable) in listed(*set) {
            rows.push(vec![grantee(account), text("def"), text(schema), text(name), grantable]);
        }
    }
    rows
}

fn table_privileges(account: &Arc<Account>) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for ((schema, table), grants) in &account.grants.tables {
        for (name, grantable) in listed(grants.privileges) {
            let row = vec![
                grantee(account),
                text("def"),
                text(schema),
                text(table),
                text(name),
                grantable,
            ];
            rows.push(row);
        }
    }
    rows
}

fn column_privileges(account: &Arc<Account>) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for ((schema, table), grants) in &account.grants.tables {
        for (column, set) in &grants.columns {
            for (name, grantable) in listed(*set) {
                let row = [grantee(account), text("def"), text(schema), text(table), text(column)];
                rows.push(row.into_iter().chain([text(name), grantable]).collect());
            }
        }
    }
    rows
}

/// A row of `mysql.user`: host, user, plugin, stored form of the password, whether it is locked.
fn user_row(account: &Arc<Account>) -> Vec<Datum> {
    let letter = |on: bool| text(if on { "Y" } else { "N" });
    vec![
        text(&account.name.host),
        text(&account.name.user),
        text(&account.plugin),
        text(&account.authentication),
        letter(account.expired),
        letter(account.locked),
    ]
}
