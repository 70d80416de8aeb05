//! The contents of recordings, and the way of recording; names that mean the same in another run.

use crate::warning::warning_text;
use whit_profile::model::{HeaderEvent, Profile, RecordingInfo};
use whit_profile::switches::Switches;
use whit_types::OutsideText;

/// Attributes of events that choose records.
const ATTRIBUTES: [&str; 10] = [
    "{ sample_period, sample_freq }",
    "freq",
    "inherit",
    "exclude_user",
    "exclude_kernel",
    "exclude_idle",
    "exclude_callchain_kernel",
    "exclude_callchain_user",
    "sample_stack_user",
    "branch_sample_type",
];

/// CPU, architecture and kernel.
pub fn machine(info: &RecordingInfo) -> Vec<(&'static str, OutsideText)> {
    vec![
        ("CPU", info.cpu_desc.clone()),
        ("architecture", info.arch.clone()),
        ("kernel", info.os_release.clone()),
    ]
}

/// The warnings of a recording.
pub(super) fn notes(profile: &Profile) -> Vec<OutsideText> {
    profile.warnings.iter().map(warning_text).collect()
}

/// The facts that decide which waits and runs a recording has.
pub(super) fn of_switches(profile: &Profile, switches: &Switches) -> Vec<(&'static str, String)> {
    let sources = switches.sources;
    let has = |is_there: bool| if is_there { "recorded" } else { "not recorded" }.to_owned();
    let walked = profile.ledger.as_ref().is_some_and(|it| it.stacks.walks > 0);
    let switches_from = match (sources.records, sources.tracepoint) {
        (true, true) => "records and tracepoints",
        (true, false) => "records",
        (false, true) => "tracepoints",
        (false, false) => "not recorded",
    };
    vec![
        ("engine", if walked { "bpf" } else { "ring" }.to_owned()),
        ("context switches", switches_from.to_owned()),
        ("call stacks of switches", has(sources.stacks)),
        ("wake-ups", has(sources.wakeups)),
        ("threads", threads(&profile.recording).to_owned()),
        ("events", events(&profile.recording)),
    ]
}

/// Switches of one thread or of a CPU: the latter have those of all threads.
fn threads(info: &RecordingInfo) -> &'static str {
    let mut attributes = info.header.events.iter().flat_map(|event| &event.attributes);
    let inherits = attributes.any(|(name, _)| name == "inherit");
    if inherits { "of the target" } else { "of the whole system" }
}

pub(super) fn events(info: &RecordingInfo) -> String {
    let event = |event: &HeaderEvent| {
        let of = event.attributes.iter().filter(|(name, _)| ATTRIBUTES.contains(&&**name));
        let of: Vec<_> = of.map(|(name, value)| format!("{name} = {value}")).collect();
        match &of[..] {
            [] => event.name.exact().to_owned(),
            of => format!("{} ({})", event.name.exact(), of.join(", ")),
        }
    };
    let events = info.header.events.iter();
    let recorded = events.filter(|it| !it.name.exact().starts_with("dummy"));
    recorded.map(event).collect::<Vec<_>>().join("; ")
}

/// The first of the ports that the kernel gives to clients.
const FIRST_CLIENT_PORT: u32 = 32_768;

/// A name of an object without the numbers that each run gives anew: addresses of memory, inodes, processes, ports of clients.
pub(super) fn stable_name(name: &str) -> String {
    let mut stable = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(|it: char| it.is_ascii_digit()) {
        let before = &rest[..at];
        let number = &rest[at..];
        let is_address = number.starts_with("0x") && (before.is_empty() || before.ends_with(' '));
        let digits = if is_address {
            2 + number[2..].bytes().take_while(u8::is_ascii_hexdigit).count()
        } else {
            number.bytes().take_while(u8::is_ascii_digit).count()
        };
        let (digits, behind) = number.split_at(digits);
        let of_process = ["process ", "child "].iter().any(|word| before.ends_with(word));
        let is_inode = before.ends_with('[') && behind.starts_with(']');
        let port = || digits.parse().is_ok_and(|port: u32| port >= FIRST_CLIENT_PORT);
        stable.push_str(before);
        match is_address || of_process || is_inode || before.ends_with(':') && port() {
            true => stable.push('…'),
            false => stable.push_str(digits),
        }
        rest = behind;
    }
    stable + rest
}

#[cfg(test)]
mod tests {
    use super::stable_name;

    #[test]
    fn numbers_that_each_run_gives_anew_are_left_out() {
        for (name, stable) in [
            ("pipe:[4711]", "pipe:[…]"),
            ("0x7f3a12 (process 42)", "… (process …)"),
            ("futex 0x55d0", "futex …"),
            ("futex table+0x10 in app2", "futex table+0x10 in app2"),
            ("tcp 10.0.0.7:5432", "tcp 10.0.0.7:5432"),
            ("tcp 10.0.0.7:45432", "tcp 10.0.0.7:…"),
            ("child 99", "child …"),
            ("/var/log/0x12/1.log", "/var/log/0x12/1.log"),
            ("[no address] in f3 (app)", "[no address] in f3 (app)"),
        ] {
            assert_eq!(stable_name(name), stable);
        }
    }
}
