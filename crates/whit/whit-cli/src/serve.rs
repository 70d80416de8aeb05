//! `whit serve`, which becomes `whit-serve`: the page of a recording for a browser, over loopback.

use crate::heading;
use crate::input::RecordingArgs;
use crate::interface;
use crate::symbol_args::LoadArgs;
use anyhow::Result;
use std::net::{IpAddr, Ipv4Addr};
use whit_perfdata::reader::Recording;
use whit_profile::ReadOptions;

/// The program in the folder of this one.
const PROGRAM: &str = "whit-serve";

const EXAMPLES: &str = "\
Examples:
  whit serve                        # prints the address of the page
  whit serve big.data --open        # and opens the browser
  whit serve --firefox              # and the address in Firefox Profiler
  ssh -L 8080:127.0.0.1:8080 host whit serve --port 8080";

/// Arguments of `whit serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Listen on this port [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true, help_heading = heading::OUTPUT)]
    pub port: u16,
    /// Listen on this address; on others than loopback, the network sees all that is served
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), help_heading = heading::OUTPUT)]
    pub listen: IpAddr,
    /// Open the page in the browser, where there is a display
    #[arg(long, help_heading = heading::OUTPUT)]
    pub open: bool,
    /// Serve the profile for Firefox Profiler as well, and print the address that opens it there
    #[arg(long, help_heading = heading::OUTPUT)]
    pub firefox: bool,
    /// Print only the addresses
    #[arg(short, long, help_heading = heading::OUTPUT)]
    pub quiet: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

/// Becomes the server.
pub(crate) fn start(args: &ServeArgs) -> Result<u8> {
    interface::become_reader(PROGRAM, &args.load.symbols)
}

impl ServeArgs {
    /// Opens the recording.
    pub fn recording(&self) -> Result<Recording> {
        self.input.open()
    }

    /// How it is read.
    pub fn read_options(&self, recording: &Recording) -> Result<ReadOptions> {
        self.load.options(recording)
    }

    /// True where some CPUs are left out: context switches tell nothing then.
    pub fn chooses_cpus(&self) -> bool {
        self.load.chooses_cpus()
    }
}
