//! Names of users and groups.

use std::collections::HashMap;

use super::number;

/// The names in a file like `/etc/passwd`, and those that other services of the machine know.
///
/// The file comes first, as on nearly every machine: only an id that it does not have makes the C library load its
/// name services.
#[derive(Debug)]
pub struct Names {
    path: &'static str,
    ask: fn(u32) -> Option<String>,
    known: Option<HashMap<u32, Box<[u8]>>>,
}

impl Names {
    /// Names of users.
    pub const fn users() -> Self {
        Self {
            path: "/etc/passwd",
            ask: ask_for_user,
            known: None,
        }
    }

    /// Names of groups.
    pub const fn groups() -> Self {
        Self {
            path: "/etc/group",
            ask: ask_for_group,
            known: None,
        }
    }

    /// The name, or the number if it has none.
    pub fn of(&mut self, id: u32) -> &[u8] {
        let known = self.known.get_or_insert_with(|| {
            // Without the file there are the services, and at last the numbers.
            parse(&std::fs::read(self.path).unwrap_or_default())
        });
        known.entry(id).or_insert_with(|| {
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

/// Lines of `name:password:id:…`. The first line for an id is the one that counts.
fn parse(text: &[u8]) -> HashMap<u32, Box<[u8]>> {
    let mut names = HashMap::new();
    for line in text.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b':');
        let (name, id) = (fields.next(), fields.nth(1));
        let id = id.and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        if let (Some(name), Some(id)) = (name.filter(|name| !name.is_empty()), id) {
            names.entry(id).or_insert_with(|| name.into());
        }
    }
    names
}

/// A statically linked glibc cannot load name services safely: they belong to the glibc of the machine.
const NO_SERVICES: bool = cfg!(all(target_env = "gnu", target_feature = "crt-static"));

fn ask_for_user(id: u32) -> Option<String> {
    if NO_SERVICES {
        return None;
    }
    let user = nix::unistd::User::from_uid(id.into()).ok()?;
    Some(user?.name)
}

fn ask_for_group(id: u32) -> Option<String> {
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
    fn the_first_name_of_an_id_counts() {
        let names = parse(b"root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\n\n+::::::\n:x:5:\nbroken:x:z:\n#c\nm\xfcller:x:4294967295");
        assert_eq!(names.len(), 2);
        assert_eq!(&*names[&0], b"root");
        assert_eq!(&*names[&u32::MAX], b"m\xfcller");
    }

    #[test]
    fn an_id_without_a_name_is_a_number() {
        assert_eq!(Names::users().of(0), b"root");
        assert_eq!(Names::users().of(3_999_999_999), b"3999999999");
        assert_eq!(Names::groups().of(3_999_999_999), b"3999999999");
    }
}
