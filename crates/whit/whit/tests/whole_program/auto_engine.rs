//! `--engine=auto`, which is the default: the same command records the same kind of thing, whichever engine it takes.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::faults::ordinary_users_may_record;
use crate::support::script;
use crate::support::tools::{command, perf, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run;

/// Some 0.3 s of a program without frame pointers.
const ITERATIONS: &str = "60000";
/// Its innermost function, and where its stacks begin.
const INNERMOST: &str = "kernels::hash_block";
const OUTERMOST: &str = "_start";
/// Stacks that must be whole: a table or a mapping may come a moment late on a busy machine.
const LEAST_WHOLE: f64 = 0.9;
const LEAST_SAMPLES: usize = 100;

/// The samples of a recording lead from the innermost function to the outermost.
fn assert_whole_stacks(recording: &Path, said: &str) {
    let fields = ["script", "-F", "comm,ip,sym", "-i"];
    let samples = script::parse(&text(whit().args(fields).arg(recording)));
    let inner: Vec<_> = samples.iter().filter(|sample| sample.passes(INNERMOST)).collect();
    assert!(inner.len() > LEAST_SAMPLES, "{} of {}: {said}", inner.len(), samples.len());
    let whole = inner.iter().filter(|sample| sample.root() == OUTERMOST).count();
    let share = whole as f64 / inner.len() as f64;
    assert!(share > LEAST_WHOLE, "{whole} of {} are whole: {said}", inner.len());
}

/// Records the program by a whit at a path, with a command in front of it; gives whit's messages.
fn record(mut recorder: Command, options: &[&str], program: &Path, out: &Path) -> String {
    recorder.args(["record", "-F", "1000"]).args(options).arg("-o").arg(out);
    recorder.arg("--").arg(program).args(["--iterations", ITERATIONS]);
    run::stderr(&run::run(&mut recorder))
}

#[test]
fn where_programs_load_stacks_need_no_further_option() {
    check("auto_engine_bpf", || {
        probe::bpf_stacks()?;
        let (place, program) = (tempfile::tempdir().expect("make a directory"), workload("deep")?);
        let out = place.path().join("perf.data");
        for options in [&[][..], &["-g"], &["--engine=auto"], &["--engine=auto", "-g"]] {
            let recorder = whit();
            let options = [&["-e", "cpu-clock"], options].concat();
            let said = record(recorder, &options, &program, &out);
            let names_engine = options.contains(&"--engine=auto");
            assert_eq!(
                said.contains("--engine=auto takes the BPF engine\n"),
                names_engine,
                "{said}"
            );
            assert!(said.contains("stacks complete"), "{said}");
            assert!(!said.contains("warning"), "{said}");
            assert_whole_stacks(&out, &said);
        }
        Ok(())
    });
}

/// A user without rights gets them too, and hears why they are others.
#[test]
fn where_no_program_loads_stacks_come_from_dumps() {
    check("auto_engine_ring", || {
        probe::root()?;
        ordinary_users_may_record()?;
        let place = tempfile::tempdir_in("/tmp").expect("make a directory");
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place.path(), everybody).expect("open the directory");
        // By another process: nobody here has the copy open when it is executed, nor a child of another test.
        let copy = |from: &Path, name: &str| {
            let to = place.path().join(name);
            run::run(command("cp").arg(from).arg(&to));
            to
        };
        let recorder = copy(Path::new(whit().get_program()), "whit");
        let program = copy(&workload("deep")?, "deep");
        for (number, options) in
            [&["-e", "cpu-clock:u"][..], &["-e", "cpu-clock:u", "-g"]].into_iter().enumerate()
        {
            let out = place.path().join(format!("{number}.data"));
            let mut user = command("setpriv");
            user.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&recorder);
            user.env("HOME", place.path()).current_dir(place.path());
            let said = record(user, options, &program, &out);
            assert!(said.contains("--engine=auto takes the ring engine: "), "{said}");
            assert!(said.contains("cap_bpf") && said.contains("--call-graph dwarf"), "{said}");
            assert!(!said.contains("libbpf"), "the words of a library: {said}");
            assert_whole_stacks(&out, &said);
        }
        Ok(())
    });
}

