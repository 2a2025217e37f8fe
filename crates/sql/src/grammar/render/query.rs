//! Queries as text.

use super::expression::{column_type, expression, object_name, ordered, value, window};
use super::{name, separated};
use sqlparser::ast::{
    Cte, Expr, GroupByExpr, Join, JoinConstraint, JoinOperator, JsonTableColumn,
    JsonTableColumnErrorHandling, LimitClause, LockClause, LockType, NamedWindowDefinition,
    NamedWindowExpr, NonBlock, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, TableAlias, TableFactor,
    TableIndexHintForClause, TableIndexHintType, TableIndexHints, TableWithJoins,
};

pub(super) fn query(query: &Query, out: &mut String) {
    if let Some(with) = &query.with {
        out.push_str(if with.recursive { "with recursive " } else { "with " });
        separated(&with.cte_tables, ",", out, common_table);
        out.push(' ');
    }
    body(&query.body, out);
    if let Some(order) = &query.order_by
        && let OrderByKind::Expressions(items) = &order.kind
    {
        out.push_str(" order by ");
        separated(items, ",", out, ordered);
    }
    if let Some(LimitClause::LimitOffset { limit: Some(limit), offset, .. }) = &query.limit_clause {
        out.push_str(" limit ");
        expression(limit, out);
        if let Some(offset) = offset {
            out.push_str(" offset ");
            expression(&offset.value, out);
        }
    }
    for clause in &query.locks {
        lock(clause, out);
    }
}

fn common_table(table: &Cte, out: &mut String) {
    alias_name(&table.alias, out);
    out.push_str(" as (");
    query(&table.query, out);
    out.push(')');
}

fn alias_name(alias: &TableAlias, out: &mut String) {
    name(&alias.name.value, out);
    if !alias.columns.is_empty() {
        out.push_str(" (");
        separated(&alias.columns, ",", out, |column, out| name(&column.name.value, out));
        out.push(')');
    }
}

/// Operands of set operations stand in parentheses where they would be read otherwise.
fn body(set: &SetExpr, out: &mut String) {
    match set {
        SetExpr::Select(inner) => select(inner, out),
        SetExpr::Query(inner) => {
            out.push('(');
            query(inner, out);
            out.push(')');
        }
        SetExpr::SetOperation { left, op, set_quantifier, right } => {
            body(left, out);
            out.push_str(match op {
                SetOperator::Intersect => " intersect ",
                SetOperator::Except | SetOperator::Minus => " except ",
                SetOperator::Union => " union ",
            });
            if *set_quantifier == SetQuantifier::All {
                out.push_str("all ");
            }
            body(right, out);
        }
        SetExpr::Values(values) => {
            out.push_str("values ");
            separated(&values.rows, ",", out, |row, out| {
                out.push_str("row(");
                separated(&row.content, ",", out, expression);
                out.push(')');
            });
        }
        SetExpr::Table(table) => {
            out.push_str("table ");
            if let Some(schema) = &table.schema_name {
                name(schema, out);
                out.push('.');
            }
            name(table.table_name.as_deref().unwrap_or_default(), out);
        }
        other => out.push_str(&other.to_string()),
    }
}

fn select(select: &Select, out: &mut String) {
    out.push_str("select ");
    for hint in &select.optimizer_hints {
        out.push_str("/*+ ");
        out.push_str(&hint.text);
        out.push_str(" */ ");
    }
    if let Some(modifiers) = &select.select_modifiers {
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
    }
    if select.distinct.is_some() {
        out.push_str("distinct ");
    }
    separated(&select.projection, ",", out, select_item);
    if !select.from.is_empty() {
        out.push_str(" from ");
        separated(&select.from, ",", out, tables);
    }
    clause(" where ", select.selection.as_ref(), out);
    group_by(&select.group_by, out);
    clause(" having ", select.having.as_ref(), out);
    if !select.named_window.is_empty() {
        out.push_str(" window ");
        separated(&select.named_window, ",", out, named_window);
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
        SelectItem::UnnamedExpr(expr) => expression(expr, out),
        SelectItem::ExprWithAlias { expr, alias } => {
            expression(expr, out);
            out.push_str(" AS ");
            name(&alias.value, out);
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _) => {
            object_name(table, out);
            out.push_str(".*");
        }
        _ => out.push('*'),
    }
}

fn group_by(group: &GroupByExpr, out: &mut String) {
    let GroupByExpr::Expressions(items, modifiers) = group else { return };
    if items.is_empty() {
        return;
    }
    out.push_str(" group by ");
    separated(items, ",", out, expression);
    if !modifiers.is_empty() {
        out.push_str(" with rollup");
    }
}

fn named_window(definition: &NamedWindowDefinition, out: &mut String) {
    name(&definition.0.value, out);
    out.push_str(" as ");
    if let NamedWindowExpr::WindowSpec(spec) = &definition.1 {
        window(spec, out);
    }
}

