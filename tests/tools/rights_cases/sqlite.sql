-- The same by what SQLite has.
SELECT value FROM c, json_each(json_array(email))
SELECT j.value FROM c, json_tree(json_object('a', email)) AS j
SELECT iif(id = 1, email, 2), quote(email), printf('%s', email), unicode(email), hex(email) FROM c
SELECT json_extract('{"a":1}', email) FROM c
SELECT json_extract('{"a":1}', '$.' || email || '[') FROM c
SELECT json(email), json_set('{}', '$.a', email) FROM c
SELECT json_patch(email, email) FROM c
SELECT 1 WHERE (SELECT email FROM c LIMIT 1) REGEXP 'x'
SELECT _rowid_, oid, rowid FROM c
SELECT MAX(email) AS id, id AS email FROM c
SELECT `email`, [email], "email", 'email' FROM c
SELECT a.email FROM c AS a, c AS email
SELECT strftime(email), date(email), julianday(email) FROM c
SELECT email -> '$', email ->> '$' FROM c
SELECT group_concat(ch, '') FROM (SELECT substr(email, n, 1) AS ch FROM c, (SELECT 1 AS n UNION SELECT 2) WHERE c.id = 1)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT char(i), id FROM n, c WHERE unicode(substr(email, 2, 1)) = i
WITH RECURSIVE n(i) AS (SELECT 770000 UNION ALL SELECT i + 1 FROM n WHERE i < 770009) SELECT i FROM n WHERE i IN (SELECT salary FROM c)
WITH RECURSIVE n(i) AS (SELECT (SELECT MIN(salary) FROM c) UNION ALL SELECT i + 1 FROM n WHERE i < 770009) SELECT i FROM n
SELECT abs(-9223372036854775807 - 1 + 0 * salary) FROM c
SELECT zeroblob(1000000000 + salary) FROM c
SELECT likelihood(email, 0.5), typeof(email), length(email), instr(email, 'q'), replace(email, 'z', 'y') FROM c
SELECT sum(CAST(substr(email, 1, 3) AS INTEGER) + salary) OVER (ROWS 1 PRECEDING) FROM c
