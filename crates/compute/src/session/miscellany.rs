//! Small parts of statements: expressions of `SET` and `KILL`, `EXPLAIN`, `SELECT … INTO`, and the
//! protocol's commands that are not statements.

use firn_sql::catalog::notation::identifier;
use firn_sql::error::{Condition, Result, SqlError};
use firn_sql::execute::SessionState;
use firn_sql::grammar;
use firn_sql::grammar::ast::{
    Explain, ExplainFormat, ExplainTarget, Expr, Into, Select, Statement,
};
use firn_sql::plan::{ExplainRow, explain_json, explain_table, explain_tree};
use firn_sql::types::{Datum, SqlType};
use firn_wire::{FieldDefinition, Replies, WireError};

use super::answer::Table;
use super::execution::{Arguments, Gathered};
use super::{SqlSession, executor, told};
use crate::accounts::Privilege;
use crate::columns;
use crate::plan_cache::CachedPlan;

type Answered = std::result::Result<(), WireError>;

impl SqlSession {
    /// The value of an expression outside a query.
    ///
    /// # Errors
    /// Errors of binding and evaluation.
    pub(super) fn evaluate(&mut self, expression: &Expr) -> Result<(Datum, SqlType)> {
        let arguments = Arguments::default();
        let plan = self.plan(&Statement::Do(vec![expression.clone()]), &arguments)?;
        let mut sink = Gathered::new(self.settings.presentation.time_zone.clone());
        let kept = std::mem::take(&mut self.conditions);
        let ran = self.execute(&plan, &arguments, &mut sink);
        self.conditions = kept;
        ran?;
        let value = sink.rows.pop().and_then(|mut row| row.pop()).unwrap_or(Datum::Null);
        let ty = sink.types.pop().unwrap_or_else(SqlType::null);
        Ok((value, ty))
    }

    pub(super) fn evaluate_number(&mut self, expression: &Expr) -> Result<u64> {
        match self.evaluate(expression)?.0 {
            Datum::Int(number) => {
                u64::try_from(number).map_err(|_| SqlError::new(1210, "Incorrect arguments"))
            }
            Datum::UInt(number) => Ok(number),
            _ => Err(SqlError::new(1210, "Incorrect arguments")),
        }
    }

    pub(super) fn evaluate_text(&mut self, expression: &Expr) -> Result<String> {
        Ok(self.evaluate(expression)?.0.plain_text())
    }

    /// `EXPLAIN`
    pub(super) fn run_explain(&mut self, wanted: &Explain, replies: &mut Replies<'_>) -> Answered {
        let explained = self.explain(wanted);
        match explained {
            Ok(table) => self.answer_table(&table, replies),
            Err(error) => {
                self.keep_error(&error);
                Err(told(error))
            }
        }
    }

    fn explain(&mut self, wanted: &Explain) -> Result<Table> {
        let statement = match &wanted.target {
            ExplainTarget::Statement(statement) => statement,
            ExplainTarget::Connection(_) => {
                return Err(SqlError::not_supported("EXPLAIN FOR CONNECTION"));
            }
        };
        let arguments = Arguments::default();
        let plan = self.plan(statement, &arguments)?;
        self.conditions.extend_from_slice(&plan.plan.conditions);
        self.may_explain(&plan)?;
        let executor = executor::explained(&plan.plan, &self.instance, &self.settings);
        if wanted.analyze {
            let executor = "Executor: row (it counts what each operator does)";
            let counters = self.execute_counted(&plan, &arguments)?;
            let mut table = Table::of_text(&["EXPLAIN"]).shown_as("EXPLAIN");
            let tree = explain_tree(&plan.plan, Some(&counters));
            table.push_text(&[&with_executor(&tree, executor)]);
            return Ok(table);
        }
        let chosen = || match self.state.connection.variables.known("explain_format").as_text() {
            "JSON" => ExplainFormat::Json,
            "TREE" => ExplainFormat::Tree,
            _ => ExplainFormat::Traditional,
        };
        match wanted.format.unwrap_or_else(chosen) {
            ExplainFormat::Traditional => {
                let level = firn_sql::error::Level::Note;
                self.conditions.push(Condition { level, code: 1003, message: executor });
                Ok(explained_rows(explain_table(&plan.plan)))
            }
            ExplainFormat::Tree => {
                let mut table = Table::of_text(&["EXPLAIN"]).shown_as("EXPLAIN");
                let tree = explain_tree(&plan.plan, None);
                table.push_text(&[&with_executor(&tree, &executor)]);
                Ok(table)
            }
            ExplainFormat::Json => {
                let mut table = Table::of_text(&["EXPLAIN"]).shown_as("EXPLAIN");
                let said = format!("{{\n  \"executor\": {},", serde_json::json!(executor));
                table.push_text(&[&explain_json(&plan.plan).replacen('{', &said, 1)]);
                Ok(table)
            }
        }
    }

