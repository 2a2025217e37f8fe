import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import java.util.logging.*;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate: create, validate, update with a column and a table more, validate; entities of many types. */
public class HibernateSmoke {
    static final String DATABASE = "clients_hibernate";

    enum Size { SMALL, LARGE }

    @Entity(name = "Author")
    @Table(name = "author", indexes = @Index(name = "by_name", columnList = "name, born"))
    public static class Author {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 80, unique = true) String name;
        LocalDate born;
        @Column(precision = 12, scale = 3) BigDecimal fee;
        boolean living;
        Boolean maybe;
        double score;
        Float weight;
        LocalDateTime seen;
        Instant stamp;
        LocalTime wakes;
        UUID code;
        @Enumerated(EnumType.STRING) Size size;
        @Enumerated(EnumType.ORDINAL) Size shape;
        @Lob String story;
        @Lob byte[] picture;
        byte[] hash;
        @Version int version;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Book> books = new ArrayList<>();
    }

    @Entity(name = "Book")
    @Table(name = "book")
    public static class Book {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Integer id;
        @Column(length = 5000) String title;
        @ManyToOne(optional = false) @JoinColumn(foreignKey = @ForeignKey(name = "book_author")) Author author;
        @ElementCollection Set<String> tags = new TreeSet<>();
    }

    @Entity(name = "Author")
    @Table(name = "author")
    public static class LaterAuthor {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 80, unique = true) String name;
        @Column(length = 200) String address;
        @ManyToMany Set<Prize> prizes = new HashSet<>();
    }

    @Entity(name = "Prize")
    @Table(name = "prize")
    public static class Prize {
        @Id @GeneratedValue Long id;
        String name;
    }

    static SessionFactory factory(Server server, String mode, Class<?>... entities) {
        Configuration configuration = new Configuration();
        for (Class<?> entity : entities) configuration.addAnnotatedClass(entity);
        configuration.setProperty("hibernate.connection.url", server.url(DATABASE)).setProperty("hibernate.connection.username", "root")
            .setProperty("hibernate.connection.password", "").setProperty("hibernate.hbm2ddl.auto", mode).setProperty("hibernate.jdbc.time_zone", "UTC")
            
            // "create" drops what is not there first.
            .setProperty("hibernate.hbm2ddl.halt_on_error", String.valueOf(!mode.equals("create")));
        return configuration.buildSessionFactory();
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        Server server = new Server(arguments[0]);
        server.make(DATABASE);
        try (SessionFactory factory = factory(server, "create", Author.class, Book.class)) {
            Long id = factory.fromTransaction(session -> {
                Author author = new Author();
                author.name = "Ursula – 漢字 😀";
                author.born = LocalDate.of(1929, 10, 21);
                author.fee = new BigDecimal("12345.678");
                author.living = true;
                author.score = 0.1;
                author.weight = 60.5f;
                author.seen = LocalDateTime.of(2024, 2, 29, 12, 30, 0, 125_000_000);
                author.stamp = Instant.parse("2024-02-29T12:30:00.125Z");
                author.wakes = LocalTime.of(6, 30);
                author.code = new UUID(1, 2);
                author.size = Size.LARGE;
                author.shape = Size.SMALL;
                author.story = "x".repeat(100_000);
                author.picture = new byte[] {0, 1, (byte) 0xff};
                author.hash = new byte[] {5};
                for (int number = 0; number < 3; number++) {
                    Book book = new Book();
                    book.title = "Book " + number;
                    book.author = author;
                    book.tags.addAll(List.of("a", "b" + number));
                    author.books.add(book);
                }
                session.persist(author);
                return author.id;
            });
            factory.inTransaction(session -> {
                Author author = session.find(Author.class, id);
                Server.equal(author.name + author.born + author.fee + author.living + author.maybe + author.score + author.weight + author.seen + author.stamp + author.wakes
                        + author.code + author.size + author.shape + author.story.length() + Arrays.toString(author.picture) + Arrays.toString(author.hash),
                    "Ursula – 漢字 😀1929-10-2112345.678truenull0.160.52024-02-29T12:30:00.1252024-02-29T12:30:00.125Z06:3000000000-0000-0001-0000-000000000002LARGESMALL100000[0, 1, -1][5]",
                    "an author");
                author.books.remove(0);
                author.fee = author.fee.add(BigDecimal.ONE);
                var counts = session.createSelectionQuery(
                    "select a.name, count(b), max(length(b.title)) from Author a left join a.books b where a.fee between 1 and 99999 group by a.name order by 2 desc", Object[].class)
                    .setMaxResults(5).getResultList();
                Server.equal(counts.size() + " " + counts.get(0)[1], "1 2", "books of an author");
            });
            factory.inTransaction(session -> {
                Server.equal(String.valueOf(session.createSelectionQuery("select size(b.tags) from Book b order by b.id", Integer.class).getResultList()), "[2, 2]", "tags");
                Server.equal(String.valueOf(session.find(Author.class, id).version), "1", "the version");
                Server.equal(String.valueOf(session.createMutationQuery("update Author a set a.score = a.score + 1 where a.living").executeUpdate()), "1", "authors changed");
            });
        }
        factory(server, "validate", Author.class, Book.class).close();
        factory(server, "update", Author.class, Book.class).close();
        try (SessionFactory factory = factory(server, "update", LaterAuthor.class, Prize.class)) {
            factory.inTransaction(session -> {
                LaterAuthor author = session.createSelectionQuery("from Author", LaterAuthor.class).getSingleResult();
                Prize prize = new Prize();
                prize.name = "Hugo";
                session.persist(prize);
                author.address = "Portland";
                author.prizes.add(prize);
            });
        }
        factory(server, "validate", LaterAuthor.class, Prize.class).close();
        server.drop(DATABASE);
        System.out.println("  Hibernate: create, validate, update");
    }
}
