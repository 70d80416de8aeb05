//! From the sideband, in order of time, to the process model.

use crate::machine_model::address_map::Mapping;
use crate::machine_model::cgroups::Cgroups;
use crate::machine_model::change::{Change, TimedChange};
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::{DsoTable, MappedCode, RecordedDso, RecordedKind};
use crate::machine_model::process::ProcessModel;
use rustc_hash::FxHashMap;
use whit_perfdata::feature::Features;
use whit_perfdata::interpreted::FunctionNames;
use whit_types::{Avma, BuildId, Pid, Tid, TimestampNs};

/// The processes, binaries and cgroups that the sideband describes.
#[derive(Default)]
pub(crate) struct Replayed {
    /// Names of threads, and mappings of code.
    pub(crate) model: ProcessModel,
    /// All that was mapped, where data mappings were recorded and are wanted.
    pub(crate) data: Option<ProcessModel>,
    /// Binaries.
    pub(crate) dsos: DsoTable,
    /// Paths by number and time.
    pub(crate) cgroups: Cgroups,
}

/// Applies all changes; they are sorted by time.
pub(crate) fn replay(changes: Vec<TimedChange>, features: &Features, wants_data: bool) -> Replayed {
    let is_data = |c: &TimedChange| matches!(c.change, Change::Map { executable: false, .. });
    let has_data = wants_data && changes.iter().any(is_data);
    let mut replayed =
        Replayed { data: has_data.then(ProcessModel::default), ..Replayed::default() };
    replayed.dsos = DsoTable::new(features.mapped_files());
    // No record names the idle task.
    replayed.model.comm(Pid(0), Tid(0), b"swapper", false, TimestampNs(0));
    let mut names = FunctionNames::default();
    for TimedChange { time, change } in changes {
        let Replayed { model, data, dsos, cgroups } = &mut replayed;
        if let Change::Function(function) = change {
            names.add(*function);
            continue;
        }
        if let Change::Cgroup { number, path } = &change {
            cgroups.add(*number, path, time);
        }
        if let Some(data) = data {
            apply_to_data(data, dsos, time, &change);
        }
        apply(model, dsos, time, change);
    }
    replayed.dsos.take_interpreted(names.into_functions());
    replayed.dsos.join_regions();
    replayed.dsos.apply_build_ids(&build_ids_by_path(features));
    replayed
}

/// Build ids of the recording's header. A path with two different build ids gets none.
fn build_ids_by_path(features: &Features) -> FxHashMap<String, Option<BuildId>> {
    let mut by_path: FxHashMap<String, Option<BuildId>> = FxHashMap::default();
    for entry in features.build_ids() {
        let known = by_path.entry(entry.path).or_insert(Some(entry.id));
        *known = known.filter(|known| *known == entry.id);
    }
    by_path
}

/// All mappings of processes, of code too.
fn apply_to_data(data: &mut ProcessModel, dsos: &mut DsoTable, time: TimestampNs, change: &Change) {
    match change {
        Change::Comm { pid, tid, exec: true, name } => data.comm(*pid, *tid, name, true, time),
        Change::Fork { task, copies_maps: true } => {
            data.fork(task.pid, task.tid, task.parent_pid, task.parent_tid, time);
        }
        Change::Map {
            kernel: false,
            executable,
            pid,
            start,
            len_bytes,
            file_offset,
            build_id,
            file,
            path,
        } => {
            let mapped = MappedCode { path, pid: *pid, build_id: *build_id, file: *file };
            let dso =
                if *executable { dsos.intern_user(&mapped) } else { dsos.intern_data(&mapped) };
            data.map(*pid, mapping(*start, *len_bytes, *file_offset, dso), time);
        }
        _ => {}
    }
}

fn apply(model: &mut ProcessModel, dsos: &mut DsoTable, time: TimestampNs, change: Change) {
    match change {
        Change::Comm { pid, tid, exec, name } => model.comm(pid, tid, &name, exec, time),
        Change::Fork { task, copies_maps: true } => {
            model.fork(task.pid, task.tid, task.parent_pid, task.parent_tid, time);
        }
        Change::Fork { task, copies_maps: false } => {
            let is_process = task.tid == Tid(task.pid.0);
            model.existing(task.pid, is_process, time);
        }
        Change::KernelSymbol { start, len_bytes, name } => {
            let dso = dsos.intern(RecordedDso {
                path: String::from_utf8_lossy(&name).into(),
                kind: RecordedKind::KernelSymbol(start),
                ..RecordedDso::unknown()
            });
            model.map_kernel(mapping(start, u64::from(len_bytes), start.0, dso));
        }
        Change::Map { executable: false, .. } | Change::Cgroup { .. } | Change::Function(_) => {}
        Change::Map { kernel: true, start, len_bytes, build_id, path, .. } => {
            let dso = kernel_dso(dsos, &path, build_id);
            let mapping = mapping(start, len_bytes, start.0, dso);
            dsos.note_mapping(&mapping);
            model.map_kernel(mapping);
        }
        Change::Map { pid, start, len_bytes, file_offset, build_id, file, path, .. } => {
            let dso = dsos.intern_user(&MappedCode { path: &path, pid, build_id, file });
            let mapping = mapping(start, len_bytes, file_offset, dso);
            dsos.note_mapping(&mapping);
            model.map(pid, mapping, time);
        }
    }
}

fn mapping(start: Avma, len_bytes: u64, file_offset: u64, dso: DsoIndex) -> Mapping {
    Mapping { start, end: Avma(start.0.saturating_add(len_bytes)), file_offset, dso }
}

fn kernel_dso(dsos: &mut DsoTable, path: &[u8], build_id: Option<BuildId>) -> DsoIndex {
    if path.starts_with(b"[kernel") || path.starts_with(b"[guest.kernel") {
        return DsoIndex::KERNEL;
    }
    dsos.intern(RecordedDso {
        path: String::from_utf8_lossy(path).into(),
        kind: RecordedKind::KernelModule,
        build_id,
        ..RecordedDso::unknown()
    })
}
