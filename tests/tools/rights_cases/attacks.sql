-- Ways to get a value of c.email or c.salary out of any engine, in a result or in an error; one a line.
SELECT * FROM c
SELECT email, salary FROM c
SELECT * FROM contacts
SELECT * FROM peek
SELECT * FROM sizes
SELECT MIN(email), MAX(salary), SUM(salary), AVG(salary), COUNT(*), COUNT(DISTINCT email) FROM c
SELECT email, COUNT(*) FROM c GROUP BY email
SELECT country, COUNT(*) FROM c WHERE email LIKE '%mail%' GROUP BY country
SELECT CAST(email AS INTEGER) FROM c
SELECT hex(email) FROM c
SELECT id FROM c UNION ALL SELECT salary FROM c
SELECT 'a'||email FROM c
SELECT "EMAIL" FROM C
SELECT id AS email, email AS id FROM c
SELECT (SELECT email FROM c c2 WHERE c2.id=c.id) FROM c
WITH RECURSIVE g(s,n) AS (SELECT '',0 UNION ALL SELECT g.s||x.ch, n+1 FROM g, (SELECT 'z' AS ch UNION ALL SELECT 'q' UNION ALL SELECT 'x' UNION ALL SELECT 'a' UNION ALL SELECT 'n') x WHERE n<7 AND EXISTS(SELECT 1 FROM c WHERE email LIKE g.s||x.ch||'%')) SELECT s FROM g
SELECT first_value(email) OVER (ORDER BY id), lag(salary) OVER (ORDER BY id) FROM c
WITH a AS (SELECT email e FROM c), b AS (SELECT e||'' f FROM a) SELECT f FROM b
SELECT x.e FROM (SELECT email FROM c) AS x(e)
SELECT CASE WHEN id=1 THEN email ELSE 'n' END FROM c
SELECT COALESCE(email,'x') FROM c
SELECT substr(email,1,8) FROM c
SELECT replace(email,'@','-') FROM c
SELECT id FROM c ORDER BY email
SELECT * FROM c JOIN o ON o.cid=c.id
SELECT * FROM c a JOIN c b USING (id)
SELECT * FROM c NATURAL JOIN contacts
SELECT c.* FROM o JOIN c ON o.cid=c.id
SELECT a.email FROM c a LEFT JOIN c b ON a.id=b.id+1
SELECT salary+0 FROM c
SELECT salary/0 FROM c
SELECT 1/(salary-salary) FROM c
SELECT o.mail FROM o UNION SELECT email FROM c
SELECT id FROM c INTERSECT SELECT salary FROM c
SELECT email FROM c EXCEPT SELECT mail FROM o
SELECT * FROM secret
SELECT secret.v FROM secret
SELECT id FROM c WHERE email = (SELECT max(email) FROM c)
SELECT email IS NOT NULL, email IS NULL FROM c
SELECT email='anna@mail', id FROM c
SELECT id FROM c WHERE salary > 770001
SELECT round(salary/1000.0,3) FROM c
SELECT rowid, * FROM c
SELECT c FROM c
SELECT row(c.*) FROM c
SELECT ROW(email) FROM c
EXPLAIN SELECT email FROM c
SELECT * FROM (VALUES ((SELECT email FROM c WHERE id=1))) v(a)
SELECT id, email COLLATE "C" FROM c
SELECT count(email), count(*) FILTER (WHERE email LIKE '%anna%') FROM c
SELECT lower(upper(trim(email))) FROM c
SELECT l.e FROM c CROSS JOIN LATERAL (SELECT c.email AS e) l
SELECT email e, count(*) c FROM c GROUP BY 1 HAVING count(*)>0 ORDER BY 2
SELECT string_agg(email, ',') FROM c
SELECT group_concat(email) FROM c
SELECT json_group_array(email) FROM c
SELECT json_object('a', email) FROM c
SELECT json_extract(json_object('a', email),'$.a') FROM c
SELECT value FROM c, json_each(json_array(email))
SELECT date(email) FROM c
SELECT json(email) FROM c
SELECT json_extract(email,'$') FROM c
SELECT abs(-9223372036854775807-salary) FROM c
SELECT quote(email) FROM c
SELECT printf('%s', email) FROM c
SELECT unicode(email) FROM c
SELECT zeroblob(salary) FROM c
SELECT instr(email,'z') FROM c
SELECT nth_value(email,1) OVER () FROM c
SELECT CAST(email AS BLOB) FROM c
SELECT likelihood(email,0.5) FROM c
SELECT iif(1,email,2) FROM c
SELECT `email` FROM c
SELECT [email] FROM c
SELECT typeof(email) FROM c
SELECT max(email, 'a') FROM c
SELECT email FROM c WINDOW w AS (ORDER BY id)
SELECT sum(id) OVER (ORDER BY salary) FROM c
SELECT *, 1 FROM c
SELECT DISTINCT email FROM c LIMIT 1
SELECT count(*) FROM c WHERE salary BETWEEN 770001 AND 770002
WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n < (SELECT max(salary) - 770000 FROM c)) SELECT count(*) + 770000 - 1 AS n FROM t
WITH RECURSIVE t(id, e) AS (SELECT id, email FROM c WHERE id = 1 UNION ALL SELECT c.id, c.email FROM c, t WHERE c.id = t.id + 1) SELECT e FROM t
WITH RECURSIVE t(n, e) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, (SELECT email FROM c WHERE id = n) FROM t WHERE n < 4) SELECT * FROM t
