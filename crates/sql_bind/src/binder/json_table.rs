//! `JSON_TABLE` in `FROM`: the types and paths of its columns.

use std::sync::Arc;

use firn_sql_catalog::ddl::column_kind;
use firn_sql_functions::JsonPath;
use firn_sql_grammar as grammar;
use firn_sql_grammar::ast::{Expr, JsonTable, JsonTableColumn, JsonTableHandling, Value};
use firn_sql_logical::expression::Slot;
use firn_sql_logical::json_table::{
    JsonColumn, JsonColumnSource, JsonLevel, JsonTable as JsonRows, Otherwise,
};
use firn_sql_logical::{OutputColumn, PlanContext, RelationSource};
use firn_sql_types::cast::{fitting_context, fitting_value};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::json::JsonValue;
use firn_sql_types::{SqlType, TypeKind};

use super::from::FromItem;
use super::{Binder, coerce, expression_builders, expressions, from};

/// `JSON_TABLE(document, path COLUMNS (…)) AS alias`
pub(crate) fn json_table(binder: &mut Binder<'_>, table: &JsonTable) -> Result<FromItem> {
    let document = expressions::bind_single(binder, &table.document)?;
    let nullable = document.ty.nullable;
    let document = coerce::cast_to(
        &mut binder.typing,
        document,
        SqlType::new(TypeKind::Json).with_nullable(nullable),
    );
    let mut names = Vec::new();
    let mut types = Vec::new();
    let path = path_of(&table.path)?;
    let level = json_level(binder.typing.context, path, &table.columns, &mut names, &mut types)?;
    for (at, name) in names.iter().enumerate() {
        let is_same = |other: &Arc<str>| firn_sql_catalog::model::same_name(other, name);
        if names[..at].iter().any(is_same) {
            return Err(SqlError::duplicate_column(name));
        }
    }
    let slots: Vec<Slot> = types.iter().map(|_| binder.typing.frame.new_slot(None)).collect();
    let outputs = slots.iter().zip(&types).zip(&names).map(|((slot, ty), name)| OutputColumn {
        value: expression_builders::slot(*slot, ty.clone()),
        name: Arc::clone(name),
        origin: None,
        display: None,
    });
    let rows = JsonRows { document, level, columns: outputs.collect(), slots };
    let source = RelationSource::JsonTable(Some(Box::new(rows)));
    from::place_relation(binder, source, table.alias.name.as_str().into(), names, types)
}

fn json_level(
    context: &PlanContext<'_>,
    path: JsonPath,
    columns: &[JsonTableColumn],
    names: &mut Vec<Arc<str>>,
    types: &mut Vec<SqlType>,
) -> Result<JsonLevel> {
    let mut level = JsonLevel { path, columns: Vec::new(), nested: Vec::new() };
    for column in columns {
        let (name, ty, source) = match column {
            JsonTableColumn::Nested { path, columns } => {
                let below = json_level(context, JsonPath::parse(path)?, columns, names, types)?;
                level.nested.push(below);
                continue;
            }
            JsonTableColumn::ForOrdinality(name) => {
                let ty = SqlType::bigint_unsigned().with_nullable(true);
                (name, ty, JsonColumnSource::Ordinality)
            }
            JsonTableColumn::Named(named) => {
                let ty = json_column_type(context, &named.name, &named.type_text)?;
                let path = JsonPath::parse(&named.path)?;
                let source = if named.exists {
                    JsonColumnSource::Exists(path)
                } else {
                    let name = &named.name;
                    let on_empty = otherwise(context, name, &ty, named.on_empty.as_ref())?;
                    let on_error = otherwise(context, name, &ty, named.on_error.as_ref())?;
                    JsonColumnSource::Value { path, on_empty, on_error }
                };
                (&named.name, ty, source)
            }
        };
        let number = names.len();
        names.push(name.as_str().into());
        types.push(ty.clone());
        level.columns.push(JsonColumn { number, name: name.as_str().into(), ty, source });
    }
    Ok(level)
}

fn json_column_type(context: &PlanContext<'_>, name: &str, text: &str) -> Result<SqlType> {
    let column_type = grammar::parse_column_type(text, grammar::Mode::default())?;
    let collation = context.evaluation.connection_collation;
    let kind = column_kind(name, &column_type, collation)?;
    Ok(SqlType::of_column(kind, true))
}

fn otherwise(
    context: &PlanContext<'_>,
    name: &str,
    ty: &SqlType,
    written: Option<&JsonTableHandling>,
) -> Result<Otherwise> {
    Ok(match written {
        None | Some(JsonTableHandling::Null) => Otherwise::Null,
        Some(JsonTableHandling::Error) => Otherwise::Error,
        Some(JsonTableHandling::Default(value)) => {
            let invalid = || SqlError::new(1067, format!("Invalid default value for '{name}'"));
            let Value::Text(text) = value else { return Err(invalid()) };
            let document = JsonValue::parse(text).map_err(|_| invalid())?;
            let context = fitting_context(context.evaluation);
            let value = fitting_value(&document, ty, name, &context);
            Otherwise::Default(value.map_err(|_| invalid())?)
        }
    })
}

fn path_of(written: &Value) -> Result<JsonPath> {
    match written {
        Value::Text(text) => JsonPath::parse(text),
        other => {
            let shown = grammar::render(&Expr::Value(other.clone()));
            Err(SqlError::not_supported(&format!("the path {shown}")))
        }
    }
}
