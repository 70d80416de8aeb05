//! Names from servers: a real `debuginfod` of the distribution on loopback, and `debuginfod-find` beside whit.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::tools::{command, sibling, succeed, text, whit, workload};
use crate::support::{Skip, check, probe, record};
use whit_testing::run::{output, stderr};
use whit_testing::wait::{is_soon, signal, wait_until};

/// The program that fetches.
fn fetcher() -> PathBuf {
    sibling("whit-debuginfod")
}

/// A server of the distribution, and the directory that it serves.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(place: &Path, served: &Path) -> Server {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).unwrap().port();
        let mut program = Command::new("debuginfod");
        program.args(["-p", &port.to_string(), "-d"]).arg(place.join("index.sqlite"));
        let log = fs::File::create(place.join("debuginfod.log")).expect("make a log");
        program.env("HOME", place).env_remove("DEBUGINFOD_URLS").arg("-F").arg(served);
        program.stdout(Stdio::null()).stderr(log);
        let child = program.spawn().expect("start debuginfod");
        let server = Server { child, url: format!("http://127.0.0.1:{port}") };
        wait_until("debuginfod has read its files", || {
            let log = fs::read_to_string(place.join("debuginfod.log")).unwrap_or_default();
            log.contains("groomed database")
        });
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        is_soon(|| self.child.try_wait().is_ok_and(|status| status.is_some()));
    }
}

/// The build id of a file, as others read it.
fn build_id(file: &Path) -> String {
    let notes = text(command("eu-readelf").arg("-n").arg(file));
    let id = notes.split("Build ID: ").nth(1).and_then(|it| it.split_whitespace().next());
    id.expect("a build id").to_owned()
}

/// A recording of a program, which was stripped afterwards; the server has the rest.
struct Stripped {
    place: tempfile::TempDir,
    program: PathBuf,
    full: PathBuf,
    id: String,
    server: Server,
}

impl Stripped {
    fn new() -> Result<Stripped, Skip> {
        Stripped::of(&["--iterations", "20000"], |place| {
            let program = place.join("deep");
            whit_testing::run::copy_program(workload("deep")?, &program);
            Ok((program.clone(), program))
        })
    }

    /// Makes a program, and the file of it that is stripped.
    fn of(
        arguments: &[&str],
        make: impl FnOnce(&Path) -> Result<(PathBuf, PathBuf), Skip>,
    ) -> Result<Stripped, Skip> {
        probe::program("debuginfod")?;
        probe::program("debuginfod-find")?;
        probe::program("objcopy")?;
        probe::program("eu-readelf")?;
        fetcher();
        let place = tempfile::tempdir().expect("make a directory");
        let (program, stripped) = make(place.path())?;
        let mut recorder = whit();
        recorder.args([
            "record",
            "--engine=ring",
            "-q",
            "-N",
            "-g",
            "-e",
            "cpu-clock:u",
            "-F",
            "1999",
            "-o",
        ]);
        recorder.arg(place.path().join("perf.data")).arg("--").arg(&program);
        record(recorder.args(arguments))?;
        let (full, served) = (place.path().join("full"), place.path().join("served"));
        fs::copy(&stripped, &full).expect("copy a file");
        fs::create_dir(&served).expect("make a directory");
        let debug = served.join("deep.debug");
        let mut split = command("objcopy");
        split.args(["--only-keep-debug", "--compress-debug-sections"]).arg(&full).arg(&debug);
        succeed(&mut split);
        let mut strip = command("objcopy");
        let link = format!("--add-gnu-debuglink={}", debug.display());
        succeed(strip.args(["--strip-unneeded", &link]).arg(&full).arg(&stripped));
        let server = Server::start(place.path(), &served);
        let id = build_id(&full);
        Ok(Stripped { place, program: stripped, full, id, server })
    }

    /// whit with a cache and a home of its own.
    fn whit(&self) -> Command {
        let mut command = whit();
        command.env("HOME", self.place.path()).env_remove("DEBUGINFOD_URLS");
        command.env("DEBUGINFOD_CACHE_PATH", self.cache()).env_remove("XDG_CACHE_HOME");
        command
    }

    fn cache(&self) -> PathBuf {
        self.place.path().join("cache")
    }

    fn recording(&self) -> PathBuf {
        self.place.path().join("perf.data")
    }

    /// Runs a command of whit with and without the server's option. Gives its standard output.
    fn run(&self, arguments: &[&str], server: Option<&str>) -> String {
        let mut command = self.whit();
        command.arg(arguments[0]);
        match server {
            Some(url) => command.arg(format!("--debuginfod={url}")),
            None => command.arg("--no-debuginfod"),
        };
        command.args(&arguments[1..]);
        text(command.arg("-i").arg(self.recording()))
    }

    /// The same with the file as it was when it was recorded.
    fn run_with_full(&self, arguments: &[&str]) -> String {
        let stripped = fs::read(&self.program).expect("read a file");
        fs::copy(&self.full, &self.program).expect("copy a file");
        let text = self.run(arguments, None);
        fs::write(&self.program, stripped).expect("write a file");
        text
    }

