//! Statements by their kind, for the `Com_…` counters.

use firn_sql::grammar::ast::{MaintenanceOperation, Show, ShowCreate, Statement, Xa};
use firn_sql::plan::{NodeKind, PlanNode, PreparedPlan, StatementPlan};

use crate::statement_kind::StatementKind;

macro_rules! commands {
    ($($variant:ident $name:literal)*) => {
        /// A kind of statement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Command {
            $(#[doc = $name] $variant),*
        }

        const ALL: &[(Command, &str, &str)] =
            &[$((Command::$variant, $name, concat!("Com_", $name))),*];
    };
}

commands! {
    AlterDb "alter_db" AlterTable "alter_table" AlterUser "alter_user" Analyze "analyze" Begin "begin"
    CallProcedure "call_procedure" ChangeDb "change_db" Check "check" Checksum "checksum" Commit "commit"
    CreateDb "create_db" CreateIndex "create_index" CreateRole "create_role" CreateTable "create_table"
    CreateUser "create_user" CreateView "create_view" DeallocSql "dealloc_sql" Delete "delete"
    DeleteMulti "delete_multi" Do "do" DropDb "drop_db" DropEvent "drop_event"
    DropFunction "drop_function" DropIndex "drop_index" DropProcedure "drop_procedure" DropRole "drop_role"
    DropTable "drop_table" DropTrigger "drop_trigger" DropUser "drop_user" DropView "drop_view" ExecuteSql "execute_sql"
    ExplainOther "explain_other" Flush "flush" GetDiagnostics "get_diagnostics" Grant "grant"
    GrantRoles "grant_roles" Help "help" Insert "insert" InsertSelect "insert_select" Kill "kill" Load "load"
    LockInstance "lock_instance" LockTables "lock_tables" Optimize "optimize" PrepareSql "prepare_sql"
    Purge "purge" ReleaseSavepoint "release_savepoint" RenameTable "rename_table" RenameUser "rename_user"
    Repair "repair" Replace "replace" ReplaceSelect "replace_select" Reset "reset" Resignal "resignal"
    Revoke "revoke" RevokeRoles "revoke_roles" Rollback "rollback" RollbackToSavepoint "rollback_to_savepoint"
    Savepoint "savepoint" Select "select" SetOption "set_option" SetPassword "set_password" SetRole "set_role"
    ShowBinlogs "show_binlogs" ShowCharsets "show_charsets" ShowCollations "show_collations"
    ShowCreateDb "show_create_db" ShowCreateTable "show_create_table" ShowCreateUser "show_create_user"
    ShowDatabases "show_databases" ShowEngineStatus "show_engine_status" ShowErrors "show_errors"
    ShowEvents "show_events" ShowFields "show_fields" ShowFunctionStatus "show_function_status"
    ShowGrants "show_grants" ShowKeys "show_keys" ShowOpenTables "show_open_tables" ShowOther "show_other"
    ShowPlugins "show_plugins" ShowPrivileges "show_privileges" ShowProcedureStatus "show_procedure_status"
    ShowProcesslist "show_processlist" ShowProfile "show_profile" ShowProfiles "show_profiles"
    ShowStatus "show_status" ShowStorageEngines "show_storage_engines" ShowTableStatus "show_table_status"
    ShowTables "show_tables" ShowTriggers "show_triggers" ShowVariables "show_variables"
    ShowWarnings "show_warnings" Signal "signal" StmtExecute "stmt_execute" StmtPrepare "stmt_prepare"
    Truncate "truncate" UnlockInstance "unlock_instance" UnlockTables "unlock_tables" Update "update"
    UpdateMulti "update_multi" XaCommit "xa_commit" XaEnd "xa_end" XaPrepare "xa_prepare"
    XaRecover "xa_recover" XaRollback "xa_rollback" XaStart "xa_start"
}

impl Command {
    /// The number of kinds.
    pub const COUNT: usize = ALL.len();

    pub fn all() -> impl Iterator<Item = Command> {
        ALL.iter().map(|(command, ..)| *command)
    }

