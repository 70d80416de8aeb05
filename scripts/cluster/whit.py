"""Asks `whit query --dataset` the questions of `sql/questions`; prints the form of `ask.py`.

    whit.py WHIT DATASET [--runs N]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("whit")
parser.add_argument("dataset")
parser.add_argument("--runs", type=int, default=1)
options = parser.parse_args()
answers = {}
sql = pathlib.Path(__file__).resolve().parents[2] / "sql"
for question in sorted((sql / "questions").glob("*.sql")):
    command = [options.whit, "query", "--dataset", options.dataset, "--json", "-f", str(question)]
    seconds = []
    for _ in range(options.runs):
        begin = time.monotonic()
        result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        seconds.append(time.monotonic() - begin)
    answers[question.stem] = {"rows": json.loads(result.stdout), "seconds": seconds}
json.dump(answers, sys.stdout)
