-- Weight and samples of each call site, itself alone.
CREATE VIEW callsite_weight AS
SELECT recording_id, event, callsite_id, SUM(weight) AS weight, COUNT(*) AS samples
FROM sample
GROUP BY recording_id, event, callsite_id;
