-- The tables that the reference speaks of; those of SQLite and DuckDB bring theirs along.
CREATE TABLE t (id int, grp varchar(9), name varchar(9), kind varchar(9), v int, a int, b int);
CREATE TABLE a (id int); CREATE TABLE b (id int, v int); CREATE TABLE c (id int);
CREATE TABLE films (title varchar(40)); CREATE TABLE teams (won int, played int);
CREATE TABLE items (id int, tags varchar(40));
CREATE TABLE places (name varchar(9), lat float, lon float);
CREATE TABLE sales_2024_01 (v int); CREATE TABLE sales_2024_02 (v int);
INSERT INTO t VALUES (1, 'x', 'one', 'a', 10, 1, 2), (2, 'x', 'two', 'b', 20, 1, 1);
INSERT INTO items VALUES (1, 'red,green'); INSERT INTO films VALUES ('Brazil (1985)');
INSERT INTO teams VALUES (1, 3); INSERT INTO places VALUES ('Wien', 48.2, 16.4);
CREATE TABLE orders (id int, status varchar(9), code varchar(9), ordered_at datetime, doc json);
CREATE TABLE customers (id int, first_name varchar(9), last_name varchar(9), email varchar(40));
CREATE OR REPLACE DATABASE shop; CREATE TABLE shop.orders (`order total` int, status varchar(9));
INSERT INTO orders VALUES (1, 'paid', '7', NOW(), '{"items": [{"sku": "A"}]}');
INSERT INTO customers VALUES (1, 'Ann', NULL, 'ann@example.org');
