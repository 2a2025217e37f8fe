// go-sql-driver while another node begins to write: PORT,PORT… COMMAND…. The command asks for the switch.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strings"

	_ "github.com/go-sql-driver/mysql"
)

const rounds = 2

var always = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, what string) {
	if !holds {
		panic(what)
	}
}

func open(port, database string) *sql.Conn {
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%s)/%s", port, database))
	must(err)
	connection, err := db.Conn(always)
	must(err)
	return connection
}

func run(connection *sql.Conn, texts ...string) {
	for _, text := range texts {
		_, err := connection.ExecContext(always, text)
		must(err)
	}
}

func value(connection *sql.Conn, text string, arguments ...any) (value int64) {
	must(connection.QueryRowContext(always, text, arguments...).Scan(&value))
	return value
}

// A client's connection with what it has set up, and an open transaction.
type client struct {
	at          int
	connection  *sql.Conn
	mine        *sql.Stmt
	transaction *sql.Tx
	number      int64
}

func begin(port string, at int) client {
	connection := open(port, "switches_go")
	run(connection, "SET @mine = 'kept', SESSION lock_wait_timeout = 7")
	mine, err := connection.PrepareContext(always, "SELECT CONCAT(@mine, ?), @@lock_wait_timeout")
	must(err)
	run(connection, "CREATE TEMPORARY TABLE own (n INT PRIMARY KEY)", "INSERT INTO own VALUES (1)")
	check(value(connection, "SELECT GET_LOCK(?, 0)", lock(at)) == 1, "the lock")
	number := value(connection, "SELECT CONNECTION_ID()")
	transaction, err := connection.BeginTx(always, nil)
	must(err)
	for _, text := range []string{
		"INSERT INTO own VALUES (2)",
		fmt.Sprintf("INSERT INTO account VALUES (%d, 1)", at),
		"SAVEPOINT here",
		fmt.Sprintf("UPDATE account SET amount = 2 WHERE id = %d", at),
	} {
		_, err := transaction.Exec(text)
		must(err)
	}
	return client{at, connection, mine, transaction, number}
}

func (own client) goOn(other *sql.Conn) {
	var word string
	var seconds int
	must(own.mine.QueryRow("!").Scan(&word, &seconds))
	check(word == "kept!" && seconds == 7, "variables")
	var sum int
	must(own.transaction.QueryRow("SELECT SUM(n) FROM own").Scan(&sum))
	check(sum == 3, "the temporary table")
	check(value(other, "SELECT GET_LOCK(?, 0)", lock(own.at)) == 0, "the lock is held")
	_, err := own.transaction.Exec("ROLLBACK TO SAVEPOINT here")
	must(err)
	must(own.transaction.Commit())
	check(value(own.connection, "SELECT CONNECTION_ID()") == own.number, "the connection's number")
	check(value(other, "SELECT amount FROM account WHERE id = ?", own.at) == 1, "the transaction")
	check(value(own.connection, "SELECT RELEASE_LOCK(?)", lock(own.at)) == 1, "the lock goes on")
	must(own.mine.Close())
	must(own.connection.Close())
}

func lock(at int) string {
	return fmt.Sprintf("go %d", at)
}

func main() {
	ports := strings.Split(os.Args[1], ",")
	other := open(ports[0], "")
	run(other, "DROP DATABASE IF EXISTS switches_go", "CREATE DATABASE switches_go", "USE switches_go",
		"CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)")
	for round := range rounds {
		var clients []client
		for number, port := range ports {
			clients = append(clients, begin(port, 10*round+number))
		}
		asking := exec.Command(os.Args[2], os.Args[3:]...)
		asking.Stderr = os.Stderr
		must(asking.Run())
		for _, one := range clients {
			one.goOn(other)
		}
	}
	fmt.Println("  go_sql_driver: ok")
}
