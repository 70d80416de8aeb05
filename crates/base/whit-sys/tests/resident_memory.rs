//! Memory that goes back to the kernel. It is that of the whole process, so that no other test runs here.

use whit_sys::MappedFile;
use whit_sys::memory::return_large_buffers;
use whit_sys::usage::resident_bytes_of;

fn resident_bytes() -> u64 {
    resident_bytes_of(std::process::id())
}

/// Fills buffers of 8 MiB below small ones, which stay; gives the memory that is left when the former are freed.
fn left_over() -> u64 {
    let before = resident_bytes();
    let mut kept = Vec::new();
    let large: Vec<Vec<u8>> = (0..8)
        .map(|_| {
            let large = vec![1; 8 << 20];
            kept.push(vec![1u8; 4096]);
            large
        })
        .collect();
    drop(std::hint::black_box(large));
    resident_bytes().saturating_sub(before)
}

#[test]
fn large_buffers_and_pages_of_files_go_back() {
    // The rule of glibc: after this one, buffers of up to 32 MiB lie among small ones.
    drop(std::hint::black_box(vec![1u8; 31 << 20]));
    if cfg!(target_env = "gnu") {
        return_large_buffers();
        let left = left_over();
        assert!(left < 16 << 20, "{left}");
    }
    let file = tempfile::tempfile().unwrap();
    file.set_len(32 << 20).unwrap();
    let map = MappedFile::map(&file).unwrap();
    let read = || assert!(map.iter().step_by(4096).all(|byte| *byte == 0));
    read();
    let before = resident_bytes();
    map.forget_pages().unwrap();
    let after = resident_bytes();
    assert!(after + (24 << 20) < before, "{before} {after}");
    read();
}
