-- How long each thread was runnable before it ran: as `whit switches --run-queue`, certain delays alone.
CREATE VIEW scheduler_latency AS
WITH delay AS (
  SELECT utid, COUNT(*) AS delays, SUM(runnable_dur) AS total_dur, MAX(runnable_dur) AS max_dur
  FROM wait
  WHERE runnable_dur IS NOT NULL
  GROUP BY utid
)
SELECT d.utid, t.tid, t.name, d.delays, d.total_dur, 1.0 * d.total_dur / d.delays AS average_dur, d.max_dur
FROM delay d
JOIN thread t ON t.utid = d.utid;
