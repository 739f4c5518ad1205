//! What cgroups have several of: the records refer to ranges of these lists.

use super::{
    fields::Fields,
    record::{Device, Record},
};

/// The part of a list that a record refers to; nothing if the list is shorter.
pub(super) fn range<T>(list: &[T], at: u32, count: u32) -> &[T] {
    let rest = list.get(at as usize..);
    let range = rest.and_then(|rest| rest.get(..count as usize));
    range.unwrap_or_default()
}

/// The lists of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Block devices.
    pub(super) devices: Vec<Device>,
}

impl Lists {
    pub(super) fn clear(&mut self) {
        self.devices.clear();
    }

    /// Sets the sums over the block devices.
    pub(super) fn sum_io(&self, record: &mut Record) {
        if record.identity.groups & Fields::IO.bits() == 0 {
            return;
        }
        let io = &mut record.io;
        (io.rbytes, io.wbytes, io.dbytes, io.rios, io.wios, io.dios) = (0, 0, 0, 0, 0, 0);
        for device in range(&self.devices, io.devices_at, io.devices) {
            io.rbytes = io.rbytes.wrapping_add(device.rbytes);
            io.wbytes = io.wbytes.wrapping_add(device.wbytes);
            io.dbytes = io.dbytes.wrapping_add(device.dbytes);
            io.rios = io.rios.wrapping_add(device.rios);
            io.wios = io.wios.wrapping_add(device.wios);
            io.dios = io.dios.wrapping_add(device.dios);
        }
    }
}
