/* Comments of several
   lines; with a semicolon. */
ALTER TABLE person ADD COLUMN email VARCHAR(80) NULL AFTER name, ADD UNIQUE KEY by_email (email);
-- A statement of the server's dialect.
SET @first = (SELECT MIN(id) FROM person);
INSERT INTO visit (id, person_id) VALUES (7, @first);
/*!40101 SET @kept = @@sql_mode */;
