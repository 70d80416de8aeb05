//! The ways to record, tried with an event that every machine has.

use whit_events::{SoftwareEvent, TYPE_SOFTWARE};
use whit_host::processes;
use whit_sys::Errno;
use whit_sys::capability::Capability;
use whit_types::Pid;

use crate::checks::{Side, counting, usual_side};
use crate::finding::{Area, Finding, Status};
use crate::machine::{Machine, Privileges};
use crate::probe::Target;
use crate::refusal::{Needs, explain, grant};

pub(super) fn check(machine: &mut Machine, privileges: &Privileges) -> Vec<Finding> {
    let cpu = machine.cpus()[0];
    vec![
        scope(machine, privileges, "own processes, user space", Target::ThisThread, Needs::OwnUser),
        scope(machine, privileges, "own processes, kernel", Target::ThisThread, Needs::Kernel),
        others(machine, privileges),
        scope(machine, privileges, "whole system (-a, -C)", Target::Cpu(cpu), Needs::SystemWide),
    ]
}

fn scope(
    machine: &mut Machine,
    privileges: &Privileges,
    what: &str,
    target: Target,
    needs: Needs,
) -> Finding {
    let side = match needs {
        Needs::OwnUser => Side::UserOnly,
        Needs::Kernel => Side::Both,
        Needs::SystemWide | Needs::RawTracepoints => usual_side(privileges),
    };
    match try_open(machine, target, side) {
        Ok(()) => Finding::new(Area::Recording, what, Status::Ok, "yes"),
        Err(error) => {
            let refusal = explain(error, needs, privileges);
            Finding::new(Area::Recording, what, refusal.status, refusal.detail)
                .with_remedy(refusal.remedy)
        }
    }
}

fn try_open(machine: &mut Machine, target: Target, side: Side) -> Result<(), Errno> {
    let attr = counting(TYPE_SOFTWARE, SoftwareEvent::CpuClock.config(), side);
    machine.probe.open(&attr, target)
}

/// Processes of other users need the right to look into them, beside that to count.
fn others(machine: &mut Machine, privileges: &Privileges) -> Finding {
    let what = "processes of other users (-p)";
    let Some(pid) = process_of_another_user(machine) else {
        let none = "there is no process of another user to try with";
        let allowed = privileges.may_profile() && privileges.effective.has(Capability::SysPtrace);
        return match allowed {
            true => Finding::new(
                Area::Recording,
                what,
                Status::Ok,
                format!("yes, by capabilities; {none}"),
            ),
            false => Finding::new(Area::Recording, what, Status::Absent, none),
        };
    };
    match try_open(machine, Target::Process(pid), usual_side(privileges)) {
        Ok(()) => Finding::new(
            Area::Recording,
            what,
            Status::Ok,
            format!("yes (tried with process {})", pid.0),
        ),
        Err(error @ (Errno::ACCESS | Errno::PERM)) => {
            let remedy = grant(privileges).unwrap_or_else(|| "run whit as root".to_owned());
            let name = whit_host::advice::name(error);
            let detail = format!("process {} is out of reach for this user ({name})", pid.0);
            Finding::new(Area::Recording, what, Status::Refused, detail).with_remedy(remedy)
        }
        Err(error) => {
            let refusal = explain(error, Needs::OwnUser, privileges);
            Finding::new(Area::Recording, what, refusal.status, refusal.detail)
                .with_remedy(refusal.remedy)
        }
    }
}

/// The lowest process id whose user is another one than ours. Kernel threads count: they are
/// root's, and show that the right reaches other users.
fn process_of_another_user(machine: &Machine) -> Option<Pid> {
    let mut all = processes::all(&machine.roots).ok()?.into_iter();
    all.find(|pid| {
        let uid = processes::effective_user(&machine.roots, *pid);
        uid.is_some_and(|uid| uid != machine.euid)
    })
}
