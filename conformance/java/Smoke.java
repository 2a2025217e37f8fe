import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.Arrays;
import java.util.Properties;

/** Connector/J against Firn: prepared statements, types both ways, transactions, errors, large values, TLS, accounts. */
public class Smoke {
    static String port;

    static Connection open(String user, String password, String database, String... options) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", user);
        properties.setProperty("password", password);
        properties.setProperty("sslMode", "DISABLED");
        properties.setProperty("connectionTimeZone", "UTC");
        for (int i = 0; i < options.length; i += 2) properties.setProperty(options[i], options[i + 1]);
        return DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/" + database, properties);
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    interface Action {
        void run() throws SQLException;
    }

    static void refused(int code, String state, Action action) {
        try {
            action.run();
        } catch (SQLException error) {
            String have = error.getErrorCode() + " " + error.getSQLState() + " " + error.getMessage();
            check(error.getErrorCode() == code && state.equals(error.getSQLState()), have + " in place of " + code);
            return;
        }
        throw new AssertionError("error " + code + " did not come");
    }

    static final String COLUMNS = "tiny, small, big, ubig, single, real8, exact, day, span, moment, doc, words, raw, truth, bits, kind";

    static void typesBothWays(Connection connection) throws SQLException {
        byte[] raw = new byte[10_000];
        for (int i = 0; i < raw.length; i++) raw[i] = (byte) i;
        Object[] row = {-128, 65535, Long.MIN_VALUE, new BigDecimal("18446744073709551615"), 0.5f, -1.7976931348623157e308,
            new BigDecimal("-123456789012345678901234567890.0123456789"), LocalDate.of(2024, 2, 29), LocalTime.of(23, 59, 58, 999_999_000),
            LocalDateTime.of(2024, 2, 29, 23, 59, 59, 999_999_000), "{\"a\": [1, 2.5, null, \"😀\"]}", "naïve – 漢字 😀", raw, true,
            new byte[] {0x0a, (byte) 0xbc}, "y"};
        String marks = "?" + ", ?".repeat(row.length - 1);
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO kinds (" + COLUMNS + ") VALUES (" + marks + ")",
                Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 0; i < row.length; i++) insert.setObject(i + 1, row[i]);
            check(insert.executeUpdate() == 1, "one row");
            ResultSet keys = insert.getGeneratedKeys();
            check(keys.next() && keys.getLong(1) > 0, "a generated key");
            for (int i = 0; i < row.length; i++) insert.setNull(i + 1, Types.VARCHAR);
            insert.executeUpdate();
        }
        try (PreparedStatement select = connection.prepareStatement("SELECT " + COLUMNS + " FROM kinds ORDER BY id DESC LIMIT ?")) {
            select.setInt(1, 2);
            ResultSet rows = select.executeQuery();
            check(rows.next(), "a row");
            for (int i = 0; i < row.length; i++) check(rows.getObject(i + 1) == null && rows.wasNull(), "NULL");
            check(rows.next(), "a row");
            for (int i = 0; i < row.length; i++) {
                Object want = row[i];
                if (want instanceof byte[] bytes) {
                    check(Arrays.equals(bytes, rows.getBytes(i + 1)), "column " + i);
                    continue;
                }
                Object have = rows.getObject(i + 1, want.getClass());
                check(want.equals(have), "column " + i + ": " + want + " came back as " + have);
            }
            check(!rows.next(), "two rows");
        }
    }

    static void metadata(Connection connection) throws SQLException {
        DatabaseMetaData metadata = connection.getMetaData();
        check(metadata.getDatabaseProductName().equals("MySQL"), metadata.getDatabaseProductName());
        StringBuilder columns = new StringBuilder();
        try (ResultSet rows = metadata.getColumns("clients_java", null, "kinds", "%")) {
            while (rows.next()) columns.append(rows.getString("COLUMN_NAME")).append(' ').append(rows.getString("TYPE_NAME")).append(' ')
                .append(rows.getInt("COLUMN_SIZE")).append(rows.getString("IS_NULLABLE").equals("YES") ? ", " : "!, ");
        }
        check(columns.toString().startsWith("id BIGINT UNSIGNED 20!, tiny TINYINT 3, small SMALLINT UNSIGNED 5, big BIGINT 19, "),
            columns.toString());
        check(columns.toString().contains("exact DECIMAL 40, day DATE 10, span TIME 15, moment DATETIME 26, "), columns.toString());
        try (ResultSet rows = metadata.getPrimaryKeys("clients_java", null, "kinds")) {
            check(rows.next() && rows.getString("COLUMN_NAME").equals("id"), "primary key");
        }
        try (ResultSet rows = metadata.getTables("clients_java", null, "%", new String[] {"TABLE"})) {
            check(rows.next() && rows.getString("TABLE_NAME").equals("account"), "tables");
        }
        try (ResultSet rows = metadata.getImportedKeys("clients_java", null, "account")) {
            check(rows.next() && rows.getString("PKTABLE_NAME").equals("kinds"), "a foreign key");
        }
        try (ResultSet rows = metadata.getIndexInfo("clients_java", null, "account", false, true)) {
            check(rows.next() && rows.getString("INDEX_NAME").equals("PRIMARY"), "an index");
        }
    }

    static int amount(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery("SELECT amount FROM account WHERE id = 1");
            check(rows.next(), "the account");
            return rows.getInt(1);
        }
    }

    static void transactions(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement(); Connection other = open("root", "", "clients_java")) {
            statement.executeUpdate("INSERT INTO account (id, amount) VALUES (1, 10), (2, 0)");
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ}) {
                connection.setTransactionIsolation(level);
                check(connection.getTransactionIsolation() == level, "isolation");
                connection.setAutoCommit(false);
                check(statement.executeUpdate("UPDATE account SET amount = 15 WHERE id = 1") == 1, "one row");
                Savepoint savepoint = connection.setSavepoint("here");
                statement.executeUpdate("UPDATE account SET amount = 16 WHERE id = 1");
                connection.rollback(savepoint);
                check(amount(connection) == 15 && amount(other) == 10, "a savepoint, and what others see");
                connection.rollback();
                check(amount(connection) == 10, "rolled back");
                connection.commit();
                connection.setAutoCommit(true);
            }
            connection.setReadOnly(true);
            refused(1792, "25006", () -> {
                try (Connection reader = open("root", "", "clients_java")) {
                    reader.createStatement().execute("SET SESSION TRANSACTION READ ONLY");
                    reader.createStatement().executeUpdate("UPDATE account SET amount = 0");
                }
            });
            connection.setReadOnly(false);
            try (PreparedStatement batch = connection.prepareStatement("INSERT INTO account (id, amount) VALUES (?, ?)")) {
                for (int id = 10; id < 1010; id++) {
                    batch.setInt(1, id);
                    batch.setInt(2, id);
                    batch.addBatch();
                }
                check(batch.executeBatch().length == 1000, "a batch");
            }
            // Rows one by one: by the driver's streaming, and by a cursor.
            try (Statement streaming = connection.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
                streaming.setFetchSize(useCursor ? 100 : Integer.MIN_VALUE);
                ResultSet rows = streaming.executeQuery("SELECT SUM(a.amount) OVER (ORDER BY id) FROM account a ORDER BY id");
                int count = 0;
                while (rows.next()) count++;
                check(count == 1002, count + " rows");
            }
            statement.executeUpdate("DELETE FROM account WHERE id >= 10");
            statement.setQueryTimeout(1);
            refused(0, "HY000", () -> {
                try {
                    statement.executeQuery("SELECT SLEEP(20)");
                } catch (SQLTimeoutException error) {
                    throw new SQLException("in time", "HY000", 0);
                }
            });
        }
    }

    static boolean useCursor;

    static void errors(Connection connection) throws SQLException {
        Statement statement = connection.createStatement();
        refused(1062, "23000", () -> statement.executeUpdate("INSERT INTO account (id, amount) VALUES (1, 1)"));
        refused(1146, "42S02", () -> statement.executeQuery("SELECT * FROM missing"));
        refused(1064, "42000", () -> statement.execute("SELEC 1"));
        refused(1054, "42S22", () -> connection.prepareStatement("SELECT missing FROM account").executeQuery());
        refused(1452, "23000", () -> statement.executeUpdate("INSERT INTO account (id, amount, kind) VALUES (5, 1, 99)"));
        check(amount(connection) == 10, "goes on");
    }

    static void large(Connection connection) throws SQLException {
        byte[] content = new byte[17 << 20];
        for (int i = 0; i < content.length; i++) content[i] = (byte) (i * 31);
        try (PreparedStatement insert = connection.prepareStatement("REPLACE INTO large VALUES (?, ?)")) {
            insert.setInt(1, 1);
            insert.setBytes(2, content);
            insert.executeUpdate();
            insert.setInt(1, 2);
            insert.setBinaryStream(2, new ByteArrayInputStream(content));
            insert.executeUpdate();
        }
        try (PreparedStatement select = connection.prepareStatement("SELECT content FROM large ORDER BY id")) {
            ResultSet rows = select.executeQuery();
            while (rows.next()) check(Arrays.equals(content, rows.getBytes(1)), "a large value");
        }
    }

    static void accounts(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP USER IF EXISTS duke@'%'");
            statement.execute("CREATE USER duke@'%' IDENTIFIED WITH caching_sha2_password BY 'sésame'");
            statement.execute("GRANT SELECT ON clients_java.* TO duke@'%'");
        }
        String[][] ways = {{"allowPublicKeyRetrieval", "true"}, {"sslMode", "REQUIRED"}, {"sslMode", "REQUIRED", "useCompression", "true"},
            {"allowPublicKeyRetrieval", "true"}};
        for (String[] way : ways) {
            try (Connection reader = open("duke", "sésame", "clients_java", way)) {
                check(amount(reader) == 10, "reads");
                ResultSet cipher = reader.createStatement().executeQuery("SHOW STATUS LIKE 'Ssl_cipher'");
                check(cipher.next() && cipher.getString(2).isEmpty() != way[1].equals("REQUIRED"), "cipher");
                refused(1142, "42000", () -> reader.createStatement().executeUpdate("DELETE FROM account"));
            }
            refused(1045, "28000", () -> open("duke", "wrong", "clients_java", way).close());
        }
    }

    public static void main(String[] arguments) throws SQLException {
        port = arguments[0];
        try (Connection first = open("root", "", "")) {
            Statement statement = first.createStatement();
            statement.execute("DROP DATABASE IF EXISTS clients_java");
            statement.execute("CREATE DATABASE clients_java");
            statement.execute("USE clients_java");
            statement.execute("CREATE TABLE kinds (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, small SMALLINT UNSIGNED, "
                + "big BIGINT, ubig BIGINT UNSIGNED, single FLOAT, real8 DOUBLE, exact DECIMAL(40, 10), day DATE, span TIME(6), "
                + "moment DATETIME(6), doc JSON, words VARCHAR(100), raw LONGBLOB, truth BOOLEAN, bits BIT(12), kind ENUM('x', 'y'))");
            statement.execute("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL, kind BIGINT UNSIGNED, "
                + "CONSTRAINT of_kind FOREIGN KEY (kind) REFERENCES kinds (id))");
            statement.execute("CREATE TABLE large (id INT PRIMARY KEY, content LONGBLOB)");
        }
        String[][] ways = {{"useServerPrepStmts", "true"}, {}, {"useServerPrepStmts", "true", "useCursorFetch", "true", "cachePrepStmts", "true"},
            {"rewriteBatchedStatements", "true", "useCompression", "true"}};
        for (String[] way : ways) {
            useCursor = String.join(" ", way).contains("useCursorFetch");
            try (Connection connection = open("root", "", "clients_java", way)) {
                typesBothWays(connection);
                metadata(connection);
                transactions(connection);
                errors(connection);
                large(connection);
                connection.createStatement().executeUpdate("DELETE FROM account");
            }
            System.out.println("  " + (way.length == 0 ? "client-side statements" : String.join(" ", way)) + ": ok");
        }
        try (Connection connection = open("root", "", "clients_java")) {
            connection.createStatement().executeUpdate("INSERT INTO account (id, amount) VALUES (1, 10)");
            accounts(connection);
        }
        System.out.println("  accounts: ok");
    }
}