    fn find(&self, arguments: &[&str]) -> std::process::Output {
        let mut find = command("debuginfod-find");
        find.args(arguments).env("DEBUGINFOD_CACHE_PATH", self.cache());
        output(find.env("DEBUGINFOD_URLS", "http://127.0.0.1:1"))
    }
}

/// Rows of functions with inlines and lines.
const ROWS: [&str; 9] = [
    "report",
    "--stdio",
    "-q",
    "--no-children",
    "-g",
    "caller",
    "--percent-limit=0",
    "-s",
    "dso,symbol,srcline",
];
const SAMPLES: [&str; 3] = ["script", "-F", "ip,sym,symoff,srcline"];

#[test]
fn rows_are_those_of_the_unstripped_program() {
    check("debuginfod_rows", || {
        let stripped = Stripped::new()?;
        for arguments in [&ROWS[..], &SAMPLES[..]] {
            let expected = stripped.run_with_full(arguments);
            assert!(expected.contains("deep.cpp"), "{expected}");
            assert_ne!(stripped.run(arguments, None), expected);
            let fetched = stripped.run(arguments, Some(&stripped.server.url));
            assert_eq!(fetched, expected);
            fs::remove_dir_all(stripped.cache()).expect("remove the cache");
        }
        // A query names frames while it reads; annotate reads code from the stripped program, and lines elsewhere.
        let query = [
            "query",
            "--csv",
            "-c",
            "SELECT DISTINCT name, source_file, line_number FROM frame ORDER BY 1, 2, 3",
        ];
        let expected = stripped.run_with_full(&query);
        assert_eq!(stripped.run(&query, Some(&stripped.server.url)), expected);
        Ok(())
    });
}

#[test]
fn functions_of_a_stripped_library_have_their_names() {
    check("debuginfod_library", || {
        probe::program("cc")?;
        let stripped = Stripped::of(&[], |place| {
            let library = place.join("libwork.so");
            let source = "__attribute__((noinline)) static unsigned inner(unsigned n) {\n\
                          unsigned s = n; for (unsigned i = 0; i < 20000000; i++) s = s * 31 + i; return s; }\n\
                          unsigned work(unsigned n) { return inner(n) + inner(n + 1); }\n";
            fs::write(place.join("work.c"), source).expect("write a source");
            let main = "unsigned work(unsigned); int main() { unsigned s = 0; for (int i = 0; i < 8; i++) \
                        s += work(i); return s == 7; }\n";
            fs::write(place.join("main.c"), main).expect("write a source");
            let mut compile = command("cc");
            compile.args(["-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id", "-o"]).arg(&library);
            succeed(compile.arg(place.join("work.c")));
            let program = place.join("program");
            let mut compile = command("cc");
            compile.args(["-O1", "-o"]).arg(&program).arg(place.join("main.c")).arg(&library);
            succeed(&mut compile);
            Ok((program, library))
        })?;
        let rows = ["report", "--stdio", "-q", "--no-children", "-g", "none", "-s", "dso,symbol"];
        assert!(!stripped.run(&rows, None).contains("inner"));
        let expected = stripped.run_with_full(&rows);
        assert!(expected.contains("inner"), "{expected}");
        assert_eq!(stripped.run(&rows, Some(&stripped.server.url)), expected);
        Ok(())
    });
}

#[test]
fn debuginfod_find_and_whit_use_one_another_s_files() {
    check("debuginfod_cache", || {
        let stripped = Stripped::new()?;
        let named = stripped.run(&ROWS, Some(&stripped.server.url));
        let found = stripped.find(&["section", &stripped.id, ".debug_info"]);
        assert!(found.status.success(), "{}", stderr(&found));
        // Failed queries are remembered, too: nobody is asked.
        let found = stripped.find(&["section", &stripped.id, ".debug_addr"]);
        assert!(stderr(&found).contains("No such file"), "{}", stderr(&found));
        // The other way round: the server has gone.
        fs::remove_dir_all(stripped.cache()).expect("remove the cache");
        let mut find = command("debuginfod-find");
        find.args(["debuginfo", &stripped.id]).env("DEBUGINFOD_CACHE_PATH", stripped.cache());
        succeed(find.env("DEBUGINFOD_URLS", &stripped.server.url));
        assert_eq!(stripped.run(&ROWS, Some("http://127.0.0.1:1")), named);
        Ok(())
    });
}

