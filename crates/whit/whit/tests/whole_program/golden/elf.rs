//! The smallest ELF files that have functions, symbols and unwind information: of machines for which
//! there is no compiler here, and small enough to be kept.

use crate::golden::encode::{Bytes, bytes};

/// Where the code stands in the file, and below the address that the file is loaded at.
pub(crate) const TEXT: u64 = 0x200;
/// End of the code.
const TEXT_END: u64 = 0x600;
/// Where the unwind information stands.
const EH_FRAME: u64 = TEXT_END;

/// `EM_*`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    I386 = 3,
    X86_64 = 62,
    Aarch64 = 183,
}

/// A function: name, start from [`TEXT`], size, and its call frame instructions.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) unwind: &'static [u8],
}

/// A position-independent file.
pub(crate) struct Elf {
    pub(crate) machine: Machine,
    pub(crate) functions: Vec<Function>,
}

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    entry: u64,
}

impl Elf {
    fn is_64(&self) -> bool {
        self.machine != Machine::I386
    }

    /// An address-sized number.
    fn word(&self, b: &mut Bytes, value: u64) {
        if self.is_64() {
            b.u64(value);
        } else {
            b.u32(value as u32);
        }
    }

    pub(crate) fn file(&self) -> Vec<u8> {
        let eh_frame = self.eh_frame();
        let (symbols, strings) = self.symbols();
        let symbols_at = EH_FRAME + eh_frame.len() as u64;
        let strings_at = symbols_at + symbols.len() as u64;
        let (entry, align) = if self.is_64() { (24, 8) } else { (16, 4) };
        let section = |name, kind, flags, address, offset, size| Section {
            name,
            kind,
            flags,
            address,
            offset,
            size,
            link: 0,
            info: 0,
            entry: 0,
        };
        let symtab = section(".symtab", 2, 0, 0, symbols_at, symbols.len() as u64);
        let mut sections = vec![
            section("", 0, 0, 0, 0, 0),
            section(".text", 1, 6, TEXT, TEXT, TEXT_END - TEXT),
            section(".eh_frame", 1, 2, EH_FRAME, EH_FRAME, eh_frame.len() as u64),
            Section { link: 4, info: 1, entry, ..symtab },
            section(".strtab", 3, 0, 0, strings_at, strings.len() as u64),
        ];
        let names_at = strings_at + strings.len() as u64;
        let mut names = Bytes::default();
        let mut name_offsets = Vec::new();
        sections.push(section(".shstrtab", 3, 0, 0, names_at, 0));
        for section in &sections {
            name_offsets.push(names.0.len() as u32);
            names.c_str(section.name, 1);
        }
        let last = sections.len() - 1;
        sections[last].size = names.0.len() as u64;
        let headers_at = (names_at + names.0.len() as u64).next_multiple_of(align);
        bytes(|b| {
            self.header(b, headers_at, sections.len() as u16);
            b.0.resize(TEXT as usize, 0);
            // Code that is never run.
            b.0.resize(TEXT_END as usize, 0x90);
            b.raw(&eh_frame).raw(&symbols).raw(&strings).raw(&names.0);
            b.0.resize(headers_at as usize, 0);
            for (section, name) in sections.iter().zip(name_offsets) {
                b.u32(name).u32(section.kind);
                for value in [section.flags, section.address, section.offset, section.size] {
                    self.word(b, value);
                }
                b.u32(section.link).u32(section.info);
                self.word(b, 8);
                self.word(b, section.entry);
            }
        })
    }

    /// ELF header and one PT_LOAD from the start of the file to the end of the unwind information.
    fn header(&self, b: &mut Bytes, sections_at: u64, sections: u16) {
        let (class, header_size, segment_size, section_size) =
            if self.is_64() { (2, 64, 56, 64) } else { (1, 52, 32, 40) };
        b.raw(b"\x7fELF").u8(class).raw(&[1, 1]).raw(&[0; 9]);
        b.u16(3).u16(self.machine as u16).u32(1);
        for value in [TEXT, u64::from(header_size), sections_at] {
            self.word(b, value);
        }
        b.u32(0).u16(header_size).u16(segment_size).u16(1);
        b.u16(section_size).u16(sections).u16(sections - 1);
        let len = EH_FRAME + self.eh_frame().len() as u64;
        if self.is_64() {
            b.u32(1).u32(5).words(&[0, 0, 0, len, len, 0x1000]);
        } else {
            b.u32(1);
            [0, 0, 0, len as u32, len as u32, 5, 0x1000].into_iter().for_each(|value| {
                b.u32(value);
            });
        }
    }

    fn symbols(&self) -> (Vec<u8>, Vec<u8>) {
        let mut strings = Bytes::default();
        strings.u8(0);
        let size = if self.is_64() { 24 } else { 16 };
        let mut table = Bytes(vec![0; size]);
        for function in &self.functions {
            let name = strings.0.len() as u32;
            strings.c_str(function.name, 1);
            let address = TEXT + function.start;
            // STB_GLOBAL, STT_FUNC, in section 1.
            if self.is_64() {
                table.u32(name).u8(0x12).u8(0).u16(1).u64(address).u64(function.size);
            } else {
                table.u32(name).u32(address as u32).u32(function.size as u32);
                table.u8(0x12).u8(0).u16(1);
            }
        }
        (table.0, strings.0)
    }

    /// One CIE and an FDE for each function (Linux Standard Base, `.eh_frame`).
    fn eh_frame(&self) -> Vec<u8> {
        let (code_align, return_register, initial): (u8, u8, &[u8]) = match self.machine {
            // DW_CFA_def_cfa sp 0
            Machine::Aarch64 => (4, 30, &[0x0c, 31, 0]),
            // DW_CFA_def_cfa rsp 8, DW_CFA_offset rip 1
            Machine::X86_64 => (1, 16, &[0x0c, 7, 8, 0x90, 1]),
            Machine::I386 => (1, 8, &[0x0c, 4, 4, 0x88, 1]),
        };
        let data_align = if self.is_64() { 0x78 } else { 0x7c };
        let entry = |content: Vec<u8>| {
            let len = (content.len() + 4).next_multiple_of(8) - 4;
            bytes(|b| {
                b.u32(len as u32).raw(&content);
                // DW_CFA_nop
                b.0.resize(len + 4, 0);
            })
        };
        let mut out = entry(bytes(|b| {
            // Version 1, augmentation zR: pointers are relative and have four bytes.
            b.u32(0).u8(1).c_str("zR", 1).u8(code_align).u8(data_align).u8(return_register);
            b.u8(1).u8(0x1b).raw(initial);
        }));
        for function in &self.functions {
            let at = EH_FRAME + out.len() as u64;
            out.extend(entry(bytes(|b| {
                b.u32((at + 4 - EH_FRAME) as u32);
                let from_here = (TEXT + function.start) as i64 - (at + 8) as i64;
                b.i32(from_here as i32).u32(function.size as u32).u8(0).raw(function.unwind);
            })));
        }
        out.extend([0; 4]);
        out
    }
}
