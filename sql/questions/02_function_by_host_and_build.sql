-- Which share of its host does each function have, in each build of its binary?
WITH of_function AS (
  SELECT r.host, w.event, f.name, m.name AS mapping_name, m.build_id, SUM(w.samples) AS samples,
    SUM(w.weight) AS self_weight
  FROM callsite_weight w
  JOIN recording r ON r.id = w.recording_id
  JOIN callsite c ON c.id = w.callsite_id
  JOIN frame f ON f.id = c.frame_id
  JOIN mapping m ON m.id = f.mapping
  GROUP BY r.host, w.event, f.name, m.name, m.build_id
)
SELECT host, event, name, mapping_name, build_id, samples, self_weight,
  100.0 * self_weight / SUM(self_weight) OVER (PARTITION BY host, event) AS percent
FROM of_function;
