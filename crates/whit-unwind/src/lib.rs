//! whit-unwind
