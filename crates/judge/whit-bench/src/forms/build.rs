//! Programs in all forms of debug information.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_elf::ElfImage;
use whit_types::Svma;

use super::built::{Built, Places};
use super::kinds::{Compiler, Form};
use super::programs::{WORKERS, Worker, source};
use crate::error::{self, Error};

/// Compiles a program into a folder of its own. The inner error is that of a tool.
pub(super) fn program(
    compiler: Compiler,
    form: Form,
    root: &Path,
) -> Result<Result<Built, String>, Error> {
    let place = root.join(format!("{compiler}-{form}"));
    fs::create_dir_all(&place).map_err(error::file("create", &place))?;
    let (file, text) = source(compiler);
    let path = place.join(file);
    fs::write(&path, text).map_err(error::file("write", &path))?;
    let tools = Tools { place, cache: root.join("go-cache") };
    Ok(tools.build(compiler, form))
}

/// The addresses from the first target of a jump back to the last such jump. Instructions around them may belong to
/// the function itself: a sample there has no inlined function.
fn loop_of(code: &str, function: &Range<u64>) -> Option<Range<u64>> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let jump_back = |line: &str| {
        let (address, instruction) = line.split_once(':')?;
        let address = number(address.trim())?;
        let (before, _) = instruction.rsplit_once(" <")?;
        let target = number(before.split_whitespace().next_back()?)?;
        (function.start < target && target <= address).then_some(target..address + 1)
    };
    let ranges = code.lines().filter_map(jump_back);
    ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))
}

struct Tools {
    /// The folder of the program.
    place: PathBuf,
    /// The folder of packages that Go compiles once for all forms.
    cache: PathBuf,
}

impl Tools {
    fn build(&self, compiler: Compiler, form: Form) -> Result<Built, String> {
        self.compile(compiler, form)?;
        // Before symbols go.
        let places = self.places()?;
        self.finish(compiler, form)?;
        let program = self.place.join("program");
        let image = ElfImage::open(&program).map_err(|error| error.to_string())?;
        let file_bias = image.code_bias().unwrap_or(0);
        let Svma(image_base) = image.base_svma();
        Ok(Built { compiler, program, places, file_bias, image_base })
    }

    fn compile(&self, compiler: Compiler, form: Form) -> Result<(), String> {
        let flags: &[&str] = match (compiler, form) {
            (Compiler::Gcc | Compiler::Clang, Form::Split) => &["-gsplit-dwarf"],
            // GNU's packer knows DWARF 4 alone.
            (Compiler::Gcc, Form::Package) => &["-gsplit-dwarf", "-gdwarf-4"],
            (Compiler::Clang, Form::Package) => &["-gsplit-dwarf"],
            (Compiler::Gcc | Compiler::Clang, Form::Compressed) => &["-gz"],
            // dwz 0.15 does not know the DWARF 5 of Clang.
            (Compiler::Clang, Form::Dwz) => &["-gdwarf-4"],
            (Compiler::Rust, Form::Split) => &["-Csplit-debuginfo=unpacked"],
            (Compiler::Rust, Form::Package) => &["-Csplit-debuginfo=packed"],
            (Compiler::Rust, Form::Compressed) => {
                &["-Clink-arg=-Wl,--compress-debug-sections=zlib"]
            }
            (Compiler::Go, Form::Compressed) => &["-ldflags=-B gobuildid"],
            (Compiler::Go, _) => &["-ldflags=-B gobuildid -compressdwarf=false"],
            _ => &[],
        };
        let always: &[&str] = match compiler {
            Compiler::Gcc | Compiler::Clang => &["-O2", "-g", "-no-pie", "-Wl,--build-id"],
            Compiler::Rust => {
                &["-O", "-g", "-Crelocation-model=static", "-Clink-arg=-Wl,--build-id"]
            }
            Compiler::Go => &["build"],
        };
        let (file, _) = source(compiler);
        let words = [always, flags, &["-o", "program", file]].concat();
        self.run(&compiler.to_string(), &words).map(drop)
    }

    /// The addresses of loops: those of functions by `nm`, and of the loop in each by `objdump`.
    fn places(&self) -> Result<Places, String> {
        let listed = self.run("nm", &["-S", "--defined-only", "program"])?;
        let place = |line: &str| {
            let mut words = line.split_whitespace();
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            let (start, size) = (number()?, number()?);
            let worker = Worker::of(words.nth(1)?)?;
            Some((worker, start..start + size))
        };
        let functions: Places = listed.lines().filter_map(place).collect();
        if functions.len() != WORKERS.len() {
            return Err(format!("nm lists {} of {} functions", functions.len(), WORKERS.len()));
        }
        let within = |(worker, function): (Worker, Range<u64>)| {
            let range = [
                format!("--start-address={:#x}", function.start),
                format!("--stop-address={:#x}", function.end),
            ];
            let code = self.run("objdump", &["-d", "-w", &range[0], &range[1], "program"])?;
            let found = loop_of(&code, &function);
            let found = found.ok_or_else(|| format!("objdump shows no loop in {}", worker.name))?;
            Ok((worker, found))
        };
        functions.into_iter().map(within).collect()
    }

    fn finish(&self, compiler: Compiler, form: Form) -> Result<(), String> {
        let tool = |name: &str, words: &[&str]| self.run(name, words).map(drop);
        match form {
            Form::Full | Form::Split | Form::Compressed => Ok(()),
            Form::DebugFile => {
                tool("objcopy", &["--only-keep-debug", "program", "program.debug"])?;
                tool("objcopy", &["--strip-all", "program"])?;
                tool("objcopy", &["--add-gnu-debuglink=program.debug", "program"])
            }
            Form::Package => {
                match compiler {
                    Compiler::Gcc => tool("dwp", &["-e", "program", "-o", "program.dwp"])?,
                    Compiler::Clang => tool("llvm-dwp", &["-e", "program", "-o", "program.dwp"])?,
                    Compiler::Rust | Compiler::Go => {}
                }
                self.remove_dwo_files()
            }
            Form::Dwz => {
                tool("cp", &["program", "other"])?;
                tool("dwz", &["-m", "shared.debug", "-M", "shared.debug", "program", "other"])
            }
            Form::Nothing => tool("objcopy", &["--strip-all", "program"]),
        }
    }

    /// They must not answer in the place of their package.
    fn remove_dwo_files(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.place.display());
        for file in fs::read_dir(&self.place).map_err(failed)? {
            let path = file.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "dwo") {
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn run(&self, name: &str, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(name);
        command.args(words).current_dir(&self.place);
        command.env("GO111MODULE", "off").env("GOFLAGS", "").env("GOCACHE", &self.cache);
        let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_reaches_from_the_first_target_to_the_last_jump_back() {
        let code = "
0000000000401220 <noonday>:
  401220:\t48 89 f8             \tmov    %rdi,%rax
  401227:\t76 2b                \tjbe    401254 <noonday+0x34>
  401240:\t48 31 d0             \txor    %rdx,%rax
  401244:\t75 fa                \tjne    401240 <noonday+0x20>
  401252:\t75 ec                \tjne    401248 <noonday+0x28>
  401254:\tc3                   \tret
  401255:\te9 c6 ff ff ff       \tjmp    401220 <noonday>
";
        assert_eq!(loop_of(code, &(0x401220..0x40125a)), Some(0x401240..0x401253));
        assert_eq!(loop_of("  401254:\tc3   \tret", &(0x401220..0x401255)), None);
    }
}
