//! The walk that runs in the kernel, compiled for this machine and compared with the offline
//! unwinder: on recorded stacks of real programs, and on arbitrary bytes.

mod host;
mod hostile;
mod interpreted;
mod recorded;
