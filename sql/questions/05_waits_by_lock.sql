-- Which locks made threads wait? A lock is a futex of a process; times are those of certain waits.
SELECT r.host, p.pid, p.name, w.futex, COUNT(*) AS waits, COUNT(DISTINCT w.utid) AS threads,
  SUM(CASE WHEN w.certain = 1 THEN w.dur ELSE 0 END) AS total_dur,
  MAX(CASE WHEN w.certain = 1 THEN w.dur ELSE 0 END) AS max_dur
FROM wait w
JOIN thread t ON t.utid = w.utid
JOIN process p ON p.upid = t.upid
JOIN recording r ON r.id = w.recording_id
WHERE w.futex IS NOT NULL AND w.begun_before = 0
GROUP BY r.host, p.upid, p.pid, p.name, w.futex;
