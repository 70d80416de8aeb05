#!/usr/bin/env bash
# Starts a Spark master and workers as processes on this machine, and runs a command with the master's address behind it.
#
#   spark.sh PYSPARK FOLDER WORKERS COMMAND...
#
# PYSPARK is the unpacked source package. Each worker has one core. FOLDER gets logs. All ends with the command.
set -euo pipefail
pyspark=$1 folder=$2 workers=$3
shift 3
export SPARK_HOME=$pyspark/deps PYTHONPATH=$pyspark
# Executors look for Scala in folders of a build where nobody names its version.
export SPARK_SCALA_VERSION=2.13
export SPARK_LOCAL_IP=127.0.0.1 SPARK_WORKER_DIR=$folder/work
# A master waits this long for a call of its workers.
SECONDS_MAX=60
started=()
stop() { [ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true; }
trap stop EXIT

# start LOG CLASS ARGUMENTS...: java itself is the process, so that its end is the end of all.
start() {
    local log=$1
    shift
    java -cp "$SPARK_HOME/jars/*" -Xmx512m "${opens[@]}" "$@" >"$log" 2>&1 </dev/null &
    started+=($!)
}

# Waits for a line in a log, and prints it.
line_of() {
    local begin=$SECONDS
    until grep -m 1 -- "$2" "$1"; do
        if [ $((SECONDS - begin)) -ge $SECONDS_MAX ]; then
            cat "$1" >&2
            return 1
        fi
        sleep 0.2
    done
}

# Spark reaches into Java's own modules.
opens=()
for package in java.lang java.lang.invoke java.io java.net java.nio java.util java.util.concurrent sun.nio.ch sun.security.action; do
    opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done
mkdir -p "$folder"
start "$folder/master.log" org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 0 --webui-port 0
master=$(line_of "$folder/master.log" 'Starting Spark master at' | sed 's/.*\(spark:[^ ]*\).*/\1/')
for ((worker = 1; worker <= workers; worker++)); do
    start "$folder/worker$worker.log" org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0 \
        --cores 1 --memory 1536m "$master"
    line_of "$folder/worker$worker.log" 'Successfully registered' >/dev/null
done
"$@" "$master"
