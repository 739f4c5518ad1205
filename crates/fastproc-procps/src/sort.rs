//! Sorts rows. The sort is stable: ps sorts by one key after the other.

use std::{
    cmp::Ordering,
    ffi::{c_char, c_int},
};

use crate::{
    abi::{PidsResult, Stack},
    items::Kind,
};

unsafe extern "C" {
    /// From the C library; the crate libc lacks it.
    fn strverscmp(a: *const c_char, b: *const c_char) -> c_int;
}

/// Sorts by the results with this index, which are of this kind.
///
/// # Safety
/// Each row has that many results, and strings if the kind is one of strings.
pub(crate) unsafe fn sort(rows: &mut [*mut Stack], at: usize, kind: Kind, descending: bool) {
    let compare = |a: &*mut Stack, b: &*mut Stack| {
        // SAFETY: the caller guarantees it.
        let (a, b) = unsafe { (&*(**a).head.add(at), &*(**b).head.add(at)) };
        // SAFETY: the caller guarantees it.
        let order = unsafe { compare(a, b, kind) };
        if descending { order.reverse() } else { order }
    };
    rows.sort_by(compare);
}

unsafe fn compare(a: &PidsResult, b: &PidsResult, kind: Kind) -> Ordering {
    let (a, b) = (a.value, b.value);
    match kind {
        Kind::None => Ordering::Equal,
        Kind::SCh => (a as i8).cmp(&(b as i8)),
        Kind::SInt => (a as i32).cmp(&(b as i32)),
        Kind::UInt => (a as u32).cmp(&(b as u32)),
        Kind::UlInt | Kind::UllInt => a.cmp(&b),
        Kind::Real => f64::from_bits(a).total_cmp(&f64::from_bits(b)),
        // SAFETY: both are C strings.
        Kind::Str => unsafe { libc::strcoll(a as *const c_char, b as *const c_char) }.cmp(&0),
        // SAFETY: both are C strings.
        Kind::StrVers => unsafe { strverscmp(a as *const c_char, b as *const c_char) }.cmp(&0),
        Kind::StrV => {
            let (a, b) = (a as *const *const c_char, b as *const *const c_char);
            if a.is_null() || b.is_null() {
                return Ordering::Equal;
            }
            // SAFETY: vectors of at least one C string.
            unsafe { libc::strcoll(*a, *b) }.cmp(&0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_keep_their_order_either_way() {
        let values = [3_i32, -1, 3, 7, -1];
        let mut results: Vec<[PidsResult; 2]> = (0..)
            .zip(values)
            .map(|(at, value)| [value as u64, at].map(|value| PidsResult { item: 0, value }))
            .collect();
        let mut stacks: Vec<Stack> = results
            .iter_mut()
            .map(|row| Stack {
                head: row.as_mut_ptr(),
            })
            .collect();
        let mut rows: Vec<*mut Stack> = stacks.iter_mut().map(std::ptr::from_mut).collect();
        for (descending, expected) in [(false, [1, 4, 0, 2, 3]), (true, [3, 0, 2, 1, 4])] {
            // SAFETY: rows of two results.
            unsafe { sort(&mut rows, 1, Kind::UlInt, false) };
            // SAFETY: as above.
            unsafe { sort(&mut rows, 0, Kind::SInt, descending) };
            // SAFETY: as above.
            let order: Vec<u64> = rows
                .iter()
                .map(|&row| unsafe { (*(*row).head.add(1)).value })
                .collect();
            assert_eq!(order, expected);
        }
    }
}
