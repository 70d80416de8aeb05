//! Recordings that carry their names: the same views on a machine without the binaries, without `/proc` and without
//! caches.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::report::parse;
use crate::support::tools::{command, perf, record, text, whit, workload};
use crate::support::{Skip, check, probe};

/// Addresses, offsets, inlined functions and lines of each frame.
const SCRIPT: [&str; 3] = ["script", "-F", "+srcline,+symoff"];
/// Instructions with their lines, as numbers.
const ANNOTATE: [&str; 4] = ["annotate", "--stdio", "--no-intervals", "--skip-missing"];

/// A root directory with whit and its libraries, which lie where no recording names them.
struct Elsewhere {
    root: TempDir,
}

impl Elsewhere {
    fn new() -> Result<Elsewhere, Skip> {
        probe::root()?;
        let root = tempfile::tempdir().expect("make a directory");
        let place = root.path().join("w");
        std::fs::create_dir(&place).expect("make a directory");
        let program = PathBuf::from(whit().get_program());
        whit_testing::run::copy_program(&program, place.join("whit"));
        for library in text(command("ldd").arg(&program)).split_whitespace() {
            if library.starts_with('/') {
                let name = Path::new(library).file_name().expect("a name");
                std::fs::copy(library, place.join(name)).expect("copy a library");
            }
        }
        Ok(Elsewhere { root })
    }

    /// whit on that machine.
    fn whit(&self) -> Command {
        let loader = std::fs::read_dir(self.root.path().join("w")).expect("read a directory");
        let loader = loader.map(|entry| entry.expect("an entry").file_name());
        let loader = loader.map(|name| name.into_string().expect("UTF-8"));
        let loader = loader.into_iter().find(|name| name.starts_with("ld-")).expect("a loader");
        let mut command = command("chroot");
        command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.arg(self.root.path());
        command.arg(format!("/w/{loader}")).args(["--library-path", "/w", "/w/whit"]);
        command
    }

    /// A view of a recording that is copied to the same path there.
    fn view(&self, recording: &Path, arguments: &[&str]) -> String {
        let copy = self.root.path().join(recording.strip_prefix("/").expect("an absolute path"));
        std::fs::create_dir_all(copy.parent().expect("a directory")).expect("make a directory");
        std::fs::copy(recording, &copy).expect("copy a recording");
        let modified = recording.metadata().and_then(|old| old.modified()).expect("a time");
        let opened = std::fs::File::open(copy).expect("open the copy");
        opened.set_modified(modified).expect("set the time");
        text(self.whit().args(arguments).arg("-i").arg(recording))
    }
}

fn view(recording: &Path, arguments: &[&str]) -> String {
    text(whit().args(arguments).arg("-i").arg(recording))
}

