//! `JSON_TABLE` in `FROM`: the types and paths of its columns.

use std::sync::Arc;

use sqlparser::ast::{
    DataType, Expr, JsonTableColumn, JsonTableColumnErrorHandling, TableAlias, Value, ValueWithSpan,
};

use crate::catalog::ddl::column_kind;
use crate::error::{Result, SqlError};
use crate::expression::Slot;
use crate::functions::json::Path;
use crate::grammar;
use crate::plan::json_table::{JsonColumn, JsonColumnSource, JsonLevel, Otherwise};
use crate::plan::{NodeKind, OutputColumn, PlanNode, QueryPlan};
use crate::types::cast::{fitting_context, fitting_value};
use crate::types::json::JsonValue;
use crate::types::{SqlType, TypeKind};

use super::from::FromItem;
use super::logical::RelationSource;
use super::{Binder, make};

/// How many rows a document is taken to have, as nobody knows.
const EXPECTED_ROWS: f64 = 10.0;

impl Binder<'_> {
    /// `JSON_TABLE(document, path COLUMNS (…)) AS alias`
    pub(crate) fn json_table(
        &mut self,
        document: &Expr,
        path: &ValueWithSpan,
        columns: &[JsonTableColumn],
        alias: &TableAlias,
    ) -> Result<FromItem> {
        let document = self.bind_single(document)?;
        let nullable = document.ty.nullable;
        let document = self.cast_to(document, SqlType::new(TypeKind::Json).with_nullable(nullable));
        let mut names = Vec::new();
        let mut types = Vec::new();
        let level = self.json_level(path, columns, &mut names, &mut types)?;
        for (at, name) in names.iter().enumerate() {
            let is_same = |other: &Arc<str>| crate::catalog::model::same_name(other, name);
            if names[..at].iter().any(is_same) {
                return Err(SqlError::new(1060, format!("Duplicate column name '{name}'")));
            }
        }
        let slots: Vec<Slot> = types.iter().map(|_| self.new_slot(None)).collect();
        let outputs = slots.iter().zip(&types).zip(&names).map(|((slot, ty), name)| OutputColumn {
            value: make::slot(*slot, ty.clone()),
            name: Arc::clone(name),
            origin: None,
            display: None,
        });
        let columns = outputs.collect();
        let kind = NodeKind::JsonTable { document, level: Box::new(level), slots };
        let root = PlanNode { kind, rows: EXPECTED_ROWS, cost: EXPECTED_ROWS };
        let planned = Some(Box::new(QueryPlan { root, columns }));
        // It may read tables to its left, as if it were LATERAL.
        let source = RelationSource::Derived { query: None, planned, lateral: true };
        self.place_relation(source, alias.name.value.as_str().into(), names, types)
    }

    fn json_level(
        &mut self,
        path: &ValueWithSpan,
        columns: &[JsonTableColumn],
        names: &mut Vec<Arc<str>>,
        types: &mut Vec<SqlType>,
    ) -> Result<JsonLevel> {
        let path = path_of(path)?;
        let mut level = JsonLevel { path, columns: Vec::new(), nested: Vec::new() };
        for column in columns {
            let (name, ty, source) = match column {
                JsonTableColumn::Nested(nested) => {
                    let below = self.json_level(&nested.path, &nested.columns, names, types)?;
                    level.nested.push(below);
                    continue;
                }
                JsonTableColumn::ForOrdinality(name) => {
                    let ty = SqlType::bigint_unsigned().with_nullable(true);
                    (&name.value, ty, JsonColumnSource::Ordinality)
                }
                JsonTableColumn::Named(named) => {
                    let ty = self.json_column_type(&named.name.value, &named.r#type)?;
                    let path = path_of(&named.path)?;
                    let source = if named.exists {
                        JsonColumnSource::Exists(path)
                    } else {
                        let name = &named.name.value;
                        let on_empty = self.otherwise(name, &ty, named.on_empty.as_ref())?;
                        let on_error = self.otherwise(name, &ty, named.on_error.as_ref())?;
                        JsonColumnSource::Value { path, on_empty, on_error }
                    };
                    (&named.name.value, ty, source)
                }
            };
            let number = names.len();
            names.push(name.as_str().into());
            types.push(ty.clone());
            level.columns.push(JsonColumn { number, name: name.as_str().into(), ty, source });
        }
        Ok(level)
    }

    fn json_column_type(&self, name: &str, written: &DataType) -> Result<SqlType> {
        let DataType::Custom(text, _) = written else {
            return Err(SqlError::not_supported(&written.to_string()));
        };
        let text = super::cast::name_of(text);
        let column_type = grammar::parse_column_type(&text, grammar::Mode::default())?;
        let collation = self.context.evaluation.connection_collation;
        let kind = column_kind(name, &column_type, collation)?;
        Ok(SqlType::of_column(kind, true))
    }

    fn otherwise(
        &self,
        name: &str,
        ty: &SqlType,
        written: Option<&JsonTableColumnErrorHandling>,
    ) -> Result<Otherwise> {
        Ok(match written {
            None | Some(JsonTableColumnErrorHandling::Null) => Otherwise::Null,
            Some(JsonTableColumnErrorHandling::Error) => Otherwise::Error,
            Some(JsonTableColumnErrorHandling::Default(value)) => {
                let invalid = || SqlError::new(1067, format!("Invalid default value for '{name}'"));
                let Value::SingleQuotedString(text) = &value.value else { return Err(invalid()) };
                let document = JsonValue::parse(text).map_err(|_| invalid())?;
                let context = fitting_context(self.context.evaluation);
                let value = fitting_value(&document, ty, name, &context);
                Otherwise::Default(value.map_err(|_| invalid())?)
            }
        })
    }
}

fn path_of(written: &ValueWithSpan) -> Result<Path> {
    match &written.value {
        Value::SingleQuotedString(text) => Path::parse(text),
        other => Err(SqlError::not_supported(&format!("the path {other}"))),
    }
}