/// The user may name a kind of call chains, or none.
#[test]
fn call_chains_that_are_asked_for_by_name_are_those() {
    check("auto_engine_given", || {
        let (place, program) = (tempfile::tempdir().expect("make a directory"), workload("deep")?);
        let out = place.path().join("perf.data");
        probe::own_events()?;
        for (mode, chains) in [("no", "no call chains"), ("dwarf", "dumps of stacks")] {
            let options = ["--engine=auto", "-e", "cpu-clock:u", "--call-graph", mode];
            let said = record(whit(), &options, &program, &out);
            assert!(said.contains("takes the ring engine: ") && said.contains(chains), "{said}");
        }
        Ok::<_, Skip>(())
    });
}

/// Fields of samples, and whether they have call chains.
fn chains_of(recording: &Path) -> bool {
    text(whit().args(["script", "-F", "comm,ip,sym", "-i"]).arg(recording)).contains("_start")
}

/// Other options decide where `--engine` does not: those that only the ring engine takes, and those of perf that ask
/// for something else than call chains.
#[test]
fn without_an_engine_other_options_choose_it() {
    check("engine_by_other_options", || {
        probe::bpf_stacks()?;
        let (place, program) = (tempfile::tempdir().expect("make a directory"), workload("deep")?);
        let out = place.path().join("perf.data");
        let event = ["-e", "cpu-clock:u"];
        for (options, reason, has_chains) in [
            (&["--call-graph", "no"][..], None, false),
            (&["--call-graph", "dwarf"], None, true),
            (&["-d"], Some("takes no addresses of data"), false),
            (&["-d", "-g"], Some("takes no addresses of data"), true),
            (&["--per-thread"], Some("a ring for each CPU"), false),
        ] {
            let said = record(whit(), &[&event, options].concat(), &program, &out);
            assert!(!said.contains("stacks complete"), "{options:?}: {said}");
            let notice = said.lines().find(|line| line.contains("takes the ring engine: "));
            match reason {
                None => assert_eq!(notice, None, "{options:?}: {said}"),
                Some(reason) => assert!(notice.is_some_and(|it| it.contains(reason)), "{said}"),
            }
            assert_eq!(chains_of(&out), has_chains, "{options:?}: {said}");
        }
        Ok::<_, Skip>(())
    });
}

/// Both the recorder and the report say that call chains lead nowhere, of whit's recordings and of perf's.
#[test]
fn call_chains_of_one_frame_are_named() {
    check("one_frame_chains", || {
        probe::own_events()?;
        let (place, program) = (tempfile::tempdir().expect("make a directory"), workload("deep")?);
        let out = place.path().join("perf.data");
        let event = ["-e", "cpu-clock:u"];
        let hint = "user call chains have one frame";
        let reported = || text(whit().args(["report", "--stdio", "-i"]).arg(&out)).contains(hint);
        let by_frame_pointers = [&event[..], &["--call-graph", "fp"]].concat();
        let said = record(whit(), &by_frame_pointers, &program, &out);
        assert!(said.contains(hint) && reported(), "{said}");
        let with = workload("deep-fp")?;
        let said = record(whit(), &by_frame_pointers, &with, &out);
        assert!(!said.contains(hint) && !reported(), "{said}");
        let mut brief = whit();
        if let Ok(perf) = perf() {
            record(perf, &[&event[..], &["-g"]].concat(), &program, &out);
            assert!(reported());
            let facts = text(brief.args(["report", "--brief", "-i"]).arg(&out));
            assert!(
                facts.contains("call chains have one frame: whit record --engine=auto"),
                "{facts}"
            );
        }
        Ok(())
    });
}
