//! The policy for capabilities that whit's file lends it.
//!
//! `whit setup` gives the program's file capabilities, so that members of a group may profile
//! without being root. The kernel then puts them in force before the first instruction of a
//! process whose user has none of them. The policy is:
//!
//! 1. **Nothing is in force by default.** Files that the user names (output, recordings, maps, pipes) are
//!    therefore opened with the user's rights and no more.
//! 2. **A capability is in force around the one call that needs it**, in the one thread that makes
//!    it ([`whit_sys::privilege::raise`]): `perf_event_open`, and the opening of kernel-made files whose names whit
//!    itself puts together.
//! 3. **A subcommand keeps only the capabilities that it needs**
//!    ([`whit_sys::privilege::Privileges::keep`]). One that needs none gives all up for good and becomes an ordinary
//!    process of its user.
//! 4. **The user's command has none.**
//! 5. **The environment is not the user's while capabilities are held.** All but some variables are taken out of it.
//! 6. **Nobody looks into the process meanwhile.**
//!
//! [`whit_sys::privilege`] has the mechanism.

use whit_sys::capability::{Capability, CapabilitySet};
use whit_sys::privilege::BorrowPolicy;

/// The policy of all subcommands.
pub static POLICY: BorrowPolicy = BorrowPolicy {
    borrowable: CapabilitySet::of(&[
        Capability::PerfMon,
        Capability::SysAdmin,
        Capability::SysPtrace,
        Capability::Syslog,
        Capability::Bpf,
        Capability::IpcLock,
    ]),
    replaced: &[(Capability::SysAdmin, Capability::PerfMon)],
    // Where the user's command is looked for (it is run with the user's rights), where event names are (read with
    // the user's rights), and how the terminal shows text.
    variables: &[
        "PATH",
        "WHIT_EVENT_TABLES",
        "TERM",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
    ],
    set_id_remedy: "Take the bits off (chmod u-s,g-s on the whit program) and let \
                    `whit setup --group perf_users` give it the capabilities that profiling needs",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_without_a_use_are_given_up() {
        let dac_override = CapabilitySet(1 << 1);
        let old = CapabilitySet::of(&[Capability::SysAdmin, Capability::Syslog]);
        assert_eq!(POLICY.keepable(old.union(dac_override)), old);
        let both = old.union(CapabilitySet::of(&[Capability::PerfMon, Capability::SysPtrace]));
        assert!(!POLICY.keepable(both).has(Capability::SysAdmin), "cap_perfmon does instead");
        assert!(POLICY.keepable(both).has(Capability::Syslog));
    }

    #[test]
    fn no_variable_that_stays_changes_code() {
        let linker = POLICY.variables.iter().find(|name| name.starts_with("LD_"));
        assert_eq!(linker, None);
        assert!(POLICY.set_id_remedy.contains("chmod u-s,g-s"));
        assert!(POLICY.set_id_remedy.contains("whit setup"));
    }
}
