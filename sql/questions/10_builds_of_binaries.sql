-- Which builds of each binary does the fleet run, on how many hosts, and with which weight?
SELECT w.event, m.name, m.build_id, m.kind, COUNT(DISTINCT r.host) AS hosts, SUM(w.samples) AS samples,
  SUM(w.weight) AS self_weight
FROM callsite_weight w
JOIN callsite c ON c.id = w.callsite_id
JOIN frame f ON f.id = c.frame_id
JOIN mapping m ON m.id = f.mapping
JOIN recording r ON r.id = w.recording_id
GROUP BY w.event, m.name, m.build_id, m.kind;
