//! Sockets of servers, whose data is recorded as samples of events.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use whit_bpf::stacks::{SocketEdge, Stacks};
use whit_engine_api::error::EngineError;
use whit_engine_api::event::SocketSpec;
use whit_engine_api::open_event::OpenEvent;
use whit_perfdata::request::Edge;
use whit_types::ServerSocket;

/// An edge, a CPU and its event.
type EdgeEvent<'a> = (SocketEdge, u32, BorrowedFd<'a>);

/// Names the sockets to the programs, with the events of each.
pub(super) fn choose(stacks: &Stacks, events: &[OpenEvent]) -> Result<(), EngineError> {
    let mut chosen: BTreeMap<&ServerSocket, Vec<EdgeEvent<'_>>> = BTreeMap::new();
    for event in events {
        let Some(SocketSpec { socket, edge }) = &event.event.spec.socket else { continue };
        let edge = match edge {
            Edge::Begin => SocketEdge::Received,
            Edge::End => SocketEdge::Sent,
        };
        let on_cpus = event.instances.iter();
        let on_cpus = on_cpus.filter_map(|one| Some((edge, one.cpu?.0, one.fd.as_fd())));
        chosen.entry(socket).or_default().extend(on_cpus);
    }
    for (number, (socket, events)) in (0..).zip(chosen) {
        stacks.choose_socket(number, socket, events).map_err(EngineError::own)?;
    }
    Ok(())
}