/// The lines of a report without those about the file.
fn rows(report: &str) -> String {
    report.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// The page of a recording, here or there.
fn page(recording: &Path, elsewhere: Option<&Elsewhere>) -> String {
    let page = recording.with_extension("html");
    let html = ["report", "--html", page.to_str().expect("UTF-8")];
    let written = match elsewhere {
        Some(elsewhere) => {
            elsewhere.view(recording, &html);
            elsewhere.root.path().join(page.strip_prefix("/").expect("an absolute path"))
        }
        None => {
            view(recording, &html);
            page
        }
    };
    std::fs::read_to_string(written).expect("read the page")
}

fn archived(original: &Path) -> (PathBuf, String) {
    let archive = original.with_file_name("archive.data");
    let mut export = whit();
    export.args(["export", "--archive", "-f", "-i"]).arg(original).arg("-o").arg(&archive);
    let output = export.output().expect("run whit");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (archive, said)
}

fn recorded(folder: &Path, options: &str, words: &[&str]) -> Result<PathBuf, Skip> {
    let path = folder.join("original.data");
    let mut recorder = whit();
    recorder.env("HOME", folder.join("home"));
    recorder
        .args(["record", "--engine=ring"])
        .args(options.split(' '))
        .arg("-o")
        .arg(&path)
        .arg("--");
    let program = if words[0].starts_with('/') { words[0].into() } else { workload(words[0])? };
    record(recorder.arg(program).args(&words[1..]))?;
    Ok(path)
}

/// The views of the original here, and of the archive here and there, are the same.
fn assert_same_elsewhere(original: &Path, wants_code: bool) -> Result<(), Skip> {
    let elsewhere = Elsewhere::new()?;
    let (archive, _) = archived(original);
    let script = view(original, &SCRIPT);
    assert!(script.len() > 1000, "{script}");
    assert!(elsewhere.view(&archive, &SCRIPT) == script, "{original:?}");
    let report = ["report", "--stdio", "--no-intervals", "--percent-limit", "0"];
    let (here, there) = (view(&archive, &report), elsewhere.view(&archive, &report));
    assert!(here == there, "{original:?}\n{here}\n{there}");
    assert_eq!(rows(&view(original, &report)), rows(&there), "{original:?}");
    let json = ["report", "--json", "--no-intervals"];
    assert_eq!(view(&archive, &json), elsewhere.view(&archive, &json));
    for option in ["--no-inline", "--no-demangle"] {
        let script = [&SCRIPT[..], &[option]].concat();
        assert!(view(original, &script) == elsewhere.view(&archive, &script), "{option}");
    }
    if wants_code {
        let code = [&ANNOTATE[..], &["-l"]].concat();
        let annotated = elsewhere.view(&archive, &code);
        assert!(annotated.lines().count() > 20, "{annotated}");
        assert_eq!(rows(&view(original, &code)), rows(&annotated));
        assert_eq!(page(&archive, None), page(&archive, Some(&elsewhere)));
    }
    Ok(())
}

#[test]
fn programs_have_their_names_elsewhere() {
    let deep: &[&str] = &["deep", "--seconds", "0.5"];
    for (name, options, words) in [
        ("dumps", "-e cpu-clock:u -F 997 --call-graph dwarf,8192", deep),
        ("threads", "--threads -z -e cpu-clock:u -F 997 --call-graph dwarf,8192", deep),
        ("bpf", "--engine=bpf -e cpu-clock -F 997", deep),
        ("go", "-e cpu-clock:u -F 997 --call-graph dwarf,32768", &["deep-go", "--seconds", "0.5"]),
        ("rust", "-e cpu-clock:u -F 997 --call-graph dwarf,8192", &["deep-rs", "--seconds", "0.5"]),
        ("perf-map", "-e cpu-clock:u -F 997 -g --engine=ring", &["jit", "--seconds", "0.5"]),
    ] {
        check(&format!("archive of {name}"), || {
            let folder = tempfile::tempdir().expect("make a directory");
            let original = recorded(folder.path(), options, words)?;
            assert_same_elsewhere(&original, matches!(name, "dumps" | "rust"))
        });
    }
}

#[test]
fn code_of_a_jitdump_file_has_its_names_elsewhere() {
    check("archive of jitdump", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let dumps = folder.path().to_str().expect("UTF-8");
        let words = ["jit", "--seconds", "0.5", "--jitdump", dumps];
        let options = "-k monotonic -e cpu-clock:u -F 997 -g --engine=ring";
        let original = recorded(folder.path(), options, &words)?;
        assert!(view(&original, &SCRIPT).contains("jit_inner"));
        assert_same_elsewhere(&original, true)
    });
}

/// Interpreted functions beside native ones; the deepest one lies in loops of 0.8 seconds.
const INTERPRETED: &str = "\
import time
def inner(n):
    return sum(i * i for i in range(n))
def outer():
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        inner(2000)
outer()
";

