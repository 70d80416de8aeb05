-- The call tree with self and total weights. Each weight is added to all callers of its call site.
CREATE VIEW summary_tree AS
WITH RECURSIVE up (recording_id, event, weight, own, site) AS (
  SELECT recording_id, event, weight, weight AS own, callsite_id
  FROM callsite_weight
  WHERE callsite_id IS NOT NULL
  UNION ALL
  SELECT up.recording_id, up.event, up.weight, 0, c.parent_id
  FROM up JOIN callsite c ON c.id = up.site
  WHERE c.parent_id IS NOT NULL
),
total AS (
  SELECT recording_id, event, site, SUM(own) AS self_weight, SUM(weight) AS total_weight
  FROM up
  GROUP BY recording_id, event, site
)
SELECT t.recording_id, t.event, t.site AS id, c.parent_id, c.depth, f.name, m.name AS mapping_name,
  t.self_weight, t.total_weight
FROM total t
JOIN callsite c ON c.id = t.site
JOIN frame f ON f.id = c.frame_id
JOIN mapping m ON m.id = f.mapping;
