-- Views for rows of stacksnap (stacksnap-rows(5)) in DuckDB. Set the variable "rows" to the
-- names of the files before:
--   SET VARIABLE rows = 'rows/*.ndjson';

-- Lines that cannot be read are left out; see the view "incomplete".
CREATE OR REPLACE TABLE rows AS
SELECT * FROM read_json(getvariable('rows'), format = 'newline_delimited',
    ignore_errors = true, columns = {
    "table": 'VARCHAR', snapshot: 'VARCHAR', batch: 'VARCHAR', host: 'VARCHAR',
    pid: 'BIGINT', tid: 'BIGINT', thread: 'VARCHAR', state: 'VARCHAR',
    "end": 'VARCHAR', stack: 'VARCHAR', samples: 'BIGINT', wait: 'VARCHAR',
    wait_text: 'VARCHAR', wait_key: 'VARCHAR', owner_pid: 'BIGINT', owner_tid: 'BIGINT',
    deadlock: 'UTINYINT', stuck: 'UTINYINT', time_ns: 'BIGINT', boot_id: 'VARCHAR',
    start: 'BIGINT', process: 'VARCHAR', exe: 'VARCHAR', labels: 'VARCHAR[]',
    consistent: 'UTINYINT', stopped_ns: 'BIGINT', threads: 'BIGINT', verdict: 'VARCHAR',
    problem: 'VARCHAR', frames: 'VARCHAR[]', frame: 'VARCHAR', names: 'VARCHAR[]',
    sources: 'VARCHAR[]', module: 'VARCHAR'});

-- Names of ClickHouse that the queries use.
CREATE OR REPLACE MACRO groupUniqArray(x) AS list(DISTINCT x);
CREATE OR REPLACE MACRO arraySort(x) AS list_sort(x);

CREATE OR REPLACE VIEW raw_threads AS
SELECT DISTINCT snapshot, batch, host, pid, tid, thread, state, "end", stack, samples,
    wait, wait_text, wait_key, owner_pid, owner_tid, deadlock, stuck
FROM rows WHERE "table" = 'threads';

CREATE OR REPLACE VIEW raw_snapshots AS
SELECT DISTINCT snapshot, batch, host, pid, time_ns, boot_id, start, process, exe,
    labels, consistent, stopped_ns, threads, verdict, problem
FROM rows WHERE "table" = 'snapshots';

-- Complete snapshots: all rows that their last row announces have arrived.
CREATE OR REPLACE VIEW snapshots AS
SELECT * FROM raw_snapshots
WHERE threads = 0 OR (snapshot, threads) IN (
    SELECT (snapshot, count(DISTINCT (tid, stack, state))) FROM raw_threads
    GROUP BY snapshot);

CREATE OR REPLACE VIEW threads AS
SELECT * FROM raw_threads WHERE snapshot IN (SELECT snapshot FROM snapshots);

-- What has arrived in part.
CREATE OR REPLACE VIEW incomplete AS
SELECT DISTINCT snapshot, batch, host, pid FROM rows
WHERE snapshot NOT IN (SELECT snapshot FROM snapshots) AND snapshot IS NOT NULL;

CREATE OR REPLACE VIEW stacks AS
SELECT stack, any_value(frames) AS frames FROM rows WHERE "table" = 'stacks'
GROUP BY stack;

CREATE OR REPLACE VIEW frames AS
SELECT frame, arg_max(names, len(names)) AS names,
    arg_max(sources, len(names)) AS sources, any_value(module) AS module
FROM rows WHERE "table" = 'frames' GROUP BY frame;

-- One row for each frame of each stack, the outermost one is number 1.
CREATE OR REPLACE VIEW calls AS
SELECT stack, number, c.frame AS frame,
    coalesce(nullif(array_to_string(names, ' > '), ''), regexp_replace(module, '^.*/', '')
        || regexp_replace(c.frame, '^.*[+]', '+'), c.frame) AS name
FROM (SELECT stack, unnest(frames) AS frame, generate_subscripts(frames, 1) AS number
    FROM stacks) AS c
LEFT JOIN frames ON c.frame = frames.frame;

-- Frames without names: input of "stacksnap names".
CREATE OR REPLACE VIEW unnamed AS
SELECT frame, module FROM frames
WHERE len(names) = 0 AND regexp_matches(frame, '^[0-9a-f]+[+]0x');

-- The functions of each stack, outermost first.
CREATE OR REPLACE VIEW stack_names AS
SELECT stack, list(name ORDER BY number) AS functions,
    string_agg(name, ' > ' ORDER BY number) AS names
FROM calls GROUP BY stack;

-- The beginnings of each stack: depth 1 is the outermost function.
CREATE OR REPLACE VIEW prefixes AS
SELECT stack, depth, functions[depth] AS name,
    array_to_string(functions[1:depth], ' > ') AS path
FROM (SELECT stack, functions, generate_subscripts(functions, 1) AS depth
    FROM stack_names);

-- The rank of each process in its job; without one, its host and pid.
CREATE OR REPLACE VIEW ranks AS
SELECT snapshot, coalesce(regexp_replace(list_filter(labels, x -> regexp_matches(x,
    '^(rank|SLURM_PROCID|OMPI_COMM_WORLD_RANK|PMIX_RANK|PMI_RANK|RANK)='))[1],
    '^[^=]*=', ''), concat(host, '/', pid)) AS rank
FROM snapshots;

-- The batches that the queries are about: the last one, and the one before.
CREATE OR REPLACE VIEW this_batch AS
SELECT arg_max(batch, time_ns) AS batch FROM snapshots;

CREATE OR REPLACE VIEW previous_batch AS
SELECT arg_max(batch, time_ns) AS batch FROM snapshots
WHERE batch NOT IN (SELECT batch FROM this_batch);
