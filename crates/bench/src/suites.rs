//! The workloads of the command line, and their flags.

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::error::BenchError;
use crate::flags::{count, flag, number};
use crate::sysbench::{Distribution, Shape, Sysbench};
use crate::tatp::Tatp;
use crate::tpcc::{self, Scale, Tpcc};
use crate::tpch::Tpch;
use crate::workload::Suite;
use crate::ycsb::{Requests, Ycsb};

/// A workload of the command line.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) flags: fn(Command) -> Command,
    read: fn(&ArgMatches) -> Result<Box<dyn Suite>, BenchError>,
    /// Whether the data can be written to files.
    pub(crate) exports: bool,
}

pub(crate) fn all() -> &'static [Kind] {
    &[
        Kind {
            name: "tpcc",
            about: "TPC-C: order entry, five transactions",
            flags: tpcc_flags,
            read: tpcc,
            exports: false,
        },
        Kind {
            name: "sysbench",
            about: "The oltp_* shapes of sysbench",
            flags: sysbench_flags,
            read: sysbench,
            exports: false,
        },
        Kind {
            name: "tatp",
            about: "TATP: a home location register, seven short transactions",
            flags: tatp_flags,
            read: tatp,
            exports: false,
        },
        Kind {
            name: "ycsb",
            about: "YCSB's workloads A to F",
            flags: ycsb_flags,
            read: ycsb,
            exports: false,
        },
        Kind {
            name: "tpch",
            about: "TPC-H: 22 analytic queries",
            flags: tpch_flags,
            read: tpch,
            exports: true,
        },
    ]
}

/// The workload with a name, set up by its flags.
pub(crate) fn read(name: &str, matches: &ArgMatches) -> Result<Box<dyn Suite>, BenchError> {
    let kind = all().iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| BenchError::Usage(format!("there is no workload {name}")))?;
    (kind.read)(matches)
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).expect("the flag has a default")
}

fn tpcc_flags(command: Command) -> Command {
    command
        .arg(number("warehouses", "1", "Warehouses, about 500 000 rows and 100 MB each"))
        .arg(
            flag(
                "mix",
                "N,N,N,N,N",
                "Weights of new_order, payment, order_status, delivery and stock_level",
            )
            .default_value("45,43,4,4,4"),
        )
        .arg(
            Arg::new("think-time")
                .long("think-time")
                .help("Wait as people at terminals do")
                .global(true)
                .action(ArgAction::SetTrue),
        )
        .arg(number("items", "100000", "Items, for trials with less data").hide(true))
        .arg(number("customers", "3000", "Customers of a district, for trials").hide(true))
}

fn tpcc(matches: &ArgMatches) -> Result<Box<dyn Suite>, BenchError> {
    let number = |name| count(matches, name) as i64;
    Ok(Box::new(Tpcc {
        scale: Scale {
            warehouses: number("warehouses"),
            items: number("items"),
            customers: number("customers"),
        },
        mix: mix(text(matches, "mix"))?,
        thinks: matches.get_flag("think-time"),
        seed: count(matches, "seed"),
    }))
}

fn mix(text: &str) -> Result<[u32; 5], BenchError> {
    let weights: Option<Vec<u32>> = text.split(',').map(|weight| weight.parse().ok()).collect();
    let weights = weights.and_then(|weights| <[u32; 5]>::try_from(weights).ok());
    let weights = weights.filter(|weights| {
        let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        sum > 0 && sum < 1 << 31
    });
    weights.ok_or_else(|| {
        let example = tpcc::MIX.map(|weight| weight.to_string()).join(",");
        BenchError::Usage(format!("--mix {text} is not five weights, such as {example}"))
    })
}

fn sysbench_flags(command: Command) -> Command {
    command
        .arg(number("tables", "4", "Tables"))
        .arg(number("table-size", "250000", "Rows of each table"))
        .arg(
            flag("shapes", "NAME,…", "Shapes to run, such as oltp_point_select,oltp_insert")
                .default_value("all"),
        )
        .arg(
            flag("distribution", "NAME", "Distribution of the rows that are used")
                .value_parser(["special", "uniform", "zipfian"])
                .default_value("special"),
        )
}

