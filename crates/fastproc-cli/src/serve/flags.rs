//! Flags in the form of Go's programs.

use std::ffi::OsString;

/// Parses a boolean like Go.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

/// Parses the path of a URL.
pub fn path(text: &str) -> Result<String, &'static str> {
    if text.starts_with('/') {
        Ok(text.into())
    } else {
        Err("a path begins with /, as in /metrics")
    }
}

/// Adds the second dash to flags of this subcommand that are written with one, as for Go's programs: `-config.path`.
pub fn with_two_dashes(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|name| name != "serve") {
        return arguments;
    }
    let command = <super::Args as clap::Args>::augment_args(clap::Command::new("serve"));
    let is_known = |name: &str| {
        matches!(name, "help" | "version" | "procfs")
            || command.get_arguments().any(|argument| {
                let aliases = argument.get_all_aliases().unwrap_or_default();
                argument.get_long() == Some(name) || aliases.contains(&name)
            })
    };
    let mut one_dash = false;
    for argument in arguments.iter_mut().skip(2) {
        let Some(text) = argument.to_str() else {
            continue;
        };
        let name = text.strip_prefix('-').unwrap_or_default();
        let name = name.split('=').next().unwrap_or_default();
        if name.len() > 1 && is_known(name) {
            *argument = format!("-{text}").into();
            one_dash = true;
        }
    }
    if one_dash {
        arguments.insert(2, "--one-dash".into());
    }
    arguments
}

/// Parses a number of bytes, with or without a unit: `64MiB`.
pub fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let shift = match unit {
        "" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        _ => None,
    };
    let number = number.parse::<usize>().ok();
    number
        .zip(shift)
        .and_then(|(number, shift)| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("{text:?} is no number of bytes, such as 1048576, 64MiB or 1GiB"))
}

/// Parses a part of one CPU's time.
pub fn share(text: &str) -> Result<f64, String> {
    part(text, "a CPU's time")
}

/// Parses a part of something.
pub fn part(text: &str, whole: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| format!("{text:?} is no part of {whole}, from 0 to 1"))
}

/// Parses the part of one CPU's time for one user. It may exceed 1: the service has several threads.
pub fn share_of_user(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.001..=1000.0).contains(share))
        .ok_or_else(|| format!("{text:?} is no part of a CPU's time, from 0.001 to 1000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_with_one_dash_are_those_with_two() {
        let with = |arguments: &[&str]| {
            let arguments = [&["fastproc", "serve"], arguments].concat();
            with_two_dashes(arguments.into_iter().map(OsString::from)).split_off(2)
        };
        assert_eq!(
            with(&[
                "-config.path",
                "-x",
                "-children=false",
                "-h",
                "--debug",
                "-V"
            ]),
            [
                "--one-dash",
                "--config.path",
                "-x",
                "--children=false",
                "-h",
                "--debug",
                "-V"
            ]
        );
        let others = ["fastproc", "ps", "-children"];
        assert_eq!(with_two_dashes(others.iter().map(OsString::from)), others);
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("17"), Ok(17));
        for wrong in ["", "MiB", "1MB", "-1", "1.5GiB", "99999999999GiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn booleans_are_as_go_reads_them() {
        assert_eq!(boolean("1"), Ok(true));
        assert_eq!(boolean("F"), Ok(false));
        assert!(boolean("no").is_err());
    }
}
