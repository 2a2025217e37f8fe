//! Prints which modules of each crate import which, and fails if imports break the rules.
//!
//! ```text
//!   crates/*/Cargo.toml ──workspace──► dependencies ─┐
//!   crates/*/src/**.rs  ──tokens, paths──► imports ──┴──rules──► faults, exit code
//! ```
//!
//! It reads paths as they are written (`crate::…`, `super::…`, and what a crate's root re-exports); what a
//! macro makes of them it does not see.

#![allow(clippy::disallowed_methods, reason = "a tool of the developers reads the sources")]

mod graph;
mod paths;
mod rules;
mod tokens;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use rules::Rules;
use workspace::Crate;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = match workspace::crates(&folder) {
        Ok(crates) => crates,
        Err(error) => {
            eprintln!("The sources cannot be read: {error}.");
            return ExitCode::FAILURE;
        }
    };
    crates.iter().for_each(print);
    let rules = Rules::new(include_str!("../order.txt"), include_str!("../cycles.txt"));
    let faults = rules.faults(&crates);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(one: &Crate) {
    let joined = |names: &std::collections::BTreeSet<String>| {
        names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    println!("{} → {}", one.name, joined(&one.dependencies));
    for (from, to) in one.modules.arrows() {
        println!("    {from} → {}", joined(to));
    }
    for (from, to) in one.modules.cyclic() {
        println!("    in a circle: {from} → {to}");
    }
}
