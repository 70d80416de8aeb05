//! The feature in which simpleperf, the recorder of Android, describes a recording.
//!
//! Source: `record_file_format.h` and `event_type.cpp` in AOSP's `system/extras/simpleperf`. META_INFO is a row of
//! keys and values, each a string with a zero behind it. Under `event_type_info` is a line for each type of event:
//! name, type and config in decimal, with commas between them.

use crate::attr::{Attr, AttrFlags};
use crate::feature::{Feature, Features};

impl Features {
    /// A value of META_INFO.
    fn meta_info(&self, key: &str) -> Option<&str> {
        let mut strings = self.get(Feature::META_INFO)?.split(|byte| *byte == 0);
        loop {
            let (name, value) = (strings.next()?, strings.next()?);
            if name == key.as_bytes() {
                return std::str::from_utf8(value).ok();
            }
        }
    }

    /// The name that simpleperf has for an event, with the mode that it counts in.
    pub fn simpleperf_event_name(&self, attr: &Attr) -> Option<String> {
        let (pmu_type, config) = (attr.pmu_type.to_string(), attr.config.to_string());
        let named = self.meta_info("event_type_info")?.lines().find_map(|line| {
            let mut fields = line.rsplitn(3, ',');
            let is_meant = fields.next()? == config && fields.next()? == pmu_type;
            fields.next().filter(|name| is_meant && !name.is_empty())
        })?;
        let excluded = (attr.has(AttrFlags::EXCLUDE_USER), attr.has(AttrFlags::EXCLUDE_KERNEL));
        let mode = match excluded {
            (true, false) => ":k",
            (false, true) => ":u",
            _ => "",
        };
        Some(format!("{named}{mode}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(meta_info: &[u8]) -> Features {
        let mut features = Features::default();
        features.set(Feature::META_INFO, meta_info.to_vec());
        features
    }

    const INFO: &[u8] = b"simpleperf_version\x001.build\0event_type_info\0cpu-cycles,0,0\n\
        sched:sched_switch,2,63\nraw,a-b,4,17\0clockid\0monotonic\0";

    #[test]
    fn events_have_simpleperfs_names() {
        let name = |pmu_type, config, flags| {
            let attr = Attr { pmu_type, config, flags, ..Attr::default() };
            features(INFO).simpleperf_event_name(&attr)
        };
        let (none, kernel) = (AttrFlags::default(), AttrFlags::EXCLUDE_KERNEL);
        assert_eq!(name(2, 63, none).unwrap(), "sched:sched_switch");
        assert_eq!(name(0, 0, kernel).unwrap(), "cpu-cycles:u");
        assert_eq!(name(0, 0, AttrFlags::EXCLUDE_USER).unwrap(), "cpu-cycles:k");
        assert_eq!(name(0, 0, kernel | AttrFlags::EXCLUDE_USER).unwrap(), "cpu-cycles");
        assert_eq!(name(4, 17, none).unwrap(), "raw,a-b");
        assert_eq!((name(2, 6, none), name(0, 63, none)), (None, None));
    }

    #[test]
    fn meta_info_that_is_cut_or_is_no_text_has_no_names() {
        let attr = Attr { pmu_type: 2, config: 63, ..Attr::default() };
        let name = |bytes: &[u8]| features(bytes).simpleperf_event_name(&attr);
        assert_eq!(name(b""), None);
        assert_eq!(name(b"event_type_info"), None);
        assert_eq!(name(b"event_type_info\0\xff,2,63\0"), None);
        assert_eq!(name(b"event_type_info\0,2,63\n2,63\0"), None);
        assert_eq!(name(b"event_type_info\0a,2,63").as_deref(), Some("a"));
    }
}
