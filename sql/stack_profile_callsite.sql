-- Call sites under the names of Perfetto's table.
CREATE VIEW stack_profile_callsite AS
SELECT id, depth, parent_id, frame_id FROM callsite;
