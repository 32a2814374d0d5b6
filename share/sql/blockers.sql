-- Who blocks whom in the last batch, over all hosts.
-- kind 'owner': a thread or process that others wait for, as far as they name it; what it
--   waits for itself, if it is in the batch.
-- kind 'key': a thread that waits for the same connection, pipe or file as threads of other
--   processes, on any host.
SELECT kind, host, pid, tid, waiting, wait_key, wait_text, names
FROM (SELECT 'owner' AS kind, host, pid, tid, waiting, '' AS wait_key,
        coalesce(what, '') AS wait_text, coalesce(text, '') AS names
    FROM (SELECT host, p AS pid, t AS tid, count(*) - 0 AS waiting
        FROM (SELECT DISTINCT snapshot, tid, host, owner_pid AS p,
                CASE WHEN owner_tid = 0 THEN owner_pid ELSE owner_tid END AS t
            FROM threads
            WHERE batch IN (SELECT batch FROM this_batch) AND owner_pid > 0) AS o
        GROUP BY host, p, t) AS owners
    LEFT JOIN (SELECT host, pid, tid, what, text
        FROM (SELECT host, pid, tid, wait_text AS what, stack FROM threads
            WHERE batch IN (SELECT batch FROM this_batch)) AS t
        INNER JOIN (SELECT stack, names AS text FROM stack_names) AS s
        USING (stack)) AS holders USING (host, pid, tid)
    UNION ALL
    SELECT 'key' AS kind, host, pid, tid, waiting, wait_key, wait_text, text AS names
    FROM (SELECT host, pid, tid, waiting, wait_key, wait_text, stack
        FROM (SELECT host, pid, tid, wait_key, wait_text, stack FROM threads
            WHERE batch IN (SELECT batch FROM this_batch)) AS t
        INNER JOIN (SELECT wait_key, count(DISTINCT (snapshot, tid)) - 1 AS waiting
            FROM threads
            WHERE batch IN (SELECT batch FROM this_batch) AND wait_key <> ''
            GROUP BY wait_key
            HAVING count(DISTINCT snapshot) > 1) AS k USING (wait_key)) AS w
    INNER JOIN (SELECT stack, names AS text FROM stack_names) AS s USING (stack)) AS all_kinds
ORDER BY waiting DESC, kind, host, pid, tid
