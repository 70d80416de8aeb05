-- Which functions cost the fleet most? A sample's weight is its period, so hosts with other rates add up.
SELECT event, name, mapping_name, self_weight, total_weight
FROM top_functions
ORDER BY self_weight DESC, total_weight DESC, event, name, mapping_name
LIMIT 20;
