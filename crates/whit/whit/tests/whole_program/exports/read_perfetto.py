"""Sums by function and the scheduling of a Perfetto trace, read with its published protocol (PyPI: perfetto)."""
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

trace = perfetto_trace_pb2.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
tables, names, counts, events, notes = {}, {}, {}, {}, {}
running, on_cpu, losses = {}, {}, 0
switches = []
tracks, slices, cgroups, waits, requests = {}, {}, {}, {}, {}


def slice_of(time, event):
    """Slices of a track follow each other: begin, end, begin, end."""
    if event.type == event.TYPE_SLICE_BEGIN:
        assert event.track_uuid not in slices, event
        key = [annotation.string_value for annotation in event.debug_annotations if annotation.name == "key"]
        slices[event.track_uuid] = (time, event.name, key)
        for annotation in event.debug_annotations if not key else []:
            name, _, what = annotation.name.rpartition(" ")
            sum_of = cgroups.setdefault(name, {}).setdefault(event.name, [0, 0])
            sum_of[["samples", "period"].index(what)] += annotation.uint_value
    if event.type == event.TYPE_SLICE_END:
        begin, name, key = slices.pop(event.track_uuid)
        if key:
            assert name == tracks[event.track_uuid] + " " + key[0], name
            requests.setdefault(tracks[event.track_uuid], []).append((time - begin, key[0]))
        state, _, wait = name.partition(": ")
        if state == "Waiting":
            waits[wait] = waits.get(wait, 0) + time - begin


def sample(packet, stack, name, weight):
    of = tables[packet.trusted_packet_sequence_id]
    frame = of["frames"][of["callstacks"][stack].frame_ids[-1]]
    function = of["function_names"][frame.function_name_id].str.decode()
    assert of["mappings"][frame.mapping_id].path_string_ids
    sum_of = events.setdefault(name, {}).setdefault(function, [0, 0])
    sum_of[0] += 1
    sum_of[1] += weight


for packet in trace.packet:
    sequence = packet.trusted_packet_sequence_id
    if packet.sequence_flags & 1:
        tables[sequence] = {}
    for field, values in packet.interned_data.ListFields():
        known = tables[sequence].setdefault(field.name, {})
        known.update((value.iid, value) for value in values)
    if packet.HasField("trace_packet_defaults"):
        names[sequence] = packet.trace_packet_defaults.perf_sample_defaults.timebase.name
    if packet.HasField("stack_sample"):
        this = packet.stack_sample
        descriptor = tables[sequence]["stack_sample_counter_descriptors"][this.primary_descriptor_iid]
        sample(packet, this.callstack_iid, descriptor.name, this.primary_weight)
    if packet.HasField("perf_sample"):
        this = packet.perf_sample
        key = (sequence, this.cpu)
        weight = this.timebase_count - counts.get(key, 0)
        counts[key] = this.timebase_count
        sample(packet, this.callstack_iid, names[sequence], weight)
    if packet.HasField("track_descriptor"):
        this = packet.track_descriptor
        assert this.uuid not in tracks and this.parent_uuid in {0, *tracks}, this
        tracks[this.uuid] = this.name
    if packet.HasField("track_event"):
        assert packet.track_event.track_uuid in tracks
        slice_of(packet.timestamp, packet.track_event)
        for annotation in packet.track_event.debug_annotations:
            if annotation.HasField("string_value"):
                notes[annotation.name] = annotation.string_value
        losses += packet.track_event.name == "Lost records"
    bundle = packet.ftrace_events
    switches += [(event.timestamp, bundle.cpu, event.sched_switch) for event in bundle.event if event.HasField("sched_switch")]
    wakes = [event for event in bundle.event if event.HasField("sched_waking")]
    assert all(event.sched_waking.pid > 0 for event in wakes)

last = {}
for time, cpu, switch in sorted(switches, key=lambda entry: entry[0]):
    before = last.get(cpu)
    if before is not None:
        # Each CPU goes on with the thread that it switched to.
        assert before[1] == switch.prev_pid, (before, switch)
        on_cpu[before[1]] = on_cpu.get(before[1], 0) + time - before[0]
    last[cpu] = (time, switch.next_pid)
# Runs that go on to the end of the recording have no end.
open_runs = {str(pid): time for time, pid in last.values() if pid > 0}
assert not slices, "a slice without an end"
json.dump({"events": events, "cgroups": cgroups, "waits": waits, "requests": requests, "notes": notes, "losses": losses, "on_cpu": on_cpu, "open": open_runs}, sys.stdout)
