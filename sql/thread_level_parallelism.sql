-- For how long how many threads of a recording ran at once.
CREATE VIEW thread_level_parallelism AS
WITH change AS (
  SELECT recording_id, ts, 1 AS step FROM sched
  UNION ALL
  SELECT recording_id, ts + dur AS ts, -1 AS step FROM sched
),
moment AS (
  SELECT recording_id, ts, SUM(step) AS step FROM change GROUP BY recording_id, ts
),
level AS (
  SELECT recording_id, ts, SUM(step) OVER (PARTITION BY recording_id ORDER BY ts) AS threads,
    LEAD(ts) OVER (PARTITION BY recording_id ORDER BY ts) - ts AS dur
  FROM moment
)
SELECT recording_id, threads, SUM(dur) AS dur
FROM level
WHERE dur IS NOT NULL
GROUP BY recording_id, threads;
