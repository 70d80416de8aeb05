//! Users by name, from wherever this machine keeps them (files, LDAP, …).

use std::ffi::CString;
use std::mem::MaybeUninit;

use crate::Errno;

/// Room for one user's strings; grown up to [`BUFFER_MAX_BYTES`].
const BUFFER_BYTES: usize = 4096;
/// No entry is larger than this.
const BUFFER_MAX_BYTES: usize = 1 << 20;

/// The id of the user of this name; `None` where there is none.
pub fn uid_of(name: &str) -> Result<Option<u32>, Errno> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let mut size = BUFFER_BYTES;
    loop {
        let mut entry = MaybeUninit::<libc::passwd>::zeroed();
        let mut buffer = vec![0 as libc::c_char; size];
        let mut found = std::ptr::null_mut();
        // SAFETY: the name is nul-terminated, entry and result are live, and the buffer is as long
        // as is said.
        let result = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                size,
                &mut found,
            )
        };
        match result {
            0 if found.is_null() => return Ok(None),
            0 => {}
            libc::ERANGE if size < BUFFER_MAX_BYTES => {
                size *= 2;
                continue;
            }
            libc::ENOENT | libc::ESRCH => return Ok(None),
            errno => return Err(Errno::from_raw_os_error(errno)),
        }
        // SAFETY: all-zero is a valid passwd, and the call has filled it.
        return Ok(Some(unsafe { entry.assume_init_ref() }.pw_uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_zero_and_impossible_names_have_no_user() {
        assert_eq!(uid_of("root"), Ok(Some(0)));
        assert_eq!(uid_of("no such user"), Ok(None));
        assert_eq!(uid_of("a\0b"), Ok(None));
    }
}
