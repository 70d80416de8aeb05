//! Places of the probes that a program was built with.

use super::{SHOWN, argument};
use anyhow::{Context, Result, anyhow, bail};
use whit_elf::{ElfImage, UsdtProbe};
use whit_host::user_probe::ProbePlace;
use whit_perfdata::request::KEY;

/// The places of a probe, `NAME` or `PROVIDER:NAME`, with a key as `arg1`.
pub(super) fn places(image: &ElfImage, name: &str, key: Option<&str>) -> Result<Vec<ProbePlace>> {
    let all = image.usdt_probes();
    let is_it = |probe: &&UsdtProbe| match name.split_once(':') {
        Some((provider, name)) => probe.provider == provider && probe.name == name,
        None => probe.name == name,
    };
    let places = all.iter().filter(is_it).map(|probe| place(image, probe, key));
    let places = places.collect::<Result<Vec<_>>>()?;
    if !places.is_empty() {
        return Ok(places);
    }
    let path = image.path().display();
    if all.is_empty() {
        bail!("{path} was built without probes (USDT)");
    }
    let mut names: Vec<_> =
        all.iter().map(|probe| format!("{}:{}", probe.provider, probe.name)).collect();
    names.sort_unstable();
    names.dedup();
    let (count, part) = (names.len(), name.split('_').next().unwrap_or(name));
    names.sort_by_key(|name| !name.contains(part));
    names.truncate(SHOWN);
    bail!("{path} has no probe '{name}'; among its {count} are {}", names.join(", "))
}

fn place(image: &ElfImage, probe: &UsdtProbe, key: Option<&str>) -> Result<ProbePlace> {
    let UsdtProbe { name, location, semaphore, arguments, .. } = probe;
    let offset = |address| {
        let offset = image.file_offset_of(address).map(|offset| offset.0);
        offset.with_context(|| format!("the probe '{name}' is not in the file"))
    };
    let key = key.map(|key| {
        let field = argument::field(key, arguments);
        let field = field.ok_or_else(|| {
            anyhow!("'{key}' is no argument of the probe '{name}' that can be read: it has '{arguments}'")
        })?;
        Ok::<_, anyhow::Error>(format!("{KEY}={field}"))
    });
    Ok(ProbePlace {
        offset: offset(*location)?,
        counter: semaphore.map(offset).transpose()?,
        fields: key.transpose()?.unwrap_or_default(),
    })
}
