//! Groups of users, wherever the machine keeps them (`getgrnam(3)`).

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

use crate::Errno;

/// Room for a group with its members at the first try, and at the last.
const BUFFER_BYTES: usize = 4 << 10;
const BUFFER_MAX_BYTES: usize = 16 << 20;

/// The id of the group with this name; `None` where there is none.
pub fn id(name: &str) -> Result<Option<u32>, Errno> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    look_up(
        |group, buffer, result| {
            // SAFETY: the name is a nul-terminated string, the others are live and writable, and
            // the size is the buffer's.
            unsafe {
                libc::getgrnam_r(
                    name.as_ptr(),
                    group,
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    result,
                )
            }
        },
        |group| group.gr_gid,
    )
}

/// The name of the group with this id; `None` where there is none.
pub fn name(id: u32) -> Result<Option<String>, Errno> {
    look_up(
        |group, buffer, result| {
            // SAFETY: all pointers are to live, writable values, and the size is the buffer's.
            unsafe { libc::getgrgid_r(id, group, buffer.as_mut_ptr().cast(), buffer.len(), result) }
        },
        |group| {
            // SAFETY: a successful look-up leaves a nul-terminated name in the buffer.
            let name = unsafe { CStr::from_ptr(group.gr_name) };
            name.to_string_lossy().into_owned()
        },
    )
}

fn look_up<T>(
    call: impl Fn(*mut libc::group, &mut [u8], *mut *mut libc::group) -> i32,
    read: impl Fn(&libc::group) -> T,
) -> Result<Option<T>, Errno> {
    let mut buffer = vec![0u8; BUFFER_BYTES];
    loop {
        let mut group = MaybeUninit::<libc::group>::zeroed();
        let mut result = std::ptr::null_mut();
        match call(group.as_mut_ptr(), &mut buffer, &mut result) {
            0 if result.is_null() => return Ok(None),
            // SAFETY: all-zero is a valid group, and the call has filled it; its pointers lead into
            // the buffer, which is alive.
            0 => return Ok(Some(read(unsafe { group.assume_init_ref() }))),
            libc::ERANGE if buffer.len() < BUFFER_MAX_BYTES => {
                let size = buffer.len() * 2;
                buffer.resize(size, 0);
            }
            // Some libraries say so where there is no such group.
            libc::ENOENT | libc::ESRCH => return Ok(None),
            libc::EINTR => {}
            error => return Err(Errno::from_raw_os_error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_machine_has_the_group_of_root() {
        let name = super::name(0).unwrap().unwrap();
        assert_eq!(super::id(&name).unwrap(), Some(0));
    }

    #[test]
    fn groups_that_are_not_there_are_none() {
        assert_eq!(super::id("no_such_group_here").unwrap(), None);
        assert_eq!(super::name(4_000_000_123).unwrap(), None);
        assert_eq!(super::id("a\0b"), Err(crate::Errno::INVAL));
    }
}
