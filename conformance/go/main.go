// go-sql-driver against Firn: prepared statements, types both ways, transactions, errors, large values, TLS, accounts.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

var port = os.Args[1]

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, what string, arguments ...any) {
	if !holds {
		panic(fmt.Sprintf(what, arguments...))
	}
}

func open(user, password, database, options string) *sql.DB {
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(127.0.0.1:%s)/%s?parseTime=true&maxAllowedPacket=0%s",
		user, password, port, database, options))
	must(err)
	return db
}

// A value and the place where it comes back, by the binary protocol (arguments) and by text (interpolated).
func typesBothWays(db *sql.DB) {
	_, err := db.Exec(`CREATE TABLE kinds (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
		tiny TINYINT, utiny TINYINT UNSIGNED, small SMALLINT, big BIGINT, ubig BIGINT UNSIGNED, single FLOAT, real8 DOUBLE,
		exact DECIMAL(40, 10), day DATE, span TIME(6), moment DATETIME(6), stamp TIMESTAMP(6) NULL, doc JSON,
		words VARCHAR(100), raw LONGBLOB, truth BOOLEAN)`)
	must(err)
	moment := time.Date(2024, 2, 29, 23, 59, 59, 999999000, time.UTC)
	day := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	raw := bytes.Repeat([]byte{0, 1, 0xff, '\'', '\\'}, 2000)
	columns := "tiny, utiny, small, big, ubig, single, real8, exact, day, span, moment, stamp, doc, words, raw, truth"
	marks := strings.TrimSuffix(strings.Repeat("?, ", 16), ", ")
	insert, err := db.Prepare("INSERT INTO kinds (" + columns + ") VALUES (" + marks + ")")
	must(err)
	defer insert.Close()
	row := []any{int64(-128), uint64(255), int64(-32768), int64(math.MinInt64), uint64(math.MaxUint64), float32(0.5),
		-1.7976931348623157e308, "-123456789012345678901234567890.0123456789", day.AddDate(1999, 11, 30), "-838:59:58.999999",
		moment, moment, `{"a": [1, 2.5, null, "😀"]}`, "naïve – 漢字 😀", raw, true}
	result, err := insert.Exec(row...)
	must(err)
	id, err := result.LastInsertId()
	must(err)
	check(id == 1, "id %d", id)
	_, err = insert.Exec(make([]any, 16)...)
	must(err)
	interpolating := open("root", "", "clients_go", "&interpolateParams=true")
	defer interpolating.Close()
	_, err = interpolating.Exec("INSERT INTO kinds ("+columns+") VALUES ("+marks+")", row...)
	must(err)
	for _, way := range []struct {
		db *sql.DB
		id int
	}{{db, 1}, {db, 3}, {interpolating, 1}, {interpolating, 3}} {
		var tiny, small, big int64
		var utiny, ubig uint64
		var single float32
		var real8 float64
		var exact, span, doc, words string
		var date, at, stamp time.Time
		var blob []byte
		var truth bool
		must(way.db.QueryRow("SELECT "+columns+" FROM kinds WHERE id = ?", way.id).Scan(&tiny, &utiny, &small, &big, &ubig, &single,
			&real8, &exact, &date, &span, &at, &stamp, &doc, &words, &blob, &truth))
		have := []any{tiny, utiny, small, big, ubig, single, real8, exact, date, span, at, stamp, doc, words, string(blob), truth}
		for index, want := range row {
			if index == 14 {
				want = string(raw)
			}
			check(want == have[index], "row %d, column %d: %v came back as %v", way.id, index, want, have[index])
		}
	}
	nulls := make([]any, 16)
	places := make([]any, 16)
	for index := range nulls {
		places[index] = &nulls[index]
	}
	must(db.QueryRow("SELECT "+columns+" FROM kinds WHERE id = ?", 2).Scan(places...))
	for index, value := range nulls {
		check(value == nil, "column %d is %v, not NULL", index, value)
	}
	rows, err := db.Query("SELECT id, exact, moment, words FROM kinds LIMIT 1")
	must(err)
	defer rows.Close()
	kinds, err := rows.ColumnTypes()
	must(err)
	names := ""
	for _, kind := range kinds {
		names += kind.DatabaseTypeName() + " "
	}
	check(names == "UNSIGNED BIGINT DECIMAL DATETIME VARCHAR ", "types %s", names)
}

func transactions(db *sql.DB) {
	background := context.Background()
	_, err := db.Exec("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)")
	must(err)
	_, err = db.Exec("INSERT INTO account VALUES (1, 10), (2, 0)")
	must(err)
	amount := func() (amount int) {
		must(db.QueryRow("SELECT amount FROM account WHERE id = 1").Scan(&amount))
		return
	}
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		transaction, err := db.BeginTx(background, &sql.TxOptions{Isolation: level})
		must(err)
		result, err := transaction.Exec("UPDATE account SET amount = amount + ? WHERE id = ?", 5, 1)
		must(err)
		affected, err := result.RowsAffected()
		must(err)
		check(affected == 1, "%d rows", affected)
		if level != sql.LevelSerializable {
			check(amount() == 10, "what is not committed is seen")
		}
		must(transaction.Rollback())
		check(amount() == 10, "rolled back, and still there")
	}
	transaction, err := db.BeginTx(background, &sql.TxOptions{ReadOnly: true})
	must(err)
	_, err = transaction.Exec("UPDATE account SET amount = 0")
	refused(err, 1792, "25006")
	must(transaction.Rollback())
	transaction, err = db.Begin()
	must(err)
	_, err = transaction.Exec("UPDATE account SET amount = 11 WHERE id = 1")
	must(err)
	must(transaction.Commit())
	check(amount() == 11, "committed, and not there")
	limited, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	started := time.Now()
	_, err = db.ExecContext(limited, "SELECT SLEEP(20)")
	check(err != nil && time.Since(started) < 5*time.Second, "a context's end did not end the statement")
}

