//! The example for authors of VMMs, as they would run it.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(dead_code, missing_docs, unreachable_pub)]

#[path = "../examples/vmm_loop.rs"]
mod example;

use whit_testing::{Skip, probe};

const EXPECTED: example::Outcome = example::Outcome { status: 1, interrupts: 1 };

#[test]
fn the_loop_runs_a_guest_in_kvm() {
    if let Err(Skip(reason)) = probe::kvm() {
        whit_testing::skip("whit-vpmu-kvm the_loop_runs_a_guest_in_kvm", &reason);
        return;
    }
    let kvm = kvm_ioctls::Kvm::new().expect("KVM, which the probe opened");
    assert_eq!(example::with_kvm(&kvm).expect("the loop"), EXPECTED);
}

/// The same guest where there is no KVM.
#[test]
fn the_loop_runs_on_simulated_events() {
    assert_eq!(example::simulated().expect("the accesses"), EXPECTED);
}
