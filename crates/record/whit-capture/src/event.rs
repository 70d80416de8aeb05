//! Events to record: as the event language resolved them, and as the user's options left them.

mod resolved;

pub use resolved::{UnrecordableEvent, from_groups};
pub use whit_engine_api::event::*;