#[test]
fn interpreted_functions_have_their_names_elsewhere() {
    check("archive of interpreted functions", || {
        probe::own_events()?;
        probe::bpf_stacks()?;
        let python = crate::python_stacks::python(&[], "3.12")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let program = folder.path().join("program.py");
        std::fs::write(&program, INTERPRETED).expect("write a program");
        let original = folder.path().join("original.data");
        let mut recorder = whit();
        recorder.env("HOME", folder.path().join("home"));
        recorder.args(["record", "--engine=bpf", "-e", "cpu-clock:u", "-F", "997", "-o"]);
        record(recorder.arg(&original).arg("--").arg(python).arg(&program))?;
        let script = view(&original, &SCRIPT);
        assert!(script.contains("py::__main__.inner") && script.contains("program.py:3"));
        // Its file is gone, as on another machine.
        std::fs::remove_file(&program).expect("remove the program");
        assert_same_elsewhere(&original, false)
    });
}

/// A loop in the kernel.
const COPY: [&str; 5] = ["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=400000"];

/// The kernel's function with most samples.
fn hottest_of_kernel(recording: &Path) -> Result<String, Skip> {
    let report = ["report", "--stdio", "--no-children", "-g", "none", "--sort", "dso,symbol"];
    let rows = parse(&view(recording, &report)).into_values().flatten();
    let of_kernel =
        rows.filter(|row| row.dso.starts_with("[kernel") && !row.symbol.starts_with("0x"));
    let hottest = of_kernel.max_by(|a, b| a.percent.total_cmp(&b.percent));
    let hottest = hottest.map(|row| row.symbol.trim_start_matches("[k]").trim().to_owned());
    hottest.ok_or_else(|| Skip("the kernel's functions have no names for this user".to_owned()))
}

/// Without `/proc/kcore` and an image, an archive has no code of the kernel: the reason is said.
#[test]
fn functions_of_the_kernel_have_names_elsewhere_and_their_code_or_the_reason() {
    check("archive of kernel functions", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let original = recorded(folder.path(), "-e cpu-clock -F 1997 -g --engine=ring", &COPY)?;
        let elsewhere = Elsewhere::new()?;
        let (archive, _) = archived(&original);
        let script = ["script", "-F", "ip,sym,symoff"];
        let here = view(&original, &script);
        let hottest = hottest_of_kernel(&original)?;
        assert!(here.contains(&hottest), "{here}");
        assert_eq!(here, elsewhere.view(&archive, &script));
        let annotate = ["annotate", "--stdio", "--no-intervals", &hottest];
        if std::fs::File::open("/proc/kcore").is_ok() {
            let (here, there) = (view(&original, &annotate), elsewhere.view(&archive, &annotate));
            assert_eq!(rows(&here), rows(&there));
            return Ok(());
        }
        let annotated = elsewhere.whit().args(annotate).arg("-i").arg(&archive).output();
        let annotated = annotated.expect("run whit");
        let said = String::from_utf8_lossy(&annotated.stderr).into_owned();
        assert_eq!(annotated.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{hottest} are not at hand")), "{said}");
        assert!(said.contains("--vmlinux FILE"), "{said}");
        Ok(())
    });
}

/// An image with the build id of the running kernel, in which one function has instructions of our own.
fn fake_image(folder: &Path, function: &str) -> Result<PathBuf, Skip> {
    probe::program("cc")?;
    let notes = std::fs::read("/sys/kernel/notes").unwrap_or_default();
    let head = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = notes.windows(head.len()).position(|bytes| bytes == head);
    let id = at.and_then(|at| notes.get(at + head.len()..at + head.len() + 20));
    let id = id.ok_or_else(|| Skip("the kernel does not state its build id".to_owned()))?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let list = std::fs::read_to_string("/proc/kallsyms").expect("read the list of symbols");
    let symbol = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((address, words.nth(1)?.to_owned()))
    };
    let symbols: Vec<_> = list.lines().filter_map(symbol).collect();
    let address = |wanted: &str| {
        let found = symbols.iter().find(|(_, name)| name == wanted);
        found.map(|(address, _)| *address).expect("a symbol of every kernel")
    };
    let (begin, start) = (address("_text"), address(function));
    let end = symbols.iter().map(|(address, _)| *address).filter(|address| *address > start).min();
    let (stext, start, end) =
        (address("_stext") - begin, start - begin, end.expect("a symbol behind it") - begin);
    let source = format!(
        ".globl _text, _stext, {function}\n_text:\n.org {stext}\n_stext:\n.org {start}\n\
         .type {function}, @function\n{function}:\n.fill {}, 1, 0x90\nret\n.size {function}, . - {function}\n",
        end - start - 1
    );
    let (assembly, image) = (folder.join("kernel.s"), folder.join("vmlinux"));
    std::fs::write(&assembly, source).expect("write a source");
    let mut link = command("cc");
    link.args(["-nostdlib", "-static", "-Wl,-e,_text", "-Wl,-Ttext=0x1000000"]);
    link.arg(format!("-Wl,--build-id=0x{id}")).arg(&assembly).arg("-o").arg(&image);
    text(&mut link);
    Ok(image)
}

