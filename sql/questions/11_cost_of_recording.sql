-- How much did recording cost each host, and which whit recorded there? One row for each figure of the ledger.
SELECT r.host, r.version, l.key, l.unit, COUNT(l.value) AS measured, SUM(l.value) AS value
FROM ledger l
JOIN recording r ON r.id = l.recording_id
GROUP BY r.host, r.version, l.key, l.unit;