    /// A user who asks how a statement is executed must be allowed to run it, and to look into its
    /// views.
    fn may_explain(&mut self, plan: &CachedPlan) -> Result<()> {
        self.rights.check_needs(&plan.needs)?;
        for named in &plan.plan.tables {
            let Ok(Some(table)) = self.catalog.find_table(&named.schema, &named.table) else {
                continue;
            };
            let given = self.rights.grants.on_table(&named.schema, &named.table);
            if table.view().is_some() && !given.contains(Privilege::SHOW_VIEW) {
                let why = "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
                return Err(SqlError::new(1345, why));
            }
        }
        Ok(())
    }

    /// `SELECT … INTO @a, @b`
    pub(super) fn run_select_into(
        &mut self,
        select: &Select,
        plan: &CachedPlan,
        arguments: &Arguments,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let done = self.select_into(select, plan, arguments);
        match done {
            Ok(rows) => self.answer_affected(rows, 0, "", replies),
            Err(error) => {
                self.keep_error(&error);
                Err(told(error))
            }
        }
    }

    fn select_into(
        &mut self,
        select: &Select,
        plan: &CachedPlan,
        arguments: &Arguments,
    ) -> Result<u64> {
        let names = match &select.into {
            Some(Into::Variables(names)) => names,
            Some(file) => return self.select_into_file(file, plan, arguments),
            None => return Ok(0),
        };
        let mut sink = Gathered::new(self.settings.presentation.time_zone.clone());
        self.execute(plan, arguments, &mut sink)?;
        if sink.types.len() != names.len() {
            let why = "The used SELECT statements have a different number of columns";
            return Err(SqlError::new(1222, why));
        }
        match sink.rows.as_slice() {
            [] => {
                self.evaluation.warn(1329, || {
                    "No data - zero rows fetched, selected, or processed".to_owned()
                });
                self.conditions.extend(self.evaluation.take_conditions());
                Ok(0)
            }
            [row] => {
                self.keep_in_variables(names, row, &sink.types)?;
                Ok(1)
            }
            [first, ..] => {
                self.keep_in_variables(names, first, &sink.types)?;
                Err(SqlError::new(1172, "Result consisted of more than one row"))
            }
        }
    }

    fn keep_in_variables(
        &mut self,
        names: &[String],
        row: &[Datum],
        types: &[SqlType],
    ) -> Result<()> {
        for ((name, value), ty) in names.iter().zip(row).zip(types) {
            self.state.set_user_variable(&name.to_lowercase(), value.try_clone()?, ty);
        }
        Ok(())
    }

    /// `COM_STMT_CLOSE`
    pub(crate) fn forget_numbered(&mut self, number: u32) {
        crate::status::count(&self.facts.status.closes);
        self.state.connection.numbered.remove(&number);
    }

    /// OK to a command that is not a statement.
    pub(crate) fn answer_plainly(&mut self, replies: &mut Replies<'_>) -> Answered {
        self.conditions.clear();
        self.answer_ok(replies)
    }

