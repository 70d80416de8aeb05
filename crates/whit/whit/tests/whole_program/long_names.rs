//! Names of any length and depth, through each output: plain ones around the width that the standard library can format,
//! nested templates, and pointers to pointers.

use std::path::{Path, PathBuf};
use std::process::Command;

use whit_testing::wait::{PATIENCE, is_within};

use crate::support::tools::{command, succeed, whit};
use crate::support::{Skip, check, probe, record};

/// Shown part of each name, and the name in the binary. The standard library formats widths below 65,536.
fn names() -> Vec<(&'static str, String)> {
    let plain = |first: &str, length: usize| first.repeat(length);
    let (levels, pointers) = (60_000, 200_000);
    vec![
        ("aaaaaaaaaa", plain("a", 10)),
        ("bbbbbbbbbb", plain("b", 65_535)),
        ("cccccccccc", plain("c", 65_536)),
        ("dddddddddd", plain("d", 1_000_000)),
        ("nested", format!("_Z6nestedI{}i{}Evv", "1TI".repeat(levels), "E".repeat(levels))),
        ("pointers", format!("_Z8pointersI{}iEvv", "P".repeat(pointers))),
    ]
}

/// A program that runs each function for the same time, and sleeps in each.
fn program(folder: &Path, names: &[(&str, String)]) -> Result<PathBuf, Skip> {
    probe::program("cc")?;
    if !cfg!(target_arch = "x86_64") {
        return Err(Skip("the assembler code of the test is of x86-64".to_owned()));
    }
    let mut code = "
        .globl main
        main: push %rbx
        mov $300, %ebx
        1:
    "
    .to_owned();
    for (_, name) in names {
        code += &format!("call \"{name}\"\n");
    }
    code += "
        dec %ebx
        jnz 1b
        pop %rbx
        xor %eax, %eax
        ret
    ";
    for (_, name) in names {
        code += &format!(
            "
            .globl \"{name}\"
            .type \"{name}\", @function
            \"{name}\":
            push %rbx
            mov $500000, %ecx
            2: dec %ecx
            jnz 2b
            mov $20, %edi
            call usleep
            pop %rbx
            ret
            .size \"{name}\", . - \"{name}\"
            "
        );
    }
    code += ".section .note.GNU-stack, \"\", @progbits\n";
    let (source, program) = (folder.join("names.s"), folder.join("names"));
    std::fs::write(&source, code).expect("write a program");
    succeed(command("cc").arg(&source).arg("-o").arg(&program));
    Ok(program)
}

/// Output of a command that ends in time and without a panic.
fn shown(command: &mut Command, folder: &Path) -> Vec<u8> {
    let what = format!("{command:.300?}");
    let [out, messages] = ["out", "messages"].map(|name| folder.join(name));
    let file = |path| std::fs::File::create(path).expect("create a file");
    command.stdout(file(&out)).stderr(file(&messages));
    let mut child = command.spawn().expect("start whit");
    let is_done = is_within(PATIENCE, || child.try_wait().expect("wait for whit").is_some());
    let said = || std::fs::read_to_string(&messages).unwrap_or_default();
    if !is_done {
        child.kill().expect("end whit");
        panic!("{what} runs after {PATIENCE:?}: {:.2000}", said());
    }
    let status = child.wait().expect("wait for whit");
    assert!(status.success(), "{what}: {status}: {:.2000}", said());
    std::fs::read(out).expect("read the output")
}

#[test]
fn names_of_any_length_go_through_each_output() {
    check("names_of_any_length_go_through_each_output", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let (folder, names) = (folder.path(), names());
        let program = program(folder, &names)?;
        let data = folder.join("perf.data");
        let mut recorder = whit();
        recorder.env("HOME", folder);
        recorder.args(["record", "--engine=ring", "-g", "-F", "499", "-e", "cpu-clock:u"]);
        recorder.args(["--switch-events", "-o"]).arg(&data).arg("--").arg(program);
        record(&mut recorder)?;
        let run = |arguments: &[&str]| {
            let mut command = whit();
            command.env("HOME", folder).arg(arguments[0]).arg("-i").arg(&data);
            shown(command.args(&arguments[1..]), folder)
        };
        for face in [
            &["report", "--stdio"][..],
            &["report", "--stdio", "--no-children", "--sort", "symbol", "-g", "none"],
            &["report", "--stdio", "--sort", "comm,dso,symbol", "-g", "caller"],
            &["report", "--stdio", "--hierarchy"],
            &["report", "--json"],
            &["script", "-F", "ip,sym,dso"],
            &["query", "--csv", "-c", "SELECT DISTINCT name FROM frame"],
            &["export", "--format=folded", "-o", "-"],
            &["export", "--format=speedscope", "-o", "-"],
            &["export", "--format=firefox", "-o", "-"],
        ] {
            let text = run(face);
            for (name, _) in &names {
                let is_there = text.windows(name.len()).any(|it| it == name.as_bytes());
                assert!(is_there, "{face:?} lacks {name}");
            }
        }
        for face in [
            &["report", "--stdio", "--width", "80"][..],
            &["report", "--stdio", "--wall"],
            &["report", "--brief"],
            &["annotate", "--stdio"],
            &["switches", "--tree", "--flat", "--worst", "--per-thread"],
            &["export", "--format=pprof", "-o", "-"],
            &["export", "--format=perfetto", "-o", "-"],
            &["export", "--format=otlp", "-o", "-"],
        ] {
            assert!(!run(face).is_empty(), "{face:?}");
        }
        let file = folder.join("file").display().to_string();
        for face in [&["report", "--html"][..], &["export", "--archive", "-o"]] {
            run(&[face, &[&file]].concat());
            assert!(std::fs::metadata(&file).is_ok_and(|file| file.len() > 0), "{face:?}");
            std::fs::remove_file(&file).expect("remove the output");
        }
        Ok(())
    });
}
