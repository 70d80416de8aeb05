-- Frames under the names of Perfetto's table.
CREATE VIEW stack_profile_frame AS
SELECT id, name, mapping, rel_pc FROM frame;
