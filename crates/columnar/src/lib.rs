//! The vectorised engine: analytic statements over Arrow batches.
//!
//! ```text
//!   plan of the SQL layer ──translate──► operators over batches ──run──► rows of the result
//!        scan/        rows' bytes to columns          expression/   kernels, or rows evaluated
//!        operator/    stages, groups, unions          aggregate/    what functions keep of groups
//!        cache/       columns kept between statements feed         what only the session can do
//!                                                     translate/    plan nodes to operators
//! ```
//!
//! The SQL layer defines the meaning: its types, comparisons and functions apply, and it evaluates
//! expressions without a kernel. An attempt that cannot give an exact answer is abandoned before
//! any row was sent, and the row executor runs the statement.
//!
//! Threads: the session's own, and those of one runtime for the process (`threads.rs`), which lets
//! one task for each processor compute and any number of them wait. Tasks read tables through
//! readers of the session's snapshot, which end with the run.

mod aggregate;
mod batch;
mod cache;
mod engine;
mod expression;
mod memory;
mod operator;
mod plan_execution;
mod resources;
mod scan;
mod scope;
mod session_sources;
mod spill;
mod stop_reason;
mod threads;
mod translate;
mod value;

pub use engine::Engine;
