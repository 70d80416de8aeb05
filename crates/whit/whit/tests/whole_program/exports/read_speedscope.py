"""Sums by function of a speedscope file, which has to fit the schema that speedscope publishes."""
import json
import sys

import jsonschema

with open(sys.argv[2]) as file:
    schema = json.load(file)
with open(sys.argv[1]) as file:
    data = json.load(file)
jsonschema.validate(data, schema)
frames = [frame["name"] for frame in data["shared"]["frames"]]
events, cgroups = {}, {}
for profile in data["profiles"]:
    thread, _, event = profile["name"].rpartition(" ")
    sums = events.setdefault(event, {})
    if thread.endswith("]"):
        cgroup = thread[thread.index(") [") + 3:-1]
        sum_of = cgroups.setdefault(event, {}).setdefault(cgroup, [0, 0])
        sum_of[0] += len(profile["weights"])
        sum_of[1] += profile["endValue"]
    assert sum(profile["weights"]) == profile["endValue"]
    for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
        sum_of = sums.setdefault(frames[stack[-1]], [0, 0])
        sum_of[0] += 1
        sum_of[1] += weight
json.dump({"events": events, "cgroups": cgroups, "notes": {"whit.losses": " ".join(data["notes"])}}, sys.stdout)
