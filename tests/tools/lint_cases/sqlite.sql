CREATE TABLE orders (id, customer_id, ordered_on, amount, status, doc, tags);
CREATE TABLE customers (id, name, region, createdAt);
INSERT INTO orders (id, customer_id, ordered_on, amount, status, doc)
VALUES (1, 1, '2024-01-15', 10, 'open', '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}'), (2, 1, '2024-03-01', 20, 'a,b', '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}');
INSERT INTO customers VALUES (1, 'Ann', 'north', '2024'), (3, 'Bob', 'south', '2023');
