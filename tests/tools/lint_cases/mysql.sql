CREATE TABLE orders (id int PRIMARY KEY, customer_id int, ordered_on date, amount int, status text, doc json, tags text);
CREATE TABLE customers (id int PRIMARY KEY, name varchar(9), region varchar(9), createdAt varchar(9));
CREATE OR REPLACE DATABASE other;
CREATE TABLE other.invoices (id int, order_id int);
INSERT INTO orders (id, customer_id, ordered_on, amount, status, doc)
VALUES (1, 1, '2024-01-15', 10, 'open', '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}'), (2, 1, '2024-03-01', 20, 'a,b', '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}');
INSERT INTO customers VALUES (1, 'Ann', 'north', '2024'), (3, 'Bob', 'south', '2023');
