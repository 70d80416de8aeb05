//! whit-sys
