use super::*;

/// The words of a description, and bytes behind them.
fn bytes(words: &[u64], text: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(text);
    bytes.resize(bytes.len().next_multiple_of(WORD_BYTES), 0);
    bytes
}

fn shown(words: &[u64], text: &[u8]) -> String {
    WaitObject::parse(&bytes(words, text)).to_string()
}

#[test]
fn objects_are_named_as_proc_names_them() {
    let head = |kind: u8, flags: u8, number: u32| {
        u64::from(kind) | u64::from(flags) << 8 | u64::from(number) << 32
    };
    assert_eq!(shown(&[head(FILE, 0, 0), 8, 77], b"x.log\0log\0var\0"), "/var/log/x.log");
    assert_eq!(shown(&[head(FILE, 0, 0), 8, 77], b"memfd:a\0"), "/memfd:a");
    assert_eq!(shown(&[head(FILE, 0, 0), 8, 77], b""), "/");
    assert_eq!(shown(&[head(FILE, 1, 0), 8, 77], b"b\0a\0"), ".../a/b");
    assert_eq!(shown(&[head(PIPE, 0, 0), 4711], b""), "pipe:[4711]");
    let name = b"[eventpoll]\0";
    assert_eq!(shown(&[head(ANONYMOUS, 0, 5)], name), "anon_inode:[eventpoll] (fd 5)");
    let tcp = 2 | u32::from(IPPROTO_TCP) << 16;
    let (loopback, any) = (0x0100_007f, 0);
    let ends = [9, 40_000 | 5432 << 16, loopback, 0, loopback, 0];
    let words = [&[head(INET, 0, tcp)][..], &ends].concat();
    assert_eq!(shown(&words, b""), "tcp 127.0.0.1:40000 to 127.0.0.1:5432");
    let words = [head(INET, 1, tcp), 9, 80, any, 0, any, 0];
    assert_eq!(shown(&words, b""), "tcp 0.0.0.0:80 (listens)");
    let udp_6 = 10 | u32::from(IPPROTO_UDP) << 16;
    let one = 1 << 56;
    let words = [head(INET, 0, udp_6), 9, 53, 0, one, 0, 0];
    assert_eq!(shown(&words, b""), "udp [::1]:53");
    let mapped = (0xffff << 16) | 0x0100_007f << 32;
    let words = [head(INET, 0, 10 | 6 << 16), 9, 1 | 2 << 16, 0, mapped, 0, mapped];
    assert_eq!(shown(&words, b""), "tcp 127.0.0.1:1 to 127.0.0.1:2");
    assert_eq!(shown(&[head(UNIX, 0, 12), 9, 10], b"/run/a\0"), "unix /run/a (peer 12)");
    assert_eq!(shown(&[head(UNIX, 0, 0), 9, 0], b"\0a\0b"), "unix @a@b");
    assert_eq!(shown(&[head(UNIX, 0, 0), 9, 0], b""), "unix socket:[9]");
    assert_eq!(shown(&[head(SOCKET, 0, 16), 9], b""), "socket:[9] (family 16)");
    assert_eq!(shown(&[head(FILES, 0, 3)], b""), "3 files");
    assert_eq!(shown(&[head(SLEEP, 0, 0), 1_500_000], b""), "1.5ms");
    assert_eq!(shown(&[head(SLEEP, 0, 0), 0], b""), "a point in time");
    assert_eq!(shown(&[head(CHILD, 0, 5)], b""), "child 5");
    assert_eq!(shown(&[head(CHILD, 0, u32::MAX)], b""), "any child");
    assert_eq!(shown(&[head(SIGNAL, 0, 0)], b""), "a signal");
    assert_eq!(shown(&[head(IPC, 0, 3)], b""), "message queue 3");
    assert_eq!(shown(&[head(IPC, 1, 3)], b""), "semaphores 3");
    assert_eq!(shown(&[head(UNKNOWN, 2, 9)], b""), "unknown (mmap names no open file)");
    assert_eq!(shown(&[head(UNKNOWN, 4, 0)], b""), "unknown (thread of the kernel)");
}

#[test]
fn sockets_say_which_end_they_are() {
    let tcp = 2 | u32::from(IPPROTO_TCP) << 16;
    let inet = |flags: u64| {
        let head = u64::from(INET) | flags << 8 | u64::from(tcp) << 32;
        WaitObject::parse(&bytes(&[head, 9, 80 | 90 << 16, 1, 0, 1, 0], b"")).brings()
    };
    let unix = |flags: u64| {
        let head = u64::from(UNIX) | flags << 8;
        WaitObject::parse(&bytes(&[head, 9, 10], b"/run/a\0")).brings()
    };
    let wanted = [Brings::Unknown, Brings::Work, Brings::Answers, Brings::Unknown, Brings::Work];
    assert_eq!([0, 1, 2, 3, 4].map(inet), wanted);
    assert_eq!([0, 1, 2, 3, 4].map(unix), wanted);
    assert_eq!(WaitObject::parse(&bytes(&[u64::from(PIPE), 9], b"")).brings(), Brings::Unknown);
}

#[test]
fn what_cannot_be_decoded_is_unknown() {
    let unknown = WaitObject::Unknown(UnknownObject::Undecodable);
    for words in [&[][..], &[99], &[0], &[u64::from(FILE), 1], &[u64::from(UNKNOWN) | 200 << 8]] {
        assert_eq!(WaitObject::parse(&bytes(words, b"")), unknown, "{words:?}");
    }
    for kind in 0..=u8::MAX {
        for words in 0..8 {
            let mut words = vec![u64::MAX; words];
            words.first_mut().into_iter().for_each(|head| *head = u64::from(kind));
            // Any bytes have a text.
            assert!(!WaitObject::parse(&bytes(&words, b"")).to_string().is_empty());
        }
    }
}

#[test]
fn a_description_follows_the_state_in_place_of_a_futex() {
    let state = 0x8000_0001u32.to_le_bytes();
    let with = |words: &[u64]| [&state[..], &bytes(words, b"")].concat();
    assert_eq!(WaitObject::bytes_in_raw(&with(&[])), None);
    assert_eq!(WaitObject::bytes_in_raw(&with(&[0xabcd])), None, "a futex");
    assert_eq!(WaitObject::bytes_in_raw(&with(&[0])), None);
    assert_eq!(WaitObject::bytes_in_raw(&with(&[0, 3, 4711])), Some(&bytes(&[3, 4711], b"")[..]));
    assert_eq!(WaitObject::bytes_in_raw(&[]), None);
}
