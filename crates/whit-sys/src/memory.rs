//! The allocator of this process.

/// Buffers of this size and more have memory of their own.
#[cfg(target_env = "gnu")]
const LARGE_BUFFER_BYTES: i32 = 256 << 10;

/// Has large buffers go back to the kernel as soon as they are freed. By itself, glibc raises the size that it calls large
/// up to 32 MiB after each buffer that was freed, and then keeps the room of later ones. Other allocators have no such
/// rule.
pub fn return_large_buffers() {
    // SAFETY: this sets a number of the allocator, which takes it at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BUFFER_BYTES)
    };
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::usage::resident_bytes_of;

    /// Fills buffers of 8 MiB below small ones, which stay; gives the memory that is left when the former are freed.
    fn left_over() -> u64 {
        let own = std::process::id();
        let before = resident_bytes_of(own);
        let mut kept = Vec::new();
        let large: Vec<Vec<u8>> = (0..8)
            .map(|_| {
                let large = vec![1; 8 << 20];
                kept.push(vec![1u8; 4096]);
                large
            })
            .collect();
        drop(std::hint::black_box(large));
        resident_bytes_of(own).saturating_sub(before)
    }

    #[test]
    fn freed_buffers_leave_nothing_behind() {
        // The rule of glibc: after this one, buffers of up to 32 MiB lie among small ones.
        drop(std::hint::black_box(vec![1u8; 31 << 20]));
        return_large_buffers();
        let left = left_over();
        assert!(left < 16 << 20, "{left}");
    }
}
