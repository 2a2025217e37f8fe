//! Where logs may be: a user who can set variables must not write to other files through them.

use std::path::{Component, Path, PathBuf, absolute};

use firn_sql::error::{Result, SqlError};

use crate::variables::GlobalVariables;

/// The variables that name logs.
const VARIABLES: [&str; 2] = ["general_log_file", "slow_query_log_file"];

/// The directories for logs: the data directory, and those that the server was started with.
#[derive(Debug, Clone)]
pub struct LogDirectories {
    data: PathBuf,
    allowed: Vec<PathBuf>,
}

impl LogDirectories {
    /// Those of the variables that the server was started with.
    #[must_use]
    pub fn of(variables: &GlobalVariables) -> LogDirectories {
        let text = |name: &str| {
            variables.get(name).map(|value| value.as_text().to_owned()).unwrap_or_default()
        };
        let data = PathBuf::from(text("datadir"));
        let named = VARIABLES.iter().map(|name| data.join(text(name)));
        let allowed = named.filter_map(|path| path.parent().map(Path::to_owned));
        let allowed = allowed.chain([data.clone()]).filter_map(|path| absolute(path).ok());
        LogDirectories { allowed: allowed.collect(), data }
    }

    /// Refuses a log name unless it is a file `….log` in one of the directories.
    ///
    /// # Errors
    /// 1231
    pub fn judge(&self, variable: &str, name: &str) -> Result<()> {
        if !VARIABLES.contains(&variable) {
            return Ok(());
        }
        let path = absolute(self.data.join(name)).unwrap_or_default();
        let is_plain = !Path::new(name)
            .components()
            .any(|part| matches!(part, Component::ParentDir | Component::CurDir));
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        let is_there =
            path.parent().is_some_and(|parent| self.allowed.iter().any(|one| one == parent));
        if is_plain && is_log && is_there {
            return Ok(());
        }
        let message = format!(
            "Variable '{variable}' can't be set to the value of '{name}': a log is a file named '*.log' in the data \
             directory or in the directory of the log that the server was started with"
        );
        Err(SqlError::new(1231, message))
    }
}
