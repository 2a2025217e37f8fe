//! Queries as text.

use super::super::ast::{
    CommonTable, Expr, IndexHint, IndexHintKind, IndexHintScope, Join, JoinConstraint, JoinKind,
    JsonTableColumn, JsonTableHandling, LockClause, LockStrength, LockWait, Query, SelectBlock,
    SelectItem, SetExpr, SetOperator, TableAlias, TableFactor, TableWithJoins, WindowSpec,
};
use super::expression::{expression, ordered, value, window};
use super::{name, quoted, separated, table_name};

pub(super) fn query(query: &Query, out: &mut String) {
    if let Some(with) = &query.with {
        out.push_str(if with.recursive { "with recursive " } else { "with " });
        separated(&with.tables, ",", out, common_table);
        out.push(' ');
    }
    body(&query.body, out);
    if !query.order_by.is_empty() {
        out.push_str(" order by ");
        separated(&query.order_by, ",", out, ordered);
    }
    if let Some(limit) = &query.limit {
        out.push_str(" limit ");
        expression(&limit.count, out);
        clause(" offset ", limit.offset.as_ref(), out);
    }
    for clause in &query.locks {
        lock(clause, out);
    }
}

fn common_table(table: &CommonTable, out: &mut String) {
    alias_name(&table.alias, out);
    out.push_str(" as (");
    query(&table.query, out);
    out.push(')');
}

fn alias_name(alias: &TableAlias, out: &mut String) {
    name(&alias.name, out);
    if !alias.columns.is_empty() {
        out.push_str(" (");
        separated(&alias.columns, ",", out, |column, out| name(column, out));
        out.push(')');
    }
}

/// Operands of set operations get parentheses where they would be parsed differently without.
fn body(set: &SetExpr, out: &mut String) {
    match set {
        SetExpr::Select(inner) => select(inner, out),
        SetExpr::Query(inner) => {
            out.push('(');
            query(inner, out);
            out.push(')');
        }
        SetExpr::SetOperation { left, op, all, right } => {
            body(left, out);
            out.push_str(match op {
                SetOperator::Intersect => " intersect ",
                SetOperator::Except => " except ",
                SetOperator::Union => " union ",
            });
            out.push_str(if *all { "all " } else { "" });
            body(right, out);
        }
        SetExpr::Values(rows) => {
            out.push_str("values ");
            separated(rows, ",", out, |row, out| {
                out.push_str("row(");
                separated(row, ",", out, expression);
                out.push(')');
            });
        }
        SetExpr::Table(table) => {
            out.push_str("table ");
            table_name(table, out);
        }
    }
}

fn select(select: &SelectBlock, out: &mut String) {
    out.push_str("select ");
    for hint in &select.hints {
        out.push_str("/*+ ");
        out.push_str(hint);
        out.push_str(" */ ");
    }
    let modifiers = &select.modifiers;
    let words = [
        (modifiers.high_priority, "high_priority "),
        (modifiers.straight_join, "straight_join "),
        (modifiers.sql_small_result, "sql_small_result "),
        (modifiers.sql_big_result, "sql_big_result "),
        (modifiers.sql_buffer_result, "sql_buffer_result "),
        (modifiers.sql_no_cache, "sql_no_cache "),
        (modifiers.sql_calc_found_rows, "sql_calc_found_rows "),
    ];
    words.iter().filter(|(set, _)| *set).for_each(|(_, word)| out.push_str(word));
    if select.distinct {
        out.push_str("distinct ");
    }
    separated(&select.projection, ",", out, select_item);
    if !select.from.is_empty() {
        out.push_str(" from ");
        separated(&select.from, ",", out, tables);
    }
    clause(" where ", select.selection.as_ref(), out);
    if !select.group_by.is_empty() {
        out.push_str(" group by ");
        separated(&select.group_by, ",", out, expression);
        out.push_str(if select.rollup { " with rollup" } else { "" });
    }
    clause(" having ", select.having.as_ref(), out);
    if !select.named_windows.is_empty() {
        out.push_str(" window ");
        separated(&select.named_windows, ",", out, named_window);
    }
}

fn clause(words: &str, expr: Option<&Expr>, out: &mut String) {
    if let Some(expr) = expr {
        out.push_str(words);
        expression(expr, out);
    }
}

fn select_item(item: &SelectItem, out: &mut String) {
    match item {
        SelectItem::Unnamed(expr) => expression(expr, out),
        SelectItem::Aliased { expr, alias: shown }
        | SelectItem::NamedAfterText { expr, name: shown } => {
            expression(expr, out);
            out.push_str(" AS ");
            name(shown, out);
        }
        SelectItem::QualifiedWildcard(table) => {
            table_name(table, out);
            out.push_str(".*");
        }
        SelectItem::Wildcard => out.push('*'),
    }
}

