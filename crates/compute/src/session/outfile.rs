//! Files on the server: `SELECT … INTO OUTFILE` and `DUMPFILE`, and where `LOAD DATA INFILE` may
//! read.
//!
//! ```text
//!   rows ─► fields between separators, escaped ─► a new file below `secure_file_priv`
//! ```
//!
//! Invariants:
//! * nothing outside of `secure_file_priv` is read or written, after resolving links; without it
//!   nothing at all;
//! * no file is overwritten.

#![allow(clippy::disallowed_methods, reason = "files of users, which are no part of the database")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_base::disk::{File, OpenMode};
use firn_format::value::{CollationId, ValueRef};
use firn_sql::collation::Charset;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::ResultSink;
use firn_sql::grammar::ast::{FileFormat, Into};
use firn_sql::plan::OutputColumn;
use firn_sql::types::{Datum, EvaluationContext, SqlType, TypeKind, cast};

use super::arguments::Arguments;
use super::rights::Rights;
use super::select_into::SelectIntoStatements;
use crate::accounts::Privilege;
use crate::accounts::need::Need;
use crate::instance::Instance;
use crate::plan_cache::CachedPlan;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 18;

impl SelectIntoStatements<'_> {
    /// Writes a query's rows to the file that it names; returns their number.
    ///
    /// # Errors
    /// 1290 for a forbidden place, 1227 without the privilege, 1086 for an existing file, 1172 for
    /// several rows in a dump, 1 if it cannot be written, and errors of the query.
    pub(super) fn select_into_file(
        &mut self,
        into: &Into,
        plan: &CachedPlan,
        arguments: &Arguments,
    ) -> Result<u64> {
        let (path, format, charset) = match into {
            Into::Outfile { path, charset, format } => (path, Some(format), charset.as_deref()),
            Into::Dumpfile(path) => (path, None, None),
            Into::Variables(_) => return Err(SqlError::not_supported("variables here")),
        };
        let path = secure_path(&self.runner.rights, &self.runner.instance, path, false)?;
        let charset = charset.map(super::settings::charset_of_file).transpose()?;
        let disk = Arc::clone(&self.runner.instance.facts.environment.disk);
        let file = disk.open(&path, OpenMode::CreateNew).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                SqlError::new(1086, format!("File '{}' already exists", path.display()))
            }
            _ => SqlError::new(
                1,
                format!("Can't create/write to file '{}' ({error})", path.display()),
            ),
        })?;
        let context = EvaluationContext {
            time_zone: self.runner.evaluation.time_zone.clone(),
            sql_mode: self.runner.evaluation.sql_mode,
            ..EvaluationContext::default()
        };
        let mut sink = FileSink {
            output: Output { file, path: path.clone(), buffer: Vec::new(), offset: 0 },
            format: format.cloned().unwrap_or_default(),
            is_dump: format.is_none(),
            charset: charset.unwrap_or(Charset::Utf8mb4),
            context,
            rows: 0,
            fields: 0,
        };
        let done =
            self.runner.execute(plan, arguments, &mut sink).and_then(|_| sink.output.finish());
        if done.is_err() {
            // An incomplete file is useless.
            if let Err(error) = disk.remove(&path) {
                tracing::warn!(%error, path = %path.display(), "a file of a query could not be removed");
            }
        }
        done.map(|()| sink.rows)
    }
}

/// A path that statements may read or write, with links resolved.
///
/// # Errors
/// 1045 (to read) and 1227 (to write) without the privilege `FILE`, 1290 outside of
/// `secure_file_priv`, 13 for a file that does not exist.
pub(super) fn secure_path(
    rights: &Rights,
    instance: &Instance,
    written: &str,
    is_read: bool,
) -> Result<PathBuf> {
    match rights.require(&[Need::everywhere(Privilege::FILE)]) {
        Err(_) if is_read => return Err(rights.access_denied()),
        allowed => allowed?,
    }
    let allowed = instance.variables.get("secure_file_priv");
    let allowed = allowed.as_ref().map_or("", |allowed| allowed.as_text());
    let refused = || {
        let why = match allowed {
            "" => {
                "The Firn server is running with the --secure-file-priv option so it cannot execute \
                 this statement; start it with --secure-file-priv=DIR to allow files below DIR"
                    .to_owned()
            }
            allowed => format!(
                "The Firn server is running with the --secure-file-priv option so it cannot execute \
                 this statement; files must be below '{allowed}'"
            ),
        };
        SqlError::new(1290, why)
    };
    let path = Path::new(written);
    if allowed.is_empty() || !path.is_absolute() {
        return Err(refused());
    }
    let allowed = std::fs::canonicalize(allowed).map_err(|_| refused())?;
    let resolved = match is_read {
        true => std::fs::canonicalize(path).map_err(|error| {
            let why = format!("Can't get stat of '{written}' ({error})");
            if path.starts_with(&allowed) { SqlError::new(13, why) } else { refused() }
        })?,
        false => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(refused());
            };
            std::fs::canonicalize(parent).map_err(|_| refused())?.join(name)
        }
    };
    if resolved.starts_with(&allowed) { Ok(resolved) } else { Err(refused()) }
}

