import java.sql.Connection;
import java.util.Map;
import org.flywaydb.core.Flyway;

/** Flyway: migrate, migrate again, validate, clean. */
public class FlywaySmoke {
    static final String DATABASE = "clients_flyway";

    public static void main(String[] arguments) throws Exception {
        Server server = new Server(arguments[0]);
        server.make(DATABASE);
        Flyway flyway = Flyway.configure().dataSource(server.url(DATABASE), "root", "").cleanDisabled(false).loggers("slf4j")
            .locations("filesystem:" + arguments[1] + "/migrations").placeholders(Map.of("nick", "Béa")).load();
        Server.equal(String.valueOf(flyway.migrate().migrationsExecuted), "3", "migrations");
        Server.equal(String.valueOf(flyway.migrate().migrationsExecuted), "0", "migrations of a second run");
        flyway.validate();
        try (Connection connection = server.open(DATABASE)) {
            Server.equal(Server.ask(connection, "SELECT * FROM visitors ORDER BY name"), "Ada,1 | Béa,0", "the view");
            Server.equal(Server.ask(connection, "SELECT version, success FROM flyway_schema_history ORDER BY installed_rank"), "1,true | 2,true | null,true", "the history");
        }
        flyway.clean();
        try (Connection connection = server.open(DATABASE)) {
            Server.equal(Server.ask(connection, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '" + DATABASE + "'"), "0", "tables that are left");
        }
        server.drop(DATABASE);
        System.out.println("  Flyway: migrate, validate, clean");
    }
}
