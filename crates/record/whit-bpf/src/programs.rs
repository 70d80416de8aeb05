//! Functions of the BPF programs that are loaded, by the names that the kernel's list of symbols has.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Write;

use libbpf_rs::btf::{Btf, BtfType, TypeId};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo, Tag};

/// Programs that are looked at. Their descriptions take time, and a machine may have any number.
const PROGRAMS_MAX: usize = 4096;

/// A function of a loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFunction {
    /// Its address in the kernel.
    pub start: u64,
    /// Bytes of its code.
    pub len_bytes: u32,
    /// `bpf_prog_<tag>_<name>`, as the kernel names it.
    pub name: String,
}

/// The functions of all loaded programs. Programs that are unloaded meanwhile, and all where the kernel refuses to list
/// them (it takes `CAP_SYS_ADMIN`), are missing, and so are those of programs beyond 4096.
pub fn loaded_functions() -> Vec<ProgramFunction> {
    let options = ProgInfoQueryOptions::default()
        .include_func_info(true)
        .include_jited_func_lens(true)
        .include_prog_tags(true)
        .include_jited_ksyms(true);
    let mut types = HashMap::new();
    let programs = ProgInfoIter::with_query_opts(options).take(PROGRAMS_MAX);
    programs.flat_map(|program| functions(&program, &mut types)).collect()
}

/// The programs of one file share their types.
type Types = HashMap<u32, Option<Btf<'static>>>;

fn functions(program: &ProgramInfo, types: &mut Types) -> Vec<ProgramFunction> {
    let types = match program.func_info.is_empty() {
        true => None,
        false => types
            .entry(program.btf_id)
            .or_insert_with(|| Btf::from_prog_id(program.id).ok())
            .as_ref(),
    };
    let own_name = program.name.to_string_lossy();
    let parts = program.jited_ksyms.iter().zip(&program.jited_func_lens).zip(&program.prog_tags);
    let function =
        |(number, ((start, len_bytes), tag)): (usize, ((&*const c_void, &u32), &Tag))| {
            let start = start.addr() as u64;
            let by_types = program.func_info.get(number).and_then(|function| {
                let function: BtfType<'_> = types?.type_by_id(TypeId::from(function.type_id))?;
                Some(function.name()?.to_string_lossy())
            });
            // The kernel names the first function by the whole program.
            let tag = if number == 0 { &program.tag } else { tag };
            let name = kernel_name(tag, by_types.as_deref().unwrap_or(&own_name));
            // The addresses are zero where the kernel hides them.
            (start != 0).then_some(ProgramFunction { start, len_bytes: *len_bytes, name })
        };
    parts.enumerate().filter_map(function).collect()
}

/// `bpf_get_prog_name` of the kernel.
fn kernel_name(tag: &Tag, name: &str) -> String {
    let mut all = "bpf_prog_".to_owned();
    for byte in tag.0 {
        let _ = write!(all, "{byte:02x}");
    }
    if !name.is_empty() {
        all.push('_');
        all.push_str(name);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel() {
        let tag = Tag([0x6d, 0xee, 0xf7, 0x35, 0x7e, 0x7b, 0x45, 0x30]);
        assert_eq!(kernel_name(&tag, "sd_fw_egress"), "bpf_prog_6deef7357e7b4530_sd_fw_egress");
        assert_eq!(kernel_name(&tag, ""), "bpf_prog_6deef7357e7b4530");
    }
}
