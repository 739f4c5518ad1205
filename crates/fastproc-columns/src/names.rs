//! Names of users and groups.

use std::collections::HashMap;

use fastproc::{frozen, kept::Kept};

use crate::number;

/// Names by number. They are looked up by `getpwuid_r` or `getgrgid_r`, so all name services are used, and again when the
/// file of local names changes; without a name after five seconds.
#[derive(Debug)]
pub struct Names(Source);

#[derive(Debug)]
enum Source {
    Asked(fn(u32) -> Option<String>, Kept<Box<[u8]>>),
    Recorded(HashMap<u32, Box<[u8]>>),
}

impl Names {
    /// Names of users.
    pub fn users() -> Self {
        Self(Source::Asked(user_name, Kept::new("/etc/passwd")))
    }

    /// Names of groups.
    pub fn groups() -> Self {
        Self(Source::Asked(group_name, Kept::new("/etc/group")))
    }

    /// Names of a recording: only those that [`keep`](Self::keep) adds.
    pub fn recorded() -> Self {
        Self(Source::Recorded(HashMap::new()))
    }

    /// Adds the name of a recorded id.
    pub fn keep(&mut self, id: u32, name: &[u8]) {
        if let Source::Recorded(names) = &mut self.0 {
            names.insert(id, name.into());
        }
    }

    /// The number of the user with this name.
    pub fn user_id(name: &str) -> Option<u32> {
        if let Some(found) = frozen::account("/etc/passwd", name) {
            return Some(found?.1);
        }
        if NO_SERVICES {
            return None;
        }
        let user = nix::unistd::User::from_name(name).ok()?;
        Some(user?.uid.as_raw())
    }

    /// The number of the group with this name.
    pub fn group_id(name: &str) -> Option<u32> {
        if let Some(found) = frozen::account("/etc/group", name) {
            return Some(found?.1);
        }
        if NO_SERVICES {
            return None;
        }
        let group = nix::unistd::Group::from_name(name).ok()?;
        Some(group?.gid.as_raw())
    }

    /// The name, or the number if it has none.
    pub fn name(&mut self, id: u32) -> &[u8] {
        match &mut self.0 {
            Source::Asked(ask, names) => names.get(id, |_| match ask(id) {
                Some(name) => (name.into_bytes().into(), true),
                None => (digits(id), false),
            }),
            Source::Recorded(names) => names.entry(id).or_insert_with(|| digits(id)),
        }
    }
}

fn digits(id: u32) -> Box<[u8]> {
    let mut digits = Vec::new();
    number::write(id.into(), &mut digits);
    digits.into()
}

/// A statically linked glibc cannot load name services safely: they belong to the glibc of the machine.
const NO_SERVICES: bool = cfg!(all(target_env = "gnu", target_feature = "crt-static"));

fn user_name(id: u32) -> Option<String> {
    if let Some(found) = frozen::account("/etc/passwd", &id.to_string()) {
        return Some(found?.0);
    }
    if NO_SERVICES {
        return None;
    }
    let user = nix::unistd::User::from_uid(id.into()).ok()?;
    Some(user?.name)
}

fn group_name(id: u32) -> Option<String> {
    if let Some(found) = frozen::account("/etc/group", &id.to_string()) {
        return Some(found?.0);
    }
    if NO_SERVICES {
        return None;
    }
    let group = nix::unistd::Group::from_gid(id.into()).ok()?;
    Some(group?.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_without_a_name_is_a_number() {
        assert_eq!(Names::users().name(0), b"root");
        assert_eq!(Names::users().name(3_999_999_999), b"3999999999");
        assert_eq!(Names::groups().name(3_999_999_999), b"3999999999");
    }
}