func refused(err error, number uint16, state string) {
	var refusal *mysql.MySQLError
	check(errors.As(err, &refusal), "%v in place of error %d", err, number)
	check(refusal.Number == number && string(refusal.SQLState[:]) == state, "%v in place of error %d (%s)", err, number, state)
}

func failures(db *sql.DB) {
	_, err := db.Exec("INSERT INTO account VALUES (?, ?)", 1, 1)
	refused(err, 1062, "23000")
	_, err = db.Exec("SELECT * FROM missing")
	refused(err, 1146, "42S02")
	_, err = db.Prepare("SELECT missing FROM account")
	refused(err, 1054, "42S22")
	_, err = db.Prepare("SELEC 1")
	refused(err, 1064, "42000")
	_, err = db.Exec("INSERT INTO account VALUES (3, NULL)")
	refused(err, 1048, "23000")
}

// Values that need several packets of 16 MiB, each way and by each protocol.
func large(db *sql.DB) {
	_, err := db.Exec("CREATE TABLE large (id INT PRIMARY KEY, content LONGBLOB)")
	must(err)
	content := bytes.Repeat([]byte("0123456789abcdef\x00"), 1<<20)
	interpolating := open("root", "", "clients_go", "&interpolateParams=true")
	defer interpolating.Close()
	_, err = db.Exec("INSERT INTO large VALUES (?, ?)", 1, content)
	must(err)
	_, err = interpolating.Exec("INSERT INTO large VALUES (?, ?)", 2, content)
	must(err)
	for id := 1; id <= 2; id++ {
		for _, way := range []*sql.DB{db, interpolating} {
			var back []byte
			must(way.QueryRow("SELECT content FROM large WHERE id = ?", id).Scan(&back))
			check(bytes.Equal(content, back), "%d bytes came back as %d", len(content), len(back))
		}
	}
}

func accounts(db *sql.DB) {
	for _, statement := range []string{
		"DROP USER IF EXISTS gopher@'%', old_gopher@'%'",
		"CREATE USER gopher@'%' IDENTIFIED WITH caching_sha2_password BY 'sésame'",
		"GRANT SELECT ON clients_go.* TO gopher@'%'",
		"CREATE USER old_gopher@'%' IDENTIFIED WITH mysql_native_password BY 'open'",
	} {
		_, err := db.Exec(statement)
		must(err)
	}
	must(mysql.RegisterTLSConfig("unverified", &tls.Config{InsecureSkipVerify: true}))
	// First the full exchange, by the server's public key and then within TLS, later the fast one.
	for _, options := range []string{"", "&tls=unverified", "&tls=skip-verify&compress=true", ""} {
		reader := open("gopher", "sésame", "clients_go", options)
		var amount int
		must(reader.QueryRow("SELECT amount FROM account WHERE id = ?", 1).Scan(&amount))
		if strings.Contains(options, "tls") {
			var name, cipher string
			must(reader.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher))
			check(cipher != "", "no cipher")
		}
		_, err := reader.Exec("DELETE FROM account")
		refused(err, 1142, "42000")
		must(reader.Close())
		wrong := open("gopher", "wrong", "clients_go", options)
		refused(wrong.Ping(), 1045, "28000")
		must(wrong.Close())
	}
	old := open("old_gopher", "open", "", "")
	must(old.Ping())
	must(old.Close())
}

// Several results of one call, and procedures of the driver that need them.
func manyResults() {
	db := open("root", "", "clients_go", "&multiStatements=true")
	defer db.Close()
	rows, err := db.Query("SELECT 1; UPDATE account SET amount = 12 WHERE id = 1; SELECT amount, 'x' FROM account ORDER BY id")
	must(err)
	defer rows.Close()
	var one, amount int
	var word string
	check(rows.Next(), "no first row")
	must(rows.Scan(&one))
	for rows.NextResultSet() {
		for rows.Next() {
			must(rows.Scan(&amount, &word))
		}
	}
	must(rows.Err())
	check(one == 1 && word == "x", "%d %s", one, word)
}

func main() {
	first := open("root", "", "", "")
	_, err := first.Exec("DROP DATABASE IF EXISTS clients_go")
	must(err)
	_, err = first.Exec("CREATE DATABASE clients_go")
	must(err)
	must(first.Close())
	db := open("root", "", "clients_go", "")
	defer db.Close()
	for _, part := range []struct {
		name string
		run  func(*sql.DB)
	}{
		{"types both ways", typesBothWays}, {"transactions", transactions}, {"failures", failures}, {"large", large},
		{"accounts", accounts}, {"many results", func(*sql.DB) { manyResults() }},
	} {
		part.run(db)
		fmt.Printf("  %s: ok\n", part.name)
	}
}
