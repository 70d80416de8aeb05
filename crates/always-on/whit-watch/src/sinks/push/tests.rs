use super::*;
use whit_push::Kind;

fn push(name: &str, url: &str, folder: &Path, shared: &SharedPusher) -> Result<Push, String> {
    let log = Log::new(Box::new(std::io::sink()));
    Push::new((name, &Settings::new(Kind::Otlp, url)), folder, shared.clone(), &log)
}

#[test]
fn new_settings_take_the_spool_over_and_old_sinks_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shared = SharedPusher::default();
    let old = push("main", "http://127.0.0.1:1", folder.path(), &shared).unwrap();
    assert_eq!(old.status()["url"], "http://127.0.0.1:1");
    let new = push("main", "http://127.0.0.1:2", folder.path(), &shared).unwrap();
    // Until the new sink has a thread, the old destination goes on.
    assert_eq!(new.status()["url"], "http://127.0.0.1:1");
    new.idle();
    assert_eq!(new.status()["url"], "http://127.0.0.1:2");
    old.idle();
    old.finish();
    assert_eq!(new.status()["url"], "http://127.0.0.1:2");
    assert_eq!(new.status()["state"], "idle");
    new.finish();
    assert_eq!(new.status()["state"], "stopped");
    // The spool is free.
    push("main", "http://127.0.0.1:3", folder.path(), &SharedPusher::default()).unwrap();
}

#[test]
fn wrong_settings_leave_the_old_destination() {
    let folder = tempfile::tempdir().unwrap();
    let shared = SharedPusher::default();
    let old = push("main", "http://127.0.0.1:1", folder.path(), &shared).unwrap();
    let refused = push("main", "127.0.0.1", folder.path(), &shared).err().unwrap();
    assert!(refused.contains("push.main: url '127.0.0.1'"), "{refused}");
    old.idle();
    assert_eq!(old.status()["url"], "http://127.0.0.1:1");
}

#[test]
fn counters_are_numbers_of_one_level_for_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let push = push("main", "http://127.0.0.1:1", folder.path(), &SharedPusher::default()).unwrap();
    let status = push.status();
    for key in
        ["accepted", "sent_windows", "waiting_bytes", "dropped_spool_full_windows", "retries"]
    {
        assert!(status[key].is_u64(), "{key}: {status}");
    }
}
