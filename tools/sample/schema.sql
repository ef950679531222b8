-- An online shop. `returns.returned_on` is DD/MM/YYYY text and `orders.status` mixes upper and
-- lower case on purpose: real warehouses do, and the agents have to cope.

CREATE TABLE categories (
    category_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    parent_category_id INTEGER REFERENCES categories (category_id)
);

CREATE TABLE suppliers (
    supplier_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    country TEXT NOT NULL,
    contact_email TEXT,
    created_on TEXT NOT NULL
);

CREATE TABLE products (
    product_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL REFERENCES categories (category_id),
    supplier_id INTEGER NOT NULL REFERENCES suppliers (supplier_id),
    list_price REAL NOT NULL,
    weight_grams INTEGER,
    attributes JSON NOT NULL,
    discontinued INTEGER NOT NULL,
    created_at TEXT NOT NULL
);

CREATE TABLE customers (
    customer_id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL,
    email TEXT NOT NULL,
    phone TEXT,
    country TEXT NOT NULL,
    segment TEXT NOT NULL,
    birth_year INTEGER,
    created_at TEXT NOT NULL
);

CREATE TABLE addresses (
    address_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    kind TEXT NOT NULL,
    street TEXT NOT NULL,
    city TEXT NOT NULL,
    postal_code TEXT NOT NULL,
    country_code TEXT NOT NULL
);

CREATE TABLE employees (
    employee_id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL,
    department TEXT NOT NULL,
    job_title TEXT NOT NULL,
    manager_id INTEGER REFERENCES employees (employee_id),
    salary INTEGER NOT NULL,
    hired_on TEXT NOT NULL
);

CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    shipping_address_id INTEGER NOT NULL REFERENCES addresses (address_id),
    channel TEXT NOT NULL,
    status TEXT NOT NULL,
    total_amount REAL NOT NULL,
    shipping_fee REAL NOT NULL,
    coupon_code TEXT,
    created_at TEXT NOT NULL,
    shipped_at TEXT
);

CREATE TABLE order_items (
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    line_number INTEGER NOT NULL,
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    quantity INTEGER NOT NULL,
    unit_price REAL NOT NULL,
    discount REAL NOT NULL,
    PRIMARY KEY (order_id, line_number)
);

CREATE TABLE payments (
    payment_id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    method TEXT NOT NULL,
    amount REAL NOT NULL,
    status TEXT NOT NULL,
    paid_at TEXT
);

CREATE TABLE returns (
    return_id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    reason TEXT,
    refund_amount REAL NOT NULL,
    returned_on TEXT NOT NULL
);

CREATE TABLE reviews (
    review_id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    rating INTEGER NOT NULL,
    comment TEXT,
    created_on TEXT NOT NULL
);

CREATE TABLE support_tickets (
    ticket_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    order_id INTEGER REFERENCES orders (order_id),
    employee_id INTEGER REFERENCES employees (employee_id),
    topic TEXT NOT NULL,
    priority TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    closed_at TEXT
);

CREATE INDEX addresses_customer ON addresses (customer_id);
CREATE INDEX orders_customer ON orders (customer_id);
CREATE INDEX order_items_product ON order_items (product_id);
CREATE INDEX payments_order ON payments (order_id);
CREATE INDEX returns_order ON returns (order_id);
CREATE INDEX reviews_product ON reviews (product_id);
CREATE INDEX support_tickets_customer ON support_tickets (customer_id);
