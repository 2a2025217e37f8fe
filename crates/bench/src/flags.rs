//! The flags that the commands are made of.

use clap::{Arg, ArgMatches, value_parser};

/// A flag with a value, before or behind the subcommand.
pub(crate) fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).global(true)
}

/// A flag whose value is a number of at least 1.
pub(crate) fn number(name: &'static str, default: &'static str, help: &'static str) -> Arg {
    flag(name, "N", help).value_parser(value_parser!(u64).range(1..)).default_value(default)
}

/// The value of a flag that [`number`] made.
pub(crate) fn count(matches: &ArgMatches, name: &str) -> u64 {
    *matches.get_one::<u64>(name).expect("the flag has a default")
}
