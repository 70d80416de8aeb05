//! Files of others that are cut while whit reads them: any user can do that to the administrator's recorder.

use crate::support::tools::{command, record, text, whit};
use crate::support::{check, probe};
use whit_testing::wait::Load;

/// Maps a copy of `argv[1]` as code, cuts the copy after a while, and keeps the mapping for longer; again and again. The
/// whiles differ, so that some cut lies within the reading of the file.
const CUTTER: &str = r#"
import mmap, os, shutil, sys, time
for number in range(1 << 30):
    path = f"{sys.argv[2]}/cut-{number}.so"
    shutil.copy(sys.argv[1], path)
    with open(path, "r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        time.sleep(number % 8 * 0.002)
        os.ftruncate(file.fileno(), 4096)
        time.sleep(0.05)
        mapping.close()
    os.unlink(path)
"#;
/// The recorder died of the first cuts within a second.
const SECONDS: &str = "3";

#[test]
fn recorders_survive_programs_that_cut_their_binaries() {
    check("recorders_survive_programs_that_cut_their_binaries", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        probe::program("python3")?;
        let place = tempfile::tempdir().expect("make a directory");
        let own = std::env::current_exe().expect("know this program");
        for engine in ["bpf", "ring"] {
            let output = place.path().join("recording.data");
            let mut cutter = command("python3");
            let _cutter = Load::start(cutter.args(["-c", CUTTER]).arg(&own).arg(place.path()));
            let mut recorder = whit();
            recorder
                .args(["record", "-q", "-a", "-g", "-F", "99"])
                .arg(format!("--engine={engine}"));
            record(recorder.arg("-o").arg(&output).args(["--", "sleep", SECONDS]))?;
            // The files are cut while they are read for names, too.
            let report = text(whit().args(["report", "--stdio", "-i"]).arg(&output));
            assert!(report.contains("# Samples: "), "{engine}: {report}");
        }
        Ok(())
    });
}
