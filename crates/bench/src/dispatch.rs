//! Runs the commands of the command line.

use std::io::Write;
use std::path::PathBuf;

use clap::ArgMatches;

use crate::bars;
use crate::client::Target;
use crate::command_line::{
    Action, Common, Comparison, Request, comparison, read_interruptions, request,
};
use crate::error::BenchError;
use crate::figure::Figure;
use crate::interruptions::interrupt;
use crate::output::Page;
use crate::progress::Loading;
use crate::report::{Report, readable};
use crate::run::run;
use crate::summary::{Compared, Sample, check_report, comparison_section, headline, run_report};
use crate::watch::LineWatcher;
use crate::workload::{Case, Suite};

/// Runs `name …`, one of [`crate::commands`], and prints its results.
///
/// # Errors
/// [`BenchError`]; earlier results have been printed.
pub fn dispatch(name: &str, matches: &ArgMatches, out: &mut dyn Write) -> Result<(), BenchError> {
    match name {
        "compare" => compare(&comparison(matches)?, out),
        "interruptions" => interrupt(&read_interruptions(matches)?, &mut std::io::stderr(), out),
        "plot" => plot(matches.get_many::<PathBuf>("files").into_iter().flatten(), out),
        _ => act(&request(name, matches)?, out),
    }
}

fn act(request: &Request, out: &mut dyn Write) -> Result<(), BenchError> {
    let (suite, target) = (&*request.suite, &request.target);
    match request.action {
        Action::Prepare => prepare(suite, target, &request.common, out),
        Action::Run => run_cases(suite, target, &request.common, out),
        Action::Check => check(suite, target, out),
        Action::Cleanup => suite.cleanup(target),
        Action::Export => {
            let directory = request.directory.as_deref().expect("clap asks for the directory");
            suite.export(directory, out)
        }
    }
}

fn prepare(
    suite: &dyn Suite,
    target: &Target,
    common: &Common,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    let time = Loading::start("", 0);
    let rows = suite.prepare(target, &common.load)?;
    let seconds = time.elapsed().as_secs_f64();
    writeln!(
        out,
        "{}: {} rows at {} in {seconds:.1} s, {} rows/s",
        suite.name(),
        readable(rows as f64),
        target.address(),
        readable(rows as f64 / seconds.max(1e-3)),
    )?;
    Ok(())
}

fn run_cases(
    suite: &dyn Suite,
    target: &Target,
    common: &Common,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    let mut pages = Vec::new();
    for case in suite.cases() {
        let mut watcher = watcher(&*case, &case.label(), common);
        let measured = run(&*case, target, &common.run, &mut watcher)?;
        watcher.clear();
        let report = run_report(suite, &*case, target, &common.run, &measured);
        writeln!(out, "{}", report.to_text())?;
        pages.push(Page { report, measured: Some(measured) });
        // Written after each case, so that a later failure loses nothing.
        common.files.write(&pages)?;
    }
    Ok(())
}

fn watcher(case: &dyn Case, what: &str, common: &Common) -> LineWatcher {
    LineWatcher::new(what, case.operations().is_none().then_some(common.run.duration))
}

fn check(suite: &dyn Suite, target: &Target, out: &mut dyn Write) -> Result<(), BenchError> {
    let conditions = suite.check(target)?;
    writeln!(out, "{}", check_report(suite, target, &conditions).to_text())?;
    match conditions.iter().filter(|condition| condition.violation.is_some()).count() {
        0 => Ok(()),
        violated => Err(BenchError::Inconsistent(violated)),
    }
}

#[allow(clippy::disallowed_methods, reason = "a client beside the node, under no simulator")]
fn plot<'a>(
    files: impl Iterator<Item = &'a PathBuf>,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    for file in files {
        let drawn = file.with_extension("svg");
        std::fs::write(&drawn, bars::draw(&Figure::read(file)?)?)?;
        writeln!(out, "{}", drawn.display())?;
    }
    Ok(())
}

fn compare(comparison: &Comparison, out: &mut dyn Write) -> Result<(), BenchError> {
    let (suite, common) = (&*comparison.suite, &comparison.common);
    if !comparison.is_prepared {
        for target in &comparison.targets {
            prepare(suite, target, common, out)?;
        }
    }
    let mut compared = Vec::new();
    for case in suite.cases() {
        compared.push(rounds(&*case, comparison)?);
        let done = [page(comparison, &compared)];
        common.files.write(&done)?;
    }
    writeln!(out, "{}", page(comparison, &compared).report.to_text())?;
    for target in &comparison.targets {
        check(suite, target, out)?;
    }
    if !comparison.is_prepared {
        for target in &comparison.targets {
            suite.cleanup(target)?;
        }
    }
    Ok(())
}

/// Runs a case at both servers, round by round, with alternating order.
fn rounds(case: &dyn Case, comparison: &Comparison) -> Result<Compared, BenchError> {
    let mut compared = Compared { label: case.label(), unit: "", rounds: Vec::new() };
    for round in 0..comparison.rounds {
        let mut samples = [None; 2];
        for turn in 0..2 {
            let side = ((round + turn) % 2) as usize;
            let name = ["A", "B"][side];
            let what =
                format!("{} at {name}, round {} of {}", case.label(), round + 1, comparison.rounds);
            let mut watcher = watcher(case, &what, &comparison.common);
            // Both servers get the same input, and each round another one.
            let mut options = comparison.common.run;
            options.seed = options.seed.wrapping_add(round);
            let measured = run(case, &comparison.targets[side], &options, &mut watcher)?;
            watcher.clear();
            compared.unit = headline(case, &measured).0;
            samples[side] = Some(Sample::of(case, &measured));
        }
        let [a, b] = samples.map(|sample| sample.expect("both sides have had their turn"));
        compared.rounds.push([a, b]);
    }
    Ok(compared)
}

fn page(comparison: &Comparison, compared: &[Compared]) -> Page {
    let mut report = Report::new(format!("{} compared", comparison.suite.name()));
    report.note(comparison.suite.setup());
    let [a, b] = &comparison.targets;
    let run = &comparison.common.run;
    report.note(format!(
        "A is {}, B is {}; {} connections, {} statements, {} rounds of {} s after {} s of warm-up, in turns.",
        a.address(),
        b.address(),
        run.connections,
        a.mode().name(),
        comparison.rounds,
        run.duration.as_secs_f64(),
        run.warm_up.as_secs_f64(),
    ));
    report.add(comparison_section(compared));
    Page { report, measured: None }
}
