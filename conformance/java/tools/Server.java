import java.sql.*;
import java.util.*;

/** A server at a port of the loopback, asked over JDBC. */
public class Server {
    final String port;

    Server(String port) {
        this.port = port;
    }

    String url(String database) {
        return "jdbc:mysql://127.0.0.1:" + port + "/" + database + "?sslMode=DISABLED&allowPublicKeyRetrieval=true&connectionTimeZone=UTC";
    }

    Connection open(String database) throws SQLException {
        return DriverManager.getConnection(url(database), "root", "");
    }

    /** An empty database. */
    void make(String database) throws SQLException {
        try (Connection connection = open(""); Statement statement = connection.createStatement()) {
            statement.execute("DROP DATABASE IF EXISTS " + database);
            statement.execute("CREATE DATABASE " + database);
        }
    }

    void drop(String database) throws SQLException {
        try (Connection connection = open(""); Statement statement = connection.createStatement()) {
            statement.execute("DROP DATABASE " + database);
        }
    }

    /** All rows of a result as one text. */
    static String rows(ResultSet result, String... columns) throws SQLException {
        List<String> rows = new ArrayList<>();
        while (result.next()) {
            List<String> values = new ArrayList<>();
            if (columns.length == 0) {
                for (int at = 1; at <= result.getMetaData().getColumnCount(); at++) values.add(String.valueOf(result.getObject(at)));
            }
            for (String column : columns) values.add(String.valueOf(result.getString(column)));
            rows.add(String.join(",", values));
        }
        return String.join(" | ", rows);
    }

    /** Rows that the query left in any order, in the order of their texts. */
    static String unordered(String rows) {
        String[] sorted = rows.split(" \\| ");
        Arrays.sort(sorted);
        return String.join(" | ", sorted);
    }

    static String ask(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(query)) {
            return rows(result);
        }
    }

    static void equal(String have, String wanted, String what) {
        if (!have.equals(wanted)) throw new AssertionError(what + ":\n  have   " + have + "\n  wanted " + wanted);
    }
}