/// A file that is written from the beginning.
struct Output {
    file: Arc<dyn File>,
    path: PathBuf,
    buffer: Vec<u8>,
    offset: u64,
}

impl Output {
    fn flush(&mut self) -> Result<()> {
        self.file.write_at(&self.buffer, self.offset).map_err(|error| {
            let path = self.path.display();
            SqlError::new(3, format!("Error writing file '{path}' ({error})"))
        })?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.file.sync_data().map_err(|error| {
            let path = self.path.display();
            SqlError::new(3, format!("Error writing file '{path}' ({error})"))
        })
    }
}

/// Writes a result's rows as lines of a file.
struct FileSink {
    output: Output,
    format: FileFormat,
    is_dump: bool,
    charset: Charset,
    context: EvaluationContext,
    rows: u64,
    /// Fields of the current row.
    fields: usize,
}

impl FileSink {
    fn put(&mut self, text: &str) {
        self.output.buffer.extend_from_slice(text.as_bytes());
    }

    fn field(&mut self, value: &Datum, ty: &SqlType) -> Result<()> {
        if self.is_dump {
            self.output.buffer.extend_from_slice(&self.text_of(value, ty)?);
            return Ok(());
        }
        if self.fields > 0 {
            let between = self.format.fields_terminated_by.clone();
            self.put(&between);
        }
        self.fields += 1;
        if value.is_null() {
            let null = match self.format.escaped_by.as_str() {
                "" => "NULL".to_owned(),
                escape => format!("{escape}N"),
            };
            self.put(&null);
            return Ok(());
        }
        let text = self.text_of(value, ty)?;
        let is_enclosed = !self.format.enclosed_by.is_empty()
            && (!self.format.optionally_enclosed || !ty.kind.is_numeric());
        let enclosure = if is_enclosed { self.format.enclosed_by.clone() } else { String::new() };
        self.put(&enclosure);
        self.put_escaped(&text, is_enclosed);
        self.put(&enclosure);
        Ok(())
    }

    /// Escapes bytes that would have another meaning when they are read.
    fn put_escaped(&mut self, text: &[u8], is_enclosed: bool) {
        let first = |text: &str| text.as_bytes().first().copied();
        let Some(escape) = first(&self.format.escaped_by) else {
            self.output.buffer.extend_from_slice(text);
            return;
        };
        let end = match is_enclosed {
            true => first(&self.format.enclosed_by),
            false => first(&self.format.fields_terminated_by),
        };
        let line = first(&self.format.lines_terminated_by);
        for byte in text {
            match *byte {
                0 => self.output.buffer.extend_from_slice(&[escape, b'0']),
                byte if byte == escape || Some(byte) == end || Some(byte) == line => {
                    self.output.buffer.extend_from_slice(&[escape, byte]);
                }
                byte => self.output.buffer.push(byte),
            }
        }
    }

    /// The text of a value in the file.
    fn text_of(&self, value: &Datum, ty: &SqlType) -> Result<Vec<u8>> {
        if value.is_null() {
            return Ok(Vec::new());
        }
        let wanted = match ty.kind.is_binary() {
            true => SqlType::varbinary(u32::MAX),
            false => SqlType::varchar(u32::MAX, CollationId(255)),
        };
        let text = match (&ty.kind, value) {
            (TypeKind::Varchar { .. } | TypeKind::Text { .. }, Datum::Text(_)) => value.clone(),
            _ => cast::cast(value, ty, &wanted, &self.context)?,
        };
        let bytes = text.as_bytes().unwrap_or_default();
        if ty.kind.is_binary() || self.charset.is_utf8() {
            return Ok(bytes.to_vec());
        }
        Ok(self.charset.encode(bytes).into_owned())
    }
}

impl ResultSink for FileSink {
    fn columns(&mut self, _: &[OutputColumn]) -> Result<()> {
        Ok(())
    }

    fn begin_row(&mut self) -> Result<()> {
        if self.is_dump && self.rows > 0 {
            return Err(SqlError::new(1172, "Result consisted of more than one row"));
        }
        self.fields = 0;
        if !self.is_dump {
            let begin = self.format.lines_starting_by.clone();
            self.put(&begin);
        }
        Ok(())
    }

    fn stored(&mut self, value: ValueRef<'_>, ty: &SqlType) -> Result<()> {
        let datum = Datum::from_value_ref(value, ty, &self.context.time_zone);
        self.field(&datum.map_err(firn_sql::error::damaged)?, ty)
    }

    fn datum(&mut self, value: &Datum, ty: &SqlType) -> Result<()> {
        self.field(value, ty)
    }

    fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        if !self.is_dump {
            let end = self.format.lines_terminated_by.clone();
            self.put(&end);
        }
        match self.output.buffer.len() >= WRITE_BYTES {
            true => self.output.flush(),
            false => Ok(()),
        }
    }
}
