-- How much of an event did each host count in a second? Recordings of other lengths and rates compare so.
WITH of_recording AS (
  SELECT recording_id, event, SUM(samples) AS samples, SUM(weight) AS weight
  FROM callsite_weight
  GROUP BY recording_id, event
)
SELECT r.host, s.event, COUNT(*) AS recordings, SUM(s.samples) AS samples, SUM(s.weight) AS weight,
  SUM(r.last_ts - r.first_ts) AS dur,
  1000000000.0 * SUM(s.weight) / SUM(r.last_ts - r.first_ts) AS weight_a_second
FROM of_recording s
JOIN recording r ON r.id = s.recording_id
WHERE r.last_ts > r.first_ts
GROUP BY r.host, s.event;
