-- For how long did how many threads run at once on each host?
SELECT r.host, p.threads, SUM(p.dur) AS dur
FROM thread_level_parallelism p
JOIN recording r ON r.id = p.recording_id
GROUP BY r.host, p.threads;
