//! Names of users and groups.

use std::collections::HashMap;

use crate::number;

/// Names by number. Each is looked up once, by `getpwuid_r` or `getgrgid_r`, so all name services are used.
#[derive(Debug)]
pub struct Names {
    ask: fn(u32) -> Option<String>,
    known: HashMap<u32, Box<[u8]>>,
}

impl Names {
    /// Names of users.
    pub fn users() -> Self {
        Self {
            ask: user_name,
            known: HashMap::new(),
        }
    }

    /// Names of groups.
    pub fn groups() -> Self {
        Self {
            ask: group_name,
            known: HashMap::new(),
        }
    }

    /// Names of a recording: only those that [`keep`](Self::keep) adds.
    pub fn recorded() -> Self {
        Self {
            ask: |_| None,
            known: HashMap::new(),
        }
    }

    /// Adds the name of an id.
    pub fn keep(&mut self, id: u32, name: &[u8]) {
        self.known.insert(id, name.into());
    }

    /// The number of the user with this name.
    pub fn user_id(name: &str) -> Option<u32> {
        if NO_SERVICES {
            return None;
        }
        let user = nix::unistd::User::from_name(name).ok()?;
        Some(user?.uid.as_raw())
    }

    /// The number of the group with this name.
    pub fn group_id(name: &str) -> Option<u32> {
        if NO_SERVICES {
            return None;
        }
        let group = nix::unistd::Group::from_name(name).ok()?;
        Some(group?.gid.as_raw())
    }

    /// The name, or the number if it has none.
    pub fn name(&mut self, id: u32) -> &[u8] {
        self.known.entry(id).or_insert_with(|| {
            let name = (self.ask)(id).map(String::into_bytes);
            let digits = || {
                let mut digits = Vec::new();
                number::write(id.into(), &mut digits);
                digits
            };
            name.unwrap_or_else(digits).into()
        })
    }
}

/// A statically linked glibc cannot load name services safely: they belong to the glibc of the machine.
const NO_SERVICES: bool = cfg!(all(target_env = "gnu", target_feature = "crt-static"));

fn user_name(id: u32) -> Option<String> {
    if NO_SERVICES {
        return None;
    }
    let user = nix::unistd::User::from_uid(id.into()).ok()?;
    Some(user?.name)
}

fn group_name(id: u32) -> Option<String> {
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