#[test]
fn code_of_the_kernel_is_the_same_elsewhere() {
    check("archive of kernel code", || {
        probe::root()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let original = recorded(folder.path(), "-e cpu-clock -F 1997", &COPY)?;
        let hottest = hottest_of_kernel(&original)?;
        let image = fake_image(folder.path(), &hottest)?;
        let elsewhere = Elsewhere::new()?;
        let archive = folder.path().join("archive.data");
        let mut export = whit();
        export.args(["export", "--archive", "--vmlinux"]).arg(&image).arg("-i").arg(&original);
        text(export.arg("-o").arg(&archive));
        let annotate = ["annotate", "--stdio", "--no-intervals", &hottest];
        let with_image = [&annotate[..], &["--vmlinux", image.to_str().expect("UTF-8")]].concat();
        let here = view(&original, &with_image);
        assert!(here.contains("nop") && here.contains("ret"), "{here}");
        let there = elsewhere.view(&archive, &annotate);
        assert_eq!(rows(&here), rows(&there));
        // An archive of an archive.
        let second = folder.path().join("second.data");
        let mut export = whit();
        export.args(["export", "--archive", "-i"]).arg(&archive).arg("-o").arg(&second);
        text(&mut export);
        assert_eq!(rows(&here), rows(&elsewhere.view(&second, &annotate)));
        Ok(())
    });
}

#[test]
fn waits_have_their_names_elsewhere() {
    check("archive of waits", || {
        probe::bpf_stacks()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let options = "--engine=bpf --switch-events -e cpu-clock -F 997";
        let words = ["pingpong", "--threads", "4", "--iterations", "3000"];
        let original = recorded(folder.path(), options, &words)?;
        let elsewhere = Elsewhere::new()?;
        let (archive, _) = archived(&original);
        let switches = ["switches", "--json"];
        let here = view(&original, &switches);
        assert!(here.contains("futex"), "{here}");
        let with_paths = |json: &str| {
            let mut json: serde_json::Value = serde_json::from_str(json).expect("JSON");
            json.as_object_mut().expect("an object").remove("recording");
            json
        };
        assert_eq!(with_paths(&here), with_paths(&elsewhere.view(&archive, &switches)));
        assert_eq!(view(&archive, &switches), elsewhere.view(&archive, &switches));
        assert_same_elsewhere(&original, false)
    });
}

#[test]
fn stock_perf_reads_an_archive() {
    check("stock_perf_reads_an_archive", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let options = "-e cpu-clock:u -F 997 -g --engine=ring";
        let original = recorded(folder.path(), options, &["deep-fp", "--seconds", "0.3"])?;
        let (archive, _) = archived(&original);
        let samples =
            |path: &Path| Ok(text(perf()?.args(["script", "-F", "ip,sym", "-i"]).arg(path)));
        let (before, after) = (samples(&original)?, samples(&archive)?);
        assert!(before.len() > 1000 && before == after);
        Ok(())
    });
}

