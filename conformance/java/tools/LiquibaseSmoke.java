import java.nio.file.Path;
import java.sql.Connection;
import java.util.logging.*;
import liquibase.*;
import liquibase.database.*;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.output.DiffOutputControl;
import liquibase.integration.commandline.CommandLineUtils;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.*;
import liquibase.structure.core.*;

/** Liquibase: update, update again, snapshot of what is there, rollback. */
public class LiquibaseSmoke {
    static final String DATABASE = "clients_liquibase";

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        Server server = new Server(arguments[0]);
        server.make(DATABASE);
        try (Connection connection = server.open(DATABASE); DirectoryResourceAccessor files = new DirectoryResourceAccessor(Path.of(arguments[1]))) {
            Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
            Liquibase liquibase = new Liquibase("changelog.xml", files, database);
            for (int time = 0; time < 2; time++) liquibase.update(new Contexts(), new LabelExpression());
            Server.equal(String.valueOf(liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size()), "0", "change sets left");
            Server.equal(Server.ask(connection, "SELECT * FROM city_names"), "One,Élysée & 島", "the view");
            Server.equal(Server.ask(connection, "SELECT id, country_id, name, people FROM city"), "1,1,One,5", "the city");
            DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
            Table city = snapshot.get(new Table().setName("city"));
            Server.equal(city.getColumns().stream().map(column -> column.getName() + " " + column.getType() + (column.isNullable() ? "" : " not null")).sorted().toList().toString(),
                "[country_id INT(10), id BIGINT(19) not null, name VARCHAR(90 BYTE), people INT(10) not null, remark LONGTEXT(2147483647)]", "columns of a snapshot");
            Server.equal(city.getOutgoingForeignKeys().stream().map(key -> key.getName() + " " + key.getDeleteRule()).toList().toString(),
                "[city_country importedKeyCascade]", "foreign keys of a snapshot");
            Server.equal(city.getUniqueConstraints().stream().map(UniqueConstraint::getName).toList().toString(), "[city_unique]", "unique keys of a snapshot");
            liquibase.rollback(1, "");
            Server.equal(Server.ask(connection, "SELECT * FROM city"), "1,1,One,null", "the city after the rollback");
            liquibase.dropAll();
            Server.equal(Server.ask(connection, "SHOW TABLES LIKE 'c%'"), "", "tables that are left");
        }
        server.drop(DATABASE);
        System.out.println("  Liquibase: update, snapshot, rollback");
    }
}
