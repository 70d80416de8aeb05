//! The container, pod and systemd unit that a cgroup's path names.
//!
//! The path alone decides: no daemon is asked, so that the answer is the same on another machine and
//! after the container has gone. Runtimes write paths in three spellings:
//!
//! | spelling | example |
//! |---|---|
//! | cgroupfs driver | `/kubepods/burstable/pod<uid>/<id>`, `/docker/<id>` |
//! | systemd driver | `/kubepods.slice/…-pod<uid>.slice/cri-containerd-<id>.scope` |
//! | systemd's path given to the cgroupfs driver | `…/kubepods-pod<uid>.slice:cri-containerd:<id>` |
//!
//! In nested containers the innermost one counts.

/// Digits of the id of a container or of a podman pod: a SHA-256 sum or as many random digits.
const ID_DIGITS: usize = 64;
/// Digits of an id that docker, podman and crictl print in their tables.
const SHORT_ID_DIGITS: usize = 12;

/// Scopes with these prefixes hold a monitor of a container, not its processes.
const MONITORS: [&str; 2] = ["libpod-conmon-", "crio-conmon-"];
/// Ends of the names of units that are no slices.
const UNIT_ENDS: [&str; 5] = [".service", ".scope", ".socket", ".mount", ".swap"];

/// A cgroup's path from the root of its hierarchy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CgroupPath<'a>(pub &'a str);

impl<'a> CgroupPath<'a> {
    /// The innermost container: an id, or the name of a container of LXC or systemd-nspawn.
    pub fn container(self) -> Option<&'a str> {
        self.components_inwards().find_map(container)
    }

    /// The innermost pod: the UID of Kubernetes' pod, with `-` or `_` as the path has it, or the id of
    /// podman's.
    pub fn pod(self) -> Option<&'a str> {
        self.components_inwards().find_map(pod)
    }

    /// The innermost systemd unit: a service or scope, or without any the innermost slice.
    pub fn unit(self) -> Option<&'a str> {
        let named = |ends: &'static [&'static str]| {
            self.components_inwards().find(|name| ends.iter().any(|end| has_stem(name, end)))
        };
        let unit = named(&UNIT_ENDS).or_else(|| named(&[".slice"]));
        // systemd puts `_` before names that collide with files of the cgroup.
        unit.map(|name| name.strip_prefix('_').unwrap_or(name))
    }

    /// True where `name` means this cgroup or one around it: as its path from the root, as one
    /// component of the path, or as the container, pod or unit of any level, whose ids may be
    /// shortened to twelve digits.
    pub fn is_within(self, name: &str) -> bool {
        if name.starts_with('/') {
            let name = name.trim_end_matches('/');
            return self
                .0
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        }
        let is_named = |component: &str| {
            component == name
                || container(component).is_some_and(|id| is_id(id, name))
                || pod(component).is_some_and(|id| is_id(id, name))
                || component.strip_prefix('_') == Some(name)
        };
        self.components_inwards().any(is_named)
    }

    /// True where `name` is the innermost container, whose id may be shortened.
    pub fn is_container(self, name: &str) -> bool {
        self.container().is_some_and(|id| is_id(id, name))
    }

    /// True where `name` is the innermost unit; `.service` may be left out.
    pub fn is_unit(self, name: &str) -> bool {
        self.unit().is_some_and(|unit| unit == name || unit.strip_suffix(".service") == Some(name))
    }

    /// Parts between `/` and `:`, innermost first.
    fn components_inwards(self) -> impl Iterator<Item = &'a str> {
        self.0.rsplit(['/', ':']).filter(|component| !component.is_empty())
    }
}

/// The part of an id that tables show: twelve digits of a long number, all of any other name.
pub fn short_container_id(id: &str) -> &str {
    if is_long_id(id) { &id[..SHORT_ID_DIGITS] } else { id }
}

/// `given` is the id, or its beginning of at least twelve digits; `-` and `_` are the same in UIDs.
fn is_id(id: &str, given: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || matches!((a, b), (b'_', b'-') | (b'-', b'_'));
    let begins = given.len() <= id.len() && id.bytes().zip(given.bytes()).all(same);
    begins && (given.len() == id.len() || (is_long_id(id) && given.len() >= SHORT_ID_DIGITS))
}

fn has_stem(name: &str, end: &str) -> bool {
    name.strip_suffix(end).is_some_and(|stem| !stem.is_empty())
}

