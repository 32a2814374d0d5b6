-- Equal stacks of the last batch: how many threads, processes and hosts have each.
SELECT count(DISTINCT (snapshot, tid)) AS threads, count(DISTINCT snapshot) AS processes,
    count(DISTINCT host) AS hosts, min(host) AS first_host, max(wait) AS wait, names
FROM threads
INNER JOIN stack_names USING (stack)
WHERE batch IN (SELECT batch FROM this_batch)
GROUP BY stack, names
ORDER BY threads DESC, names
