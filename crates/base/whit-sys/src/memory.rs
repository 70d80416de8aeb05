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

/// Gives the memory that was freed back to the kernel. Other allocators than glibc's keep it.
pub(crate) fn return_free_memory() {
    // SAFETY: the allocator gives back pages that it has no use for.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
