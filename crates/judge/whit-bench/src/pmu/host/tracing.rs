//! A trace instance of the kernel, of our own: others' traces are not touched.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::nmi::{Handlers, overruns, parse};
use crate::error::{self, Error};

const NO_TRACEPOINT: &str = "cannot trace nmi:nmi_handler: it is not in /sys/kernel/tracing/events; become root, mount \
                             tracefs there (`mount -t tracefs tracefs /sys/kernel/tracing`), or use a kernel with event \
                             tracing";
/// Where tracefs is mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Room of each CPU for handlers: about 200,000 of them.
const BUFFER_KB: &str = "16384";

/// A running trace of `nmi:nmi_handler`. It ends with the value.
pub(super) struct Instance {
    path: PathBuf,
}

impl Instance {
    pub(super) fn start() -> Result<Instance, Error> {
        let has_event = |root: &&&str| Path::new(root).join("events/nmi/nmi_handler").is_dir();
        let root = TRACEFS.iter().find(has_event).context(NO_TRACEPOINT)?;
        let path = Path::new(root).join(format!("instances/whit-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(error::file("create", &path))?;
        let instance = Instance { path };
        instance.write("buffer_size_kb", BUFFER_KB)?;
        instance.write("events/nmi/nmi_handler/enable", "1")?;
        Ok(instance)
    }

    pub(super) fn stop(self) -> Result<Handlers, Error> {
        self.write("tracing_on", "0")?;
        let trace = self.read(Path::new("trace"))?;
        let cpus = self.path.join("per_cpu");
        let mut lost = 0;
        for cpu in fs::read_dir(&cpus).map_err(error::file("read", &cpus))? {
            let cpu = cpu.map_err(error::file("read", &cpus))?;
            lost += overruns(&self.read(&cpu.path().join("stats"))?);
        }
        Ok(Handlers { lost, ..parse(&trace) })
    }

    fn write(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        fs::write(&path, value).map_err(error::file("write", &path))
    }

    fn read(&self, name: &Path) -> Result<String, Error> {
        let path = self.path.join(name);
        fs::read_to_string(&path).map_err(error::file("read", &path))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An instance that stays costs memory, not correctness; there is nobody left to tell.
        let _ = fs::remove_dir(&self.path);
    }
}
