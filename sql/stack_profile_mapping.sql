-- Binaries under the names of Perfetto's table.
CREATE VIEW stack_profile_mapping AS
SELECT id, build_id, name FROM mapping;
