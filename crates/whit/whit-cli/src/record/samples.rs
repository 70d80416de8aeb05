//! Options of the fields of samples.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use crate::failure::usage;
use crate::heading;
use anyhow::{Context, Result};
use whit_capture::branch::BranchFilter;
use whit_capture::options::{ExtraFields, FieldPlan};
use whit_capture::registers;
use whit_types::Arch;

#[derive(Clone, Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct SampleArgs {
    /// Record the latest branches that the CPU took
    #[arg(short, long, help_heading = heading::CHAINS)]
    branch_any: bool,
    /// Record branches of these kinds: any, any_call, any_ret, ind_call, cond, call, stack, ..; in
    /// these modes: u, k, hv
    #[arg(short = 'j', long, value_name = "KIND,..", help_heading = heading::CHAINS)]
    branch_filter: Option<BranchFilter>,
    /// Record user-mode registers; '?' lists the names
    #[arg(long, value_name = "NAME,..", num_args = 0..=1, require_equals = true,
          default_missing_value = "", help_heading = heading::SAMPLES)]
    user_regs: Option<String>,
    /// Record the registers at the interrupt; '?' lists the names
    #[arg(short = 'I', long, value_name = "NAME,..", num_args = 0..=1, require_equals = true,
          default_missing_value = "", help_heading = heading::SAMPLES)]
    intr_regs: Option<String>,
    /// Record the data address of each sample, and mappings of data
    #[arg(short, long, help_heading = heading::SAMPLES)]
    data: bool,
    /// Record physical data addresses
    #[arg(long, help_heading = heading::SAMPLES)]
    phys_data: bool,
    /// Record the page sizes of data addresses
    #[arg(long, help_heading = heading::SAMPLES)]
    data_page_size: bool,
    /// Record the page sizes of code addresses
    #[arg(long, help_heading = heading::SAMPLES)]
    code_page_size: bool,
    /// Record the level of memory that served each access (part of -d), without addresses and mappings of data
    #[arg(long, help_heading = heading::SAMPLES)]
    sample_mem_info: bool,
    /// Record the weight (the latency of a memory access)
    #[arg(short = 'W', long, help_heading = heading::SAMPLES)]
    weight: bool,
    /// Record the flags of hardware transactions
    #[arg(long, help_heading = heading::SAMPLES)]
    transaction: bool,
    /// Record time stamps (always on)
    #[arg(short = 'T', long, help_heading = heading::SAMPLES)]
    timestamp: bool,
    /// Record the period in each sample
    #[arg(short = 'P', long, help_heading = heading::SAMPLES)]
    period: bool,
    /// Record the CPU in each sample
    #[arg(long, help_heading = heading::SAMPLES)]
    sample_cpu: bool,
    /// Record the event's id at the start of each sample
    #[arg(long, help_heading = heading::SAMPLES)]
    sample_identifier: bool,
    /// Record the times of the first and the last sample in the header (always on)
    #[arg(long, help_heading = heading::SAMPLES)]
    timestamp_boundary: bool,
    /// Record the raw data of tracepoints
    #[arg(short = 'R', long, help_heading = heading::SAMPLES)]
    raw_samples: bool,
}

impl SampleArgs {
    pub(super) fn plan(&self) -> Result<FieldPlan> {
        Ok(FieldPlan {
            branches: self.branch_filter.or(self.branch_any.then_some(BranchFilter::ANY)),
            user_registers: registers(self.user_regs.as_deref())?,
            interrupt_registers: registers(self.intr_regs.as_deref())?,
            data_addresses: self.data,
            periods: self.period,
            cpus: self.sample_cpu,
            raw: self.raw_samples,
            extra: self.extra_fields(),
        })
    }

    fn extra_fields(&self) -> ExtraFields {
        ExtraFields {
            physical_addresses: self.phys_data,
            data_page_sizes: self.data_page_size,
            code_page_sizes: self.code_page_size,
            data_sources: self.sample_mem_info,
            weights: self.weight,
            transactions: self.transaction,
            identifier: self.sample_identifier,
        }
    }

    /// Whether only the names of registers are asked for.
    pub(super) fn lists_registers(&self) -> bool {
        [&self.user_regs, &self.intr_regs].into_iter().any(|regs| regs.as_deref() == Some("?"))
    }
}

/// A mask from names; without names, every register.
fn registers(names: Option<&str>) -> Result<u64> {
    match names {
        None => Ok(0),
        Some("") => Ok(registers::all(arch()?)),
        Some(names) => registers::parse(arch()?, names).map_err(usage),
    }
}

/// The architecture of the registers.
pub(super) fn arch() -> Result<Arch> {
    Arch::native().context("registers of this architecture cannot be sampled")
}
