//! `PARTITION BY`, and the actions of `ALTER TABLE` on partitions.

use firn_sql_types::error::Result;

use super::super::ast::{
    Expr, PartitionAction, PartitionBound, PartitionDefinition, PartitionMethod, PartitionValues,
    Partitioning,
};
use super::super::lexer::Kind;
use super::Parser;

type NamedOptions = Vec<(String, String)>;

impl Parser<'_> {
    /// `PARTITION BY …`.
    pub(super) fn partitioning(&mut self) -> Result<Partitioning> {
        self.expect_all(&["PARTITION", "BY"])?;
        let method = self.partition_method()?;
        let count = if self.accept("PARTITIONS") { Some(self.integer()?) } else { None };
        let subpartitions = self.subpartitioning()?;
        let partitions = match self.kind() == Kind::LeftParen && self.is_at(1, "PARTITION") {
            true => self.partition_definitions()?,
            false => Vec::new(),
        };
        Ok(Partitioning { method, count, subpartitions, partitions })
    }

    fn subpartitioning(&mut self) -> Result<Option<(PartitionMethod, Option<u32>)>> {
        if !self.accept_all(&["SUBPARTITION", "BY"]) {
            return Ok(None);
        }
        let method = self.partition_method()?;
        let count = if self.accept("SUBPARTITIONS") { Some(self.integer()?) } else { None };
        Ok(Some((method, count)))
    }

    fn partition_method(&mut self) -> Result<PartitionMethod> {
        let linear = self.accept("LINEAR");
        let allowed: &[&'static str] =
            if linear { &["HASH", "KEY"] } else { &["HASH", "KEY", "RANGE", "LIST"] };
        Ok(match self.expect_any(allowed)? {
            "HASH" => PartitionMethod::Hash { linear, expression: self.parens(Self::expression)? },
            "KEY" => {
                let algorithm = match self.accept("ALGORITHM") {
                    true => {
                        self.need(Kind::Equal)?;
                        Some(self.integer()?)
                    }
                    false => None,
                };
                let columns = self.parens_maybe_empty(Self::ident)?;
                PartitionMethod::Key { linear, algorithm, columns }
            }
            "RANGE" if self.accept("COLUMNS") => {
                PartitionMethod::RangeColumns(self.parens_list(Self::ident)?)
            }
            "RANGE" => PartitionMethod::Range(self.parens(Self::expression)?),
            _ if self.accept("COLUMNS") => {
                PartitionMethod::ListColumns(self.parens_list(Self::ident)?)
            }
            _ => PartitionMethod::List(self.parens(Self::expression)?),
        })
    }

    fn partition_definitions(&mut self) -> Result<Vec<PartitionDefinition>> {
        self.parens_list(|p| {
            p.expect("PARTITION")?;
            let name = p.ident()?;
            let values = p.partition_values()?;
            let options = p.partition_options()?;
            let subpartitions = match p.kind() {
                Kind::LeftParen => p.parens_list(Self::subpartition)?,
                _ => Vec::new(),
            };
            Ok(PartitionDefinition { name, values, options, subpartitions })
        })
    }

    fn subpartition(&mut self) -> Result<(String, NamedOptions)> {
        self.expect("SUBPARTITION")?;
        Ok((self.ident_or_text()?, self.partition_options()?))
    }

    fn partition_values(&mut self) -> Result<PartitionValues> {
        if !self.accept("VALUES") {
            return Ok(PartitionValues::None);
        }
        if self.accept("IN") {
            return self.parens_list(Self::list_value).map(PartitionValues::In);
        }
        self.expect_all(&["LESS", "THAN"])?;
        if self.accept("MAXVALUE") {
            return Ok(PartitionValues::LessThan(vec![PartitionBound::MaxValue]));
        }
        let bounds = self.parens_list(|p| match p.accept("MAXVALUE") {
            true => Ok(PartitionBound::MaxValue),
            false => p.expression().map(PartitionBound::Value),
        })?;
        Ok(PartitionValues::LessThan(bounds))
    }

    fn list_value(&mut self) -> Result<Vec<Expr>> {
        match self.kind() {
            Kind::LeftParen => self.parens_list(Self::expression),
            _ => Ok(vec![self.expression()?]),
        }
    }

    fn partition_options(&mut self) -> Result<NamedOptions> {
        let mut options = Vec::new();
        loop {
            self.accept_all(&["STORAGE"]);
            let word = self.upper();
            match word.as_str() {
                "ENGINE" | "COMMENT" | "MAX_ROWS" | "MIN_ROWS" | "TABLESPACE" | "NODEGROUP" => {
                    self.at += 1;
                }
                "DATA" | "INDEX" if self.is_at(1, "DIRECTORY") => self.at += 2,
                _ => return Ok(options),
            }
            self.take(Kind::Equal);
            options.push((word, self.option_value()?));
        }
    }

    /// Partitions by name, or `ALL`, which is an empty list.
    fn partitions_or_all(&mut self) -> Result<Vec<String>> {
        if self.accept("ALL") { Ok(Vec::new()) } else { self.list(Self::ident) }
    }

    /// An action on partitions, if one begins here.
    pub(super) fn partition_action(&mut self) -> Result<Option<PartitionAction>> {
        if self.accept_all(&["REMOVE", "PARTITIONING"]) {
            return Ok(Some(PartitionAction::Remove));
        }
        if !self.is_at(1, "PARTITION") {
            return Ok(None);
        }
        let word = self.upper();
        let known = matches!(
            word.as_str(),
            "ADD"
                | "COALESCE"
                | "DROP"
                | "REORGANIZE"
                | "EXCHANGE"
                | "TRUNCATE"
                | "ANALYZE"
                | "CHECK"
                | "OPTIMIZE"
                | "REBUILD"
                | "REPAIR"
                | "DISCARD"
                | "IMPORT"
        );
        if !known {
            return Ok(None);
        }
        self.at += 2;
        let _ = self.accept_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        Ok(Some(match word.as_str() {
            "ADD" if self.accept("PARTITIONS") => PartitionAction::AddCount(self.integer()?),
            "ADD" => PartitionAction::Add(self.partition_definitions()?),
            "COALESCE" => PartitionAction::Coalesce(self.integer()?),
            "DROP" => {
                self.if_exists();
                PartitionAction::Drop(self.list(Self::ident)?)
            }
            "REORGANIZE" => self.reorganize()?,
            "EXCHANGE" => self.exchange()?,
            _ => self.maintain_partitions(word)?,
        }))
    }

    fn reorganize(&mut self) -> Result<PartitionAction> {
        let from = match self.is_ident_at(0) {
            true => self.list(Self::ident)?,
            false => return Ok(PartitionAction::Reorganize { from: Vec::new(), into: Vec::new() }),
        };
        self.expect("INTO")?;
        Ok(PartitionAction::Reorganize { from, into: self.partition_definitions()? })
    }

    fn exchange(&mut self) -> Result<PartitionAction> {
        let partition = self.ident()?;
        self.expect_all(&["WITH", "TABLE"])?;
        let table = self.table_name()?;
        let without = self.accept_all(&["WITHOUT", "VALIDATION"]);
        if !without {
            self.accept_all(&["WITH", "VALIDATION"]);
        }
        Ok(PartitionAction::Exchange { partition, table, validate: !without })
    }

    fn maintain_partitions(&mut self, operation: String) -> Result<PartitionAction> {
        let partitions = self.partitions_or_all()?;
        if matches!(operation.as_str(), "DISCARD" | "IMPORT") {
            self.expect("TABLESPACE")?;
        }
        while self.accept_any(&["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED"]).is_some() {}
        Ok(PartitionAction::Maintain { operation, partitions })
    }
}