    /// The line of `COM_STATISTICS`.
    pub(crate) fn statistics_line(&self) -> String {
        let status = self.instance.totals();
        let uptime = self.instance.uptime_seconds();
        let questions = status.questions;
        format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  Flush \
             tables: 0  Open tables: 0  Queries per second avg: {:.3}",
            self.connections.len(),
            status.slow_queries,
            questions as f64 / uptime.max(1) as f64,
        )
    }

    /// `COM_FIELD_LIST`
    ///
    /// # Errors
    /// 1146 if the table does not exist.
    pub(crate) fn fields_of(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> Result<Vec<FieldDefinition>> {
        let table = String::from_utf8_lossy(table);
        let text = format!("SELECT * FROM {} LIMIT 0", identifier(&table));
        let parsed = grammar::parse(&text, grammar::Mode::default())?;
        let plan = self.plan(&parsed.statement, &Arguments::default())?;
        let (schema, name) = (self.state.connection.schema.as_deref().unwrap_or(""), &*table);
        self.refuse_unseen(schema, name)?;
        let firn_sql::plan::StatementPlan::Query(query) = &plan.plan.statement else {
            return Ok(Vec::new());
        };
        let collation = firn_sql::collation::get(firn_format::value::CollationId(45));
        let pattern = match pattern {
            b"" => b"%".as_slice(),
            pattern => pattern,
        };
        let pattern = firn_sql::collation::LikePattern::new(collation, pattern, Some('\\'));
        let results = self.settings.presentation.collation;
        let wanted = query.columns.iter().filter(|column| pattern.matches(column.name.as_bytes()));
        Ok(wanted
            .map(|column| FieldDefinition {
                column: columns::definition(column, results),
                default: None,
            })
            .collect())
    }

    fn execute_counted(
        &mut self,
        plan: &CachedPlan,
        arguments: &Arguments,
    ) -> Result<firn_sql::plan::Counters> {
        self.state.counts = true;
        let ran = self.execute(plan, arguments, &mut super::execution::NoRows);
        self.state.counts = false;
        ran?;
        Ok(self.state.counters.take().unwrap_or_default())
    }
}

/// A tree with a line at the end that names the executor.
fn with_executor(tree: &str, executor: &str) -> String {
    format!("{}\n{executor}\n", tree.trim_end_matches('\n'))
}

/// The rows of a traditional `EXPLAIN`.
fn explained_rows(rows: Vec<ExplainRow>) -> Table {
    use super::answer::text_type;
    let number = SqlType::bigint_unsigned;
    let columns = [
        ("id", number()),
        ("select_type", text_type()),
        ("table", text_type()),
        ("partitions", text_type()),
        ("type", text_type()),
        ("possible_keys", text_type()),
        ("key", text_type()),
        ("key_len", text_type()),
        ("ref", text_type()),
        ("rows", number()),
        ("filtered", SqlType::double()),
        ("Extra", text_type()),
    ];
    let text = |text: Option<&str>| text.map_or(Datum::Null, |text| Datum::text(text.as_bytes()));
    let row = |row: ExplainRow| {
        vec![
            row.id.map_or(Datum::Null, Datum::UInt),
            text(Some(row.select_type)),
            text(row.table.as_deref()),
            Datum::Null,
            text(row.access),
            text(row.possible_keys.as_deref()),
            text(row.key.as_deref()),
            text(row.key_length.as_deref()),
            text(row.reference.as_deref()),
            row.rows.map_or(Datum::Null, Datum::UInt),
            row.filtered.map_or(Datum::Null, Datum::Double),
            text(row.extra.as_deref()),
        ]
    };
    Table {
        columns: columns.map(|(name, ty)| (name.to_owned(), ty)).into(),
        rows: rows.into_iter().map(row).collect(),
        ..Table::default()
    }
    .shown_as("EXPLAIN TRADITIONAL")
}
