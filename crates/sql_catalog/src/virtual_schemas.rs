//! The schemas of virtual tables.

/// The schemas that contain virtual tables.
pub const VIRTUAL_SCHEMAS: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];

/// A schema of virtual tables by its name; those without other tables may be written in any case.
#[must_use]
pub fn proper_schema(schema: &str) -> Option<&'static str> {
    VIRTUAL_SCHEMAS.into_iter().find(|known| match *known {
        "information_schema" | "performance_schema" => known.eq_ignore_ascii_case(schema),
        other => other == schema,
    })
}
