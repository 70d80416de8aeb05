//! Names of code that is replaced, that lies in files which are gone, and that outlives its thread or its process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use whit_testing::wait::{Load, wait_until};

use crate::support::tools::{command, text, whit};
use crate::support::{Skip, check, engines, probe};

/// Two functions, in turn at one address, in a jitdump file. An argument has them live in a perf-map, and not move.
const COMPILER: &str = r#"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
struct load { uint32_t kind, size; uint64_t time; uint32_t pid, tid; uint64_t vma, address, length, index; };
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
// mov rax, rdi; L: dec rax; jnz L; ret. One begins with a jump over 62 bytes.
static unsigned char loop[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
static unsigned char bodies[2][128];
int main(int argc, char **argv) {
    char path[64];
    int is_map = argc > 2, size[2] = {sizeof loop, 64 + sizeof loop};
    memcpy(bodies[0], loop, sizeof loop);
    bodies[1][0] = 0xeb;
    bodies[1][1] = 62;
    memcpy(bodies[1] + 64, loop, sizeof loop);
    unsigned char *code = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sprintf(path, is_map ? "/tmp/perf-%d.map" : "jit-%d.dump", getpid());
    FILE *file = fopen(path, "w+");
    if (!file) return 1;
    if (is_map) {
        fprintf(file, "%lx 100 compiled_low\n", (long)code);
    } else {
        uint32_t head[10] = {0x4A695444, 1, 40, 62, 0, getpid()};
        fwrite(head, sizeof head, 1, file);
        fflush(file);
        mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
    }
    fflush(file);
    uint64_t end = now() + atof(argv[1]) * 1e9;
    for (int which = 0, index = 0; now() < end; which ^= !is_map) {
        const char *name = which ? "compiled_high" : "compiled_low";
        memcpy(code, bodies[which], size[which]);
        if (!is_map) {
            struct load load = {0, 0, now(), getpid(), getpid(), (long)code, (long)code, size[which], index++};
            load.size = sizeof load + strlen(name) + 1 + size[which];
            fwrite(&load, sizeof load, 1, file);
            fwrite(name, strlen(name) + 1, 1, file);
            fwrite(bodies[which], size[which], 1, file);
            fflush(file);
        }
        for (uint64_t slice = now() + 5000000; now() < slice;) ((void (*)(long))code)(20000);
    }
    if (is_map) unlink(path);
    return 0;
}
"#;

/// The main thread ends; another one works.
const HEADLESS: &str = r#"
#include <pthread.h>
static volatile unsigned long sum;
__attribute__((noinline)) void headless_work(void) { for (int i = 0; i < 100000; i++) sum += i; __asm__ volatile(""); }
static void *work(void *unused) { for (;;) headless_work(); return unused; }
int main(void) { pthread_t thread; pthread_create(&thread, 0, work, 0); pthread_exit(0); }
"#;

/// Copies a program into a memory file, or a library into a file that goes once it is loaded, and runs that.
const LOADER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
    char path[] = "libXXXXXX", bytes[65536];
    int is_program = argc > 2, from = open(argv[1], O_RDONLY);
    int to = is_program ? memfd_create("program", 0) : mkstemp(path);
    for (long n; (n = read(from, bytes, sizeof bytes)) > 0;) if (write(to, bytes, n) != n) return 1;
    if (is_program) return fexecve(to, argv + 1, environ);
    char whole[4096];
    void *library = dlopen(realpath(path, whole), RTLD_NOW);
    unlink(path);
    if (!library) return 2;
    ((void (*)(void))dlsym(library, "vanished_work"))();
    return 0;
}
"#;

/// Works for 0.6 s, as a program and as a library.
const WORKER: &str = r#"
#include <time.h>
static volatile unsigned long sum;
void vanished_work(void) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 1000000; i++) sum += i;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1e9 + now.tv_nsec - begin.tv_nsec < 6e8);
}
int main(void) { vanished_work(); return 0; }
"#;

/// Moves its text to anonymous memory, as programs do that want it in huge pages, and works there for 5 s.
const MOVER: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) void moved_leaf(void) { for (int i = 0; i < 100000; i++) sum += i; }
__attribute__((noinline)) void moved_work(double seconds) {
    time_t end = time(0) + seconds;
    while (time(0) < end) moved_leaf();
    __asm__ volatile("");
}
int main(int argc, char **argv) {
    char line[4096], path[4096];
    unsigned long start = 0, end = 0, a, b;
    long n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, " r-xp ") && strstr(line, path) && sscanf(line, "%lx-%lx", &a, &b) == 2) { start = a; end = b; break; }
    fclose(maps);
    char *copy = mmap(0, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, (void *)start, end - start);
    if (mprotect(copy, end - start, PROT_READ | PROT_EXEC)) return 1;
    if (mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, start) != (void *)start) return 2;
    puts("moved"); fflush(stdout);
    moved_work(5);
    return 0;
}
"#;

