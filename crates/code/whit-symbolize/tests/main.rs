//! All tests of `whit-symbolize` from outside, in one executable: each one more takes seconds to link.

mod agrees_with_perf;
mod debug_forms;
mod fetched;
mod hostile;
mod mangled_names;
mod programs;
mod recorded_file;
