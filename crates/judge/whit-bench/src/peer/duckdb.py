"""Asks DuckDB a question over a dataset: DATASET QUESTION VIEW..., the latter statements of SQL."""

import pathlib
import sys

import duckdb

dataset, question, *views = sys.argv[1:]
database = duckdb.connect()
for table in pathlib.Path(dataset).iterdir():
    if not table.name.startswith("_"):
        files = str(table / "**" / "*.parquet").replace("'", "''")
        options = "hive_partitioning = true, hive_types_autocast = false"
        database.execute(f"CREATE VIEW {table.name} AS SELECT * FROM read_parquet('{files}', {options})")
for view in views:
    database.execute(view)
for row in database.execute(question).fetchall():
    print(*row)
