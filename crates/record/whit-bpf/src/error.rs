//! Why a program could not be used.

use std::fmt;

use crate::kernel_need::KernelNeed;

/// Reasons why a BPF program cannot be used, each with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The kernel or libbpf refused.
    #[error("cannot {attempt}{}", explanation(source, messages))]
    Refused {
        /// The attempted action.
        attempt: &'static str,
        /// The refusal.
        source: libbpf_rs::Error,
        /// Messages of libbpf and of the kernel's verifier.
        messages: Messages,
    },
    /// The kernel is too old, or built without a needed feature.
    #[error(
        "the kernel lacks what the BPF programs need: {}; what needs none of it is --engine=ring",
        list(needs)
    )]
    Lacking {
        /// The missing features.
        needs: Vec<KernelNeed>,
        /// The kernel's error.
        source: Box<BpfError>,
    },
    /// The object lacks a part, or a part has another shape.
    #[error("the BPF object has no {part}: whit was built from other sources than its programs")]
    Object {
        /// A program or map.
        part: &'static str,
    },
    /// A program did not run as it must.
    #[error("the BPF program {program} gave up on CPU {cpu}")]
    Program {
        /// Its name.
        program: &'static str,
        /// Number of the CPU it ran on.
        cpu: u32,
    },
    /// More than there is room for.
    #[error("{what}: {wanted} are wanted, and there is room for {room}")]
    Room {
        /// The things that are too many, in the plural.
        what: &'static str,
        /// How many there are.
        wanted: usize,
        /// How many there may be.
        room: usize,
    },
    /// A CPU that the machine cannot have.
    #[error("this machine has no CPU {cpu}")]
    Cpu {
        /// Its number.
        cpu: u32,
    },
}

impl BpfError {
    /// Whether it is a right that is missing. The kernel's verifier refuses programs with the same number.
    pub fn is_permission(&self) -> bool {
        let by_verifier =
            matches!(self, BpfError::Refused { messages, .. } if messages.are_of_verifier());
        self.is_of(libbpf_rs::ErrorKind::PermissionDenied) && !by_verifier
    }

    /// Whether the kernel lacks the requested object: a tracepoint, for example.
    pub fn is_absent(&self) -> bool {
        self.is_of(libbpf_rs::ErrorKind::NotFound)
    }

    /// Whether the kernel has no BPF, or none of this kind.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, BpfError::Lacking { .. }) || self.is_of(libbpf_rs::ErrorKind::Unsupported)
    }

    fn is_of(&self, kind: libbpf_rs::ErrorKind) -> bool {
        matches!(self, BpfError::Refused { source, .. } if source.kind() == kind)
    }
}

fn list(needs: &[KernelNeed]) -> String {
    needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The way out, and the messages of libbpf. Without the rights, libbpf guesses at causes that are others: then its
/// messages are left out. So are those of a verifier that was interrupted: it found no fault.
fn explanation(source: &libbpf_rs::Error, messages: &Messages) -> String {
    let way_out = way_out(source.kind(), messages);
    let lacks_rights = source.kind() == libbpf_rs::ErrorKind::PermissionDenied;
    if lacks_rights && !messages.are_of_verifier() {
        return way_out.to_owned();
    }
    if source.kind() == libbpf_rs::ErrorKind::WouldBlock {
        return way_out.to_owned();
    }
    format!("{way_out}{messages}")
}

fn way_out(kind: libbpf_rs::ErrorKind, messages: &Messages) -> &'static str {
    use libbpf_rs::ErrorKind;
    match kind {
        ErrorKind::WouldBlock => {
            " (signals interrupted the kernel's verifier again and again: start whit once more)"
        }
        _ if messages.are_of_verifier() => {
            " (this kernel's verifier refuses the program, which is a fault of whit's: please report it with \
             the kernel's version)"
        }
        ErrorKind::PermissionDenied => {
            " (it takes cap_bpf and cap_perfmon: run whit as root or set it up with whit setup; \
             a locked-down kernel refuses everybody)"
        }
        ErrorKind::OutOfMemory => " (count fewer cgroups or events)",
        _ => "",
    }
}

/// The last messages before a failure; empty or several lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages(pub(crate) Vec<String>);

impl Messages {
    /// Whether the kernel's verifier has looked at a program and refused it: its log ends with how much it
    /// looked at.
    fn are_of_verifier(&self) -> bool {
        self.0.iter().any(|line| line.starts_with("processed ") && line.contains(" insns "))
    }
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;
    use std::io;

    #[test]
    fn a_refusal_names_action_object_and_remedy() {
        let refused = |errno: i32| BpfError::Refused {
            attempt: "load the program that counts cgroups",
            source: io::Error::from_raw_os_error(errno).into(),
            messages: Messages(vec!["libbpf: no".into()]),
        };
        let error = refused(1);
        assert!(error.is_permission());
        assert!(error.source().is_some());
        let text = error.to_string();
        assert!(text.contains("cap_bpf") && text.contains("whit setup"), "{text}");
        assert!(!text.contains("libbpf"), "{text}");
        let error = refused(22);
        let text = error.to_string();
        assert!(!error.is_permission() && !text.contains("cap_bpf"), "{text}");
        assert!(text.ends_with("\n  libbpf: no"), "{text}");
        assert!(refused(2).is_absent() && !refused(2).is_unsupported());
        assert!(refused(38).is_unsupported() && !error.is_absent());
    }

    #[test]
    fn a_refusal_by_the_verifier_is_no_missing_right() {
        let refused = |last: &str| BpfError::Refused {
            attempt: "load the program that counts cgroups",
            source: io::Error::from_raw_os_error(13).into(),
            messages: Messages(vec!["R0 max value is outside".into(), last.into()]),
        };
        let by_verifier = refused("processed 113 insns (limit 1000000) max_states_per_insn 0");
        let text = by_verifier.to_string();
        assert!(!by_verifier.is_permission() && !text.contains("cap_bpf"), "{text}");
        assert!(text.contains("verifier refuses") && text.contains("R0 max value"), "{text}");
        assert!(refused("processed nothing").is_permission());
    }

    #[test]
    fn a_verifier_that_signals_interrupt_refuses_nothing() {
        let error = BpfError::Refused {
            attempt: "load the program that counts cgroups",
            source: io::Error::from_raw_os_error(11).into(),
            messages: Messages(vec!["processed 113 insns (limit 1000000)".into()]),
        };
        let text = error.to_string();
        assert!(text.contains("signals interrupted") && !text.contains("fault of whit"), "{text}");
    }

    #[test]
    fn missing_features_are_named_with_the_first_kernel_that_has_them() {
        let need = |what, since| KernelNeed { what, since };
        let needs = vec![need("bpf_task_pt_regs", "5.15"), need("atomic exchange", "5.12")];
        let source = Box::new(BpfError::Object { part: "cause" });
        let error = BpfError::Lacking { needs, source };
        let text = error.to_string();
        let list = "bpf_task_pt_regs (since Linux 5.15), atomic exchange (since Linux 5.12)";
        assert!(text.contains(list) && text.contains("--engine=ring"), "{text}");
        assert!(error.is_unsupported() && !error.is_permission() && error.source().is_some());
    }
}