    /// `select`
    #[must_use]
    pub fn label(self) -> &'static str {
        ALL[self as usize].1
    }

    /// `Com_select`
    #[must_use]
    pub fn status_name(self) -> &'static str {
        ALL[self as usize].2
    }

    /// The kind of a planned statement.
    pub(crate) fn of_plan(kind: StatementKind, plan: &PreparedPlan) -> Command {
        let has_query = |source: &PlanNode| !matches!(source.kind, NodeKind::Values { .. });
        match (kind, &plan.statement) {
            (StatementKind::Insert, StatementPlan::Insert(insert))
                if has_query(&insert.source.root) =>
            {
                Command::InsertSelect
            }
            (StatementKind::Replace, StatementPlan::Insert(insert))
                if has_query(&insert.source.root) =>
            {
                Command::ReplaceSelect
            }
            (StatementKind::Update, StatementPlan::Update(update)) if update.targets.len() > 1 => {
                Command::UpdateMulti
            }
            (StatementKind::Delete, StatementPlan::Delete(delete)) if delete.targets.len() > 1 => {
                Command::DeleteMulti
            }
            (StatementKind::Insert, _) => Command::Insert,
            (StatementKind::Replace, _) => Command::Replace,
            (StatementKind::Update, _) => Command::Update,
            (StatementKind::Delete, _) => Command::Delete,
            (StatementKind::Select | StatementKind::LockingSelect, _) => Command::Select,
        }
    }

    /// The kind of a statement that is not planned. Planned ones are counted when their plan runs,
    /// so that a plan from the cache counts as well.
    pub(crate) fn of(statement: &Statement) -> Option<Command> {
        use Command as C;
        Some(match statement {
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_)
            | Statement::Unsupported { .. } => return None,
            Statement::LoadData(_) => C::Load,
            Statement::Call(_) => C::CallProcedure,
            Statement::CreateDatabase(_) => C::CreateDb,
            Statement::AlterDatabase(_) => C::AlterDb,
            Statement::DropDatabase { .. } => C::DropDb,
            Statement::CreateTable(_) | Statement::CreateTableLike { .. } => C::CreateTable,
            Statement::AlterTable(_) => C::AlterTable,
            Statement::DropTable { .. } => C::DropTable,
            Statement::RenameTable(_) => C::RenameTable,
            Statement::Truncate(_) => C::Truncate,
            Statement::CreateIndex { .. } => C::CreateIndex,
            Statement::DropIndex { .. } => C::DropIndex,
            Statement::CreateView(_) => C::CreateView,
            Statement::DropView { .. } => C::DropView,
            Statement::DropProgram { kind, .. } => match *kind {
                "PROCEDURE" => C::DropProcedure,
                "FUNCTION" => C::DropFunction,
                "TRIGGER" => C::DropTrigger,
                _ => C::DropEvent,
            },
            Statement::Begin(_) => C::Begin,
            Statement::Commit(_) => C::Commit,
            Statement::Rollback(_) => C::Rollback,
            Statement::Savepoint(_) => C::Savepoint,
            Statement::RollbackTo(_) => C::RollbackToSavepoint,
            Statement::ReleaseSavepoint(_) => C::ReleaseSavepoint,
            Statement::SetTransaction(_) | Statement::Set(_) => C::SetOption,
            Statement::Xa(xa) => of_xa(xa),
            Statement::LockTables(_) => C::LockTables,
            Statement::UnlockTables => C::UnlockTables,
            Statement::LockInstance => C::LockInstance,
            Statement::UnlockInstance => C::UnlockInstance,
            Statement::Use(_) => C::ChangeDb,
            Statement::Prepare { .. } => C::PrepareSql,
            Statement::Execute { .. } => C::ExecuteSql,
            Statement::Deallocate(_) => C::DeallocSql,
            Statement::Show(show) => of_show(show),
            Statement::Describe { .. } => C::ShowFields,
            Statement::Explain(_) => C::ExplainOther,
            Statement::Help(_) => C::Help,
            Statement::Kill { .. } => C::Kill,
            Statement::GetDiagnostics(_) => C::GetDiagnostics,
            Statement::Signal(_) => C::Signal,
            Statement::Resignal(_) => C::Resignal,
            Statement::TableMaintenance(work) => of_maintenance(work.operation),
            Statement::Flush(_) => C::Flush,
            Statement::Reset(_) => C::Reset,
            Statement::PurgeBinaryLogs(_) => C::Purge,
            Statement::CreateUser(_) => C::CreateUser,
            Statement::AlterUser(_) => C::AlterUser,
            Statement::DropUser { .. } => C::DropUser,
            Statement::RenameUser(_) => C::RenameUser,
            Statement::CreateRole { .. } => C::CreateRole,
            Statement::DropRole { .. } => C::DropRole,
            Statement::Grant(_) => C::Grant,
            Statement::Revoke(_) => C::Revoke,
            Statement::GrantRoles { .. } => C::GrantRoles,
            Statement::RevokeRoles { .. } => C::RevokeRoles,
            Statement::SetPassword(_) => C::SetPassword,
            Statement::SetRole(_) | Statement::SetDefaultRole { .. } => C::SetRole,
            _ => return None,
        })
    }
}

