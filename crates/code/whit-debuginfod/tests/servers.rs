//! The program against servers that do what real ones do not do on order.

mod support;

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use support::{Behaviour, Run, Server, refuse_all};
use whit_companion::{Cache, DEBUG_SECTIONS, End};
use whit_elf::ElfImage;
use whit_testing::{check, workload};
use whit_types::BuildId;

fn failure(end: &End) -> &str {
    match end {
        End::Failed(reason) => reason,
        End::Here { fetched_bytes } => panic!("{fetched_bytes} bytes were fetched"),
        End::Stopped => panic!("stopped without a signal"),
    }
}

fn id() -> BuildId {
    BuildId::new(&[0xab, 0xcd, 0xef, 0x01]).unwrap()
}

/// Nothing but control files and notes of failed queries.
fn assert_nothing_kept(cache: &Cache) {
    let folder = cache.folder(id());
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        assert_eq!(file.metadata().unwrap().len(), 0, "{:?} was kept", file.path());
    }
}

#[test]
fn a_file_is_kept_only_if_it_is_of_the_build_id() {
    check("whole_file", || {
        let bytes = fs::read(workload("deep")?).expect("read a program");
        let own = ElfImage::from_bytes("deep".as_ref(), bytes.clone().into()).unwrap();
        let own = own.build_id().expect("a build id");
        let size = bytes.len() as u64;
        let server = Server::start(move |path| match path.ends_with("/debuginfo") {
            true => Behaviour::Bytes(bytes.clone()),
            false => Behaviour::Status(404),
        });
        let run = Run::new(&server.url());
        assert_eq!(run.one(own, "whole"), End::Here { fetched_bytes: size });
        assert_eq!(run.cache.whole(own).metadata().unwrap().len(), size);
        // It is there now.
        let asked = server.asked();
        assert_eq!(run.one(own, "symbols,debug"), End::Here { fetched_bytes: 0 });
        assert_eq!(server.asked(), asked);
        let end = run.one(id(), "whole");
        let expected = format!("sent the file of another build id ({own}); it was not kept");
        assert!(failure(&end).contains(&expected), "{end:?}");
        assert_nothing_kept(&run.cache);
        Ok(())
    });
}

#[test]
fn garbage_is_refused_with_the_reason() {
    let server = Server::start(|_| Behaviour::Bytes(b"<html>Welcome</html>".to_vec()));
    let run = Run::new(&server.url());
    let whole = run.one(id(), "whole");
    assert!(failure(&whole).contains("sent no ELF file; it was not kept"), "{whole:?}");
    let section = run.one(id(), "symbols");
    assert!(failure(&section).contains("are no section .symtab"), "{section:?}");
    assert_nothing_kept(&run.cache);
}

#[test]
fn a_file_that_no_server_has_is_not_asked_for_again_at_once() {
    let server = Server::start(refuse_all);
    let run = Run::new(&server.url());
    let first = run.one(id(), "symbols,debug");
    let expected = format!("no server has it: {}", server.url());
    assert_eq!(failure(&first), expected);
    let asked = server.asked();
    let second = run.one(id(), "symbols,debug");
    assert!(failure(&second).starts_with("asked a short while ago"), "{second:?}");
    assert_eq!(server.asked(), asked);
    // The note has elfutils' form, which says how long it counts.
    fs::write(run.cache.root().join("cache_miss_s"), "60").unwrap();
    let note = fs::File::open(run.cache.section(id(), ".symtab")).unwrap();
    assert_eq!(note.metadata().unwrap().len(), 0);
    note.set_modified(SystemTime::now() - Duration::from_secs(59)).unwrap();
    assert!(failure(&run.one(id(), "symbols,debug")).starts_with("asked a short while ago"));
    note.set_modified(SystemTime::now() - Duration::from_secs(61)).unwrap();
    assert_eq!(failure(&run.one(id(), "symbols,debug")), expected);
    assert!(server.asked() > asked);
}

#[test]
fn a_server_of_old_versions_gives_the_whole_file() {
    check("old_server", || {
        let bytes = fs::read(workload("deep")?).expect("read a program");
        let own = ElfImage::from_bytes("deep".as_ref(), bytes.clone().into()).unwrap();
        let own = own.build_id().expect("a build id");
        let size = bytes.len() as u64;
        let server = Server::start(move |path| match path.ends_with("/debuginfo") {
            true => Behaviour::Bytes(bytes.clone()),
            false => Behaviour::Status(503),
        });
        let run = Run::new(&server.url());
        assert_eq!(run.one(own, "symbols,debug"), End::Here { fetched_bytes: size });
        assert_eq!(server.asked(), 2);
        Ok(())
    });
}

#[test]
fn sections_that_come_later_are_asked_of_the_same_server() {
    let symbols = vec![0; 48];
    let other = Server::start(refuse_all);
    let server = Server::start(move |path| match path.rsplit('/').next() {
        Some(".symtab") => Behaviour::Bytes(symbols.clone()),
        Some(".strtab") => Behaviour::Bytes(b"\0main\0".to_vec()),
        _ => Behaviour::Status(404),
    });
    let run = Run::new(&format!("{} {}", other.url(), server.url()));
    assert_eq!(run.one(id(), "symbols,debug"), End::Here { fetched_bytes: 54 });
    // The first server has nothing of it, and is asked once.
    assert_eq!((other.asked(), server.asked()), (1, 3));
    assert_eq!(fs::read(run.cache.section(id(), ".strtab")).unwrap(), b"\0main\0");
    let missed = run.cache.section(id(), DEBUG_SECTIONS[0]);
    assert_eq!(missed.metadata().unwrap().len(), 0);
}

