-- Share of each cgroup in the weight of an event, in percent.
CREATE VIEW cgroup_share AS
WITH of_cgroup AS (
  SELECT recording_id, event, cgroup_id, SUM(weight) AS weight, COUNT(*) AS samples
  FROM sample
  GROUP BY recording_id, event, cgroup_id
)
SELECT s.recording_id, s.event, c.path, c.container, s.samples, s.weight,
  100.0 * s.weight / SUM(s.weight) OVER (PARTITION BY s.recording_id, s.event) AS percent
FROM of_cgroup s
LEFT JOIN cgroup c ON c.id = s.cgroup_id;
