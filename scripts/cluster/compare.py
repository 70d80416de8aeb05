"""Compares answers with those of whit: names, texts and whole numbers exactly, fractions within 1e-9 of their size.

    compare.py EXPECTED.json FOUND.json

FOUND.json has the form of `ask.py`. EXPECTED.json has the rows of `whit query` for each question, with times beside them
or alone. Engines add and divide fractions in other orders and types (Spark in decimals of 14 digits behind the point),
so the last digits differ.
"""

import json
import pathlib
import sys

TOLERANCE = 1e-9
FRACTIONS = {"average_dur", "high_percent", "low_percent", "percent", "weight_a_second"}


def key(row):
    """An order that no fraction decides."""
    cells = {name: cell for name, cell in row.items() if name not in FRACTIONS}
    return json.dumps(cells, sort_keys=True)


def rows_of(answer):
    return answer["rows"] if isinstance(answer, dict) else answer


def equal(name, ours, theirs):
    if name in FRACTIONS and ours is not None and theirs is not None:
        return abs(ours - theirs) <= TOLERANCE * max(abs(ours), abs(theirs), 1)
    return type(ours) is type(theirs) and ours == theirs


def differences(expected, found):
    if len(expected) != len(found):
        yield f"{len(found)} rows, and whit has {len(expected)}"
    for ours, theirs in zip(sorted(expected, key=key), sorted(found, key=key)):
        if ours.keys() != theirs.keys() or not all(equal(name, ours[name], theirs[name]) for name in ours):
            yield f"{theirs}, and whit has {ours}"


def main():
    expected, found = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:3])
    wrong = 0
    if expected.keys() != found.keys():
        sys.exit(f"other questions: {sorted(expected.keys() ^ found.keys())}")
    for question, answer in expected.items():
        rows = rows_of(answer)
        for difference in list(differences(rows, found[question]["rows"]))[:3]:
            print(f"{question}: {difference}")
            wrong += 1
    if wrong:
        sys.exit(1)
    rows = sum(len(rows_of(answer)) for answer in expected.values())
    print(f"{len(expected)} answers are equal ({rows} rows)")


main()
