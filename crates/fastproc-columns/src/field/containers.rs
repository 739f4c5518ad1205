//! Columns derived from the cgroup: unit, container, pod, and their names.

use fastproc::{
    Details, Process,
    container::{Labels, Origin},
};

use crate::{
    row::{Lookup, Row},
    value::Value::{self, Text, Unknown},
};

/// The length of a container's id in a table.
const SHORT: usize = 12;

fn origin<'x>(process: Process<'_>, details: &'x mut Details) -> Option<Origin<'x>> {
    details.whole_cgroup(process).ok().map(Origin::from_cgroup)
}

fn of_origin<'x>(
    row: &Row<'_>,
    lookup: &'x mut Lookup,
    of: impl FnOnce(&Origin<'x>) -> Option<&'x [u8]>,
) -> Value<'x> {
    let origin = origin(row.process, &mut lookup.details);
    Value::known(origin.and_then(|origin| of(&origin)), Text)
}

pub(super) fn unit<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    of_origin(row, lookup, |origin| origin.unit)
}

pub(super) fn slice<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    of_origin(row, lookup, |origin| Some(origin.slice))
}

pub(super) fn id<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    of_origin(row, lookup, |origin| origin.container)
}

pub(super) fn short_id<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    match id(row, lookup) {
        Text(id) => Text(short_container_id(id)),
        other => other,
    }
}

/// The first 12 digits of the id of a container, as Docker shows it; a name stays whole.
pub fn short_container_id(id: &[u8]) -> &[u8] {
    let is_digits = id.len() == 64 && id.iter().all(u8::is_ascii_hexdigit);
    if is_digits { &id[..SHORT] } else { id }
}

pub(super) fn runtime<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    of_origin(row, lookup, |origin| {
        Some(origin.runtime?.name().as_bytes())
    })
}

pub(super) fn pod_uid<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let Lookup { details, text, .. } = lookup;
    let Some(uid) = origin(row.process, details).and_then(|origin| origin.pod_uid) else {
        return Unknown;
    };
    text.clear();
    text.extend_from_slice(uid.as_str().as_bytes());
    Text(text)
}

pub(super) fn machine<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
    let Lookup { details, text, .. } = lookup;
    let Some(machine) = origin(row.process, details).and_then(|origin| origin.machine) else {
        return Unknown;
    };
    text.clear();
    text.extend_from_slice(&machine);
    Text(text)
}

pub(super) fn label<'x>(
    row: &Row<'_>,
    lookup: &'x mut Lookup,
    of: fn(&Labels) -> &Option<Box<str>>,
) -> Value<'x> {
    let Lookup {
        details,
        containers,
        ..
    } = lookup;
    let origin = origin(row.process, details);
    let labels = origin.and_then(|origin| containers.get(&origin));
    let label = labels.and_then(|labels| of(labels).as_deref());
    Value::known(label, |label| Text(label.as_bytes()))
}
