//! The character set of the terminal, according to the environment.

use std::ffi::OsString;

/// Whether the terminal has Unicode. As in setlocale(3), the first of the variables that is set and not empty decides;
/// without any, the character set is ASCII.
pub fn has_unicode(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let has = |set: &[(&str, &str)]| {
            has_unicode(|name| {
                let (_, value) = set.iter().find(|(set, _)| *set == name)?;
                Some(value.into())
            })
        };
        assert!(has(&[("LANG", "en_US.UTF-8")]) && has(&[("LC_CTYPE", "de_DE.utf8@euro")]));
        assert!(has(&[("LC_ALL", ""), ("LANG", "C.UTF-8")]));
        assert!(!has(&[]) && !has(&[("LANG", "C")]) && !has(&[("LANG", "en_US")]));
        assert!(!has(&[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")]));
        assert!(!has(&[("LC_CTYPE", "C"), ("LANG", "en_US.UTF-8")]));
    }
}
