"""Sums by function of OTLP profiles, read with the published protocol (PyPI: opentelemetry-proto)."""
import json
import sys

from opentelemetry.proto.profiles.v1development import profiles_pb2

data = profiles_pb2.ProfilesData()
with open(sys.argv[1], "rb") as file:
    data.ParseFromString(file.read())
tables = data.dictionary
text = tables.string_table
assert text[0] == "" and not tables.stack_table[0].location_indices
events = {}
for profile in data.resource_profiles[0].scope_profiles[0].profiles:
    sums = events.setdefault(text[profile.sample_type.type_strindex], {})
    for sample in profile.samples:
        assert len(sample.values) == len(sample.timestamps_unix_nano)
        stack = tables.stack_table[sample.stack_index].location_indices
        line = tables.location_table[stack[0]].lines[0]
        name = text[tables.function_table[line.function_index].name_strindex]
        sum_of = sums.setdefault(name, [0, 0])
        sum_of[0] += len(sample.values)
        sum_of[1] += sum(sample.values)
    keys = {text[tables.attribute_table[at].key_strindex] for sample in profile.samples for at in sample.attribute_indices}
    assert {"process.pid", "thread.id", "thread.name"} <= keys, keys
notes = {pair.key: pair.value.string_value for pair in data.resource_profiles[0].resource.attributes}
json.dump({"events": events, "notes": notes}, sys.stdout)
