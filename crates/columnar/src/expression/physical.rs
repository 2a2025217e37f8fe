//! A kernel as an expression of the library, for conditions of the library's joins.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;

use super::Kernel;

/// Conditions that must all be true.
#[derive(Debug, Clone)]
pub(crate) struct KernelExpression(pub(crate) Arc<Kernel>);

impl PartialEq for KernelExpression {
    fn eq(&self, other: &KernelExpression) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for KernelExpression {}

impl Hash for KernelExpression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Display for KernelExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("condition")
    }
}

impl PhysicalExpr for KernelExpression {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(Arc::new(self.0.truth(batch)?)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("condition")
    }
}

/// A column by its number.
pub(crate) fn column(number: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(&format!("c{number}"), number))
}
