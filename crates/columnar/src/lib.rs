//! The vectorised engine: analytic statements over Arrow batches.
//!
//! ```text
//!   plan of the SQL layer ──translate──► operators over batches ──run──► rows of the result
//!        scan/        rows' bytes to columns          expression/   kernels, or the row executor's evaluation
//!        operator/    stages, groups, unions          aggregate/    what functions keep of groups
//!        cache/       columns kept between statements feed         what only the session can do
//!                                                     translate/    which operator stands for which node
//! ```
//!
//! The meaning of SQL is the SQL layer's: types, comparisons and functions are its own, and what has no kernel
//! here is evaluated by it. An attempt that meets something it has no exact answer for is given up, and the row
//! executor runs the statement; nothing has been sent by then.
//!
//! Threads: the session's own, and those of one runtime for the process, as many as processors. Tasks read
//! tables through readers of the session's snapshot, which are gone when a run ends.

mod aggregate;
mod cache;
mod engine;
mod expression;
mod feed;
mod memory;
mod operator;
mod run;
mod scan;
mod scope;
mod spill;
mod stop;
mod translate;
mod value;

pub use engine::Engine;
