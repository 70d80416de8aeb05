-- Share of each function in the weight of an event over all hosts, in percent, with the ends of its interval of 95 %.
--
-- The weight of a host is divided by its recorded time: hosts of other rates, and hosts that were recorded longer, add up.
-- The interval is that of reports: the scatter of the share between blocks of time (64 of each recording), Wilson's
-- formula, and room for lost samples. It is null where fewer than about three blocks have the weight.
CREATE VIEW fleet_share AS
WITH timed AS (
  SELECT id, COALESCE(host, '') AS host, first_ts, last_ts - first_ts + 1 AS dur,
    COALESCE(lost_records, 0) + COALESCE(lost_samples, 0) AS lost
  FROM recording
  WHERE last_ts > first_ts
),
of_recording AS (
  SELECT s.recording_id, s.event, t.host, t.dur, t.lost, SUM(s.weight) AS weight, SUM(s.samples) AS samples
  FROM callsite_weight s
  JOIN timed t ON t.id = s.recording_id
  GROUP BY s.recording_id, s.event, t.host, t.dur, t.lost
),
of_host AS (
  SELECT event, host, SUM(dur) AS dur FROM of_recording GROUP BY event, host
),
scale AS (
  SELECT r.recording_id, r.event, 1.0 / CAST(h.dur AS DOUBLE) AS factor
  FROM of_recording r
  JOIN of_host h ON h.event = r.event AND h.host = r.host
),
in_block AS (
  SELECT s.recording_id, s.event, s.callsite_id, s.weight,
    (s.ts - t.first_ts) * 64 - ((s.ts - t.first_ts) * 64) % t.dur AS block
  FROM sample s
  JOIN timed t ON t.id = s.recording_id
),
of_callsite AS (
  SELECT recording_id, event, callsite_id, block, SUM(weight) AS weight, COUNT(*) AS samples
  FROM in_block
  GROUP BY recording_id, event, callsite_id, block
),
of_block AS (
  SELECT w.recording_id, w.event, w.block, SUM(CAST(w.weight AS DOUBLE) * s.factor) AS weight, SUM(w.samples) AS samples
  FROM of_callsite w
  JOIN scale s ON s.recording_id = w.recording_id AND s.event = w.event
  GROUP BY w.recording_id, w.event, w.block
),
of_event AS (
  SELECT event, SUM(weight) AS weight, SUM(weight * weight) AS squares, CAST(SUM(samples) AS DOUBLE) AS samples
  FROM of_block
  GROUP BY event
  HAVING SUM(weight) > 0
),
lost AS (
  SELECT r.event, SUM(CAST(r.weight AS DOUBLE) * s.factor * r.lost / r.samples) AS weight
  FROM of_recording r
  JOIN scale s ON s.recording_id = r.recording_id AND s.event = r.event
  GROUP BY r.event
),
part AS (
  SELECT b.recording_id, b.event, b.block, b.weight,
    CASE WHEN b.weight < e.weight THEN e.weight / (e.weight - b.weight) ELSE 1.0 END AS factor,
    ROW_NUMBER() OVER (PARTITION BY b.event, b.recording_id ORDER BY b.block) AS place,
    COALESCE(LAG(b.weight) OVER (PARTITION BY b.event, b.recording_id ORDER BY b.block), 0.0)
      + COALESCE(LEAD(b.weight) OVER (PARTITION BY b.event, b.recording_id ORDER BY b.block), 0.0) AS around
  FROM of_block b
  JOIN of_event e ON e.event = b.event
),
of_all_parts AS (
  SELECT event, COUNT(*) AS parts, SUM(factor * weight * weight) AS squares,
    SUM(weight * around) / 2.0 AS neighbours
  FROM part
  GROUP BY event
),
in_part AS (
  SELECT w.recording_id, w.event, w.block, f.name, m.name AS mapping_name,
    SUM(CAST(w.weight AS DOUBLE) * s.factor) AS weight, SUM(w.samples) AS samples
  FROM of_callsite w
  JOIN scale s ON s.recording_id = w.recording_id AND s.event = w.event
  JOIN callsite c ON c.id = w.callsite_id
  JOIN frame f ON f.id = c.frame_id
  JOIN mapping m ON m.id = f.mapping
  GROUP BY w.recording_id, w.event, w.block, f.name, m.name
),
in_place AS (
  SELECT i.recording_id, i.event, i.name, i.mapping_name, i.samples, i.weight, p.place, i.weight * p.around AS around,
    p.factor * i.weight * i.weight AS squares, p.factor * i.weight * p.weight AS products
  FROM in_part i
  JOIN part p ON p.recording_id = i.recording_id AND p.event = i.event AND p.block = i.block
),
next_to AS (
  SELECT event, name, mapping_name, samples, weight, squares, products, around,
    CASE WHEN LAG(place) OVER (PARTITION BY recording_id, event, name, mapping_name ORDER BY place) = place - 1
      THEN weight * LAG(weight) OVER (PARTITION BY recording_id, event, name, mapping_name ORDER BY place)
      ELSE 0.0 END AS neighbours
  FROM in_place
),
of_function AS (
  SELECT event, name, mapping_name, SUM(samples) AS samples, SUM(weight) AS weight, SUM(squares) AS squares,
    SUM(products) AS products, SUM(around) AS around, SUM(neighbours) AS neighbours
  FROM next_to
  GROUP BY event, name, mapping_name
),
scatter AS (
  SELECT f.event, f.name, f.mapping_name, f.samples, f.weight / e.weight AS share, e.samples AS all_samples,
    e.weight * e.weight / e.squares - 1.0 AS freedom, l.weight / (e.weight + l.weight) AS lost,
    (f.squares - 2.0 * f.weight / e.weight * f.products + f.weight * f.weight / (e.weight * e.weight) * a.squares)
      / (e.weight * e.weight) AS variance,
    CASE WHEN a.parts >= 12 THEN (f.neighbours - f.weight / e.weight * f.around
      + f.weight * f.weight / (e.weight * e.weight) * a.neighbours) / (e.weight * e.weight) ELSE 0.0 END AS lasting
  FROM of_function f
  JOIN of_event e ON e.event = f.event
  JOIN of_all_parts a ON a.event = f.event
  JOIN lost l ON l.event = f.event
),
-- The scatter of a sum counts twice what lasts from one block into the next.
ratio AS (
  SELECT event, name, mapping_name, samples, share, all_samples, freedom, lost,
    CASE WHEN lasting <= 0.0 THEN variance WHEN lasting < variance THEN variance + 2.0 * lasting
      ELSE 3.0 * variance END AS variance
  FROM scatter
),
-- As many independent samples scatter as much; differences below that of rounding are none. The quantile is that of
-- Student's distribution: from two degrees of freedom on, the polynomial differs from it by less than 0.00001.
independent AS (
  SELECT event, name, mapping_name, samples, share, lost,
    CASE WHEN share * (1.0 - share) > 1e-12 AND variance > 1e-15 THEN share * (1.0 - share) / variance
      ELSE all_samples END AS n,
    CASE WHEN freedom >= 2.0 THEN 1.959959 + (2.373023 + (2.805156 + (2.700487 + (1.050884 + 1.652656
      / freedom) / freedom) / freedom) / freedom) / freedom END AS t
  FROM ratio
),
wilson AS (
  SELECT event, name, mapping_name, samples, share, lost, (share + t * t / (2.0 * n)) / (1.0 + t * t / n) AS middle,
    t / (1.0 + t * t / n) * sqrt(ABS(share * (1.0 - share) / n + t * t / (4.0 * n * n))) AS half
  FROM independent
),
ends AS (
  SELECT event, name, mapping_name, samples, share, lost,
    CASE WHEN middle - half < 0.0 THEN 0.0 WHEN middle - half > share THEN share ELSE middle - half END AS low,
    CASE WHEN middle + half > 1.0 THEN 1.0 WHEN middle + half < share THEN share ELSE middle + half END AS high
  FROM wilson
)
SELECT event, name, mapping_name, samples, 100.0 * share AS percent,
  CASE WHEN low IS NOT NULL THEN 100.0 * low * (1.0 - lost) END AS low_percent,
  CASE WHEN high IS NOT NULL THEN 100.0 * (high * (1.0 - lost) + lost) END AS high_percent
FROM ends;
