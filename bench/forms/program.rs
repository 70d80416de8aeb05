use std::time::{Duration, Instant};

#[inline(always)]
fn mix(x: u64, k: u64) -> u64 {
    (x ^ k) * 0x9e3779b97f4a7c15 + 77
}
#[inline(always)]
fn spin_red(mut x: u64, n: u64) -> u64 {
    let mut i = 1;
    while i < n {
        x = mix(x, i);
        i += 1;
    }
    x
}
#[inline(always)]
fn spin_green(mut x: u64, n: u64) -> u64 {
    let mut i = 2;
    while i < n {
        x = mix(x, i);
        i += 1;
    }
    x
}
#[inline(always)]
fn spin_blue(mut x: u64, n: u64) -> u64 {
    let mut i = 3;
    while i < n {
        x = mix(x, i);
        i += 1;
    }
    x
}
#[inline(never)]
fn morning(x: u64, n: u64) -> u64 {
    spin_red(x, n)
}
#[inline(never)]
fn noonday(x: u64, n: u64) -> u64 {
    spin_green(x, n)
}
#[inline(never)]
fn evening(x: u64, n: u64) -> u64 {
    spin_blue(x, n)
}
fn main() {
    let seconds: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let (begin, mut x) = (Instant::now(), 1u64);
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        let unit = 10000 + x % 20000;
        x = morning(x, 5 * unit);
        x = noonday(x, 3 * unit);
        x = evening(x, 2 * unit);
    }
    std::process::exit((x == 0) as i32);
}
