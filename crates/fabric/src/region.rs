//! The seam: what a peer can do with a region that it does not own.

/// Why a one-sided access did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// No such region is registered.
    #[error("no region named {0} is registered")]
    Unknown(String),
    /// The name is taken.
    #[error("a region named {0} is registered already")]
    Registered(String),
    /// The access goes past the region's end.
    #[error("words {start}..{end} go past the end of a region of {length} words")]
    OutOfBounds {
        /// First word.
        start: usize,
        /// Behind the last word.
        end: usize,
        /// The region's length.
        length: usize,
    },
}

/// A region, as a peer sees it. Each word is read and written as a whole; several words are not one
/// atomic unit, so whoever lays out a region says how a reader notices a change half-way.
pub trait Region: Send + Sync {
    /// The region's length in words.
    fn length_words(&self) -> usize;

    /// Reads the words from `start` in ascending order.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`].
    fn read(&self, start: usize, into: &mut [u64]) -> Result<(), FabricError>;

    /// Writes the words from `start` in ascending order.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`].
    fn write(&self, start: usize, words: &[u64]) -> Result<(), FabricError>;

    /// Puts `new` where `expected` stands; returns what stood there.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`].
    fn compare_and_swap(&self, word: usize, expected: u64, new: u64) -> Result<u64, FabricError>;

    /// Adds to a word; returns what it was.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`].
    fn fetch_add(&self, word: usize, amount: u64) -> Result<u64, FabricError>;
}
