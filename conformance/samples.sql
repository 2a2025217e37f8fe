-- Two schemas of the shape that MySQL's sample databases have: a shop of films, and the staff of a firm.
SET NAMES utf8mb4;
SET SESSION cte_max_recursion_depth = 10000;

CREATE TABLE language (
  language_id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name CHAR(20) NOT NULL,
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE actor (
  actor_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT,
  first_name VARCHAR(45) NOT NULL,
  last_name VARCHAR(45) NOT NULL,
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (actor_id),
  KEY idx_actor_last_name (last_name)
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE film (
  film_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT,
  title VARCHAR(128) NOT NULL,
  description TEXT,
  release_year YEAR DEFAULT NULL,
  language_id TINYINT UNSIGNED NOT NULL,
  rental_duration TINYINT UNSIGNED NOT NULL DEFAULT 3,
  rental_rate DECIMAL(4,2) NOT NULL DEFAULT 4.99,
  length SMALLINT UNSIGNED DEFAULT NULL,
  rating ENUM('G','PG','PG-13','R','NC-17') DEFAULT 'G',
  special_features SET('Trailers','Commentaries','Deleted Scenes','Behind the Scenes') DEFAULT NULL,
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (film_id),
  KEY idx_title (title),
  KEY idx_fk_language_id (language_id),
  CONSTRAINT fk_film_language FOREIGN KEY (language_id) REFERENCES language (language_id) ON DELETE RESTRICT ON UPDATE CASCADE
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE film_actor (
  actor_id SMALLINT UNSIGNED NOT NULL,
  film_id SMALLINT UNSIGNED NOT NULL,
  PRIMARY KEY (actor_id, film_id),
  KEY idx_fk_film_id (film_id),
  CONSTRAINT fk_film_actor_actor FOREIGN KEY (actor_id) REFERENCES actor (actor_id) ON DELETE RESTRICT ON UPDATE CASCADE,
  CONSTRAINT fk_film_actor_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE RESTRICT ON UPDATE CASCADE
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE store_staff (
  staff_id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(45) NOT NULL,
  picture BLOB,
  active TINYINT(1) NOT NULL DEFAULT '1',
  password VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE payment (
  payment_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT,
  staff_id TINYINT UNSIGNED NOT NULL,
  film_id SMALLINT UNSIGNED DEFAULT NULL,
  amount DECIMAL(5,2) NOT NULL,
  payment_date DATETIME NOT NULL,
  PRIMARY KEY (payment_id),
  KEY idx_fk_staff_id (staff_id),
  CONSTRAINT fk_payment_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE SET NULL ON UPDATE CASCADE,
  CONSTRAINT fk_payment_staff FOREIGN KEY (staff_id) REFERENCES store_staff (staff_id) ON DELETE RESTRICT ON UPDATE CASCADE
) DEFAULT CHARSET = utf8mb4;

CREATE TABLE employees (
  emp_no INT NOT NULL,
  birth_date DATE NOT NULL,
  first_name VARCHAR(14) NOT NULL,
  last_name VARCHAR(16) NOT NULL,
  gender ENUM('M','F') NOT NULL,
  hire_date DATE NOT NULL,
  PRIMARY KEY (emp_no)
);
CREATE TABLE departments (
  dept_no CHAR(4) NOT NULL,
  dept_name VARCHAR(40) NOT NULL,
  PRIMARY KEY (dept_no),
  UNIQUE KEY dept_name (dept_name)
);
CREATE TABLE dept_emp (
  emp_no INT NOT NULL,
  dept_no CHAR(4) NOT NULL,
  from_date DATE NOT NULL,
  to_date DATE NOT NULL,
  KEY (dept_no),
  FOREIGN KEY (emp_no) REFERENCES employees (emp_no) ON DELETE CASCADE,
  FOREIGN KEY (dept_no) REFERENCES departments (dept_no) ON DELETE CASCADE,
  PRIMARY KEY (emp_no, dept_no)
);
CREATE TABLE salaries (
  emp_no INT NOT NULL,
  salary INT NOT NULL,
  from_date DATE NOT NULL,
  to_date DATE NOT NULL,
  FOREIGN KEY (emp_no) REFERENCES employees (emp_no) ON DELETE CASCADE,
  PRIMARY KEY (emp_no, from_date)
);

INSERT INTO language (name, last_update) VALUES ('English', '2006-02-15 05:02:19'), ('日本語', '2006-02-15 05:02:19'), ('Français', '2006-02-15 05:02:19');
INSERT INTO actor (first_name, last_name, last_update)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
  SELECT UPPER(CONCAT('Ann', i % 7)), CONCAT('O''Hara ', i), '2006-02-15 04:34:33' FROM n;
INSERT INTO film (title, description, release_year, language_id, rental_rate, length, rating, special_features, last_update)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
  SELECT CONCAT('Film – ', i, ' 漢字'), REPEAT(CONCAT('a \\ "story" ', i, '\n'), i % 5), 1990 + i % 40, 1 + i % 3, 0.99 + i % 5, IF(i % 9 = 0, NULL, 40 + i), 1 + i % 5,
    IF(i % 8 = 0, NULL, i % 16), '2006-02-15 05:03:42' FROM n;
INSERT INTO film_actor SELECT actor_id, film_id FROM actor, film WHERE (actor_id * 7 + film_id) % 23 = 0;
INSERT INTO store_staff VALUES (1, 'Mike', 0x89504E470D0A1A0A00FF, 1, 'Secret'), (2, 'Jón', NULL, 0, NULL);
INSERT INTO payment (staff_id, film_id, amount, payment_date)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
  SELECT 1 + i % 2, IF(i % 50 = 0, NULL, 1 + i % 200), (i % 12) + 0.99, '2005-05-25 11:30:37' + INTERVAL i * 7 HOUR FROM n;
INSERT INTO employees
  WITH RECURSIVE n (i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 11000)
  SELECT i, '1953-09-02' + INTERVAL i DAY, CONCAT('Georgi', i % 100), CONCAT('Facello', i % 321), 1 + i % 2, '1986-06-26' + INTERVAL i % 5000 DAY FROM n;
INSERT INTO departments VALUES ('d001', 'Marketing'), ('d002', 'Finance'), ('d003', 'Human Resources'), ('d004', 'Production');
INSERT INTO dept_emp
  SELECT emp_no, CONCAT('d00', 1 + (emp_no + k) % 4), hire_date + INTERVAL k * 400 DAY, IF(k = 1 OR emp_no % 3 = 0, '9999-01-01', hire_date + INTERVAL 400 DAY)
  FROM employees, (SELECT 0 AS k UNION ALL SELECT 1) AS t WHERE k = 0 OR emp_no % 3 > 0;
INSERT INTO salaries
  SELECT emp_no, 38000 + emp_no % 777 * 100 + k * 1500, hire_date + INTERVAL k YEAR, IF(k = 2, '9999-01-01', hire_date + INTERVAL k + 1 YEAR)
  FROM employees, (SELECT 0 AS k UNION ALL SELECT 1 UNION ALL SELECT 2) AS t;

CREATE VIEW film_list AS
  SELECT film.film_id AS FID, film.title AS title, film.rental_rate AS price, film.rating AS rating,
    GROUP_CONCAT(CONCAT(actor.first_name, _utf8mb4' ', actor.last_name) ORDER BY actor.actor_id SEPARATOR ', ') AS actors
  FROM film LEFT JOIN film_actor ON film_actor.film_id = film.film_id LEFT JOIN actor ON film_actor.actor_id = actor.actor_id
  GROUP BY film.film_id, film.title, film.rental_rate, film.rating;
CREATE SQL SECURITY INVOKER VIEW actor_info AS
  SELECT a.actor_id, a.first_name, a.last_name,
    (SELECT GROUP_CONCAT(f.title ORDER BY f.title SEPARATOR ', ') FROM film f JOIN film_actor fa ON f.film_id = fa.film_id WHERE fa.actor_id = a.actor_id) AS film_info
  FROM actor a;
CREATE VIEW staff_list AS
  SELECT staff_id AS ID, name AS `the name`, IF(active, _utf8mb4'active', _utf8mb4'') AS notes, (SELECT SUM(amount) FROM payment p WHERE p.staff_id = s.staff_id) AS total FROM store_staff AS s;
CREATE VIEW sales_by_rating AS
  SELECT f.rating AS rating, SUM(p.amount) AS total_sales FROM payment AS p INNER JOIN film AS f ON p.film_id = f.film_id GROUP BY f.rating ORDER BY total_sales DESC;
CREATE VIEW dept_emp_latest_date AS SELECT emp_no, MAX(from_date) AS from_date, MAX(to_date) AS to_date FROM dept_emp GROUP BY emp_no;
CREATE VIEW current_dept_emp AS
  SELECT l.emp_no, dept_no, l.from_date, l.to_date FROM dept_emp d INNER JOIN dept_emp_latest_date l ON d.emp_no = l.emp_no AND d.from_date = l.from_date AND l.to_date = d.to_date;
