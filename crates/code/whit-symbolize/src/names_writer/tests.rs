use std::path::PathBuf;

use proptest::prelude::*;
use whit_types::{Avma, BuildId, FileOffset, Pid, Svma, TimestampNs};

use super::*;
use crate::companion::DebugDirs;
use crate::config::SymbolizerConfig;
use crate::dso_spec::DsoSpec;
use crate::embedded::EmbeddedNames;
use crate::jit_places::{JitPlace, JitPlaces};
use crate::reason::Reason;
use crate::symbolizer::Symbolizer;

const PROGRAM: &str = "../../../tests/recordings/golden/root/opt/whit-golden/spin";
const BURN: Svma = Svma(0x40_00f0);

fn key(path: &str) -> BinaryKey {
    let build_id = BuildId::new(&[1, 2, 3]);
    let file = Some(FileId { device: (8, 1), inode: u64::MAX });
    BinaryKey { kind: DsoKind::Elf, path: Arc::from(path), build_id, pid: None, file }
}

fn noting() -> Symbolizer {
    let config = SymbolizerConfig::new(DebugDirs::none());
    Symbolizer::new(SymbolizerConfig { notes: true, ..config })
}

/// The names of the golden program: those of some addresses.
fn written() -> Vec<u8> {
    let symbols = noting().open(&DsoSpec::new(DsoKind::Elf, PROGRAM.into()));
    for at in 0..8 {
        let _ = symbols.resolve(Svma(BURN.0 + at));
    }
    let _ = (symbols.resolve(Svma(0x10)), symbols.code_at(BURN, 16));
    let mut writer = NamesWriter::new();
    writer.add(&key("/opt/spin"), &symbols);
    let gone = noting().open(&DsoSpec::new(DsoKind::Elf, "/nowhere".into()));
    writer.add(&key("/nowhere"), &gone);
    writer.add_line(&Arc::from("/src/spin.c"), 7, "burn();");
    writer.add_line(&Arc::from("/src/spin.c"), 3, "");
    writer.finish()
}

/// A binary that is not at hand, with the names that a recording carries.
fn own(bytes: &[u8], path: &str) -> Arc<DsoSymbols> {
    let names = Arc::new(EmbeddedNames::from_bytes(bytes).unwrap());
    let embedded = names.find(&key(path));
    assert!(embedded.is_some());
    let config = SymbolizerConfig::new(DebugDirs::none());
    let symbolizer = Symbolizer::new(SymbolizerConfig { embedded: Some(names), ..config });
    let spec = DsoSpec::new(DsoKind::Elf, PathBuf::from("/not/here"));
    symbolizer.open(&DsoSpec { embedded, ..spec })
}

#[test]
fn own_names_answer_as_the_binary_does() {
    let bytes = written();
    let (binary, own) =
        (noting().open(&DsoSpec::new(DsoKind::Elf, PROGRAM.into())), own(&bytes, "/opt/spin"));
    for address in [BURN, Svma(BURN.0 + 7), Svma(0x10)] {
        assert_eq!(own.resolve(address), binary.resolve(address), "{address:?}");
        assert_eq!(own.resolve_plainly(address), binary.resolve_plainly(address));
    }
    assert!(own.resolve(BURN).function.is_some());
    assert_eq!(own.function_range(BURN), binary.function_range(BURN));
    assert_eq!(
        own.code_at(BURN, 16).map(|code| code.to_vec()),
        binary.code_at(BURN, 16).map(|code| code.to_vec())
    );
    assert_eq!(
        own.code_at(Svma(BURN.0 + 4), 4).map(|code| code.to_vec()),
        binary.code_at(Svma(BURN.0 + 4), 4).map(|code| code.to_vec())
    );
    assert_eq!((own.segments(), own.base_svma()), (binary.segments(), binary.base_svma()));
    assert_eq!(own.instruction_set(), binary.instruction_set());
    for offset in [0, 0xf0, 0x1000] {
        assert_eq!(own.svma_of(FileOffset(offset)), binary.svma_of(FileOffset(offset)));
        let bias =
            |symbols: &DsoSymbols| symbols.bias_of_mapping(Avma(0x7000), FileOffset(offset), 4096);
        assert_eq!(bias(&own), bias(&binary));
    }
}

#[test]
fn a_question_without_a_noted_answer_has_the_function_alone_or_none() {
    let own = own(&written(), "/opt/spin");
    let range = own.function_range(BURN).unwrap();
    let last = Svma(range.end.0 - 1);
    assert_eq!(own.resolve(last).function.unwrap().start, range.start);
    assert_eq!(own.resolve(Svma(u64::MAX)), Resolution::absent(Reason::OutsideSymbols));
    assert!(own.code_at(Svma(BURN.0 + 16), 1).is_none());
}

#[test]
fn the_reason_is_that_of_the_machine_that_wrote_the_names() {
    let own = own(&written(), "/nowhere");
    let reason = own.reason().unwrap();
    assert!(reason.is_unopened());
    assert!(reason.to_string().starts_with("/nowhere: no such file"), "{reason}");
}

#[test]
fn an_equal_binary_is_known_by_all_parts_of_its_key() {
    let names = EmbeddedNames::from_bytes(&written()).unwrap();
    assert_eq!((names.len(), names.is_empty()), (2, false));
    let known = key("/opt/spin");
    let others = [
        BinaryKey { kind: DsoKind::JitDump, ..known.clone() },
        BinaryKey { build_id: None, ..known.clone() },
        BinaryKey { pid: Some(Pid(1)), ..known.clone() },
        BinaryKey { file: None, ..known.clone() },
        key("/opt/spi"),
    ];
    assert!(others.iter().all(|other| names.find(other).is_none()));
}

#[test]
fn source_lines_have_their_texts() {
    let names = EmbeddedNames::from_bytes(&written()).unwrap();
    let line = |file: &str, line| names.line(&Arc::from(file), line).map(|text| text.to_string());
    assert_eq!(line("/src/spin.c", 7).as_deref(), Some("burn();"));
    assert_eq!(line("/src/spin.c", 3).as_deref(), Some(""));
    assert_eq!((line("/src/spin.c", 4), line("/src/other.c", 7)), (None, None));
}

#[test]
fn places_of_compiled_code_are_those_of_the_time() {
    let mut places = JitPlaces::default();
    let place =
        |from, offset| JitPlace { from: TimestampNs(from), start: 0x1_fff0, size: 0x40, offset };
    places.push(place(10, 100));
    places.push(place(20, 200));
    let at =
        |address, time| places.locate(Avma(address), Some(TimestampNs(time))).ok().map(|at| at.0);
    assert_eq!((at(0x1_fff1, 9), at(0x1_fff1, 19), at(0x2_0001, 20)), (None, Some(101), Some(217)));
    assert_eq!(at(0x2_0030, 20), None);
}

proptest! {
    #[test]
    fn damage_is_survived(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = written();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(2 * bytes.len()));
        if let Some(names) = EmbeddedNames::from_bytes(&bytes) {
            for binary in (0..).map_while(|number| names.binary(number)) {
                for address in [0, BURN.0, u64::MAX] {
                    let at = Svma(address);
                    let _ = (names.resolve(binary, at), binary.function_range(at));
                    let _ = (binary.unnamed_function(at), binary.code_at(at, address));
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = EmbeddedNames::from_bytes(&bytes);
    }
}
