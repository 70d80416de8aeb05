//! Parca: it is asked for the sum of the windows that it has taken, as pprof.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::time::Duration;
use whit_push::Kind;
use whit_testing::check;
use whit_testing::wait::wait_until;
use whit_types::civil;

use super::{Running, free_port, now_s, program};
use crate::pprof::Pprof;
use crate::support::{Run, hasty};

/// Name, type and unit of samples, type and unit of periods; deltas have a length of time.
const TYPE: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";

struct Parca {
    port: u16,
    _running: Running,
    _folder: tempfile::TempDir,
}

impl Parca {
    /// The sum of a query between two times.
    fn merged(&self, query: &str, from_s: u64, to_s: u64) -> Option<Pprof> {
        let escaped = query.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
        let url = format!(
            "http://127.0.0.1:{}/api/profiles/query?mode=MODE_MERGE&reportType=REPORT_TYPE_PPROF\
             &merge.query={escaped}&merge.start={}&merge.end={}",
            self.port,
            rfc3339(from_s),
            rfc3339(to_s)
        );
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(10)))
            .http_status_as_error(false)
            .build()
            .into();
        let body = agent.get(&url).call().ok()?.into_body().read_to_vec().ok()?;
        let json: serde_json::Value = serde_json::from_slice(&body).ok()?;
        let pprof = STANDARD.decode(json["pprof"].as_str()?).ok()?;
        Some(Pprof::from_gzip(&pprof))
    }
}

fn rfc3339(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    let (hour, minute, second) = (unix_s / 3600 % 24, unix_s / 60 % 60, unix_s % 60);
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1)
}

#[test]
fn parca_has_the_sums_of_each_function() {
    check("parca_has_the_sums_of_each_function", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let config = "object_storage: {bucket: {type: FILESYSTEM, config: {directory: ./data}}}\n";
        std::fs::write(folder.path().join("parca.yaml"), config).expect("write a configuration");
        let port = free_port();
        let mut command = program("parca", "Parca")?;
        command.arg(format!("--http-address=127.0.0.1:{port}"));
        let running = Running::start(&mut command, folder.path());
        let parca = Parca { port, _running: running, _folder: folder };
        let mut settings = hasty(Kind::Parca, &format!("http://127.0.0.1:{port}"));
        settings.labels.insert("region".to_owned(), "eu".to_owned());
        let run = Run::start(&[("parca", settings)]);
        let now_s = now_s();
        run.push([now_s - 60, now_s - 50]);
        let done = run.wait("parca", "both are sent", |it| it.sent.windows == 2);
        assert_eq!(done.dropped.windows(), 0, "{done:?}");
        let query = format!("{TYPE}{{region=\"eu\"}}");
        let merged = || parca.merged(&query, now_s - 3600, now_s + 60);
        wait_until("Parca answers", || merged().is_some_and(|it| !it.sums(0).is_empty()));
        let doubled = |(name, (_, period)): (String, (u64, u64))| (name, 2 * period);
        let wanted = run.sums().into_iter().map(doubled).collect();
        assert_eq!(merged().expect("an answer").sums(0), wanted);
        let other = parca.merged(&format!("{TYPE}{{region=\"us\"}}"), now_s - 3600, now_s + 60);
        assert!(other.is_none_or(|it| it.sums(0).is_empty()), "labels tell windows apart");
        Ok(())
    });
}
