//! `whit setup`, and the rights of users of a whit with file capabilities.
//!
//! Each test sets up a copy of whit for a group that is in no list, and runs it as users that are
//! in no list. That takes root; a machine where a test cannot be run is named with the reason on
//! standard error and in the file that `WHIT_SKIP_LOG` names.

mod fixture;
mod isolation;
mod recording;
mod secrets;
mod setting_up;
