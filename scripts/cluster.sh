#!/usr/bin/env bash
# Asks the questions of sql/questions over three hosts in Spark (a master and one or two workers), DuckDB, DataFusion and
# Ballista, compares each answer with that of `whit query`, and prints a table of times. docs/cluster.md explains it.
#
#   ROUNDS=N   size of the recordings (default 200)
#   WHIT=PATH  a whit that is built already
#   RUNS=N     runs of each question; the table has the first and the best (default 3)
set -euo pipefail
. "$(dirname "$0")/env.sh"

OUT=$ROOT/target/cluster
PYTHON=$OUT/python/bin/python
PYSPARK=$OUT/pyspark
RUNS=${RUNS:-3}
WHIT=${WHIT:-target/release/whit}
ENGINES_DONE=()
absent=()

# A package that cannot be installed leaves out its engine, by name.
python_packages() {
    [ -x "$PYTHON" ] || quietly "$OUT/venv.log" python3 -m venv "$OUT/python" || fail "python3 makes no venv: install python3-venv"
    local package
    for package in duckdb==2.0.1 datafusion==55.0.0 py4j==0.10.9.9; do
        "$PYTHON" -c "import ${package%==*}" 2>/dev/null && continue
        say "setup: pip install $package"
        quietly "$OUT/pip.log" "$PYTHON" -m pip install -q --only-binary :all: "$package" ||
            warn "cannot install $package from PyPI"
    done
}

# PyPI has Spark as sources: unpacked they run, while a wheel of them takes long to build.
spark() {
    [ -d "$PYSPARK/deps/jars" ] && return
    say "setup: pip download pyspark (460 MB)"
    # pip asks the package for its name, and that takes these.
    quietly "$OUT/spark.log" "$PYTHON" -m pip install -q setuptools wheel || return 1
    quietly "$OUT/spark.log" "$PYTHON" -m pip download -q --no-deps --no-build-isolation -d "$OUT/download" pyspark==4.3.0 ||
        return 1
    rm -rf "$PYSPARK.part"
    mkdir -p "$PYSPARK.part"
    tar -xzf "$OUT"/download/pyspark-*.tar.gz -C "$PYSPARK.part" --strip-components=1
    rm -rf "$OUT/download"
    mv "$PYSPARK.part" "$PYSPARK"
}

dataset() {
    if [ "$WHIT" = target/release/whit ]; then
        say "building whit (release)"
        cargo_build --release --locked -p whit -p whit-query
    fi
    make -s -C bench/workloads mutexes pingpong shares
    rm -rf "$OUT/hosts"
    mkdir -p "$OUT/hosts"
    scripts/cluster/hosts.sh "$WHIT" target/workloads "$OUT/hosts" "${ROUNDS:-200}"
    "$PYTHON" scripts/cluster/whit.py "$WHIT" "$OUT/hosts/lake" --runs "$RUNS" >"$OUT/whit.json"
}

# answered NAME COMMAND...: asks, and compares.
answered() {
    local name=$1
    shift
    say "asking $name"
    if ! "$@" >"$OUT/$name.json" 2>"$OUT/$name.log"; then
        tail -n 20 "$OUT/$name.log" >&2
        fail "$name cannot answer ($OUT/$name.log)"
    fi
    "$PYTHON" scripts/cluster/compare.py "$OUT/whit.json" "$OUT/$name.json" || fail "$name has other answers"
    ENGINES_DONE+=("$OUT/$name.json")
}

ask() { "$PYTHON" scripts/cluster/ask.py "$@"; }

mkdir -p "$OUT"
python_packages
dataset
LAKE=$OUT/hosts/lake
ENGINES_DONE+=("$OUT/whit.json")
for engine in duckdb datafusion; do
    if "$PYTHON" -c "import $engine" 2>/dev/null; then
        answered "$engine" ask "$engine" "$LAKE" --runs "$RUNS"
    else
        absent+=("$engine: PyPI's package cannot be installed here")
    fi
done
if ! have java; then
    absent+=("spark: there is no Java here")
elif ! "$PYTHON" -c "import py4j" 2>/dev/null || ! spark; then
    absent+=("spark: PyPI's pyspark cannot be installed here")
else
    for workers in 1 2; do
        answered "spark-$workers" scripts/cluster/spark.sh "$PYSPARK" "$OUT/spark-$workers" $workers \
            "$PYTHON" "$ROOT/scripts/cluster/ask.py" spark "$LAKE" --runs "$RUNS" --master
    done
fi
# A build of its sources takes an hour of CPU time, so a wheel alone counts.
if "$PYTHON" -m pip download -q --only-binary :all: --no-deps -d "$OUT/ballista" ballista==54.1.0 >"$OUT/ballista.log" 2>&1; then
    fail "PyPI has a wheel of Ballista now: scripts/cluster/ask.py has to ask it, too"
fi
absent+=("ballista: PyPI has no wheel of it for this machine ($OUT/ballista.log)")
"$PYTHON" scripts/cluster/times.py "${ENGINES_DONE[@]}"
printf 'not asked: %s\n' "${absent[@]}"
