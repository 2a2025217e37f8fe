CREATE TABLE person (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL, born DATE, KEY by_name (name));
CREATE TABLE visit (id BIGINT PRIMARY KEY, person_id INT, at TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3), CONSTRAINT visit_person FOREIGN KEY (person_id) REFERENCES person (id));
INSERT INTO person (name, born) VALUES ('Ada', '1815-12-10'), ('${nick}', NULL);
