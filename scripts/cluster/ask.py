"""Asks an engine the questions of `sql/questions` over a dataset; the views are those of `sql`, unchanged.

    ask.py duckdb|datafusion|spark DATASET [--sql FOLDER] [--views] [--master URL] [--runs N]

Prints a JSON object: each question has its rows, and the seconds that each run of it took. With --views, each view is
a question, too.
"""

import argparse
import json
import pathlib
import sys
import time
from decimal import Decimal

# Each stands before those that use it.
FIRST_VIEWS = ["callsite_weight"]
# The folder of a partition whose key is NULL.
HIVE_NONE = "__HIVE_DEFAULT_PARTITION__"


class DuckDb:
    def __init__(self, tables, _master):
        import duckdb

        self.database = duckdb.connect()
        for table in tables:
            files = str(table / "**" / "*.parquet").replace("'", "''")
            options = "hive_partitioning = true, hive_types_autocast = false"
            self.run(f"CREATE VIEW {table.name} AS SELECT * FROM read_parquet('{files}', {options})")

    def run(self, sql):
        self.database.execute(sql)

    def rows(self, sql):
        result = self.database.execute(sql)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row)) for row in result.fetchall()]


class DataFusion:
    def __init__(self, tables, _master):
        import pyarrow
        from datafusion import SessionContext

        self.context = SessionContext()
        folders = [("host", pyarrow.string()), ("date", pyarrow.string())]
        for table in tables:
            files = f"{table.name}_files"
            self.context.register_parquet(files, str(table), table_partition_cols=folders)
            # DataFusion takes Hive's name for "none" as it stands.
            names = self.context.sql(f"SELECT * FROM {files}").schema().names
            columns = (f"NULLIF({name}, '{HIVE_NONE}') AS {name}" if name in ("host", "date") else f'"{name}"' for name in names)
            self.run(f"CREATE VIEW {table.name} AS SELECT {', '.join(columns)} FROM {files}")

    def run(self, sql):
        self.context.sql(sql).collect()

    def rows(self, sql):
        return self.context.sql(sql).to_pylist()


class Spark:
    def __init__(self, tables, master):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master).appName("whit").config("spark.ui.enabled", "false")
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Hosts and days are texts, as everywhere else.
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            # Call chains are deeper, and have more rows, than Spark lets recursive queries be.
            "spark.sql.cteRecursionLevelLimit": "100000",
            "spark.sql.cteRecursionRowLimit": "-1",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(pathlib.Path.cwd() / "warehouse"),
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        for table in tables:
            self.run(f"CREATE VIEW {table.name} AS SELECT * FROM parquet.`{table}`")

    def run(self, sql):
        self.session.sql(sql)

    def rows(self, sql):
        return [row.asDict() for row in self.session.sql(sql).collect()]


ENGINES = {"duckdb": DuckDb, "datafusion": DataFusion, "spark": Spark}


def statement(path):
    return path.read_text().rstrip().removesuffix(";")


def views(folder):
    paths = sorted(folder.glob("*.sql"))
    return sorted(paths, key=lambda path: path.stem not in FIRST_VIEWS)


def number(value):
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value)} in an answer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("dataset", type=pathlib.Path)
    parser.add_argument("--sql", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "sql")
    parser.add_argument("--views", action="store_true")
    parser.add_argument("--master", default="local[1]")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    tables = [path for path in sorted(options.dataset.resolve().iterdir()) if not path.name.startswith("_")]
    engine = ENGINES[options.engine](tables, options.master)
    for view in views(options.sql):
        engine.run(statement(view))
    questions = {path.stem: statement(path) for path in sorted((options.sql / "questions").glob("*.sql"))}
    if options.views:
        questions |= {view.stem: f"SELECT * FROM {view.stem}" for view in views(options.sql)}
    answers = {}
    for question, sql in questions.items():
        seconds = []
        for _ in range(options.runs):
            begin = time.monotonic()
            try:
                rows = engine.rows(sql)
            except Exception as error:
                sys.exit(f"{options.engine} cannot answer {question}: {error}")
            seconds.append(time.monotonic() - begin)
        print(question, *(f"{run:.2f}" for run in seconds), file=sys.stderr, flush=True)
        answers[question] = {"rows": rows, "seconds": seconds}
    json.dump(answers, sys.stdout, default=number)


main()
