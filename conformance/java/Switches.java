import java.io.IOException;
import java.sql.*;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/** Connector/J while another node begins to write: PORT,PORT… COMMAND…. The command asks for the switch. */
public class Switches {
    static final int ROUNDS = 2;

    static Connection open(String port, String database) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "root");
        properties.setProperty("sslMode", "DISABLED");
        properties.setProperty("useServerPrepStmts", "true");
        return DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/" + database, properties);
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static void run(Connection connection, String... texts) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : texts) statement.execute(text);
        }
    }

    static long value(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            check(rows.next(), "a row of " + text);
            return rows.getLong(1);
        }
    }

    /** A client's connection with what it has set up, and an open transaction. */
    static class Client {
        final int at;
        final Connection connection;
        final PreparedStatement mine, insert;
        final long number;
        final Savepoint here;

        Client(String port, int at) throws SQLException {
            this.at = at;
            connection = open(port, "switches_java");
            run(connection, "SET @mine = 'kept', SESSION lock_wait_timeout = 7");
            mine = connection.prepareStatement("SELECT CONCAT(@mine, ?), @@lock_wait_timeout");
            run(connection, "CREATE TEMPORARY TABLE own (n INT PRIMARY KEY)", "INSERT INTO own VALUES (1)");
            check(value(connection, "SELECT GET_LOCK('java " + at + "', 0)") == 1, "the lock");
            number = value(connection, "SELECT CONNECTION_ID()");
            connection.setAutoCommit(false);
            run(connection, "INSERT INTO own VALUES (2)");
            insert = connection.prepareStatement("INSERT INTO account VALUES (?, 1)");
            insert.setInt(1, at);
            check(insert.executeUpdate() == 1, "one row");
            here = connection.setSavepoint("here");
            run(connection, "UPDATE account SET amount = 2 WHERE id = " + at);
        }

        void goOn(Connection other) throws SQLException {
            mine.setString(1, "!");
            try (ResultSet rows = mine.executeQuery()) {
                check(rows.next() && rows.getString(1).equals("kept!") && rows.getInt(2) == 7, "variables");
            }
            check(value(connection, "SELECT SUM(n) FROM own") == 3, "the temporary table");
            check(value(connection, "SELECT CONNECTION_ID()") == number, "the connection's number");
            check(value(other, "SELECT GET_LOCK('java " + at + "', 0)") == 0, "the lock is held");
            connection.rollback(here);
            connection.commit();
            connection.setAutoCommit(true);
            check(value(other, "SELECT amount FROM account WHERE id = " + at) == 1, "the transaction");
            check(value(connection, "SELECT RELEASE_LOCK('java " + at + "')") == 1, "the lock goes on");
            connection.close();
        }
    }

    public static void main(String[] arguments) throws SQLException, IOException, InterruptedException {
        String[] ports = arguments[0].split(",");
        List<String> command = Arrays.asList(arguments).subList(1, arguments.length);
        try (Connection other = open(ports[0], "")) {
            run(other, "DROP DATABASE IF EXISTS switches_java", "CREATE DATABASE switches_java", "USE switches_java",
                "CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)");
            for (int round = 0; round < ROUNDS; round++) {
                List<Client> clients = new ArrayList<>();
                for (int i = 0; i < ports.length; i++) clients.add(new Client(ports[i], 10 * round + i));
                ProcessBuilder asking = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD);
                check(asking.redirectError(ProcessBuilder.Redirect.INHERIT).start().waitFor() == 0, "the switch");
                for (Client client : clients) client.goOn(other);
            }
        }
        System.out.println("  connector_j: ok");
    }
}
