use super::*;

fn parse(line: &str) -> Result<ArgMatches, clap::Error> {
    let command = commands().into_iter().fold(Command::new("bench"), Command::subcommand);
    command.try_get_matches_from(line.split_whitespace())
}

fn read(line: &str) -> Request {
    let matches = parse(line).unwrap();
    let (name, matches) = matches.subcommand().unwrap();
    request(name, matches).unwrap()
}

#[test]
fn the_flags_are_consistent() {
    for command in commands() {
        command.debug_assert();
    }
}

#[test]
fn flags_stand_before_or_behind_the_action() {
    for line in [
        "bench tpcc --warehouses 3 --url mysql://u@h:1/s run --connections 5 --seconds 2.5",
        "bench tpcc run --warehouses 3 --url mysql://u@h:1/s --connections 5 --seconds 2.5",
    ] {
        let request = read(line);
        assert_eq!(request.action, Action::Run);
        assert_eq!(request.target.address(), "h:1/s");
        assert!(request.suite.setup().starts_with("TPC-C of 3 warehouses"));
        assert_eq!(request.common.run.connections, 5);
        assert_eq!(request.common.run.duration, Duration::from_millis(2500));
    }
}

#[test]
fn without_flags_a_server_on_this_machine_is_meant() {
    for (name, _) in suites::all().iter().map(|kind| (kind.name, ())) {
        let request = read(&format!("bench {name} prepare"));
        assert_eq!(request.target.address(), format!("127.0.0.1:3306/{name}"));
        assert!(!request.suite.cases().is_empty());
    }
}

#[test]
fn two_servers_are_compared() {
    let line = "bench compare --a mysql://r@h:1/a sysbench --b mysql://r@h:2/b --rounds 3 --mode text \
                --shapes point_select,bulk_insert";
    let matches = parse(line).unwrap();
    let comparison = comparison(matches.subcommand().unwrap().1).unwrap();
    assert_eq!(comparison.targets.each_ref().map(Target::address), ["h:1/a", "h:2/b"]);
    assert_eq!((comparison.rounds, comparison.targets[0].mode()), (3, Mode::Text));
    let labels: Vec<_> = comparison.suite.cases().iter().map(|case| case.label()).collect();
    assert_eq!(labels, ["oltp_point_select", "bulk_insert"]);
}

#[test]
fn the_command_of_interruptions_is_taken_as_it_is() {
    let line =
        "bench interruptions --rounds 3 --url mysql://r@h:1/a -- firn cluster switch --dir D";
    let matches = parse(line).unwrap();
    let read = read_interruptions(matches.subcommand().unwrap().1).unwrap();
    assert_eq!((read.rounds, read.connections), (3, 64));
    assert_eq!(read.command, ["firn", "cluster", "switch", "--dir", "D"]);
    assert!(parse("bench interruptions").is_err(), "nothing would happen");
}

#[test]
fn what_cannot_be_is_refused() {
    for line in [
        "bench tpcc",
        "bench tpcc run --warehouses 0",
        "bench tpcc run --seconds -1",
        "bench tpcc run --mode binary",
        "bench tpcc export /x",
        "bench compare",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
    for line in [
        "bench tpcc run --mix 1,2",
        "bench tpcc run --mix 0,0,0,0,0",
        "bench sysbench run --shapes x",
    ] {
        let matches = parse(line).unwrap();
        let (name, matches) = matches.subcommand().unwrap();
        assert!(matches!(request(name, matches), Err(BenchError::Usage(_))), "{line}");
    }
    let matches = parse("bench compare --a mysql://r@h:1/a tpcc").unwrap();
    let outcome = comparison(matches.subcommand().unwrap().1);
    assert!(matches!(outcome, Err(BenchError::Usage(_))));
}