fn is_long_id(text: &str) -> bool {
    text.len() == ID_DIGITS && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn container(component: &str) -> Option<&str> {
    if MONITORS.iter().any(|monitor| component.starts_with(monitor)) || pod(component).is_some() {
        return None;
    }
    let stem = component.strip_suffix(".scope").unwrap_or(component);
    // `docker-`, `cri-containerd-`, `crio-`, `libpod-` and others stand before the id.
    let id = stem.rsplit('-').next().filter(|id| is_long_id(id));
    id.or_else(|| named_container(component))
}

/// Containers that have names, not ids.
fn named_container(component: &str) -> Option<&str> {
    let lxc = component.strip_prefix("lxc.payload.");
    let nspawn = || component.strip_prefix("systemd-nspawn@")?.strip_suffix(".service");
    lxc.or_else(nspawn).filter(|name| !name.is_empty())
}

fn pod(component: &str) -> Option<&str> {
    let stem = component.strip_suffix(".slice");
    let kubernetes = match stem {
        Some(stem) if stem.starts_with("kubepods") => stem.rsplit_once("-pod").map(|(_, uid)| uid),
        Some(_) => None,
        None => component.strip_prefix("pod"),
    };
    let podman = || stem?.rsplit_once("libpod_pod_").map(|(_, id)| id).filter(|id| is_long_id(id));
    kubernetes.filter(|uid| is_uid(uid)).or_else(podman)
}

/// 32 hexadecimal digits (a pod from a file on the node), or those with four separators.
fn is_uid(text: &str) -> bool {
    let separators = text.bytes().filter(|byte| matches!(byte, b'-' | b'_')).count();
    let digits = text.bytes().filter(|byte| !matches!(byte, b'-' | b'_'));
    matches!((text.len(), separators), (32, 0) | (36, 4))
        && digits.into_iter().all(|byte| is_hex(std::str::from_utf8(&[byte]).unwrap_or("-")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Paths as runtimes write them, one a line: path, container, pod, unit. `-` is none. `{A}` and
    /// `{B}` stand for ids of 64 digits.
    const CORPUS: &str = include_str!("cgroup_path/corpus.txt");
    const A: &str = "3f1c8a0d9be24756a1c0ffee5eed0badcafe0123456789abcdef0123456789ab";
    const B: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn corpus() -> impl Iterator<Item = [String; 4]> {
        let lines = CORPUS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| {
            let words =
                line.split_whitespace().map(|word| word.replace("{A}", A).replace("{B}", B));
            words.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("four words: {line}"))
        })
    }

    #[test]
    fn a_corpus_of_real_paths() {
        for [path, container, pod, unit] in corpus() {
            let named = CgroupPath(&path);
            let or_dash = |part: Option<&str>| part.unwrap_or("-").to_owned();
            let actual = [named.container(), named.pod(), named.unit()].map(or_dash);
            assert_eq!(actual, [container, pod, unit], "{path}");
        }
        assert!(corpus().count() >= 40);
    }

    #[test]
    fn names_mean_a_cgroup_and_all_inside() {
        let path = format!("/system.slice/docker-{A}.scope/init.scope");
        let path = CgroupPath(&path);
        for name in
            ["/", "/system.slice", "/system.slice/", "system.slice", A, &A[..12], "init.scope"]
        {
            assert!(path.is_within(name), "{name}");
        }
        for name in ["/system", "system", &A[..11], "", B, "/init.scope"] {
            assert!(!path.is_within(name), "{name}");
        }
        assert!(path.is_container(&A[..12]) && !path.is_container("docker"));
        let nginx = CgroupPath("/system.slice/nginx.service/worker");
        assert!(nginx.is_unit("nginx") && nginx.is_unit("nginx.service") && !nginx.is_unit("ngin"));
    }

    #[test]
    fn a_uid_is_found_in_both_spellings() {
        let path = "/kubepods.slice/kubepods-pod0d2a1b3c_1111_2222_3333_444455556666.slice";
        assert!(CgroupPath(path).is_within("0d2a1b3c-1111-2222-3333-444455556666"));
    }

    #[test]
    fn tables_show_short_ids() {
        assert_eq!(short_container_id(A), "3f1c8a0d9be2");
        assert_eq!(short_container_id("web"), "web");
    }

    proptest! {
        #[test]
        fn any_text_is_a_path(path in "[/:._a-f0-9é-]{0,90}", name in "[/é._a-f-]{0,20}") {
            let path = CgroupPath(&path);
            let parts = [path.container(), path.pod(), path.unit()];
            prop_assert!(parts.into_iter().flatten().all(|part| path.0.contains(part) && !part.is_empty()));
            if path.is_within(&name) {
                prop_assert!(path.0.contains(name.trim_end_matches('/')) || name.contains(['-', '_']));
            }
        }
    }
}
