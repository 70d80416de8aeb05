-- When was each host busy? Time is that of the host's clock, in steps of a second; no host waits for another's clock.
WITH moment AS (
  SELECT r.host, s.event, s.ts + r.clock_offset_ns AS time_ns, s.weight
  FROM sample s
  JOIN recording r ON r.id = s.recording_id
)
SELECT host, event, time_ns - time_ns % 1000000000 AS begin_ns, COUNT(*) AS samples, SUM(weight) AS weight
FROM moment
GROUP BY host, event, time_ns - time_ns % 1000000000;
