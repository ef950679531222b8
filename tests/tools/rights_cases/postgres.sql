-- The same by what PostgreSQL has.
SELECT email::int FROM c
SELECT email::date, salary::smallint FROM c
SELECT to_date(email, 'YYYY') FROM c
SELECT to_number(email, '999') FROM c
SELECT email::json FROM c
SELECT email::xml FROM c
SELECT email::inet FROM c
SELECT email::int[] FROM c
SELECT email::regclass FROM c
SELECT ('zq' || email)::timestamptz FROM c
SELECT c FROM c
SELECT c.*::text FROM c
SELECT (c).email FROM c
SELECT row_to_json(c), to_jsonb(c), json_agg(c.*) FROM c GROUP BY c
SELECT row_to_json(r) FROM (SELECT * FROM c) r
SELECT jsonb_each_text(to_jsonb(c)) FROM c
SELECT e.value FROM c, jsonb_each_text(to_jsonb(c)) AS e
SELECT unnest(array_agg(email)) FROM c
SELECT u FROM c, unnest(string_to_array(email, '@')) AS u
SELECT regexp_matches(email, '(.*)@(.*)'), regexp_split_to_table(email, '@'), substring(email from '^...') FROM c
SELECT 'a' ~ (email || '(') FROM c
SELECT regexp_replace('a', email || '[', 'b') FROM c
SELECT format('%s', email), concat(email, 1), quote_literal(email), encode(email::bytea, 'hex'), md5(email) FROM c
SELECT format(email || '%y', 1) FROM c
SELECT first_value(email) OVER w, lag(email) OVER w, rank() OVER (ORDER BY salary) FROM c WINDOW w AS (ORDER BY id)
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY email), mode() WITHIN GROUP (ORDER BY salary) FROM c
SELECT string_agg(email, ','), array_agg(salary), json_object_agg(id, email), max(salary) FROM c
SELECT l.e FROM c, LATERAL (SELECT c.email AS e) l
SELECT DISTINCT ON (country) email FROM c ORDER BY country, id
SELECT count(*) FROM generate_series(1, (SELECT salary FROM c WHERE id = 1))
SELECT i FROM generate_series(770000, 770010) AS i WHERE i IN (SELECT salary FROM c)
SELECT i FROM generate_series(770000, 770010) AS t(i) JOIN c ON c.salary = t.i
SELECT ch FROM c, (SELECT chr(i) AS ch FROM generate_series(97, 122) AS i) l WHERE substr(email, 1, 1) = ch
SELECT * FROM (VALUES ((SELECT email FROM c WHERE id = 1))) v(a)
SELECT x.e FROM (SELECT email FROM c) AS x(e)
SELECT ctid, xmin, email FROM c
SELECT tableoid::regclass, salary FROM c
SELECT most_common_vals FROM pg_stats WHERE tablename = 'c'
SELECT pg_get_viewdef('peek')
SELECT to_regclass('secret'), has_table_privilege('secret', 'SELECT')
SELECT * FROM secret
SELECT * FROM public.secret
TABLE secret
SELECT query_to_xml('SELECT * FROM secret', true, true, '')
WITH secret AS (SELECT * FROM secret) SELECT * FROM secret
WITH "X" AS (SELECT 1 AS a), x AS (SELECT email FROM c) SELECT * FROM x
SELECT U&"\0065mail" FROM c
SELECT email COLLATE "C", email AS "Country", "email" FROM c
SELECT extract(email FROM now()) FROM c
SELECT date_trunc(email, now()) FROM c
SELECT now() AT TIME ZONE email FROM c
SELECT set_config('x.y', email, false), current_setting('x.y') FROM c
SELECT salary / (id - id), 1 / (salary - salary), salary * 100000000 FROM c
SELECT chr(salary), repeat('a', salary), sqrt(-salary), ln(-salary), factorial(salary) FROM c
SELECT id FROM c WHERE email::int > 0 ORDER BY salary::smallint
SELECT id FROM c LIMIT (SELECT salary FROM c WHERE id = 1)
SELECT CASE WHEN salary > 0 THEN email::int END FROM c
SELECT encode(email::bytea, email), decode(email, 'base64'), decode(email, 'hex') FROM c
SELECT (SELECT email::int FROM c WHERE id = 1)
SELECT to_char(salary, email), to_timestamp(email, email) FROM c
SELECT jsonb_path_query('{}', email::jsonpath) FROM c
SELECT width_bucket(salary, 1, 1, 1), make_date(salary, 1, 1) FROM c
SELECT GREATEST(email, 'a'), COALESCE(email, 'a'), NULLIF(email, 'a'), email || 1 FROM c
SELECT grouping(email), email, count(*) FROM c GROUP BY ROLLUP (email)
SELECT id FROM c EXCEPT SELECT salary FROM c
SELECT id FROM c UNION SELECT salary FROM c
MERGE INTO c USING o ON true WHEN MATCHED THEN DO NOTHING RETURNING email
