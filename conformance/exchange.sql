-- A schema with what MariaDB and MySQL 8 write alike: all types, keys, views, foreign keys, generated columns.
SET NAMES utf8mb4;
SET max_recursive_iterations = 5000;
CREATE TABLE country (
  code CHAR(2) NOT NULL,
  name VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,
  PRIMARY KEY (code),
  UNIQUE KEY by_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='all of them';
CREATE TABLE kinds (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  country_code CHAR(2) DEFAULT NULL,
  tiny TINYINT DEFAULT NULL, utiny TINYINT UNSIGNED DEFAULT 7, small SMALLINT DEFAULT NULL, medium MEDIUMINT UNSIGNED DEFAULT NULL,
  plain INT NOT NULL DEFAULT -1, big BIGINT DEFAULT NULL, ubig BIGINT UNSIGNED DEFAULT NULL,
  exact DECIMAL(30,10) DEFAULT NULL, money DECIMAL(9,2) UNSIGNED NOT NULL DEFAULT 1.50, single FLOAT DEFAULT NULL, real8 DOUBLE DEFAULT NULL,
  bits BIT(12) DEFAULT b'101', fixed CHAR(5) DEFAULT 'a', words VARCHAR(100) DEFAULT 'it''s', short_text TINYTEXT, long_text LONGTEXT,
  fixed_bytes BINARY(4) DEFAULT NULL, raw VARBINARY(20) DEFAULT NULL, short_blob TINYBLOB, huge LONGBLOB,
  day DATE DEFAULT NULL, span TIME DEFAULT NULL, span6 TIME(6) DEFAULT NULL, moment DATETIME DEFAULT NULL, moment6 DATETIME(6) DEFAULT NULL,
  stamp TIMESTAMP NULL DEFAULT NULL, changed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  since YEAR DEFAULT NULL, one ENUM('x','y','z''s') DEFAULT 'y', some SET('a','b','c') DEFAULT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY by_raw (raw, id),
  KEY by_words (words(10), plain),
  KEY of_country_key (country_code),
  CONSTRAINT of_country FOREIGN KEY (country_code) REFERENCES country (code) ON DELETE SET NULL ON UPDATE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- Without rows: MariaDB's dump gives values to generated columns, which MySQL refuses (3105).
CREATE TABLE computed (
  plain INT NOT NULL,
  doubled INT GENERATED ALWAYS AS (plain * 2) VIRTUAL,
  label VARCHAR(200) GENERATED ALWAYS AS (CONCAT('no ', plain)) STORED,
  PRIMARY KEY (plain),
  KEY by_label (label)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE empty_one (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (b, a)) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
INSERT INTO country VALUES ('at', 'Österreich'), ('jp', '日本'), ('xx', '😀 O''Hara "quoted" \\ back');
INSERT INTO kinds (country_code, tiny, small, medium, plain, big, ubig, exact, single, real8, bits, fixed, words, short_text, long_text,
  fixed_bytes, raw, short_blob, huge, day, span, span6, moment, moment6, stamp, changed, since, one, some)
WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n WHERE n < 3000)
SELECT ELT(1 + n % 4, 'at', 'jp', 'xx', NULL), n % 256 - 128, n - 1500, n * 5000, n * 700000, -9223372036854775808 + n, 18446744073709551615 - n,
  n / 7, n / 8, n * 1e100 / 3, n % 4096, CHAR(97 + n % 26), CONCAT('word ', n, ' 漢字 ', IF(n % 10 = 0, '\n\t\\''"', '')), IF(n % 5 = 0, NULL, REPEAT('t', n % 200)),
  IF(n % 100 = 0, REPEAT('long text ', 1000), ''), CHAR(n % 256, 0, 255, 10), CHAR(n % 256, n DIV 256, 39, 92), CHAR(0, n % 256), IF(n % 250 = 0, REPEAT(CHAR(n % 256, 0, 1), 20000), NULL),
  DATE'1970-01-01' + INTERVAL n * 7 DAY, SEC_TO_TIME(n * 1000 - 1500000), '-12:34:56.123456', DATE'1000-01-01' + INTERVAL n * 1000 HOUR,
  TIMESTAMP'2024-02-29 23:59:59.999999' - INTERVAL n MINUTE, IF(n % 3 = 0, NULL, FROM_UNIXTIME(n * 100000)), '2024-01-01 00:00:00.125', 1901 + n % 250, ELT(1 + n % 3, 'x', 'y', 'z''s'),
  ELT(1 + n % 4, '', 'a', 'a,c', 'a,b,c') FROM n;
INSERT INTO kinds (plain) VALUES (0);
CREATE VIEW cheap AS SELECT kinds.id AS id, kinds.words AS words, country.name AS name FROM kinds JOIN country ON kinds.country_code = country.code WHERE kinds.money < 10;
