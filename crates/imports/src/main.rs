//! Prints which modules of each crate import which, and fails if imports break the rules.
//!
//! ```text
//!   crates/*/Cargo.toml ──workspace──► dependencies ─┐
//!   crates/*/src/**.rs  ──tokens, paths──► imports ──┴──rules──► faults, exit code
//! ```
//!
//! `firn-imports types` prints the largest types instead: those with the most methods, those that
//! are named in the most files, and those that the most free functions take as `&mut`, with the
//! fields that are read outside the type's own file.
//!
//! It reads paths as they are written: `crate::…`, `super::…`, and names that a crate's root
//! re-exports. It does not see paths that a macro makes.

#![allow(clippy::disallowed_methods, reason = "a tool of the developers reads the sources")]

mod graph;
mod items;
mod paths;
mod reach;
mod rules;
mod tokens;
mod types;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use reach::{Reach, Reached};
use rules::Rules;
use types::Types;
use workspace::Crate;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if std::env::args().nth(1).as_deref() == Some("types") {
        return print_types(&folder);
    }
    let crates = match workspace::crates(&folder) {
        Ok(crates) => crates,
        Err(error) => {
            eprintln!("The sources cannot be read: {error}.");
            return ExitCode::FAILURE;
        }
    };
    crates.iter().for_each(print);
    let rules = Rules::new(include_str!("../order.txt"));
    let faults = rules.faults(&crates);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Number of types that are listed.
const LISTED: usize = 10;

fn print_types(folder: &Path) -> ExitCode {
    let sources = match workspace::sources(folder) {
        Ok(sources) => sources,
        Err(error) => {
            eprintln!("The sources cannot be read: {error}.");
            return ExitCode::FAILURE;
        }
    };
    let mut types = Types::default();
    let mut reach = Reach::default();
    for source in &sources {
        let tokens = tokens::tokens(&source.text);
        types.add(source, &tokens);
        reach.add(source, &tokens);
    }
    println!("by methods of their own:");
    for (file, name, methods, files) in types.by_methods(LISTED) {
        println!("    {methods:4} in {files:2} files  {name}  ({file})");
    }
    println!("by files that name them:");
    for (file, name, files) in types.by_files(LISTED) {
        println!("    {files:4}  {name}  ({file})");
    }
    println!("by free functions that take them as `&mut`:");
    reach.by_functions(LISTED).iter().for_each(print_reached);
    ExitCode::SUCCESS
}

fn print_reached(one: &Reached<'_>) {
    let Reached { crate_name, name, mutably, shared, files, fields, outside } = one;
    println!(
        "    {mutably:4} and {shared:3} as `&`, in {files:2} other files  {crate_name}::{name}"
    );
    println!(
        "          {fields} fields, {} read in other files: {}",
        outside.len(),
        outside.join(" ")
    );
}

fn print(one: &Crate) {
    let joined = |names: &std::collections::BTreeSet<String>| {
        names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    println!("{} → {}", one.name, joined(&one.dependencies));
    for (from, to) in one.modules.arrows() {
        println!("    {from} → {}", joined(to));
    }
}
