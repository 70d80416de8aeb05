-- How much did each host lose? A host without losses has a row with zeros.
WITH of_recording AS (
  SELECT recording_id, COUNT(*) AS stretches, SUM(dur) AS dur, SUM(records) AS records
  FROM loss
  GROUP BY recording_id
)
SELECT r.host, COUNT(*) AS recordings, SUM(r.samples) AS samples, SUM(r.lost_records) AS lost_records,
  SUM(r.lost_samples) AS lost_samples, SUM(r.truncated_bytes) AS truncated_bytes,
  SUM(COALESCE(l.stretches, 0)) AS stretches, SUM(COALESCE(l.dur, 0)) AS known_dur
FROM recording r
LEFT JOIN of_recording l ON l.recording_id = r.id
GROUP BY r.host;
