-- The same by what DuckDB has.
SELECT CAST(email AS INTEGER) FROM c
SELECT email::DATE FROM c
SELECT strptime(email,'%Y') FROM c
SELECT CAST(salary*1000000 AS INT) FROM c
SELECT salary::TINYINT FROM c
SELECT regexp_matches('x', email||'(') FROM c
SELECT json_extract(email,'$.a') FROM c
SELECT email::JSON FROM c
SELECT error(email) FROM c
SELECT CAST(CAST(id AS VARCHAR)||' must appear in the GROUP BY clause '||email AS INT) FROM c
SELECT CAST(substr(email,1,1) AS INT), 'z','q' FROM c
SELECT CAST(chr(10)||email AS INT) FROM c
SELECT CAST('x'' '||email||' ''y' AS INT) FROM c
SELECT CAST('zzz'||email AS INTEGER) AS zzz FROM c
PIVOT c ON email USING count(*)
SELECT * FROM (PIVOT c ON email USING count(*))
WITH p AS (PIVOT c ON email USING count(*)) SELECT * FROM p
SELECT * FROM (UNPIVOT (PIVOT c ON email USING count(*) GROUP BY country) ON COLUMNS(* EXCLUDE country) INTO NAME n VALUE v)
SELECT #2 FROM c
SELECT COLUMNS('.*') FROM c
SELECT COLUMNS(x -> x LIKE 'e%') FROM c
SELECT c FROM c
SELECT unnest(c) FROM c
SELECT c.* EXCLUDE(id) FROM c
SELECT * REPLACE (email AS country) FROM c
SELECT * RENAME (email AS country) FROM c
SELECT list(email), string_agg(email), first(email), any_value(salary), mode(email), histogram(email), arg_max(email,id), approx_quantile(salary,0.5), median(salary), stddev(salary) FROM c
SELECT email[1:5], email.upper(), left(email,8), [email][1], {'a':email}.a, map{'k':email} FROM c
SELECT list_transform([email], x->x||'!') FROM c
SELECT list_reduce(list(email),(a,b)->a||b) FROM c
SELECT md5(email), hash(email), sha256(email), base64(email::BLOB), hex(email), to_json(email) FROM c
SELECT (SELECT unnest(list(email)) FROM c LIMIT 1)
SELECT l.e FROM c, LATERAL (SELECT c.email AS e) l
SELECT (WITH t AS (SELECT email FROM c) SELECT max(email) FROM t)
SELECT count(*) FROM generate_series(1,(SELECT salary FROM c WHERE id=1))
SELECT count(*) FROM range((SELECT max(salary) FROM c))
SELECT count(*) FROM (SELECT unnest(range(salary)) FROM c WHERE id=1)
SELECT i FROM range(770000,770010) t(i), c WHERE c.salary=i
SELECT i FROM range(770000,770010) t(i) WHERE i IN (SELECT salary FROM c)
SELECT i, EXISTS(SELECT 1 FROM c WHERE salary=i) FROM range(770000,770010) t(i)
SELECT i, (SELECT count(*) FROM c WHERE salary=i) FROM range(770000,770010) t(i)
SELECT t.i2 FROM (SELECT i, i AS i2 FROM range(770000,770010) t(i)) t JOIN c ON c.salary=t.i
SELECT * FROM c ASOF JOIN (SELECT i AS s FROM range(770000,770010) r(i)) x ON c.salary>=x.s
SELECT x.s FROM c ASOF JOIN (SELECT i AS s FROM range(770000,770010) r(i)) x ON c.salary>=x.s
SELECT x.s FROM c POSITIONAL JOIN (SELECT 1 AS s) x
SUMMARIZE c
DESCRIBE c
FROM c SELECT email
FROM c
SELECT * FROM query('SELECT email FROM c')
SELECT * FROM query_table('secret')
SELECT * FROM duckdb_tables()
SELECT table_name FROM information_schema.tables
SELECT * FROM 'secret'
SELECT * FROM main.secret
SELECT * FROM memory.main.secret
SELECT * FROM shop.main.secret
WITH RECURSIVE secret AS (SELECT v FROM secret UNION SELECT 'x' FROM secret WHERE 1=0) SELECT * FROM secret
WITH secret AS (SELECT v FROM secret) SELECT * FROM secret
WITH secret AS (SELECT 1 AS v) SELECT * FROM secret
SELECT (SELECT v FROM secret)
SELECT * FROM peek
SELECT * FROM contacts
SELECT * FROM "main"."secret"
SELECT * FROM "SECRET"
PRAGMA storage_info('c')
SELECT * FROM pragma_storage_info('c')
SELECT stats(email) FROM c
SELECT enum_range(NULL::x)
SELECT max(email) OVER (), rank() OVER (ORDER BY salary), ntile(2) OVER (ORDER BY email), cume_dist() OVER (ORDER BY salary) FROM c
SELECT sum(salary) FILTER (WHERE id=1) FROM c
SELECT min(id) FILTER (WHERE email LIKE '%anna%') FROM c
SELECT country, list(id ORDER BY email) FROM c GROUP BY country
SELECT CASE email WHEN 'bob@mail' THEN 'bob' ELSE 'n' END x FROM c
SELECT ch, pos FROM c, (SELECT unnest(['a','b','z','q']) AS ch) l, range(1,4) p(pos) WHERE substr(email,pos,1)=ch
SELECT getvariable('x')
SELECT x.email FROM (FROM c) x
SELECT struct_extract(c,'email') FROM c
SELECT c['email'] FROM c
SELECT c."email" FROM c
SELECT main.c.email FROM c
SELECT shop.main.c.email FROM c
SELECT e FROM (SELECT email AS e) , c
SELECT email AS e, e||'x' AS f, f||'y' AS country FROM c
SELECT DISTINCT ON (country) email FROM c
SELECT grouping(email), email FROM c GROUP BY CUBE(email)
SELECT * FROM c TABLESAMPLE 100%
SELECT id, email FROM c UNION BY NAME SELECT 1 AS x, 'a' AS email
SELECT any_value(c) FROM c
SELECT c::VARCHAR FROM c
SELECT format('{}', c) FROM c
SELECT printf('%s',email) FROM c
SELECT concat_ws('-', email, id) FROM c
SELECT row(email, id) FROM c
SELECT (email, id) FROM c
SELECT list_value(email) FROM c
SELECT * FROM c WHERE id = (SELECT email FROM c LIMIT 1)
SELECT id FROM c WHERE CAST(email AS INT) > 0
SELECT id FROM c ORDER BY email::INT
SELECT count(*) FROM c WHERE email::DATE IS NULL
SELECT id FROM c LIMIT (SELECT salary FROM c WHERE id=1)
SELECT id FROM c GROUP BY id, email::INT
SELECT TRY_CAST(email AS INT) FROM c
SELECT sum(email::INT) OVER () FROM c
SELECT DATE '2020-01-01' + salary FROM c
SELECT chr(salary) FROM c
SELECT repeat('a', salary) FROM c WHERE id=1
SELECT length(repeat('a', salary)) FROM c WHERE id=1
SELECT to_timestamp(salary) FROM c
SELECT make_date(salary,1,1) FROM c
SELECT substring(email from 1 for 9) FROM c
SELECT bar(salary,0,10) FROM c
SELECT array_extract(email,1) FROM c
SELECT strftime(DATE '2020-01-01', email||'%') FROM c
SELECT format('{:'||email||'}', 1) FROM c
SELECT format('{'||email||'}', 1) FROM c
SELECT printf(email||'%y','a') FROM c
SELECT timezone(email, now()) FROM c
SELECT date_part(email, DATE '2020-01-01') FROM c
SELECT unhex(email) FROM c
SELECT from_base64(email) FROM c
SELECT email::UUID FROM c
SELECT email::BLOB FROM c
SELECT ('\x'||email)::BLOB FROM c
SELECT email::INT[] FROM c
SELECT email::STRUCT(a INT) FROM c
SELECT email::MAP(INT,INT) FROM c
SELECT salary::DECIMAL(3,0) FROM c
SELECT email::BIT FROM c
SELECT email::INTERVAL FROM c
SELECT list_aggregate([1],email) FROM c
SELECT json_transform(email,'{"a":"INT"}') FROM c
SELECT json_extract('{"a":1}', email) FROM c
SELECT regexp_replace('a','a',email||'\9') FROM c
SELECT regexp_extract('a', email||'[') FROM c
SELECT array_value(1,2)[salary] FROM c
SELECT e.k FROM (SELECT unnest(map_keys(map([email],[1]))) AS k FROM c) e
SELECT case when email like 'z%' then error('y'||email) end from c
SELECT error('x')
SELECT * FROM c WHERE email SIMILAR TO (email||'(')
SELECT salary << 62 FROM c
SELECT sqrt(-salary) FROM c
SELECT ln(-salary) FROM c
SELECT factorial(salary) FROM c
SELECT salary ** 60 FROM c
SELECT make_timestamp(salary,99,99,1,1,1) FROM c
SELECT id FROM c WHERE id IN (SELECT CAST(email AS INT) FROM c)
