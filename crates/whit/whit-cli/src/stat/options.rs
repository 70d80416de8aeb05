//! Converts the command line to the options of a count.

use super::{StatArgs, events};
use crate::failure::bail_usage;
use crate::message;
use anyhow::Result;
use std::time::Duration;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_stat::cgroups::CgroupChoice;
use whit_stat::counter::Counter;
use whit_stat::options::{Intervals, Repeats, RunHooks, StatOptions};
use whit_stat::show::{Form, NumberStyle, Style};
use whit_stat::table::Aggregation;
use whit_sys::locale;

impl StatArgs {
    pub(super) fn options(&self, is_terminal: bool) -> Result<StatOptions> {
        self.check()?;
        // A plan needs nobody to count.
        let has_command = !self.command.is_empty() || self.plan.is_some();
        let (target, overridden) = self.target.choose(None, has_command, &Roots::default())?;
        for what in overridden {
            if !self.quiet {
                message::warning(what);
            }
        }
        let aggregation = self.aggregation(&target)?;
        let intervals = self.intervals()?;
        let repeats = self.repeat.unwrap_or(Repeats::Times(1));
        if repeats != Repeats::Times(1) && self.command.is_empty() {
            bail_usage!("-r runs a command again and again: give one");
        }
        let has_noise = matches!(repeats, Repeats::Times(times) if times > 1);
        let style = self.style(aggregation, intervals.is_some(), has_noise, is_terminal);
        Ok(StatOptions {
            counters: self.counters(&target)?,
            cgroups: self.cgroups()?,
            bpf_counters: self.bpf_counters,
            title: self.target.title(&self.command),
            target,
            command: self.command.clone(),
            inherit: !self.no_inherit,
            aggregation,
            scale: !self.no_scale || self.scale,
            merge: !self.no_merge,
            start: self.delay.unwrap_or_default(),
            intervals,
            timeout: self.timeout.map(Duration::from_millis),
            repeats,
            with_table: self.table,
            around: RunHooks { pre: self.pre.clone(), post: self.post.clone(), sync: self.sync },
            control: self.control.clone(),
            style,
            raw_counts: self.verbose > 0,
        })
    }

    fn aggregation(&self, target: &Target) -> Result<Aggregation> {
        let asked = [
            (self.no_aggr, Aggregation::Cpu),
            (self.per_core, Aggregation::Core),
            (self.per_cache, Aggregation::Cache),
            (self.per_die, Aggregation::Die),
            (self.per_socket, Aggregation::Socket),
            (self.per_node, Aggregation::Node),
            (self.per_thread, Aggregation::Thread),
        ];
        let mut asked = asked.iter().filter(|(is_asked, _)| *is_asked);
        let aggregation = asked.next().map_or(Aggregation::Global, |(_, aggregation)| *aggregation);
        if asked.next().is_some() {
            bail_usage!(
                "counts are added up one way: choose one of -A, --per-core, --per-thread, .."
            );
        }
        if aggregation == Aggregation::Thread && *target == Target::Command {
            bail_usage!(
                "--per-thread is for threads that run already: add -p, -t or -a (threads that a \
                 command starts are counted together with it)"
            );
        }
        Ok(aggregation)
    }

    fn intervals(&self) -> Result<Option<Intervals>> {
        let length = self.interval_print.filter(|&ms| ms > 0).map(Duration::from_millis);
        let Some(length) = length else {
            let needs = [
                (self.interval_count.is_some(), "--interval-count"),
                (self.interval_clear, "--interval-clear"),
            ];
            if self.max_overhead.is_some() {
                bail_usage!(
                    "--max-overhead makes intervals longer: add -I MS. Without intervals counts are read once, at the end, and \
                     what counting costs programs at their context switches depends on the number of events alone: \
                     leave events out"
                );
            }
            if let Some((_, option)) = needs.iter().find(|(is_there, _)| *is_there) {
                bail_usage!("{option} goes with intervals: add -I MS");
            }
            return Ok(None);
        };
        let count = self.interval_count;
        let (clear, summary) = (self.interval_clear, self.summary);
        let max_overhead_ppm = self.max_overhead;
        Ok(Some(Intervals { length, count, clear, summary, max_overhead_ppm }))
    }

    fn cgroups(&self) -> Result<CgroupChoice> {
        if self.events.has_cgroups() && (self.all_cgroups || !self.for_each_cgroup.is_empty()) {
            bail_usage!(
                "-G gives cgroups to single events, --for-each-cgroup and --all-cgroups to all: \
                   choose one"
            );
        }
        Ok(match self.all_cgroups {
            true => CgroupChoice::All,
            false if self.for_each_cgroup.is_empty() => CgroupChoice::AsGiven,
            false => CgroupChoice::Each(self.for_each_cgroup.clone()),
        })
    }

    fn counters(&self, target: &Target) -> Result<Vec<Counter>> {
        if self.null {
            return Ok(Vec::new());
        }
        let mut counters =
            events::choose(&self.events, &self.tables.pmus()?, target, self.detailed)?;
        let is_group = self.group && counters.len() > 1;
        for counter in &mut counters {
            let exclude = &mut counter.event.exclude;
            exclude.user |= self.all_kernel;
            exclude.kernel |= self.all_user;
            if is_group {
                counter.leader = Some(0);
            }
        }
        Ok(counters)
    }

    fn style(
        &self,
        aggregation: Aggregation,
        has_intervals: bool,
        has_noise: bool,
        is_terminal: bool,
    ) -> Style {
        let form = match &self.field_separator {
            Some(separator) => Form::Csv(separator.clone()),
            None if self.json_output => Form::Json,
            None => Form::Text,
        };
        let numbers = locale::numbers();
        let separator = if self.no_big_num && !self.big_num {
            String::new()
        } else {
            numbers.thousands_separator
        };
        Style {
            form,
            aggregation,
            metric_only: self.metric_only,
            has_intervals,
            has_noise,
            marks_summary: !self.no_csv_summary,
            numbers: NumberStyle {
                decimal_point: numbers.decimal_point,
                thousands_separator: separator,
            },
            colours: is_terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }
}
