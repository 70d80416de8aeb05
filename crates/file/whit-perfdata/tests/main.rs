//! All tests of `whit-perfdata` from outside, in one executable: each one more takes seconds to link.

mod dumps;
mod export;
mod frames;
mod golden;
mod ledger_page;
mod streams;
