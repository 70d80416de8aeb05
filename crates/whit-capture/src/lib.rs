//! whit-capture
