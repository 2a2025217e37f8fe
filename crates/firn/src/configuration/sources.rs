//! The sources of values: the settings file, the environment and the flags. Each is read into a
//! list of [`Given`], which remember their [`Origin`], so that an error can name it.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::setting::{SETTINGS, Setting, VARIABLE_PREFIX, find};
use super::{CONFIGURATION_VARIABLE, ConfigurationError};

/// The place where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The setting's default.
    Default,
    /// A line of the settings file, counted from 1.
    File {
        path: PathBuf,
        line: usize,
    },
    Variable(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// A value of a setting, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) setting: &'static str,
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

/// All values that were given; a later one outweighs an earlier one for the same setting.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) given: Vec<Given>,
    /// Variables that begin with `FIRN_` and name no setting. They cause a warning and no error,
    /// because cluster managers make such names for a service that is called `firn`.
    pub(crate) unknown_variables: Vec<String>,
}

/// Reads the file (that of `file_flag`, otherwise that of `FIRN_CONFIG`, if any), then the
/// environment, then the flags.
///
/// # Errors
/// [`ConfigurationError`] if the file cannot be read or holds something that is not a setting.
pub(crate) fn gather(
    file_flag: Option<&str>,
    flags: impl Iterator<Item = (&'static str, String)>,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Sources, ConfigurationError> {
    let environment = Environment::read(variables)?;
    let file = file_flag.map(PathBuf::from).or(environment.file);
    let mut given = file.map_or(Ok(Vec::new()), |path| read_file(&path))?;
    given.extend(environment.given);
    given.extend(flags.map(|(name, text)| Given {
        setting: name,
        text,
        origin: Origin::Flag(find(name).map_or_else(|| name.to_owned(), Setting::flag)),
    }));
    Ok(Sources { given, unknown_variables: environment.unknown })
}

#[derive(Default)]
struct Environment {
    given: Vec<Given>,
    file: Option<PathBuf>,
    unknown: Vec<String>,
}

impl Environment {
    fn read(
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Environment, ConfigurationError> {
        let mut environment = Environment::default();
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(VARIABLE_PREFIX)) else {
                continue;
            };
            environment.take(name, value)?;
        }
        environment.unknown.sort();
        Ok(environment)
    }

    fn take(&mut self, name: &str, value: OsString) -> Result<(), ConfigurationError> {
        if name == CONFIGURATION_VARIABLE {
            self.file = Some(PathBuf::from(value));
            return Ok(());
        }
        let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) else {
            self.unknown.push(name.to_owned());
            return Ok(());
        };
        let origin = Origin::Variable(name.to_owned());
        let text = value
            .into_string()
            .map_err(|_| ConfigurationError::NotText { origin: origin.clone() })?;
        self.given.push(Given { setting: setting.name, text, origin });
        Ok(())
    }
}

fn read_file(path: &Path) -> Result<Vec<Given>, ConfigurationError> {
    let text = fs::read_to_string(path)
        .map_err(|error| ConfigurationError::Unreadable { path: path.to_owned(), error })?;
    parse_file(path, &text)
}

/// The settings in `text`, the contents of `path`.
pub(super) fn parse_file(path: &Path, text: &str) -> Result<Vec<Given>, ConfigurationError> {
    let origin = |span: Range<usize>| Origin::File {
        path: path.to_owned(),
        line: line_of(text, span.start),
    };
    let table = DeTable::parse(text).map_err(|error| ConfigurationError::Syntax {
        origin: origin(error.span().unwrap_or(0..0)),
        reason: error.message().to_owned(),
    })?;
    let mut given = Vec::new();
    for (key, value) in table.get_ref() {
        let origin = origin(key.span());
        let Some(setting) = find(key.get_ref()) else {
            return Err(ConfigurationError::unknown_setting(origin, key.get_ref()));
        };
        let Some(text) = scalar_text(value.get_ref()) else {
            return Err(ConfigurationError::WrongType {
                origin,
                setting: setting.name,
                kind: value.get_ref().type_str(),
            });
        };
        given.push(Given { setting: setting.name, text, origin });
    }
    Ok(given)
}

/// A string or a decimal whole number as it is written; `None` for all other values.
fn scalar_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// The line, counted from 1, of the byte at `offset`.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