#[test]
fn a_slow_server_is_left_after_the_time_out() {
    for behaviour in [Behaviour::Silent, Behaviour::Dripping] {
        let of_server = behaviour.clone();
        let server = Server::start(move |_| of_server.clone());
        let mut run = Run::new(&server.url());
        run.set("DEBUGINFOD_TIMEOUT", "1");
        let ends = run.all(&[(id(), "whole"), (BuildId::new(&[7; 20]).unwrap(), "symbols")]);
        for (_, end) in &ends {
            let reason = failure(end);
            assert!(reason.contains("DEBUGINFOD_TIMEOUT allows more time"), "{reason}");
        }
        // It is not waited for a second time.
        assert_eq!((ends.len(), server.asked()), (2, 1));
        assert_nothing_kept(&run.cache);
    }
}

#[test]
fn a_file_that_takes_too_long_as_a_whole_is_left() {
    let server = Server::start(|_| Behaviour::Endless);
    let mut run = Run::new(&server.url());
    run.set("DEBUGINFOD_MAXTIME", "1");
    let end = run.one(id(), "whole");
    assert!(failure(&end).contains("was not done after 1 s"), "{end:?}");
    assert_nothing_kept(&run.cache);
}

#[test]
fn a_huge_file_is_refused_whether_or_not_the_server_says_its_size() {
    for behaviour in [Behaviour::Endless, Behaviour::Promise(1 << 40)] {
        let of_server = behaviour.clone();
        let server = Server::start(move |_| of_server.clone());
        let mut run = Run::new(&server.url());
        run.set("DEBUGINFOD_MAXSIZE", "1000000");
        let end = run.one(id(), "whole");
        let reason = failure(&end);
        assert!(reason.contains("more than 1000000 bytes (DEBUGINFOD_MAXSIZE"), "{reason}");
        assert_nothing_kept(&run.cache);
    }
}

#[test]
fn an_answer_that_is_cut_short_is_refused() {
    let server = Server::start(|_| Behaviour::Cut);
    let run = Run::new(&server.url());
    assert!(!failure(&run.one(id(), "symbols")).is_empty());
    assert_nothing_kept(&run.cache);
}

#[test]
fn redirections_are_followed_and_circles_end() {
    let target = Server::start(|path| match path.rsplit('/').next() {
        Some(".symtab") => Behaviour::Bytes(vec![0; 24]),
        Some(".strtab") => Behaviour::Bytes(b"\0x\0".to_vec()),
        _ => Behaviour::Status(404),
    });
    let to = target.url();
    let server = Server::start(move |path| Behaviour::Redirect(format!("{to}{path}")));
    let run = Run::new(&server.url());
    assert_eq!(run.one(id(), "symbols"), End::Here { fetched_bytes: 27 });
    let circle = Server::start(|path| Behaviour::Redirect(path.to_owned()));
    let end = Run::new(&circle.url()).one(id(), "symbols");
    assert!(failure(&end).contains("redirect"), "{end:?}");
    assert!(circle.asked() < 12, "{} redirections were followed", circle.asked());
}

#[test]
fn a_server_that_is_gone_is_named_and_others_are_asked() {
    let gone = Server::start(refuse_all).url();
    let server = Server::start(|path| match path.rsplit('/').next() {
        Some(".symtab") => Behaviour::Bytes(vec![0; 24]),
        Some(".strtab") => Behaviour::Bytes(b"\0x\0".to_vec()),
        _ => Behaviour::Status(404),
    });
    let end = Run::new(&gone).one(id(), "symbols");
    assert!(failure(&end).contains(&gone), "{end:?}");
    let run = Run::new(&format!("{gone} {}", server.url()));
    assert_eq!(run.one(id(), "symbols"), End::Here { fetched_bytes: 27 });
}

#[test]
fn the_end_of_standard_input_ends_the_wait() {
    let server = Server::start(|_| Behaviour::Silent);
    let run = Run::new(&server.url());
    let (ends, status) = run.stopped_after(&[(id(), "whole")], &server, |child| {
        drop(child.stdin.take());
    });
    assert_eq!((&ends[0].1, status), (&End::Stopped, Some(130)));
    let (ends, status) = run.stopped_after(&[(id(), "whole")], &server, |child| {
        whit_testing::wait::signal(child, "-INT");
    });
    assert_eq!((&ends[0].1, status), (&End::Stopped, Some(130)));
    assert_nothing_kept(&run.cache);
}

#[test]
fn wrong_requests_and_settings_name_the_way_out() {
    let program = env!("CARGO_BIN_EXE_whit-debuginfod");
    let output = Command::new(program).env_remove("DEBUGINFOD_URLS").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("set DEBUGINFOD_URLS"), "{said}");
    let mut command = Command::new(program);
    let output = command.env("DEBUGINFOD_URLS", "http://127.0.0.1:1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the requests end without the line `end`"), "{said}");
    let output = Command::new(program).arg("--help").output().unwrap();
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stderr).contains("whit report")
    );
}