fn tables(tables: &TableWithJoins, out: &mut String) {
    factor(&tables.relation, out);
    tables.joins.iter().for_each(|next| join(next, out));
}

fn join(join: &Join, out: &mut String) {
    let (words, constraint) = match &join.join_operator {
        JoinOperator::LeftOuter(constraint) => ("left join ", constraint),
        JoinOperator::RightOuter(constraint) => ("right join ", constraint),
        JoinOperator::StraightJoin(constraint) => ("straight_join ", constraint),
        JoinOperator::Inner(constraint) => ("join ", constraint),
        _ => ("join ", &JoinConstraint::None),
    };
    let natural = if *constraint == JoinConstraint::Natural { " natural " } else { " " };
    out.push_str(natural);
    out.push_str(words);
    factor(&join.relation, out);
    match constraint {
        JoinConstraint::On(condition) => {
            out.push_str(" on ");
            expression(condition, out);
        }
        JoinConstraint::Using(columns) => {
            out.push_str(" using (");
            separated(columns, ",", out, object_name);
            out.push(')');
        }
        _ => {}
    }
}

fn factor(factor: &TableFactor, out: &mut String) {
    match factor {
        TableFactor::Table { name: table, alias, partitions, index_hints, .. } => {
            object_name(table, out);
            if !partitions.is_empty() {
                out.push_str(" partition (");
                separated(partitions, ",", out, |partition, out| name(&partition.value, out));
                out.push(')');
            }
            table_alias(alias.as_ref(), out);
            index_hints.iter().for_each(|hint| index_hint(hint, out));
        }
        TableFactor::Derived { lateral, subquery, alias, .. } => {
            out.push_str(if *lateral { "lateral (" } else { "(" });
            query(subquery, out);
            out.push(')');
            table_alias(alias.as_ref(), out);
        }
        TableFactor::NestedJoin { table_with_joins, .. } => {
            out.push('(');
            tables(table_with_joins, out);
            out.push(')');
        }
        TableFactor::JsonTable { json_expr, json_path, columns, alias } => {
            out.push_str("json_table(");
            expression(json_expr, out);
            out.push(',');
            value(&json_path.value, out);
            json_columns(columns, out);
            out.push(')');
            table_alias(alias.as_ref(), out);
        }
        other => out.push_str(&other.to_string()),
    }
}

fn table_alias(alias: Option<&TableAlias>, out: &mut String) {
    if let Some(alias) = alias {
        out.push(' ');
        alias_name(alias, out);
    }
}

fn index_hint(hint: &TableIndexHints, out: &mut String) {
    out.push_str(match hint.hint_type {
        TableIndexHintType::Use => " use index ",
        TableIndexHintType::Ignore => " ignore index ",
        TableIndexHintType::Force => " force index ",
    });
    out.push_str(match hint.for_clause {
        Some(TableIndexHintForClause::Join) => "for join ",
        Some(TableIndexHintForClause::OrderBy) => "for order by ",
        Some(TableIndexHintForClause::GroupBy) => "for group by ",
        None => "",
    });
    out.push('(');
    separated(&hint.index_names, ",", out, |index, out| name(&index.value, out));
    out.push(')');
}

fn json_columns(columns: &[JsonTableColumn], out: &mut String) {
    out.push_str(" columns (");
    separated(columns, ",", out, |column, out| match column {
        JsonTableColumn::ForOrdinality(column) => {
            name(&column.value, out);
            out.push_str(" for ordinality");
        }
        JsonTableColumn::Nested(nested) => {
            out.push_str("nested path ");
            value(&nested.path.value, out);
            json_columns(&nested.columns, out);
        }
        JsonTableColumn::Named(column) => {
            name(&column.name.value, out);
            out.push(' ');
            column_type(&column.r#type, out);
            out.push_str(if column.exists { " exists path " } else { " path " });
            value(&column.path.value, out);
            handling(column.on_empty.as_ref(), " on empty", out);
            handling(column.on_error.as_ref(), " on error", out);
        }
    });
    out.push(')');
}

fn handling(handling: Option<&JsonTableColumnErrorHandling>, when: &str, out: &mut String) {
    match handling {
        None => return,
        Some(JsonTableColumnErrorHandling::Null) => out.push_str(" null"),
        Some(JsonTableColumnErrorHandling::Error) => out.push_str(" error"),
        Some(JsonTableColumnErrorHandling::Default(default)) => {
            out.push_str(" default ");
            value(&default.value, out);
        }
    }
    out.push_str(when);
}

fn lock(lock: &LockClause, out: &mut String) {
    out.push_str(match lock.lock_type {
        LockType::Share => " for share",
        LockType::Update => " for update",
    });
    if let Some(table) = &lock.of {
        out.push_str(" of ");
        object_name(table, out);
    }
    out.push_str(match lock.nonblock {
        Some(NonBlock::Nowait) => " nowait",
        Some(NonBlock::SkipLocked) => " skip locked",
        None => "",
    });
}
