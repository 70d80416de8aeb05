"""Prints the seconds of each question and engine, from files of `ask.py`: the first run, and the best.

    times.py NAME.json...
"""

import json
import pathlib
import sys

engines = {pathlib.Path(path).stem: json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:]}
WIDTH = 18
names = list(engines)
print(f"{'first / best, in s':<30}" + "".join(f"{name:>{WIDTH}}" for name in names))
first, best = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)


def cell(a, b):
    return f"{f'{a:.2f} / {b:.2f}':>{WIDTH}}"


for question in next(iter(engines.values())):
    line = f"{question:<30}"
    for name in names:
        seconds = engines[name][question]["seconds"]
        first[name] += seconds[0]
        best[name] += min(seconds)
        line += cell(seconds[0], min(seconds))
    print(line)
print(f"{'all':<30}" + "".join(cell(first[name], best[name]) for name in names))
