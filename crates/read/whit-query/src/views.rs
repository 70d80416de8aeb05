//! The views of `sql/*.sql`.

/// A view: its name, its meaning, and the statement that makes it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Name in SQL.
    pub name: &'static str,
    /// Its rows, in a sentence without its end.
    pub meaning: &'static str,
    /// `CREATE VIEW`, as every engine runs it.
    pub sql: &'static str,
}

impl View {
    /// `CREATE VIEW`, as whit runs it: `sample_sum` adds samples up faster than SQLite, and other engines lack it.
    pub(crate) fn own_sql(&self) -> &'static str {
        match self.name {
            "callsite_weight" => CALLSITE_WEIGHT,
            "cgroup_share" => CGROUP_SHARE,
            _ => self.sql,
        }
    }
}

const CALLSITE_WEIGHT: &str = "CREATE VIEW callsite_weight AS
    SELECT recording_id, event, callsite_id, SUM(weight) AS weight, SUM(samples) AS samples
    FROM sample_sum
    GROUP BY recording_id, event, callsite_id";

const CGROUP_SHARE: &str = "CREATE VIEW cgroup_share AS
    WITH of_cgroup AS (
      SELECT recording_id, event, cgroup_id, SUM(weight) AS weight, SUM(samples) AS samples
      FROM sample_sum
      GROUP BY recording_id, event, cgroup_id
    )
    SELECT s.recording_id, s.event, c.path, c.container, s.samples, s.weight,
      100.0 * s.weight / SUM(s.weight) OVER (PARTITION BY s.recording_id, s.event) AS percent
    FROM of_cgroup s
    LEFT JOIN cgroup c ON c.id = s.cgroup_id";

macro_rules! views {
    ($(($name:literal, $meaning:literal)),+ $(,)?) => {
        [$(View {
            name: $name,
            meaning: $meaning,
            sql: include_str!(concat!("../../../../sql/", $name, ".sql")),
        }),+]
    };
}

/// All views, in an order in which each finds those that it uses.
pub const VIEWS: [View; 12] = views![
    ("perf_sample", "Samples under the names of Perfetto"),
    ("stack_profile_mapping", "Binaries under the names of Perfetto"),
    ("stack_profile_frame", "Frames under the names of Perfetto"),
    ("stack_profile_callsite", "Call sites under the names of Perfetto"),
    ("callsite_weight", "Weight and samples of each call site, itself alone"),
    ("summary_tree", "The call tree with self and total weights"),
    ("top_functions", "Functions with self and total weights, for each event"),
    (
        "fleet_share",
        "Share of each function in the weight of an event over all hosts, with its interval"
    ),
    ("scheduler_latency", "How long each thread was runnable before it ran"),
    ("thread_level_parallelism", "For how long how many threads ran at once"),
    ("cgroup_share", "Share of each cgroup in the weight of an event"),
    ("waits_by_kind", "Waits of each thread by kind and state"),
];
