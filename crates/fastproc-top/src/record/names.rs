//! The recorded names of a container: its id, name, pod, namespace and image, each terminated by NUL. An empty name is
//! unknown.

use fastproc::container::Labels;

/// The bytes of the names.
pub(super) fn written(id: &[u8], labels: &Labels) -> Vec<u8> {
    let names = [&labels.name, &labels.pod, &labels.namespace, &labels.image];
    let names = names.map(|name| name.as_deref().unwrap_or_default().as_bytes());
    let mut text = Vec::new();
    for part in [id].into_iter().chain(names) {
        text.extend(part.iter().copied().filter(|&byte| byte != 0));
        text.push(0);
    }
    text
}

/// Parses the names. A later version may write more.
pub fn labels(text: &[u8]) -> Option<(&[u8], Labels)> {
    let mut parts = text.split(|&byte| byte == 0);
    let id = parts.next().filter(|id| !id.is_empty())?;
    let mut name = || {
        let name = std::str::from_utf8(parts.next()?).ok()?;
        (!name.is_empty()).then(|| name.into())
    };
    let mut labels = Labels::default();
    labels.name = name();
    labels.pod = name();
    labels.namespace = name();
    labels.image = name();
    Some((id, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let mut some = Labels::default();
        some.name = Some("web".into());
        some.namespace = Some("shop".into());
        for labels_of in [Labels::default(), some] {
            let text = written(b"1f", &labels_of);
            assert_eq!(labels(&text), Some((b"1f".as_slice(), labels_of)));
        }
        for wrong in [b"".as_slice(), b"\0a\0b\0"] {
            assert_eq!(labels(wrong), None);
        }
        let cut = labels(b"1f\0\xff\0pod").map(|(_, labels)| labels.pod);
        assert_eq!(cut, Some(Some("pod".into())));
    }
}
