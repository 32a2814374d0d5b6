-- The odd ones out: threads of the last batch with a stack that only one process has, or at most
-- one in twenty. A thread of a recording has one row for each of these stacks, whatever its states.
SELECT processes, host, pid, rank, tid, thread, wait_text, names
FROM (SELECT processes, host, pid, snapshot, tid, thread, wait_text, names
    FROM (SELECT processes, host, pid, snapshot, tid, thread, what AS wait_text, stack
        FROM (SELECT host, pid, snapshot, tid, thread, stack, max(wait_text) AS what
            FROM threads
            WHERE batch IN (SELECT batch FROM this_batch)
            GROUP BY host, pid, snapshot, tid, thread, stack) AS t
        INNER JOIN (SELECT stack, count(DISTINCT snapshot) AS processes
            FROM threads
            WHERE batch IN (SELECT batch FROM this_batch)
            GROUP BY stack) AS counts USING (stack)
        WHERE processes = 1 OR processes * 20 <= (SELECT count(DISTINCT snapshot)
            FROM snapshots
            WHERE batch IN (SELECT batch FROM this_batch))) AS odd
    INNER JOIN (SELECT stack, names FROM stack_names) AS texts USING (stack)) AS named
INNER JOIN (SELECT snapshot, rank FROM ranks) AS numbers USING (snapshot)
ORDER BY processes, host, pid, tid
