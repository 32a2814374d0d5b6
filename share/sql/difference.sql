-- The difference of the last two batches: how many threads and processes have each stack, before
-- and after. Stacks with equal counts are left out.
SELECT threads_before, threads_after, processes_before, processes_after, names
FROM (SELECT stack,
        sum(CASE WHEN batch IN (SELECT batch FROM previous_batch) THEN 1 ELSE 0 END)
            AS threads_before,
        sum(CASE WHEN batch IN (SELECT batch FROM this_batch) THEN 1 ELSE 0 END)
            AS threads_after,
        coalesce(count(DISTINCT CASE WHEN batch IN (SELECT batch FROM previous_batch)
            THEN snapshot ELSE NULL END), 0) AS processes_before,
        coalesce(count(DISTINCT CASE WHEN batch IN (SELECT batch FROM this_batch)
            THEN snapshot ELSE NULL END), 0) AS processes_after
    FROM (SELECT DISTINCT batch, snapshot, tid, stack FROM threads
        WHERE batch IN (SELECT batch FROM this_batch)
            OR batch IN (SELECT batch FROM previous_batch)) AS once
    GROUP BY stack) AS counts
INNER JOIN (SELECT stack, names FROM stack_names) AS texts USING (stack)
WHERE threads_before <> threads_after
ORDER BY names
