//! Switches under statements that run: the server goes on as its own next writer, and clients see
//! nothing of it. Clients come through a front, with their sessions in its own process or at the
//! other end of a link.

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

use crate::client::Client;
use crate::fronted::{Fronted, Place};
use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(60);

fn connect(fronted: &Fronted) -> Conn {
    Client::connect(fronted.port(), None).into_connection()
}

/// Waits until a statement with this in its text runs.
fn wait_for(observer: &mut Conn, part: &str) {
    let shown = format!(
        "SELECT COUNT(*) FROM information_schema.processlist
         WHERE id <> CONNECTION_ID() AND info LIKE '%{part}%'"
    );
    let until = Instant::now() + PATIENCE;
    while observer.query_first::<u64, _>(&shown).unwrap() != Some(1) {
        assert!(Instant::now() < until, "{part} does not run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn switch_under_statements(place: Place) {
    let server = Server::start_alone();
    let fronted = Fronted::before(server.endpoint(), place);
    let (mut holder, mut observer) = (connect(&fronted), connect(&fronted));
    holder.query_drop("CREATE DATABASE s").unwrap();
    holder.query_drop("CREATE TABLE s.t (a INT PRIMARY KEY, b INT)").unwrap();
    holder.query_drop("INSERT INTO s.t VALUES (1, 0), (2, 0)").unwrap();
    holder.query_drop("BEGIN").unwrap();
    holder.query_drop("UPDATE s.t SET b = 10 WHERE a = 1").unwrap();
    std::thread::scope(|scope| {
        let mut alone = connect(&fronted);
        let alone = scope.spawn(move || {
            alone.query_drop("UPDATE s.t SET b = b + 1 WHERE a = 1 /* alone */").map(|()| alone)
        });
        let mut within = connect(&fronted);
        let within = scope.spawn(move || {
            within.query_drop("SET @mine = 7")?;
            within.query_drop("BEGIN")?;
            within.query_drop("INSERT INTO s.t VALUES (3, 0)")?;
            within.query_drop("UPDATE s.t SET b = b + 1 WHERE a <> 2 /* within */")?;
            let mine: Option<(u64, u64)> =
                within.query_first("SELECT @mine, COUNT(*) FROM s.t WHERE a = 3")?;
            assert_eq!(mine, Some((7, 1)));
            within.query_drop("COMMIT")
        });
        let mut prepared = connect(&fronted);
        let prepared = scope.spawn(move || {
            let sum = "UPDATE s.t SET b = b + ? WHERE a = 1 /* prepared */";
            prepared.exec_drop(sum, (1,))
        });
        let mut without = connect(&fronted);
        let without = scope.spawn(move || {
            without.query_drop("SET autocommit = 0")?;
            without.query_drop("UPDATE s.t SET b = b + 1 WHERE a = 1 /* without */")?;
            without.query_drop("COMMIT")
        });
        let mut asleep = connect(&fronted);
        let asleep = scope.spawn(move || asleep.query_first::<u64, _>("SELECT SLEEP(2)"));
        let mut killed = connect(&fronted);
        let id = killed.connection_id();
        let killed = scope.spawn(move || killed.query_drop("DELETE FROM s.t /* killed */"));
        wait_for(&mut observer, "SLEEP(2)");
        let waiting = ["alone", "within", "prepared", "without", "killed"];
        let wait = |observer: &mut Conn| {
            waiting.iter().for_each(|part| wait_for(observer, &format!("/* {part} */")));
        };
        wait(&mut observer);
        for _ in 0..3 {
            fronted.switch(server.endpoint(), PATIENCE);
            // It goes on at once.
            holder.query_drop("UPDATE s.t SET b = b + 10 WHERE a = 1").unwrap();
        }
        wait(&mut observer);
        observer.query_drop(format!("KILL QUERY {id}")).unwrap();
        let error = killed.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::MySqlError(error) if error.code == 1317));
        holder.query_drop("COMMIT").unwrap();
        let mut alone = alone.join().unwrap().unwrap();
        assert_eq!(alone.affected_rows(), 1);
        within.join().unwrap().unwrap();
        prepared.join().unwrap().unwrap();
        without.join().unwrap().unwrap();
        assert_eq!(asleep.join().unwrap().unwrap(), Some(0));
        let values: Vec<u64> = alone.query("SELECT b FROM s.t ORDER BY a").unwrap();
        assert_eq!(values, [44, 0, 1]);
    });
}

#[test]
fn clients_see_nothing_of_switches_at_the_other_end_of_a_link() {
    switch_under_statements(Place::Elsewhere);
}

#[test]
fn clients_see_nothing_of_switches_in_their_own_process() {
    switch_under_statements(Place::Here);
}
