import com.mysql.cj.jdbc.MysqlXADataSource;
import com.mysql.cj.jdbc.MysqlXid;
import java.sql.*;
import java.util.*;
import javax.sql.XAConnection;
import javax.transaction.xa.*;

/** Connector/J's DatabaseMetaData, and its XA. */
public class MetadataSmoke {
    static final String DATABASE = "clients_metadata";

    static void metadata(Connection connection) throws SQLException {
        DatabaseMetaData metadata = connection.getMetaData();
        String by = DATABASE;
        Server.equal(Server.rows(metadata.getTables(by, null, "%", new String[] {"TABLE", "VIEW"}), "TABLE_CAT", "TABLE_NAME", "TABLE_TYPE", "REMARKS"),
            by + ",child,TABLE, | " + by + ",parent,TABLE,the parents | " + by + ",names,VIEW,VIEW", "tables");
        Server.equal(Server.rows(metadata.getColumns(by, null, "parent", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF",
                "CHAR_OCTET_LENGTH", "ORDINAL_POSITION", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN", "REMARKS"),
            "id,-5,BIGINT UNSIGNED,20,null,0,null,null,1,YES,NO, | name,12,VARCHAR,40,null,0,x,160,2,NO,NO,a name | flag,-7,BIT,1,null,1,0,null,3,NO,NO, | price,3,DECIMAL,10,2,1,null,null,4,NO,NO, | "
                + "at,93,TIMESTAMP,23,null,1,CURRENT_TIMESTAMP(3),null,5,NO,YES, | doc,-1,JSON,1073741824,null,1,null,null,6,NO,NO, | kind,1,ENUM,2,null,1,null,8,7,NO,NO, | "
                + "twice,3,DECIMAL,11,2,1,null,null,8,NO,YES,", "columns");
        Server.equal(Server.rows(metadata.getPrimaryKeys(by, null, "child"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), "a,1,PRIMARY | b,2,PRIMARY", "primary key");
        String key = "parent,id,child,parent_id,1,1,0,child_parent,PRIMARY";
        String[] columns = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE", "FK_NAME", "PK_NAME"};
        Server.equal(Server.rows(metadata.getImportedKeys(by, null, "child"), columns), key, "imported keys");
        Server.equal(Server.unordered(Server.rows(metadata.getExportedKeys(by, null, "parent"), columns)), key + " | " + key.replace("PRIMARY", "by_name"), "exported keys");
        Server.equal(Server.unordered(Server.rows(metadata.getCrossReference(by, null, "parent", by, null, "child"), columns)), key + " | " + key.replace("PRIMARY", "by_name"), "cross reference");
        Server.equal(Server.rows(metadata.getIndexInfo(by, null, "parent", false, true), "NON_UNIQUE", "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC"),
            "0,by_name,1,name,A | 0,by_name,2,price,D | 0,PRIMARY,1,id,A | 1,by_kind,1,kind,A", "indexes");
        Server.equal(Server.rows(metadata.getBestRowIdentifier(by, null, "child", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME", "TYPE_NAME"), "a,INT | b,VARCHAR", "best row");
        Server.equal(Server.rows(metadata.getProcedures(by, null, "%"), "PROCEDURE_NAME", "PROCEDURE_TYPE"), "", "procedures");
        Server.equal(Server.rows(metadata.getFunctions(by, null, "%"), "FUNCTION_NAME"), "", "functions");
        Server.equal(Server.rows(metadata.getVersionColumns(by, null, "parent"), "COLUMN_NAME"), "at", "version columns");
        Set<String> catalogs = new HashSet<>(Arrays.asList(Server.rows(metadata.getCatalogs()).split(" \\| ")));
        if (!catalogs.containsAll(List.of(by, "information_schema", "mysql"))) throw new AssertionError("catalogs: " + catalogs);
        Server.equal(Server.rows(metadata.getTableTypes()), "LOCAL TEMPORARY | SYSTEM TABLE | SYSTEM VIEW | TABLE | VIEW", "table types");
        Server.rows(metadata.getTypeInfo());
        Server.rows(metadata.getTablePrivileges(by, null, "%"));
        Server.rows(metadata.getColumnPrivileges(by, null, "parent", "%"));
        metadata.getSQLKeywords();
    }

    static void types(Connection connection) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement("SELECT flag, id, price, kind, doc, at, flag = 1, COUNT(*) OVER (), (SELECT MAX(flag) FROM parent) FROM (SELECT * FROM parent) d WHERE id > ?")) {
            select.setInt(1, 0);
            ResultSetMetaData columns = select.getMetaData();
            StringBuilder have = new StringBuilder();
            for (int at = 1; at <= columns.getColumnCount(); at++) have.append(columns.getColumnTypeName(at)).append(' ').append(columns.getColumnClassName(at)).append(' ');
            Server.equal(have.toString(), "BIT java.lang.Boolean BIGINT UNSIGNED java.math.BigInteger DECIMAL java.math.BigDecimal CHAR java.lang.String JSON java.lang.String "
                + "TIMESTAMP java.sql.Timestamp BIGINT java.lang.Long BIGINT java.lang.Long TINYINT java.lang.Integer ", "types of a result");
            Server.equal(Server.rows(select.executeQuery()), "true,1,5.00,a,{\"x\": 1},2024-02-29 12:30:00.125,1,1,1", "a row");
        }
    }

    static void xa(Server server) throws Exception {
        MysqlXADataSource source = new MysqlXADataSource();
        source.setURL(server.url(DATABASE));
        source.setUser("root");
        XAConnection one = source.getXAConnection();
        XAResource resource = one.getXAResource();
        Xid first = new MysqlXid("global \0 one".getBytes("UTF-8"), new byte[] {1, (byte) 0xff}, 1);
        Statement statement = one.getConnection().createStatement();
        resource.start(first, XAResource.TMNOFLAGS);
        statement.execute("INSERT INTO account VALUES (1, 10)");
        statement.execute("INSERT INTO account VALUES (2, 20)");
        resource.end(first, XAResource.TMSUCCESS);
        if (resource.prepare(first) != XAResource.XA_OK) throw new AssertionError("prepare");
        one.close();
        XAConnection two = source.getXAConnection();
        resource = two.getXAResource();
        Xid[] found = resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
        if (found.length != 1 || !Arrays.equals(found[0].getGlobalTransactionId(), first.getGlobalTransactionId())) throw new AssertionError("recovered: " + found.length);
        resource.commit(found[0], false);
        statement = two.getConnection().createStatement();
        Xid second = new MysqlXid(new byte[] {2}, new byte[] {0}, 1);
        resource.start(second, XAResource.TMNOFLAGS);
        statement.execute("UPDATE account SET amount = 0");
        resource.end(second, XAResource.TMSUCCESS);
        resource.rollback(second);
        Xid third = new MysqlXid(new byte[] {3}, new byte[] {0}, 7);
        resource.start(third, XAResource.TMNOFLAGS);
        statement.execute("UPDATE account SET amount = amount + 1 WHERE id = 2");
        resource.end(third, XAResource.TMSUCCESS);
        resource.commit(third, true);
        Server.equal(Server.ask(two.getConnection(), "SELECT * FROM account ORDER BY id"), "1,10 | 2,21", "accounts");
        try {
            resource.commit(third, false);
            throw new AssertionError("an unknown transaction was committed");
        } catch (XAException error) {
            if (error.errorCode != XAException.XAER_NOTA) throw new AssertionError("XA error " + error.errorCode);
        }
        two.close();
    }

    public static void main(String[] arguments) throws Exception {
        Server server = new Server(arguments[0]);
        server.make(DATABASE);
        try (Connection connection = server.open(DATABASE); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE parent (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL DEFAULT 'x' COMMENT 'a name', flag TINYINT(1) DEFAULT 0, price DECIMAL(10,2), "
                + "at TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), doc JSON, kind ENUM('a', 'bb'), twice DECIMAL(11,2) AS (price * 2), "
                + "UNIQUE KEY by_name (name, price DESC), KEY by_kind (kind)) COMMENT 'the parents'");
            statement.execute("CREATE TABLE child (a INT, b VARCHAR(10), parent_id BIGINT UNSIGNED, PRIMARY KEY (a, b), CONSTRAINT child_parent FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE)");
            statement.execute("CREATE VIEW names AS SELECT name FROM parent");
            statement.execute("INSERT INTO parent (flag, price, kind, doc, at) VALUES (1, 5, 'a', '{\"x\": 1}', '2024-02-29 12:30:00.125')");
            metadata(connection);
            types(connection);
            statement.execute("CREATE TABLE account (id INT PRIMARY KEY, amount INT)");
        }
        xa(server);
        server.drop(DATABASE);
        System.out.println("  Connector/J: metadata, XA");
    }
}
