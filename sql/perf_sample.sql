-- Samples under the names of Perfetto's table.
CREATE VIEW perf_sample AS
SELECT ts, utid, cpu, cpu_mode, callsite_id, unwind_end AS unwind_error, recording_id AS perf_session_id
FROM sample;
