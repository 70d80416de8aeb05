-- How long did threads of each cgroup wait for a CPU, at worst? A thread is in each cgroup in which it was sampled.
WITH member AS (
  SELECT DISTINCT utid, cgroup_id FROM sample WHERE cgroup_id IS NOT NULL
)
SELECT r.host, g.path, g.container, COUNT(*) AS threads, SUM(l.delays) AS delays, SUM(l.total_dur) AS total_dur,
  MAX(l.max_dur) AS max_dur
FROM member m
JOIN cgroup g ON g.id = m.cgroup_id
JOIN recording r ON r.id = g.recording_id
JOIN scheduler_latency l ON l.utid = m.utid
GROUP BY r.host, g.path, g.container;