fn named_window((window_name, spec): &(String, WindowSpec), out: &mut String) {
    name(window_name, out);
    out.push_str(" as ");
    window(spec, out);
}

fn tables(tables: &TableWithJoins, out: &mut String) {
    factor(&tables.relation, out);
    tables.joins.iter().for_each(|next| join(next, out));
}

fn join(join: &Join, out: &mut String) {
    let is_natural = join.constraint == JoinConstraint::Natural;
    out.push_str(if is_natural { " natural " } else { " " });
    out.push_str(match join.kind {
        JoinKind::Left => "left join ",
        JoinKind::Right => "right join ",
        JoinKind::Straight => "straight_join ",
        JoinKind::Inner => "join ",
    });
    factor(&join.relation, out);
    match &join.constraint {
        JoinConstraint::On(condition) => {
            out.push_str(" on ");
            expression(condition, out);
        }
        JoinConstraint::Using(columns) => {
            out.push_str(" using (");
            separated(columns, ",", out, |column, out| name(column, out));
            out.push(')');
        }
        JoinConstraint::None | JoinConstraint::Natural => {}
    }
}

fn factor(factor: &TableFactor, out: &mut String) {
    match factor {
        TableFactor::Table { name: table, alias, partitions, index_hints } => {
            table_name(table, out);
            if !partitions.is_empty() {
                out.push_str(" partition (");
                separated(partitions, ",", out, |partition, out| name(partition, out));
                out.push(')');
            }
            table_alias(alias.as_ref(), out);
            index_hints.iter().for_each(|hint| index_hint(hint, out));
        }
        TableFactor::Derived { lateral, subquery, alias } => {
            out.push_str(if *lateral { "lateral (" } else { "(" });
            query(subquery, out);
            out.push(')');
            table_alias(Some(alias), out);
        }
        TableFactor::Nested(inner) => {
            out.push('(');
            tables(inner, out);
            out.push(')');
        }
        TableFactor::JsonTable(table) => {
            out.push_str("json_table(");
            expression(&table.document, out);
            out.push(',');
            value(&table.path, out);
            json_columns(&table.columns, out);
            out.push(')');
            table_alias(Some(&table.alias), out);
        }
    }
}

fn table_alias(alias: Option<&TableAlias>, out: &mut String) {
    if let Some(alias) = alias {
        out.push(' ');
        alias_name(alias, out);
    }
}

fn index_hint(hint: &IndexHint, out: &mut String) {
    out.push_str(match hint.kind {
        IndexHintKind::Use => " use index ",
        IndexHintKind::Ignore => " ignore index ",
        IndexHintKind::Force => " force index ",
    });
    out.push_str(match hint.scope {
        Some(IndexHintScope::Join) => "for join ",
        Some(IndexHintScope::OrderBy) => "for order by ",
        Some(IndexHintScope::GroupBy) => "for group by ",
        None => "",
    });
    out.push('(');
    separated(&hint.indexes, ",", out, |index, out| name(index, out));
    out.push(')');
}

fn json_columns(columns: &[JsonTableColumn], out: &mut String) {
    out.push_str(" columns (");
    separated(columns, ",", out, |column, out| match column {
        JsonTableColumn::ForOrdinality(column) => {
            name(column, out);
            out.push_str(" for ordinality");
        }
        JsonTableColumn::Nested { path, columns } => {
            out.push_str("nested path ");
            quoted(path, out);
            json_columns(columns, out);
        }
        JsonTableColumn::Named(column) => {
            name(&column.name, out);
            out.push(' ');
            out.push_str(&column.type_text);
            out.push_str(if column.exists { " exists path " } else { " path " });
            quoted(&column.path, out);
            handling(column.on_empty.as_ref(), " on empty", out);
            handling(column.on_error.as_ref(), " on error", out);
        }
    });
    out.push(')');
}

fn handling(handling: Option<&JsonTableHandling>, when: &str, out: &mut String) {
    match handling {
        None => return,
        Some(JsonTableHandling::Null) => out.push_str(" null"),
        Some(JsonTableHandling::Error) => out.push_str(" error"),
        Some(JsonTableHandling::Default(default)) => {
            out.push_str(" default ");
            value(default, out);
        }
    }
    out.push_str(when);
}

fn lock(lock: &LockClause, out: &mut String) {
    out.push_str(match lock.strength {
        LockStrength::Share => " for share",
        LockStrength::Update => " for update",
    });
    if let Some(table) = &lock.of {
        out.push_str(" of ");
        table_name(table, out);
    }
    out.push_str(match lock.wait {
        LockWait::Nowait => " nowait",
        LockWait::SkipLocked => " skip locked",
        LockWait::Wait => "",
    });
}
