-- Waits of each thread by kind and state; times of certain waits alone.
CREATE VIEW waits_by_kind AS
WITH of_thread AS (
  SELECT utid, kind, state, COUNT(*) AS waits, SUM(CASE WHEN certain = 1 THEN dur ELSE 0 END) AS total_dur,
    MAX(CASE WHEN certain = 1 THEN dur ELSE 0 END) AS max_dur
  FROM wait
  WHERE begun_before = 0
  GROUP BY utid, kind, state
)
SELECT w.utid, t.tid, t.name, w.kind, w.state, w.waits, w.total_dur, w.max_dur
FROM of_thread w
JOIN thread t ON t.utid = w.utid;