#[test]
fn an_archive_of_an_archive_has_the_same_names() {
    check("archive of an archive", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let options = "-e cpu-clock:u -F 997 --call-graph dwarf,8192";
        let original = recorded(folder.path(), options, &["deep", "--seconds", "0.3"])?;
        let elsewhere = Elsewhere::new()?;
        let (archive, _) = archived(&original);
        let script = view(&archive, &SCRIPT);
        // Written where the binaries are not.
        elsewhere.view(&archive, &SCRIPT);
        let second = folder.path().join("second.data");
        let mut export = elsewhere.whit();
        export.args(["export", "--archive", "-f", "-i"]).arg(&archive).arg("-o").arg(&second);
        text(&mut export);
        let there = elsewhere.root.path().join(second.strip_prefix("/").expect("absolute"));
        std::fs::copy(there, &second).expect("copy it back");
        assert_eq!(elsewhere.view(&second, &SCRIPT), script);
        Ok(())
    });
}

#[test]
fn damaged_names_are_said_and_passed_over() {
    check("damaged names", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let options = "-e cpu-clock:u -F 997 -g --engine=ring";
        let original = recorded(folder.path(), options, &["deep-fp", "--seconds", "0.3"])?;
        let (archive, _) = archived(&original);
        let mut bytes = std::fs::read(&archive).expect("read it");
        // The names stand at the end.
        let at = bytes.len() - 40;
        bytes[at..].fill(0);
        std::fs::write(&archive, bytes).expect("write it");
        let output = whit().args(["report", "--stdio", "-i"]).arg(&archive).output();
        let output = output.expect("run whit");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("the names that the recording carries are not used"), "{said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("hash_block"));
        Ok(())
    });
}

fn embedding(folder: &Path, options: &[&str], words: &[&str]) -> Result<Output, Skip> {
    let mut recorder = whit();
    recorder.env("HOME", folder.join("home")).args(["record", "--engine=ring"]).args(options);
    recorder.arg("-o").arg(folder.join("original.data")).arg("--").arg(workload(words[0])?);
    whit_testing::run::record(recorder.args(&words[1..]))
}

#[test]
fn a_recorder_embeds_names_when_recording_has_ended() {
    for (name, options) in [
        ("chains", &["-e", "cpu-clock", "-F", "997", "-g", "--engine=ring"][..]),
        ("dumps", &["-e", "cpu-clock:u", "-F", "997", "--call-graph", "dwarf,8192"]),
        ("directory", &["-e", "cpu-clock:u", "-F", "997", "-g", "--engine=ring", "--threads"]),
    ] {
        check(&format!("embedded names of {name}"), || {
            let folder = tempfile::tempdir().expect("make a directory");
            let elsewhere = Elsewhere::new()?;
            let options = [options, &["--embed-symbols"]].concat();
            let said = embedding(folder.path(), &options, &["deep-fp", "--seconds", "0.4"])?;
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(said.contains("the names of frames take"), "{said}");
            let path = folder.path().join("original.data");
            let script = view(&path, &SCRIPT);
            assert!(script.contains("hash_block"), "{script}");
            // Copies of the recorder's are not at hand there.
            let file = if name == "directory" { archived(&path).0 } else { path };
            assert!(elsewhere.view(&file, &SCRIPT) == script, "{name}");
            // With the binaries at hand, code comes from these.
            let code = [&ANNOTATE[..], &["--no-source", "kernels::hash_block"]].concat();
            assert!(view(&file, &code).lines().count() > 10);
            Ok(())
        });
    }
}

#[test]
fn an_output_that_cannot_be_completed_is_refused() {
    for options in [&["--embed-symbols", "-o", "-"][..], &["--embed-symbols", "--switch-output"]] {
        let output =
            whit().args(["record", "--engine=ring"]).args(options).args(["--", "true"]).output();
        let output = output.expect("run whit");
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("--embed-symbols"));
        assert!(output.stdout.is_empty());
    }
}
