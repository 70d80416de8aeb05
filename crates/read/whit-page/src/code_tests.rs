//! Code on the page: bounded, and with the weights of the profile.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use whit_annotate::Code;
use whit_profile::model::*;
use whit_profile::{CodeBytes, NoCode, SourceLine, SourceOf};
use whit_types::{InstructionSet, Pid, Svma, Tid};

use super::*;

/// Functions begin at multiples of a MiB; the last has no code.
struct Made {
    sizes: Vec<u64>,
}

impl Made {
    fn number(address: Svma) -> usize {
        (address.0 >> 20) as usize
    }
}

impl Code for Made {
    fn function_at(&self, _: DsoId, address: Svma) -> Option<Range<Svma>> {
        let start = address.0 >> 20 << 20;
        Some(Svma(start)..Svma(start + self.sizes[Made::number(address)]))
    }

    fn name_at(&self, _: DsoId, _: Svma) -> Option<(Arc<str>, u64)> {
        None
    }

    fn bytes(&self, _: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode> {
        if Made::number(range.start) + 1 == self.sizes.len() {
            return Err(NoCode::NotInFile);
        }
        let bytes = vec![0x90; (range.end.0 - range.start.0) as usize];
        Ok(CodeBytes { bytes, instruction_set: InstructionSet::X86_64 })
    }

    fn source_of(&self, _: DsoId, address: Svma) -> SourceOf {
        let line = SourceLine { file: "a.c".into(), line: 1 + (address.0 & 0xff) as u32 };
        SourceOf { line: Some(line), inlined: Vec::new() }
    }
}

/// A function for each list; its samples stand at one instruction after the other.
fn profile(functions: &[&[u64]]) -> Profile {
    let mut profile = Profile {
        events: vec![EventInfo { name: "cycles".into(), ..EventInfo::default() }],
        comms: vec!["a".into()],
        threads: vec![ThreadInfo { pid: Pid(1), tid: Tid(1), comm: CommId(0) }],
        dsos: vec![DsoInfo {
            path: "/a".into(),
            short_name: "a".into(),
            build_id: None,
            kind: DsoKind::Elf,
        }],
        ..Profile::default()
    };
    for (number, samples) in functions.iter().enumerate() {
        let name = format!("f{number}").into();
        profile.functions.push(FunctionInfo { name, dso: DsoId(0), known: true });
        for (at, samples) in samples.iter().enumerate() {
            let address = Svma(((number as u64) << 20) + at as u64);
            let function = FunctionId(number as u32);
            let frame = Frame { function, address, source: None, inlined: false, kernel: false };
            let id = profile.frames.len() as u32;
            profile.frames.push(frame);
            profile.nodes.push(CallNode { parent: NodeId::NONE, frame: FrameId(id) });
            let (samples, period) = (*samples, 10 * samples);
            profile.rows.push(SampleRow {
                event: EventId(0),
                thread: ThreadId(0),
                comm: CommId(0),
                facets: FacetsId(0),
                node: NodeId(id),
                samples,
                period,
            });
            profile.events[0].samples += samples;
            profile.events[0].period += period;
        }
    }
    profile
}

fn code_of(profile: &Profile, sizes: &[u64]) -> Value {
    let made = Made { sizes: sizes.to_vec() };
    let mut text = |line: &SourceLine| Some(format!("</script> line {}", line.line));
    let hot = HotCode::new(profile, &made, &mut text);
    let content = Content { code: Some(&hot), ..Content::default() };
    let mut out = Vec::new();
    write_content(profile, &content, &HtmlOptions::default(), &mut out).expect("a page is written");
    let page = String::from_utf8(out).expect("a page is UTF-8");
    assert!(!page.contains("</script> line"), "texts of lines are escaped");
    let start = "<script type=\"application/json\" id=\"profile\">";
    let rest = page.split_once(start).expect("the page has a data block").1;
    let data: Value =
        serde_json::from_str(rest.split_once("</script").expect("the block ends").0).expect("JSON");
    data["code"].clone()
}

fn sum(weights: &Value) -> u64 {
    let each = weights.as_array().expect("a list").iter();
    each.map(|weight| weight[2].as_u64().expect("samples")).sum()
}

#[test]
fn instructions_and_lines_add_up_to_the_function() {
    let code = code_of(&profile(&[&[30, 0, 12], &[5, 6], &[2]]), &[16, 300, 8]);
    let functions = code["functions"].as_array().expect("functions");
    assert_eq!(functions.len(), 3);
    for (function, samples) in functions.iter().zip([42, 11]) {
        assert_eq!(function["weights"][0][1], samples);
        assert_eq!(
            (sum(&function["rowWeights"]), sum(&function["lineWeights"])),
            (samples, samples)
        );
        assert_eq!(function["problem"], Value::Null);
    }
    assert_eq!(functions[0]["texts"].as_array().map(Vec::len), Some(16));
    assert_eq!(functions[0]["lines"][0][2], "</script> line 1");
    let without = &functions[2];
    assert!(without["problem"].as_str().expect("a reason").contains("no code at this address"));
    assert_eq!((&without["offsets"][0], sum(&without["rowWeights"])), (&Value::from(0), 2));
}

#[test]
fn functions_beyond_the_bounds_are_left_out_and_counted() {
    let large = MAX_CODE_FUNCTION_BYTES + 1;
    let code = code_of(&profile(&[&[50], &[40], &[1]]), &[large, 8, 8]);
    assert_eq!(code["tooLarge"], serde_json::json!([[0, large]]));
    assert_eq!(code["functions"].as_array().map(Vec::len), Some(2));

    // A cold function stays below the least share.
    let code = code_of(&profile(&[&[5_000], &[1]]), &[8, 8]);
    assert_eq!(code["functions"].as_array().map(Vec::len), Some(1));

    let many: Vec<&[u64]> = vec![&[7]; MAX_CODE_FUNCTIONS + 5];
    let code = code_of(&profile(&many), &vec![8; many.len()]);
    assert_eq!(code["functions"].as_array().map(Vec::len), Some(MAX_CODE_FUNCTIONS));

    let sizes = vec![MAX_CODE_FUNCTION_BYTES; 12];
    let code = code_of(&profile(&[&[7u64][..]; 12]), &sizes);
    let kept = code["functions"].as_array().map_or(0, Vec::len) as u64;
    let left_out = code["leftOut"].as_u64().expect("a count");
    assert!(kept >= 1 && left_out >= 1 && kept + left_out == 12, "{kept} {left_out}");
}

#[test]
fn a_profile_without_samples_has_no_code() {
    let code = code_of(&Profile::default(), &[8]);
    assert_eq!(code["functions"], serde_json::json!([]));
}