fn of_xa(xa: &Xa) -> Command {
    match xa {
        Xa::Start { .. } => Command::XaStart,
        Xa::End { .. } => Command::XaEnd,
        Xa::Prepare(_) => Command::XaPrepare,
        Xa::Commit { .. } => Command::XaCommit,
        Xa::Rollback(_) => Command::XaRollback,
        Xa::Recover { .. } => Command::XaRecover,
    }
}

fn of_maintenance(operation: MaintenanceOperation) -> Command {
    match operation {
        MaintenanceOperation::Analyze => Command::Analyze,
        MaintenanceOperation::Check => Command::Check,
        MaintenanceOperation::Checksum => Command::Checksum,
        MaintenanceOperation::Optimize => Command::Optimize,
        MaintenanceOperation::Repair => Command::Repair,
    }
}

fn of_show(show: &Show) -> Command {
    use Command as C;
    match show {
        Show::Databases(_) => C::ShowDatabases,
        Show::Tables { .. } => C::ShowTables,
        Show::TableStatus { .. } => C::ShowTableStatus,
        Show::OpenTables { .. } => C::ShowOpenTables,
        Show::Columns { .. } => C::ShowFields,
        Show::Indexes { .. } => C::ShowKeys,
        Show::Create(ShowCreate::Database { .. }) => C::ShowCreateDb,
        Show::Create(ShowCreate::Table(_) | ShowCreate::View(_)) => C::ShowCreateTable,
        Show::Create(ShowCreate::User(_)) => C::ShowCreateUser,
        Show::Variables { .. } => C::ShowVariables,
        Show::Status { .. } => C::ShowStatus,
        Show::Processlist { .. } => C::ShowProcesslist,
        Show::Warnings(_) | Show::WarningCount => C::ShowWarnings,
        Show::Errors(_) | Show::ErrorCount => C::ShowErrors,
        Show::Engines => C::ShowStorageEngines,
        Show::Engine { .. } => C::ShowEngineStatus,
        Show::CharacterSets(_) => C::ShowCharsets,
        Show::Collations(_) => C::ShowCollations,
        Show::Privileges => C::ShowPrivileges,
        Show::Plugins => C::ShowPlugins,
        Show::Grants { .. } => C::ShowGrants,
        Show::Triggers { .. } => C::ShowTriggers,
        Show::Events { .. } => C::ShowEvents,
        Show::ProcedureStatus(_) => C::ShowProcedureStatus,
        Show::FunctionStatus(_) => C::ShowFunctionStatus,
        Show::Profiles => C::ShowProfiles,
        Show::Profile => C::ShowProfile,
        Show::BinaryLogs => C::ShowBinlogs,
        _ => C::ShowOther,
    }
}
