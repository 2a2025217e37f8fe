DROP DATABASE IF EXISTS conformance;
CREATE DATABASE conformance;
USE conformance;
CREATE TABLE author (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(60) NOT NULL,
  born DATE,
  UNIQUE KEY by_name (name)
) COMMENT = 'who wrote';
CREATE TABLE book (
  id BIGINT NOT NULL AUTO_INCREMENT,
  author_id INT UNSIGNED NOT NULL,
  title VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  price DECIMAL(10,2) NOT NULL DEFAULT 9.99,
  rating DOUBLE,
  kind ENUM('novel','play','poem') DEFAULT 'novel',
  tags SET('old','short','famous'),
  cover BLOB,
  notes JSON,
  printed DATETIME(3),
  changed TIMESTAMP NOT NULL DEFAULT '2024-01-01 00:00:00',
  PRIMARY KEY (id),
  KEY by_title (title(20), price DESC),
  CONSTRAINT of_author FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE,
  CONSTRAINT cheap CHECK (price < 1000)
);
INSERT INTO author (name, born) VALUES ('Ada', '1815-12-10'), ('Bertolt', '1898-02-10'), ('Zoë', NULL);
INSERT INTO book (author_id, title, price, rating, kind, tags, cover, notes, printed) VALUES
  (1, 'Notes', 12.50, 4.5, 'poem', 'old,short', 0x00FF10, '{"pages": 12, "ok": true}', '1843-09-01 10:00:00.125'),
  (2, 'Galilei', DEFAULT, 4.75, 'play', 'famous', NULL, '[1, 2.5, null]', '1943-09-09 20:00:00'),
  (3, 'It''s; a "quoted" \\ title', 1, NULL, NULL, NULL, '', NULL, NULL);
CREATE VIEW cheap_books AS SELECT b.title, a.name FROM book b JOIN author a ON a.id = b.author_id WHERE b.price < 10;
SELECT a.name, COUNT(*) AS books, SUM(b.price) AS total FROM author a JOIN book b ON b.author_id = a.id GROUP BY a.name ORDER BY a.name;
SELECT title, HEX(cover), kind, tags, notes, printed FROM book ORDER BY id;
SELECT * FROM cheap_books ORDER BY title;
SELECT ROUND(AVG(price), 3), MAX(rating) FROM book;
