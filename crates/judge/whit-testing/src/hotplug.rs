//! CPUs that come and go.

use crate::Skip;
use std::fs;

/// A CPU that is offline until this is dropped.
#[derive(Debug)]
pub struct Offline(String);

impl Offline {
    /// Takes a CPU offline.
    ///
    /// # Errors
    /// The kernel refuses it, as on machines without CPU hotplug.
    pub fn take(cpu: u32) -> Result<Offline, Skip> {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        let taken = fs::write(&file, "0");
        taken.map_err(|error| Skip(format!("CPU {cpu} cannot be taken offline: {error}")))?;
        Ok(Offline(file))
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "1");
    }
}
