//! `KILL QUERY` during long computations, in both executors: the time until the client has its
//! error.

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use crate::client::Client;
use crate::server::Server;

/// The work in progress at the kill, and the statement. None returns a row before most of its work
/// is done.
const STATEMENTS: &[(&str, &str)] = &[
    ("sort", "SELECT a.s, b.v FROM big a, few b ORDER BY a.s DESC, b.v LIMIT 9000000, 1"),
    ("join", "SELECT COUNT(*) FROM big a JOIN big b ON a.v = b.v WHERE a.k + b.k = -1"),
    ("large groups", "SELECT COUNT(DISTINCT CONCAT(a.s, b.v)) FROM big a, few b"),
    (
        "many groups",
        "SELECT COUNT(*) FROM (SELECT CONCAT(a.s, b.v) x, COUNT(*) FROM big a, few b GROUP BY x) y",
    ),
    ("distinct rows", "SELECT COUNT(*) FROM (SELECT DISTINCT a.s, b.v, a.id FROM big a, few b) y"),
    ("union", "SELECT COUNT(*) FROM (SELECT s, f.v FROM big, few f UNION SELECT s, k FROM big) y"),
    (
        "window",
        "SELECT MAX(x) FROM (SELECT SUM(a.k) OVER (ORDER BY a.s, b.v) x FROM big a, few b) y",
    ),
    (
        "recursion",
        "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 9000000) SELECT MAX(i) FROM n",
    ),
    ("nested loop", "SELECT COUNT(*) FROM big a, big b WHERE a.s LIKE CONCAT('%', b.s, '%')"),
];

/// How long a statement may go on.
const LIMIT: Duration = Duration::from_secs(2);
/// How often a statement is killed that went on for longer.
const ATTEMPTS: usize = 10;

/// Times from the start of a statement to its kill, in milliseconds.
const MOMENTS_MS: [u64; 3] = [250, 600, 1000];

fn fill(client: &mut Client) {
    client.make_schema("killed");
    for statement in [
        "USE killed",
        "CREATE TABLE big (id INT PRIMARY KEY, k INT, v INT, s VARCHAR(40))",
        "SET cte_max_recursion_depth = 1000000",
        "INSERT INTO big WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 199999)
            SELECT i, i * 7919 % 1000003, i % 1000, CONCAT('row ', i * 104729 % 1000003) FROM n",
        "CREATE TABLE few AS SELECT id v FROM big WHERE id < 20",
    ] {
        client.connection().query_drop(statement).expect("a filled table");
    }
}

/// The time from the `KILL` to the error at the client; `None` if the statement ended before.
#[allow(clippy::disallowed_methods)]
fn killed_after(port: u16, executor: &str, statement: &str, moment: Duration) -> Option<Duration> {
    let mut victim = Client::connect(port, Some("killed"));
    let connection = victim.connection();
    let settings = format!("SET firn_executor = {executor}, cte_max_recursion_depth = 10000000");
    connection.query_drop(settings).expect("settings");
    match killed(&mut victim, port, statement, moment) {
        (Err(mysql::Error::MySqlError(error)), lasted) if error.code == 1317 => Some(lasted),
        (Err(error), _) => panic!("{statement}: {error}"),
        (Ok(()), _) => None,
    }
}

/// Runs a statement and kills it once it has run for `moment`. Returns its result, and the time
/// from the `KILL` to the result.
pub(crate) fn killed(
    victim: &mut Client,
    port: u16,
    statement: &str,
    moment: Duration,
) -> (mysql::Result<()>, Duration) {
    let mut killer = Client::connect(port, None);
    let connection = victim.connection();
    let id = connection.connection_id();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            // An error among rows is reported when the rows are read.
            let answer = connection.query::<mysql::Row, _>(statement).map(drop);
            (answer, Instant::now())
        });
        let look = format!(
            "SELECT COUNT(*) FROM information_schema.processlist \
             WHERE id = {id} AND command = 'Query'"
        );
        let mut runs = || killer.connection().query_first::<u64, _>(&look).expect("the list");
        while runs() == Some(0) && !waiting.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(moment);
        let kill = Instant::now();
        killer.connection().query_drop(format!("KILL QUERY {id}")).expect("a kill");
        let (answer, heard) = waiting.join().expect("the statement's thread");
        (answer, heard.saturating_duration_since(kill))
    })
}

#[test]
fn a_killed_statement_ends_soon() {
    let server = Server::start();
    fill(&mut Client::connect(server.port(), None));
    let (mut slowest, mut all) = (Duration::ZERO, Vec::new());
    for executor in ["ROW", "VECTORISED"] {
        for (name, statement) in STATEMENTS {
            let killed = |moment: &u64| {
                killed_after(server.port(), executor, statement, Duration::from_millis(*moment))
            };
            // A busy machine may be late, but not each time.
            let fastest = |moment| {
                let rounds = std::iter::repeat_with(|| killed(moment)).take(ATTEMPTS);
                let mut times: Vec<Duration> = Vec::new();
                for time in rounds {
                    times.push(time?);
                    if times.last() < Some(&LIMIT) {
                        break;
                    }
                }
                times.into_iter().min()
            };
            let times: Vec<Duration> = MOMENTS_MS.iter().filter_map(fastest).collect();
            println!("{executor} {name}: {times:.1?} after the KILL");
            slowest = times.iter().copied().max().unwrap_or_default().max(slowest);
            all.extend(times);
        }
    }
    all.sort();
    let median = all.get(all.len() / 2).copied().unwrap_or_default();
    println!("median {median:.1?}, slowest {slowest:.1?} of {}", all.len());
    assert!(all.len() > STATEMENTS.len(), "most statements were done before they were killed");
    assert!(slowest < LIMIT, "a statement went on for {slowest:?}");
}
