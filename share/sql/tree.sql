-- The prefix tree of the stacks of the last batch: each row is a function below those of the rows
-- before it with a smaller depth, with the ranks (or hosts and pids) that are in it.
SELECT path, depth, name, count(DISTINCT (snapshot, tid)) AS threads,
    count(DISTINCT host) AS hosts, count(DISTINCT snapshot) AS processes,
    arraySort(groupUniqArray(rank)) AS ranks
FROM (SELECT host, snapshot, tid, path, depth, name
    FROM (SELECT host, snapshot, tid, stack FROM threads
        WHERE batch IN (SELECT batch FROM this_batch)) AS t
    INNER JOIN (SELECT stack, path, depth, name FROM prefixes) AS p USING (stack)) AS l
INNER JOIN (SELECT snapshot, rank FROM ranks) AS r USING (snapshot)
GROUP BY path, depth, name
ORDER BY path, depth
