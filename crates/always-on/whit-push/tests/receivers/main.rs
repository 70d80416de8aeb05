//! Destinations against receivers: small ones that fail on order, and the programs that people run.

mod delivery;
mod faults;
mod killed;
mod pprof;
mod programs;
mod server;
mod support;
mod tls;
