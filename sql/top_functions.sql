-- Functions with self and total weights. A function that calls itself counts once in a total.
CREATE VIEW top_functions AS
WITH RECURSIVE up (recording_id, event, weight, own, site) AS (
  SELECT recording_id, event, weight, weight AS own, callsite_id
  FROM callsite_weight
  WHERE callsite_id IS NOT NULL
  UNION ALL
  SELECT up.recording_id, up.event, up.weight, 0, c.parent_id
  FROM up JOIN callsite c ON c.id = up.site
  WHERE c.parent_id IS NOT NULL
),
at_site AS (
  SELECT event, site, SUM(own) AS self_weight, SUM(weight) AS total_weight
  FROM up
  GROUP BY recording_id, event, site
)
SELECT s.event, f.name, m.name AS mapping_name,
  SUM(s.self_weight) AS self_weight, SUM(s.total_weight * c.is_outermost) AS total_weight
FROM at_site s
JOIN callsite c ON c.id = s.site
JOIN frame f ON f.id = c.frame_id
JOIN mapping m ON m.id = f.mapping
GROUP BY s.event, f.name, m.name;