/// One function in each kind of memory that may hold code, all with names in a perf-map, each for the same time.
const MEMORIES: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>
enum { BYTES = 4096, ALL = PROT_READ | PROT_WRITE | PROT_EXEC, KINDS = 9 };
static const char *names[KINDS] = {"heap", "system_v", "dev_shm", "tmp", "anonymous", "shared", "zero", "memory_file", "stack"};
// mov rax, rdi; L: dec rax; jnz L; ret.
static const unsigned char loop[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void *deleted(char *path) {
    int file = mkstemp(path);
    unlink(path);
    ftruncate(file, BYTES);
    return mmap(0, BYTES, ALL, MAP_SHARED, file, 0);
}
int main(int argc, char **argv) {
    char path[64], dev_shm[] = "/dev/shm/codeXXXXXX", tmp[] = "/tmp/codeXXXXXX", stack[3 * BYTES];
    void *code[KINDS];
    code[0] = (void *)(((uintptr_t)sbrk(3 * BYTES) + BYTES - 1) & -BYTES);
    mprotect(code[0], BYTES, ALL);
    int segment = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0700);
    code[1] = shmat(segment, 0, SHM_EXEC);
    shmctl(segment, IPC_RMID, 0);
    code[2] = deleted(dev_shm);
    code[3] = deleted(tmp);
    code[4] = mmap(0, BYTES, ALL, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code[5] = mmap(0, BYTES, ALL, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    code[6] = mmap(0, BYTES, ALL, MAP_PRIVATE, open("/dev/zero", O_RDWR), 0);
    int file = memfd_create("code", MFD_CLOEXEC);
    ftruncate(file, BYTES);
    code[7] = mmap(0, BYTES, ALL, MAP_SHARED, file, 0);
    code[8] = (void *)(((uintptr_t)stack + BYTES - 1) & -BYTES);
    mprotect(code[8], BYTES, ALL);
    sprintf(path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (!map) return 1;
    for (int kind = 0; kind < KINDS; kind++) {
        if (code[kind] == MAP_FAILED) { perror(names[kind]); return 1; }
        memcpy(code[kind], loop, sizeof loop);
        fprintf(map, "%lx %zx in_%s\n", (long)code[kind], sizeof loop, names[kind]);
    }
    fclose(map);
    uint64_t end = now() + atof(argv[1]) * 1e9;
    for (int kind = 0; now() < end; kind = (kind + 1) % KINDS)
        for (uint64_t slice = now() + 5000000; now() < slice;) ((void (*)(long))code[kind])(20000);
    unlink(path);
    return 0;
}
"#;
/// In the order of the program.
const MEMORY_KINDS: [&str; 9] =
    ["heap", "system_v", "dev_shm", "tmp", "anonymous", "shared", "zero", "memory_file", "stack"];

/// A busy program has more samples in half a second at 997 Hz, on a busy machine too.
const LEAST_SAMPLES: usize = 50;
/// Nearly all time is in the function that is looked for; the first milliseconds are those of the loader.
const LEAST_NAMED: f64 = 0.8;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Result<Place, Skip> {
        probe::program("cc")?;
        Ok(Place(tempfile::tempdir().expect("make a directory")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn compile(&self, name: &str, source: &str, options: &[&str]) {
        let from = self.path(&format!("{name}.c"));
        std::fs::write(&from, source).expect("write a source");
        let mut compiler = command("cc");
        compiler.args(["-O1", "-g", "-w", "-pthread"]).args(options).arg(&from);
        text(compiler.arg("-o").arg(self.path(name)).arg("-ldl"));
    }

    /// Records with these options and words. The recorder's user has no copies but those of the recording.
    fn record(&self, options: &[&str], words: &[&str]) -> Result<(), Skip> {
        let mut recorder = whit();
        recorder.current_dir(self.0.path()).env("HOME", self.0.path());
        recorder.args([
            "record",
            "--engine=ring",
            "-e",
            "cpu-clock",
            "-F",
            "997",
            "-o",
            "perf.data",
        ]);
        whit_testing::run::record(recorder.args(options).args(words)).map(drop)
    }

    /// Address and name of each sample of a program.
    fn leaves(&self, comm: &str) -> Vec<(u64, String)> {
        let mut printer = whit();
        printer.current_dir(self.0.path()).env("HOME", self.0.path());
        printer.args(["script", "--comms", comm, "-G", "-F", "ip,sym", "-i", "perf.data"]);
        let leaf = |line: &str| {
            let (address, name) = line.trim().split_once(' ')?;
            Some((u64::from_str_radix(address, 16).ok()?, name.trim().to_owned()))
        };
        text(&mut printer).lines().filter_map(leaf).collect()
    }

    fn chains(&self, comm: &str) -> String {
        let mut printer = whit();
        printer.current_dir(self.0.path()).env("HOME", self.0.path());
        text(printer.args(["script", "--comms", comm, "-F", "ip,sym", "-i", "perf.data"]))
    }

    fn assert_named(&self, comm: &str, function: &str) {
        let leaves = self.leaves(comm);
        let named = leaves.iter().filter(|(_, name)| name.starts_with(function)).count();
        let is_most = named as f64 >= LEAST_NAMED * leaves.len() as f64;
        assert!(leaves.len() >= LEAST_SAMPLES && is_most, "{named} of {}", leaves.len());
    }
}

fn need_x86_64() -> Result<(), Skip> {
    match cfg!(target_arch = "x86_64") {
        true => Ok(()),
        false => Err(Skip("the compiler of the test writes code of x86-64".to_owned())),
    }
}

/// `compiled_high` works behind its first 64 bytes, `compiled_low` in front of that.
fn wrong(leaves: &[(u64, String)]) -> (usize, usize) {
    let compiled = leaves.iter().filter(|(_, name)| name.starts_with("compiled_"));
    let is_wrong = |(address, name): &&(u64, String)| {
        (address & 0xfff >= 64) != name.starts_with("compiled_high")
    };
    (compiled.clone().count(), compiled.filter(is_wrong).count())
}

#[test]
fn code_that_is_replaced_at_one_address_has_the_name_of_its_time() {
    check("vanished_code::replaced", || {
        need_x86_64()?;
        let place = Place::new()?;
        place.compile("compiler", COMPILER, &[]);
        let clocks: [&[&str]; 3] = [&[], &["-k", "raw"], &["-k", "real"]];
        for clock in clocks {
            let options = [&["--engine=ring"][..], clock].concat();
            place.record(&options, &["--", "./compiler", "1"])?;
            let (named, wrong) = wrong(&place.leaves("compiler"));
            // One replacement in 200 may be interrupted between the code and its record.
            assert!(named >= LEAST_SAMPLES && wrong <= 1, "{wrong} of {named} with {clock:?}");
        }
        Ok(())
    });
}

#[test]
fn a_process_with_an_ended_main_thread_has_names() {
    check("vanished_code::headless", || {
        let place = Place::new()?;
        place.compile("headless", HEADLESS, &[]);
        let load = Load::start(&mut command(place.path("headless").to_str().expect("UTF-8")));
        let pid = load.id().to_string();
        let maps = PathBuf::from(format!("/proc/{pid}/maps"));
        wait_until("the main thread ends", || {
            std::fs::read(&maps).map_or(true, |maps| maps.is_empty())
                && Path::new(&format!("/proc/{pid}")).exists()
        });
        for engine in engines("vanished_code") {
            place.record(&[engine, "-p", &pid], &["--", "sleep", "0.5"])?;
            place.assert_named("headless", "headless_work");
        }
        Ok(())
    });
}

#[test]
fn files_that_are_gone_once_they_are_mapped_give_names() {
    check("vanished_code::gone", || {
        probe::root()?;
        let place = Place::new()?;
        place.compile("loader", LOADER, &[]);
        for id in ["--build-id", "--build-id=none"] {
            let id = format!("-Wl,{id}");
            place.compile("worker", WORKER, &[&id]);
            place.compile("worker.so", WORKER, &["-shared", "-fPIC", &id]);
            for engine in engines("vanished_code") {
                place.record(&[engine], &["--", "./loader", "worker.so"])?;
                place.assert_named("loader", "vanished_work");
                place.record(&[engine], &["--", "./loader", "./worker", "program"])?;
                let comm = text(
                    whit()
                        .current_dir(place.0.path())
                        .args([
                            "report",
                            "--stdio",
                            "--no-children",
                            "--sort=sym",
                            "-i",
                            "perf.data",
                        ])
                        .env("HOME", place.0.path()),
                );
                assert!(comm.contains("vanished_work"), "{comm}");
            }
        }
        Ok(())
    });
}

#[test]
fn names_of_compiled_code_outlive_their_process() {
    check("vanished_code::outlived", || {
        need_x86_64()?;
        let place = Place::new()?;
        place.compile("compiler", COMPILER, &[]);
        for engine in engines("vanished_code") {
            // It removes its perf-map when it ends.
            place.record(&[engine], &["--", "./compiler", "0.6", "map"])?;
            place.assert_named("compiler", "compiled_low");
            place.record(&[engine, "-N"], &["--", "./compiler", "0.6", "map"])?;
            let leaves = place.leaves("compiler");
            assert!(!leaves.iter().any(|(_, name)| name == "compiled_low"), "nothing was kept");
        }
        Ok(())
    });
}

#[test]
fn code_in_each_kind_of_memory_has_its_names() {
    check("vanished_code::memories", || {
        need_x86_64()?;
        let place = Place::new()?;
        place.compile("memories", MEMORIES, &[]);
        for engine in engines("vanished_code") {
            place.record(&[engine], &["--", "./memories", "1"])?;
            place.assert_named("memories", "in_");
            let leaves = place.leaves("memories");
            for kind in MEMORY_KINDS {
                let of_kind = leaves.iter().filter(|(_, name)| *name == format!("in_{kind}"));
                let share = of_kind.count() as f64 / leaves.len() as f64;
                // Slices of 5 ms in turn: a thread that waits for a CPU may lose some of one kind.
                let least = 0.5 / MEMORY_KINDS.len() as f64;
                assert!(share >= least, "{engine}: {share} in {kind}: {leaves:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn text_that_was_moved_before_the_recording_has_names_and_chains() {
    check("vanished_code::moved", || {
        let place = Place::new()?;
        // Text behind a mapping of its file, and in front of one.
        for (name, options) in
            [("mover", &[][..]), ("first", &["-no-pie", "-Wl,-z,noseparate-code"])]
        {
            place.compile(name, MOVER, options);
            for engine in engines("vanished_code") {
                let chains = if engine.ends_with("ring") { "dwarf" } else { "fp" };
                let moved = Load::start(Command::new(place.path(name)).stdout(Stdio::null()));
                let maps = PathBuf::from(format!("/proc/{}/maps", moved.id()));
                wait_until("the text is moved", || is_moved(&maps));
                let pid = moved.id().to_string();
                place.record(
                    &[engine, "--call-graph", chains, "-p", &pid],
                    &["--", "sleep", "0.4"],
                )?;
                place.assert_named(name, "moved_leaf");
                assert!(place.chains(name).contains("moved_work"), "{name} {engine}");
            }
        }
        Ok(())
    });
}

/// Whether a mapping of code has no name.
fn is_moved(maps: &Path) -> bool {
    let maps = std::fs::read_to_string(maps).unwrap_or_default();
    maps.lines().any(|line| line.contains(" r-xp 00000000 00:00 0") && !line.ends_with(']'))
}

/// Directories that make a path longer than the kernel's 4096 bytes.
const DEEP: &str = "import os, shutil, sys\n\
    for _ in range(25): os.mkdir(sys.argv[1]); os.chdir(sys.argv[1])\n\
    shutil.copy(sys.argv[2], 'deep'); os.execv('./deep', ['./deep'])";

#[test]
fn a_program_with_a_path_of_more_than_4096_bytes_has_names_or_a_reason() {
    check("vanished_code::deep", || {
        probe::program("python3")?;
        let place = Place::new()?;
        place.compile("worker", WORKER, &[]);
        place.compile("headless", HEADLESS, &[]);
        let name = "d".repeat(200);
        let start = |program: &str| {
            let mut python = Command::new("python3");
            python.current_dir(place.0.path()).args(["-c", DEEP, &name]).arg(place.path(program));
            python.stdout(Stdio::null());
            python
        };
        let mut deep = Load::start(&mut start("headless"));
        let comm = PathBuf::from(format!("/proc/{}/comm", deep.id()));
        wait_until("it runs", || std::fs::read(&comm).is_ok_and(|comm| comm == b"deep\n"));
        let pid = deep.id().to_string();
        place.record(&["-p", &pid], &["--", "sleep", "0.4"])?;
        deep.end();
        place.assert_named("deep", "headless_work");
        std::fs::remove_dir_all(place.path(&name)).expect("remove the directories");
        let python = start("worker");
        let words: Vec<_> = python.get_args().map(|word| word.to_str().expect("text")).collect();
        place.record(&[], &[&["--", "python3"], &words[..]].concat())?;
        let mut report = whit();
        report.current_dir(place.0.path()).args(["report", "--stdio", "-i", "perf.data"]);
        let report = text(&mut report);
        let reason = "its path is longer than the 4096 bytes that the kernel records";
        assert!(report.contains(reason), "{report}");
        Ok(())
    });
}