#[test]
fn servers_are_asked_for_binaries_with_samples_alone_and_failures_are_named() {
    check("debuginfod_limits", || {
        let stripped = Stripped::new()?;
        let report = |options: &[&str]| {
            let mut command = stripped.whit();
            command.args(["report", "--stdio", "--no-children", "-g", "none"]).args(options);
            text(command.arg("-i").arg(stripped.recording()))
        };
        let offered = report(&[]);
        assert!(offered.contains("functions of deep"), "{offered}");
        assert!(!report(&["--no-debuginfod"]).contains("have no names here"));
        // First of all: a program with all of the samples is fetched below, and then needs no server.
        let gone = report(&["--debuginfod=http://127.0.0.1:1"]);
        assert!(gone.contains("debug information was not fetched: http://127.0.0.1:1 "), "{gone}");
        let url = format!("--debuginfod={}", stripped.server.url);
        let few = report(&[&url, "--debuginfod-limit=100.0"]);
        assert!(
            few.contains("less than 100% of the samples each") || few.contains("scramble"),
            "{few}"
        );
        let mut unset = stripped.whit();
        unset.args(["report", "--debuginfod", "-i"]).arg(stripped.recording());
        let unset = output(&mut unset);
        assert_eq!(unset.status.code(), Some(2));
        assert!(stderr(&unset).contains("--debuginfod=https://"), "{}", stderr(&unset));
        // Without the program, whit says so.
        let built = Path::new(env!("CARGO_BIN_EXE_whit"));
        let folder = tempfile::tempdir_in(built.parent().unwrap()).expect("make a directory");
        let alone = folder.path().join("whit");
        fs::hard_link(built, &alone).expect("link whit");
        let mut command = command(&alone);
        command.env("HOME", stripped.place.path()).args(["report", "--stdio", &url, "-i"]);
        let said = text(command.arg(stripped.recording()));
        assert!(said.contains("whit-debuginfod, the program that fetches"), "{said}");
        Ok(())
    });
}

#[test]
fn a_key_ends_the_fetch_and_not_the_report() {
    check("debuginfod_stop", || {
        let stripped = Stripped::new()?;
        // It takes connections, and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").expect("listen");
        let url = format!("--debuginfod=http://{}", silent.local_addr().unwrap());
        let mut command = stripped.whit();
        command.args(["report", "--stdio", &url, "-i"]).arg(stripped.recording());
        let child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start whit");
        silent.set_nonblocking(true).expect("a listener that does not wait");
        let mut connection = None;
        wait_until("whit asks the server", || {
            connection = silent.accept().ok();
            connection.is_some()
        });
        signal(&child, "-INT");
        let output = child.wait_with_output().expect("wait for whit");
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(report.contains("the fetch was stopped"), "{report}");
        assert!(report.contains("fun_"), "{report}");
        drop(connection);
        Ok(())
    });
}

/// Copies a program and its libraries below a folder, where no file has debug information. Gives the C library.
fn copy_below(root: &Path, program: &Path) -> PathBuf {
    let libraries = text(command("ldd").arg(program));
    let paths =
        libraries.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    let paths: Vec<_> = paths.map(|path| fs::canonicalize(path).expect("a library")).collect();
    for path in paths.iter().chain([&program.to_owned()]) {
        let copy = root.join(path.strip_prefix("/").expect("an absolute path"));
        fs::create_dir_all(copy.parent().expect("a folder")).expect("make a folder");
        fs::copy(path, copy).expect("copy a file");
    }
    let library = paths.into_iter().find(|path| path.ends_with("libc.so.6"));
    library.expect("the program uses the C library")
}

#[test]
fn lines_of_the_c_library_are_asked_for_where_chains_do_more_than_begin_in_it() {
    check("debuginfod_beginnings", || {
        probe::program("ldd")?;
        let stripped = Stripped::new()?;
        let mut recorder = whit();
        recorder.args(["record", "-q", "-N", "--engine=ring", "--call-graph", "dwarf,8192", "-e"]);
        recorder.args(["cpu-clock:u", "-F", "999", "-o"]).arg(stripped.recording()).arg("--");
        record(recorder.arg(&stripped.program).args(["--seconds", "0.5"]))?;
        let root = stripped.place.path().join("root");
        let library = copy_below(&root, &stripped.program);
        let report = |limit: &str| {
            let mut command = stripped.whit();
            command.args(["report", "--stdio", "--no-children", "--percent-limit=0", "--symfs"]);
            command.arg(&root).arg(format!("--debuginfod={}", stripped.server.url));
            text(command.args([limit, "-s", "dso,symbol,srcline", "-i"]).arg(stripped.recording()))
        };
        let asked = || {
            let folder = stripped.cache().join(build_id(&library));
            // An empty file stands for a question that was asked.
            [".symtab", ".debug_info"].map(|name| folder.join(format!("section-{name}")).exists())
        };
        let alone =
            "lines and inlined functions of libc.so.6 were not fetched: call chains begin in it";
        // On a busy machine, the few samples of the start are some percent.
        let printed = report("--debuginfod-limit=20");
        assert!(printed.contains(alone) && printed.contains("deep.cpp:"), "{printed}");
        assert_eq!(asked(), [true, false], "{printed}");
        fs::remove_dir_all(stripped.cache()).expect("remove the cache");
        let printed = report("--debuginfod-limit=0");
        assert!(!printed.contains(alone) && printed.contains("deep.cpp:"), "{printed}");
        assert_eq!(asked(), [true, true], "{printed}");
        Ok(())
    });
}
