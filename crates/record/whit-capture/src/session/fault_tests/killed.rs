//! A recorder that was killed: the header was never completed, and the file ends anywhere.

use super::*;

/// The file of a killed recorder, and where records begin.
fn killed(way: &Streaming, place: &Path) -> (Vec<u8>, u64) {
    let mut rig = Rig::new(place, way, |_| Faults::default());
    for _ in 0..3 {
        (0..4).for_each(|more_words| rig.kernel.emit(more_words));
        rig.pass(Pass::Everything).unwrap();
    }
    rig.sink.finish().unwrap();
    (rig.disk.contents().unwrap(), rig.start)
}

/// Cuts the file at each length, reads it, and hands the result to `look`.
fn each_cut(file: &[u8], place: &Path, mut look: impl FnMut(usize, Result<Stored, OpenError>)) {
    let path = place.join("cut.data");
    for end in 0..=file.len() {
        std::fs::write(&path, &file[..end]).unwrap();
        look(end, Stored::read(&path));
    }
}

#[test]
fn every_whole_record_of_a_cut_file_is_read() {
    for way in ways().into_iter().filter(|way| way.compression_level.is_none()) {
        let place = tempfile::tempdir().unwrap();
        let (file, start) = killed(&way, place.path());
        let mut ends = vec![];
        let mut rest = &file[start as usize..];
        while let Some((record, behind)) = RawRecord::split(rest) {
            rest = behind;
            ends.push((file.len() - rest.len(), record.header.kind == record_type::SAMPLE));
        }
        assert!(rest.is_empty() && ends.len() == 15, "{way:?}: 12 samples and 3 rounds");
        each_cut(&file, place.path(), |end, stored| {
            let whole = ends.iter().filter(|(behind, _)| *behind <= end);
            let samples = whole.filter(|(_, is_sample)| *is_sample).count();
            let Ok(stored) = stored else {
                assert!(end < start as usize, "{way:?}: cut at {end}");
                return;
            };
            // Without a record, nothing is missing.
            assert_eq!(stored.is_cut, end > start as usize, "{way:?}: cut at {end}");
            assert!(!stored.is_broken, "{way:?}: cut at {end}");
            assert_eq!(stored.samples, Vec::from_iter(1..=samples as u64), "{way:?}, {end}");
            let is_boundary =
                end <= start as usize || ends.iter().any(|(behind, _)| *behind == end);
            assert_eq!(stored.is_truncated, !is_boundary, "{way:?}: cut at {end}");
        });
    }
}

#[test]
fn every_record_of_the_whole_compressed_pieces_of_a_cut_file_is_read() {
    for way in ways().into_iter().filter(|way| way.compression_level.is_some()) {
        let place = tempfile::tempdir().unwrap();
        let (file, start) = killed(&way, place.path());
        let (mut ends, mut rest) = (vec![start as usize], &file[start as usize..]);
        while let Some((record, behind)) = RawRecord::split(rest) {
            assert_eq!(record.header.kind, record_type::COMPRESSED, "{way:?}");
            rest = behind;
            ends.push(file.len() - rest.len());
        }
        let mut by_end = Vec::new();
        each_cut(&file, place.path(), |end, stored| {
            let Ok(stored) = stored else {
                assert!(end < start as usize, "{way:?}: cut at {end}");
                return;
            };
            // Without a record, nothing is missing.
            assert_eq!(stored.is_cut, end > start as usize, "{way:?}: cut at {end}");
            assert!(!stored.is_broken, "{way:?}: cut at {end}");
            let numbers = Vec::from_iter(1..=stored.samples.len() as u64);
            assert_eq!(stored.samples, numbers, "{way:?}: cut at {end}");
            if ends.contains(&end) {
                by_end.push(stored.samples.len());
            } else {
                assert_eq!(
                    stored.samples.len(),
                    by_end.last().copied().unwrap_or(0),
                    "{way:?}, {end}"
                );
            }
        });
        assert!(by_end.is_sorted() && by_end.last() == Some(&12), "{way:?}: {by_end:?}");
    }
}
