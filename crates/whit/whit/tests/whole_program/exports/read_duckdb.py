"""Reads tables that `whit query` wrote, makes the views of `sql/*.sql` over them, and prints the rows of each.

    read_duckdb.py FOLDER VIEW...

The folder has `schema.json` (columns of each table with their types), `TABLE.json` (rows) and `VIEW.sql`.
"""

import json
import pathlib
import sys

import duckdb

folder = pathlib.Path(sys.argv[1])
views = sys.argv[2:]
database = duckdb.connect()
for table, columns in json.loads((folder / "schema.json").read_text()).items():
    types = {"INTEGER": "BIGINT", "TEXT": "VARCHAR"}
    definition = ", ".join(f'{column["name"]} {types[column["type"]]}' for column in columns)
    database.execute(f"CREATE TABLE {table} ({definition})")
    rows = [[row[column["name"]] for column in columns] for row in json.loads((folder / f"{table}.json").read_text())]
    if rows:
        places = ", ".join("?" for _ in columns)
        database.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
for view in views:
    database.execute((folder / f"{view}.sql").read_text())
answers = {}
for view in views:
    result = database.execute(f"SELECT * FROM {view}")
    names = [column[0] for column in result.description]
    answers[view] = [dict(zip(names, row)) for row in result.fetchall()]
json.dump(answers, sys.stdout, default=float)
