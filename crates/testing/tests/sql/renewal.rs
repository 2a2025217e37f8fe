//! Statements that run again with a newer snapshot, from the client's point of view.

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

use crate::client::Client;
use crate::server::Server;

const SCHEMA: &str = "renewal";

struct Clients {
    port: u16,
    _server: Server,
}

impl Clients {
    /// Two tables: forty accounts of 100 each, and one price.
    fn start() -> Clients {
        let server = Server::start();
        let port = server.port();
        Client::connect(port, None).make_schema(SCHEMA);
        let clients = Clients { port, _server: server };
        let mut one = clients.connect();
        one.run("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)");
        one.run("CREATE TABLE price (id INT PRIMARY KEY, price INT NOT NULL)");
        one.run("INSERT INTO price VALUES (1, 7)");
        for id in 1..=40 {
            one.run(&format!("INSERT INTO account VALUES ({id}, 100)"));
        }
        clients
    }

    fn connect(&self) -> Client {
        connect(self.port)
    }

    fn renewals(&self) -> u64 {
        self.connect().status("Firn_snapshot_renewals")
    }
}

fn connect(port: u16) -> Client {
    Client::connect(port, Some(SCHEMA))
}

impl Client {
    fn run(&mut self, statement: &str) {
        self.connection().query_drop(statement).expect(statement);
    }

    fn number(&mut self, query: &str) -> i64 {
        self.connection().query_first(query).expect(query).expect("a row")
    }
}

fn code(done: Result<(), Error>) -> u16 {
    match done {
        Ok(()) => 0,
        Err(Error::MySqlError(error)) => error.code,
        Err(other) => panic!("{other}"),
    }
}

fn set_amount(connection: &mut Conn, id: i64, more: i64) -> u16 {
    code(connection.exec_drop("UPDATE account SET amount = amount + ? WHERE id = ?", (more, id)))
}

#[test]
fn a_prepared_statement_goes_on_if_what_was_read_is_as_it_was() {
    let clients = Clients::start();
    let (mut one, mut other) = (clients.connect(), clients.connect());
    for (read, expected) in [(7, 0), (8, 0), (9, 1020)] {
        one.run("BEGIN");
        let price = "SELECT price FROM price WHERE id = ?";
        let found: Option<i64> = one.connection().exec_first(price, (1,)).expect(price);
        assert_eq!(found, Some(read));
        assert_eq!(set_amount(other.connection(), 5, 1), 0);
        if expected != 0 {
            other.run("UPDATE price SET price = price + 1");
        }
        assert_eq!(set_amount(one.connection(), 5, 10), expected);
        one.run("COMMIT");
        if expected == 0 {
            other.run("UPDATE price SET price = price + 1");
        }
    }
    assert_eq!(one.number("SELECT amount FROM account WHERE id = 5"), 100 + 3 + 20);
    assert_eq!(clients.renewals(), 2);
}

#[test]
fn a_statement_by_itself_is_not_refused_for_what_changed_while_it_waited() {
    let clients = Clients::start();
    let (mut other, port) = (clients.connect(), clients.port);
    other.run("BEGIN");
    other.run("UPDATE account SET amount = 1000 WHERE id = 30");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            // The snapshot of the inner query is older than the change that the statement waits
            // for.
            let all = "UPDATE account SET amount = amount + (SELECT price FROM price WHERE id = 1)";
            connect(port).connection().query_drop(all)
        });
        let mut watcher = clients.connect();
        while watcher.status("Innodb_row_lock_current_waits") == 0 {
            assert!(!waiting.is_finished(), "it waits for the row");
            std::thread::yield_now();
        }
        other.run("COMMIT");
        assert_eq!(code(waiting.join().expect("no panic")), 0);
    });
    let sum = other.number("SELECT CAST(SUM(amount) AS SIGNED) FROM account");
    assert_eq!(sum, 39 * 107 + 1007);
    assert_eq!(clients.renewals(), 1);
}

#[test]
fn transfers_that_are_run_again_lose_nothing() {
    const TRANSFERS: usize = 60;
    let clients = Clients::start();
    let port = clients.port;
    let refused: usize = std::thread::scope(|scope| {
        let transfer = move |from: i64| {
            let mut client = connect(port);
            let mut refused = 0;
            for _ in 0..TRANSFERS {
                client.run("BEGIN");
                client.number("SELECT price FROM price WHERE id = 1");
                let taken = set_amount(client.connection(), from, -1);
                // The whole amount goes to one account, which is locked last.
                let put = if taken == 0 { set_amount(client.connection(), 40, 1) } else { taken };
                match put {
                    0 => client.run("COMMIT"),
                    1020 | 1213 => {
                        refused += 1;
                        client.run("ROLLBACK");
                    }
                    other => panic!("error {other}"),
                }
            }
            refused
        };
        let clients: Vec<_> = (1..=4).map(|from| scope.spawn(move || transfer(from))).collect();
        clients.into_iter().map(|client| client.join().expect("no panic")).sum()
    });
    let mut client = clients.connect();
    assert_eq!(client.number("SELECT CAST(SUM(amount) AS SIGNED) FROM account"), 40 * 100);
    let put = client.number("SELECT amount FROM account WHERE id = 40");
    assert_eq!(put, 100 + (4 * TRANSFERS - refused) as i64);
    assert_eq!(refused, 0, "nothing that was read has changed");
}
