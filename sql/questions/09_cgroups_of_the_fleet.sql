-- Which cgroups use the fleet? Percentages are those of the event over all hosts.
WITH of_cgroup AS (
  SELECT s.event, s.path, s.container, COUNT(DISTINCT r.host) AS hosts, SUM(s.samples) AS samples, SUM(s.weight) AS weight
  FROM cgroup_share s
  JOIN recording r ON r.id = s.recording_id
  GROUP BY s.event, s.path, s.container
)
SELECT event, path, container, hosts, samples, weight,
  100.0 * weight / SUM(weight) OVER (PARTITION BY event) AS percent
FROM of_cgroup;
