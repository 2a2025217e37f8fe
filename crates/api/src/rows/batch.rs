//! Rows of a scan that lie together in memory.

/// Where a row lies in the batch's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RowSpan {
    /// Where its primary key begins.
    pub key_start: u32,
    /// Where its primary key ends.
    pub key_end: u32,
    /// Where the row's bytes begin.
    pub row_start: u32,
    /// Where the row's bytes end.
    pub row_end: u32,
}

/// Rows of a batch in one piece of memory, so that reading them takes no call per row.
#[derive(Debug, Clone, Copy)]
pub struct RowBatch<'a> {
    /// Keys and rows.
    pub bytes: &'a [u8],
    /// One for each row, in the scan's order.
    pub spans: &'a [RowSpan],
}

impl<'a> RowBatch<'a> {
    /// The row of a span.
    ///
    /// # Panics
    /// If the span belongs to another batch.
    #[must_use]
    #[inline]
    pub fn row(&self, span: RowSpan) -> &'a [u8] {
        &self.bytes[span.row_start as usize..span.row_end as usize]
    }

    /// The primary key of a span's row.
    ///
    /// # Panics
    /// If the span belongs to another batch.
    #[must_use]
    #[inline]
    pub fn key(&self, span: RowSpan) -> &'a [u8] {
        &self.bytes[span.key_start as usize..span.key_end as usize]
    }
}
