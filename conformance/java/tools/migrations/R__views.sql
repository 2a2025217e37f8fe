CREATE OR REPLACE VIEW visitors AS SELECT p.name, COUNT(v.id) AS visits FROM person p LEFT JOIN visit v ON v.person_id = p.id GROUP BY p.id, p.name;
