//! The comparisons in which programs read the same recordings: `whit bench report`, `brief`, `export`, `query` and
//! `why`.

use std::path::Path;

use clap::Args;
use whit_types::ByteSize;

use crate::args::{WORKLOADS, heading};
use crate::bench::{Bench, Say};
use crate::error::Error;
use crate::hand_overs;
use crate::peer::{HOTTEST, PeerKind};
use crate::report::{Comparison, Question, Readers};
use crate::samples::recording;

// The sizes of the published tables.
const SIZES: [ByteSize; 3] = [ByteSize(50 << 20), ByteSize(500 << 20), ByteSize(2 << 30)];
const SMALL: [ByteSize; 1] = [ByteSize(50 << 20)];
const LARGE: [ByteSize; 1] = [ByteSize(1 << 30)];

const REPORT_EXAMPLES: &str = "\
Examples:
  whit bench report --sizes 50M --rounds 3
  whit bench report --file my.data --peers whit,perf-report";

#[derive(Args, Debug)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct Report {
    /// Peers to compare, separated by commas; on recordings of context switches also whit-switches and
    /// perf-sched-timehist; for a single function also whit-annotate and perf-annotate
    #[arg(long, value_name = "PEERS", value_delimiter = ',', default_values_t = PeerKind::READERS,
          hide_possible_values = true, help_heading = heading::COMPARED)]
    peers: Vec<PeerKind>,

    /// Function that whit-annotate and perf-annotate show
    #[arg(long, value_name = "NAME", default_value = HOTTEST, help_heading = heading::COMPARED)]
    function: String,

    #[command(flatten)]
    readers: Readers,
}

impl Bench for Report {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        let (peers, function) = (&self.peers[..], &self.function[..]);
        let question = Question { sizes: &SIZES, peers, function, counts_printed: false };
        self.readers.compare(question, say)
    }
}

const BRIEF_EXAMPLES: &str = "\
Examples:
  whit bench brief --sizes 50M --rounds 3
  whit bench brief --file my.data";

#[derive(Args, Debug)]
#[command(after_help = BRIEF_EXAMPLES)]
pub(crate) struct Brief {
    #[command(flatten)]
    readers: Readers,
}

impl Bench for Brief {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        let (sizes, peers) = (&SMALL[..], &PeerKind::BRIEF[..]);
        let question = Question { sizes, peers, function: "", counts_printed: true };
        self.readers.compare(question, say)
    }
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  whit bench export --sizes 50M --rounds 3
  whit bench export --file my.data";

#[derive(Args, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct Export {
    #[command(flatten)]
    readers: Readers,
}

impl Bench for Export {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        let (sizes, peers) = (&LARGE[..], &PeerKind::EXPORTS[..]);
        let question = Question { sizes, peers, function: HOTTEST, counts_printed: false };
        self.readers.compare(question, say)
    }
}

const QUERY_EXAMPLES: &str = "\
Examples:
  whit bench query --sizes 50M --rounds 3
  whit bench query --samples 10000000            # without stack dumps
  whit bench query --file my.data";

#[derive(Args, Debug)]
#[command(after_help = QUERY_EXAMPLES)]
pub(crate) struct Query {
    #[command(flatten)]
    readers: Readers,

    /// Samples of recordings without stack dumps, separated by commas; they are
    /// written, not recorded
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..), help_heading = heading::COMPARED)]
    samples: Vec<u64>,
}

impl Bench for Query {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        let mut readers = self.readers.clone();
        for samples in &self.samples {
            let file = recording(&readers.recordings.cache, *samples, say)?;
            readers.recordings.files.push(file);
        }
        let (sizes, peers) = (&LARGE[..], &PeerKind::QUERIES[..]);
        let question = Question { sizes, peers, function: HOTTEST, counts_printed: false };
        readers.compare(question, say)
    }
}

const WHY_EXAMPLES: &str = "\
Examples:
  whit bench why                                 # 10 million switches, which are recorded first
  whit bench why --file my.data --rounds 3";

#[derive(Args, Debug)]
#[command(after_help = WHY_EXAMPLES)]
pub(crate) struct Why {
    #[command(flatten)]
    readers: Readers,

    /// Context switches, approximately, of recordings of two threads that wake each other, separated by commas
    /// [default: 10000000; none with --file]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..), help_heading = heading::COMPARED)]
    switches: Vec<u64>,
}

impl Bench for Why {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        let mut readers = self.readers.clone();
        let recordings = &mut readers.recordings;
        let wanted = match self.switches.is_empty() && recordings.files.is_empty() {
            true => &[10_000_000][..],
            false => &self.switches,
        };
        let workload = Path::new(WORKLOADS).join("pingpong");
        for switches in wanted {
            let (cache, whit) = (&recordings.cache, &recordings.whit);
            let file = hand_overs::recording(cache, whit, &workload, *switches, say)?;
            recordings.files.push(file);
        }
        let question =
            Question { sizes: &[], peers: &PeerKind::WHY, function: "", counts_printed: false };
        readers.compare(question, say)
    }
}
