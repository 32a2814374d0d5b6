-- Tables and views for rows of stacksnap (stacksnap-rows(5)) in ClickHouse 18.16 and later.
-- INSERT INTO rows FORMAT JSONEachRow fills all of them.

CREATE TABLE IF NOT EXISTS rows (
    "table" String, snapshot String, batch String, host String, pid Int64,
    tid Int64, thread String, state String, "end" String, stack String, samples UInt64,
    wait String, wait_text String, wait_key String, owner_pid Int64, owner_tid Int64,
    deadlock UInt8, stuck UInt8,
    time_ns UInt64, boot_id String, start UInt64, process String, exe String,
    labels Array(String), consistent UInt8, stopped_ns UInt64, threads UInt64,
    verdict String, problem String,
    frames Array(String), frame String, names Array(String), sources Array(String),
    module String
) ENGINE = Null;

-- Rows that arrive twice are one row.
CREATE TABLE IF NOT EXISTS raw_threads (
    snapshot String, batch String, host String, pid Int64, tid Int64, thread String,
    state String, "end" String, stack String, samples UInt64, wait String,
    wait_text String, wait_key String, owner_pid Int64, owner_tid Int64, deadlock UInt8,
    stuck UInt8
) ENGINE = ReplacingMergeTree ORDER BY (batch, snapshot, tid, stack, state);

CREATE TABLE IF NOT EXISTS raw_snapshots (
    snapshot String, batch String, host String, pid Int64, time_ns UInt64,
    boot_id String, start UInt64, process String, exe String, labels Array(String),
    consistent UInt8, stopped_ns UInt64, threads UInt64, verdict String, problem String
) ENGINE = ReplacingMergeTree ORDER BY (batch, snapshot);

CREATE TABLE IF NOT EXISTS raw_stacks (stack String, frames Array(String))
ENGINE = ReplacingMergeTree ORDER BY stack;

CREATE TABLE IF NOT EXISTS raw_frames (
    frame String, names Array(String), sources Array(String), module String
) ENGINE = ReplacingMergeTree ORDER BY (frame, names);

CREATE MATERIALIZED VIEW IF NOT EXISTS to_threads TO raw_threads AS
SELECT snapshot, batch, host, pid, tid, thread, state, "end", stack, samples, wait,
    wait_text, wait_key, owner_pid, owner_tid, deadlock, stuck
FROM rows WHERE "table" = 'threads';

CREATE MATERIALIZED VIEW IF NOT EXISTS to_snapshots TO raw_snapshots AS
SELECT snapshot, batch, host, pid, time_ns, boot_id, start, process, exe, labels,
    consistent, stopped_ns, threads, verdict, problem
FROM rows WHERE "table" = 'snapshots';

CREATE MATERIALIZED VIEW IF NOT EXISTS to_stacks TO raw_stacks AS
SELECT stack, frames FROM rows WHERE "table" = 'stacks';

CREATE MATERIALIZED VIEW IF NOT EXISTS to_frames TO raw_frames AS
SELECT frame, names, sources, module FROM rows WHERE "table" = 'frames';

-- Complete snapshots: all rows that their last row announces have arrived.
CREATE VIEW IF NOT EXISTS snapshots AS
SELECT DISTINCT * FROM raw_snapshots
WHERE threads = 0 OR (snapshot, threads) IN (
    SELECT snapshot, uniqExact(tid, stack, state) FROM raw_threads GROUP BY snapshot);

CREATE VIEW IF NOT EXISTS threads AS
SELECT DISTINCT * FROM raw_threads WHERE snapshot IN (SELECT snapshot FROM snapshots);

-- What has arrived in part.
CREATE VIEW IF NOT EXISTS incomplete AS
SELECT snapshot, batch, host, pid
FROM (SELECT snapshot, batch, host, pid FROM raw_threads
    UNION ALL SELECT snapshot, batch, host, pid FROM raw_snapshots)
WHERE snapshot NOT IN (SELECT snapshot FROM snapshots)
GROUP BY snapshot, batch, host, pid;

CREATE VIEW IF NOT EXISTS stacks AS
SELECT stack, any(raw_stacks.frames) AS frames FROM raw_stacks GROUP BY stack;

CREATE VIEW IF NOT EXISTS frames AS
SELECT frame, argMax(n, length(n)) AS names, argMax(s, length(n)) AS sources,
    max(m) AS module
FROM (SELECT frame, names AS n, sources AS s, module AS m FROM raw_frames)
GROUP BY frame;

-- One row for each frame of each stack, the outermost one is number 1.
CREATE VIEW IF NOT EXISTS calls AS
SELECT stack, number, frame, if(text = '', frame, text) AS name
FROM (SELECT stack, number, frame FROM stacks
    ARRAY JOIN frames AS frame, arrayEnumerate(frames) AS number)
ALL LEFT JOIN (SELECT frame, if(empty(names),
        concat(replaceRegexpOne(module, '^.*/', ''), replaceRegexpOne(frame, '^.*[+]', '+')),
        arrayStringConcat(names, ' > ')) AS text FROM frames)
USING frame;

-- Frames without names: input of "stacksnap names".
CREATE VIEW IF NOT EXISTS unnamed AS
SELECT frame, module FROM frames WHERE empty(names) AND match(frame, '^[0-9a-f]+[+]0x');

-- The functions of each stack, outermost first.
CREATE VIEW IF NOT EXISTS stack_names AS
SELECT stack, arrayMap(x -> x.2, arraySort(groupArray((number, name)))) AS functions,
    arrayStringConcat(functions, ' > ') AS names
FROM calls GROUP BY stack;

-- The beginnings of each stack: depth 1 is the outermost function.
CREATE VIEW IF NOT EXISTS prefixes AS
SELECT stack, depth, arrayElement(functions, depth) AS name,
    arrayStringConcat(arraySlice(functions, 1, depth), ' > ') AS path
FROM stack_names ARRAY JOIN arrayEnumerate(functions) AS depth;

-- The rank of each process in its job; without one, its host and pid.
CREATE VIEW IF NOT EXISTS ranks AS
SELECT snapshot, if(label = '', concat(host, '/', toString(pid)),
    replaceRegexpOne(label, '^[^=]*=', '')) AS rank
FROM (SELECT snapshot, host, pid, arrayFirst(x -> match(x,
    '^(rank|SLURM_PROCID|OMPI_COMM_WORLD_RANK|PMIX_RANK|PMI_RANK|RANK)='), labels) AS label
    FROM snapshots);

-- The batches that the queries are about: the last one, and the one before.
CREATE VIEW IF NOT EXISTS this_batch AS
SELECT argMax(b, time_ns) AS batch FROM (SELECT batch AS b, time_ns FROM snapshots);

CREATE VIEW IF NOT EXISTS previous_batch AS
SELECT argMax(b, time_ns) AS batch FROM (SELECT batch AS b, time_ns FROM snapshots)
WHERE b NOT IN (SELECT batch FROM this_batch);
