CREATE TABLE orders (id int PRIMARY KEY, customer_id int, ordered_on date, amount int, status text, doc jsonb, tags text[]);
CREATE TABLE customers (id int PRIMARY KEY, name text, region text, "createdAt" text);
CREATE SCHEMA sales;
CREATE TABLE sales.invoices (id int, order_id int);
INSERT INTO orders (id, customer_id, ordered_on, amount, status, doc)
VALUES (1, 1, '2024-01-15', 10, 'open', '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}'), (2, 1, '2024-03-01', 20, 'a,b', '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}');
INSERT INTO customers VALUES (1, 'Ann', 'north', '2024'), (3, 'Bob', 'south', '2023');
