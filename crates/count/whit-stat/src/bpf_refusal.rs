//! Why BPF cannot be used.

use std::error::Error;
use std::fmt;

use whit_bpf::BpfError;
use whit_host::roots::Roots;

/// BPF was refused.
#[derive(Debug)]
pub struct BpfRefusal {
    error: BpfError,
    /// The kernel tells no types of its own.
    lacks_btf: bool,
}

impl BpfRefusal {
    pub(crate) fn new(error: BpfError, roots: &Roots) -> BpfRefusal {
        let lacks_btf = !error.is_permission() && !roots.sys.join("kernel/btf/vmlinux").exists();
        BpfRefusal { error, lacks_btf }
    }

    /// The same in one line: without what libbpf and the kernel's verifier have to say.
    pub fn brief(&self) -> String {
        let text = self.to_string();
        let first = text.lines().next().unwrap_or_default();
        match self.error.source().map(ToString::to_string) {
            Some(cause) if !first.contains(&cause) => format!("{first}: {cause}"),
            _ => first.to_owned(),
        }
    }
}

impl fmt::Display for BpfRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lacks_btf {
            write!(f, "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which BPF takes: ")?;
        }
        self.error.fmt(f)
    }
}

impl Error for BpfRefusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_btf_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let refusal = BpfRefusal::new(BpfError::Object { part: "map" }, &roots);
        assert!(refusal.brief().starts_with("this kernel has no BTF"), "{refusal}");
        std::fs::create_dir_all(dir.path().join("kernel/btf")).unwrap();
        std::fs::write(dir.path().join("kernel/btf/vmlinux"), "").unwrap();
        let refusal = BpfRefusal::new(BpfError::Object { part: "map" }, &roots);
        assert!(refusal.brief().starts_with("the BPF object has no map"), "{refusal}");
    }
}