fn sysbench(matches: &ArgMatches) -> Result<Box<dyn Suite>, BenchError> {
    let rows = count(matches, "table-size").min(i32::MAX as u64) as i64;
    let shapes = text(matches, "shapes");
    let one = |name: &str| {
        Shape::named(name).ok_or_else(|| {
            let known = Shape::ALL.map(Shape::name).join(", ");
            BenchError::Usage(format!("there is no shape {name}; there are {known}"))
        })
    };
    let shapes: Result<Vec<Shape>, _> = match shapes {
        "all" => Ok(Shape::ALL.to_vec()),
        names => names.split(',').map(one).collect(),
    };
    let distribution = text(matches, "distribution");
    Ok(Box::new(Sysbench {
        tables: count(matches, "tables").min(1000) as i64,
        rows,
        shapes: shapes?,
        distribution: Distribution::named(distribution, rows).expect("clap lets no other through"),
        seed: count(matches, "seed"),
    }))
}

fn tatp_flags(command: Command) -> Command {
    command.arg(number("subscribers", "100000", "Subscribers"))
}

fn tatp(matches: &ArgMatches) -> Result<Box<dyn Suite>, BenchError> {
    let subscribers = count(matches, "subscribers").min(u64::from(u32::MAX)) as i64;
    Ok(Box::new(Tatp { subscribers, seed: count(matches, "seed") }))
}

fn ycsb_flags(command: Command) -> Command {
    command
        .arg(number("records", "100000", "Records of 1000 bytes"))
        .arg(flag("workloads", "LETTER,…", "Workloads to run, such as a,c").default_value("all"))
        .arg(
            flag(
                "requests",
                "NAME",
                "Distribution of the records that are used [default: each workload's own]",
            )
            .value_parser(["uniform", "zipfian", "latest"]),
        )
}

fn ycsb(matches: &ArgMatches) -> Result<Box<dyn Suite>, BenchError> {
    let letters = text(matches, "workloads");
    Ok(Box::new(Ycsb {
        records: count(matches, "records").min(1 << 40) as i64,
        letters: Ycsb::letters_of(letters).ok_or_else(|| {
            BenchError::Usage(format!("--workloads {letters} is not a list of letters from a to f"))
        })?,
        requests: matches.get_one::<String>("requests").and_then(|name| Requests::named(name)),
        seed: count(matches, "seed"),
    }))
}

fn tpch_flags(command: Command) -> Command {
    command
        .arg(
            flag("scale", "FACTOR", "Scale factor: 1 is about 8.7 million rows and a gigabyte")
                .value_parser(scale)
                .default_value("0.1"),
        )
        .arg(flag("queries", "N,…", "Queries to run, such as 1,6").default_value("all"))
        .arg(number("passes", "1", "How often each connection runs the queries"))
        .arg(flag(
            "against",
            "URL",
            "check: a second server with the same rows, whose answers are right",
        ))
        .arg(
            flag("answers", "FILE", "check: right answers, as scripts/tpch-answers.py writes them")
                .value_parser(clap::value_parser!(std::path::PathBuf)),
        )
        // By default one connection runs the queries one after the other.
        .mut_arg("connections", |connections| connections.default_value("1"))
        .mut_arg("warm-up", |seconds| seconds.default_value("0"))
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.0001..=1000.0).contains(&scale) => Ok(scale),
        _ => Err("is not a number from 0.0001 to 1000".to_owned()),
    }
}

fn tpch(matches: &ArgMatches) -> Result<Box<dyn Suite>, BenchError> {
    let queries = text(matches, "queries");
    Ok(Box::new(Tpch {
        scale: *matches.get_one("scale").expect("the flag has a default"),
        numbers: Tpch::numbers_of(queries).ok_or_else(|| {
            BenchError::Usage(format!("--queries {queries} is not a list of numbers from 1 to 22"))
        })?,
        passes: count(matches, "passes"),
        against: matches.get_one("against").cloned(),
        answers: matches.get_one("answers").cloned(),
        seed: count(matches, "seed"),
    }))
}
