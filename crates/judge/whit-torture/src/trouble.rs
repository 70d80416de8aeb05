//! Ways to make a recorder late.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Stops at random moments are this long at most, and as far apart.
const STOP_MAX_MS: u64 = 60;
/// A recorder that is stopped once is stopped for so long. Rings of 64 KiB fill meanwhile: losses are certain.
const STOPPED: Duration = Duration::from_millis(150);
/// `chrt` is asked again where a thread of the recorder ended while it went through them.
const CHRT_ATTEMPTS: usize = 100;

/// A reason why a recorder is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// SIGSTOP once, while the load runs.
    StoppedOnce,
    /// SIGSTOP and SIGCONT at random moments for as long as the load runs.
    StoppedAtRandom,
    /// It runs only where nobody else wants to, beside programs that always want to.
    Starved,
}

impl Trouble {
    /// Makes the recorder late for as long as the load runs. The load begins with `release`.
    pub(crate) fn befall(
        self,
        recorder: &Child,
        random: &mut fastrand::Rng,
        release: impl FnOnce(),
        is_over: &dyn Fn() -> bool,
    ) -> Result<()> {
        match self {
            Trouble::StoppedOnce => {
                signal(recorder, "STOP")?;
                release();
                std::thread::sleep(STOPPED);
                signal(recorder, "CONT")
            }
            Trouble::StoppedAtRandom => {
                release();
                while !is_over() {
                    signal(recorder, "STOP")?;
                    std::thread::sleep(Duration::from_millis(random.u64(1..STOP_MAX_MS)));
                    signal(recorder, "CONT")?;
                    std::thread::sleep(Duration::from_millis(random.u64(1..STOP_MAX_MS)));
                }
                Ok(())
            }
            Trouble::Starved => {
                let _burners = Burners::start()?;
                schedule(recorder, "--idle")?;
                release();
                while !is_over() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                schedule(recorder, "--other")
            }
        }
    }
}

/// Sends a signal to the recorder.
pub(crate) fn signal(child: &Child, name: &str) -> Result<()> {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status()?;
    ensure!(status.success(), "cannot send SIG{name} to the recorder");
    Ok(())
}

fn schedule(recorder: &Child, policy: &str) -> Result<()> {
    let pid = recorder.id().to_string();
    for _ in 0..CHRT_ATTEMPTS {
        let mut chrt = Command::new("chrt");
        chrt.args(["--all-tasks", policy, "--pid", "0", &pid]).stderr(Stdio::null());
        if chrt.status().context("cannot run chrt")?.success() {
            return Ok(());
        }
    }
    anyhow::bail!("chrt cannot give the recorder {policy}")
}

/// Programs that always want to run, two for each CPU.
struct Burners(Vec<Child>);

impl Burners {
    fn start() -> Result<Burners> {
        let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
        let mut burners = Burners(Vec::new());
        for _ in 0..2 * cpus {
            let burner = Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
            burners.0.push(burner.context("cannot run sh")?);
        }
        Ok(burners)
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            let _ = burner.kill();
            let _ = burner.wait();
        }
    }
}
