-- Which threads ended the waits of which others, over all hosts? Threads of one name are one row.
SELECT t.name, w.kind, u.name AS waker_name, COUNT(*) AS waits, COUNT(DISTINCT r.host) AS hosts,
  SUM(CASE WHEN w.certain = 1 THEN w.dur ELSE 0 END) AS total_dur
FROM wait w
JOIN recording r ON r.id = w.recording_id
JOIN thread t ON t.utid = w.utid
JOIN thread u ON u.utid = w.waker_utid
WHERE w.begun_before = 0
GROUP BY t.name, w.kind, u.name;
