//! The JSON format: the rows of the traditional format as documents, with the total cost.

use std::fmt::Write;

use crate::PreparedPlan;

use super::table::{ExplainRow, rows};
use super::tree::short;

/// A plan as a document.
pub(super) fn document(plan: &PreparedPlan) -> String {
    let mut out = String::from("{\n  \"query_block\": {\n    \"select_id\": 1,\n");
    let _ = writeln!(out, "    \"cost_info\": {{ \"query_cost\": \"{}\" }},", short(plan.cost));
    let tables: Vec<String> = rows(plan).iter().map(table).collect();
    let _ = write!(out, "    \"nested_loop\": [\n{}\n    ]\n  }}\n}}", tables.join(",\n"));
    out
}

fn table(row: &ExplainRow) -> String {
    let text = |value: &str| Some(quoted(value));
    let fields: [(&str, Option<String>); 10] = [
        ("select_type", text(row.select_type)),
        ("table_name", row.table.as_deref().and_then(text)),
        ("access_type", row.access.and_then(text)),
        ("possible_keys", row.possible_keys.as_deref().and_then(text)),
        ("key", row.key.as_deref().and_then(text)),
        ("key_length", row.key_length.as_deref().and_then(text)),
        ("ref", row.reference.as_deref().and_then(text)),
        ("rows_examined_per_scan", row.rows.map(|rows| rows.to_string())),
        ("filtered", row.filtered.map(|share| quoted(&format!("{share:.2}")))),
        ("message", row.extra.as_deref().and_then(text)),
    ];
    let fields = fields.iter().filter_map(|(name, value)| {
        value.as_ref().map(|value| format!("          \"{name}\": {value}"))
    });
    let fields = fields.collect::<Vec<_>>().join(",\n");
    format!("      {{\n        \"table\": {{\n{fields}\n        }}\n      }}")
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if (control as u32) < 32 => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out + "\""
}
