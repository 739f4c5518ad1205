//! Reads the headers that describe what BPF programs and the library share: the part of C that `bpf/record.h` names.
//!
//! Whatever is not of that part ends the build; a test compares the outcome with what clang made of the same header.

/// What a header describes, in its order.
#[derive(Default)]
pub struct Header {
    pub constants: Vec<Constant>,
    pub structures: Vec<Structure>,
}

pub struct Constant {
    pub name: String,
    /// As written: literals, other constants, parentheses, `<<`, `|`, `/`.
    pub value: String,
}

pub struct Structure {
    pub name: String,
    pub doc: String,
    pub members: Vec<Member>,
}

pub struct Member {
    pub name: String,
    /// As written, with `struct` before it if it is one.
    pub type_name: String,
    /// The length of an array, as written.
    pub length: Option<String>,
    /// Who may see it; nobody, if there is no tag.
    pub tag: Option<Tag>,
    pub doc: String,
}

/// Who may see a member: see the description in `bpf/record.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Public,
    Ticks,
    BootTicks,
    Tracers,
}

impl Member {
    pub fn is_structure(&self) -> bool {
        self.type_name.starts_with("struct ")
    }
}

impl Tag {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "FP_PUBLIC" => Self::Public,
            "FP_TICKS" => Self::Ticks,
            "FP_BOOT_TICKS" => Self::BootTicks,
            "FP_TRACERS" => Self::Tracers,
            _ => return None,
        })
    }
}

/// A line without its comments, and the comment that ends on it.
#[derive(Default)]
struct Line {
    number: usize,
    code: String,
    comment: Option<String>,
}

impl Header {
    /// Panics, with the line, at what it does not know.
    pub fn parse(path: &str, text: &str) -> Self {
        let mut header = Self::default();
        let mut open: Option<Structure> = None;
        let mut above = None;
        for line in lines(text) {
            let (code, comment) = (line.code.trim(), line.comment);
            if code.is_empty() {
                // A blank line parts a comment from what comes next.
                above = comment;
                continue;
            }
            let doc = [above.take(), comment].into_iter().flatten();
            let doc = doc.collect::<Vec<_>>().join(" ");
            let unknown = || -> ! { panic!("{path}:{}: cannot read {code:?}", line.number) };
            if let Some(directive) = code.strip_prefix('#') {
                header.constants.extend(constant(directive));
            } else if code.starts_with("typedef ") {
                // types.h has those.
            } else if let Some(structure) = &mut open {
                if code == "};" {
                    header.structures.extend(open.take());
                } else {
                    let members = members(code, &doc).unwrap_or_else(|| unknown());
                    structure.members.extend(members);
                }
            } else {
                let name = code
                    .strip_prefix("struct ")
                    .and_then(|rest| rest.strip_suffix(" {"));
                open = Some(Structure {
                    name: name
                        .filter(|name| is_word(name))
                        .unwrap_or_else(|| unknown())
                        .into(),
                    doc,
                    members: Vec::new(),
                });
            }
        }
        header
    }

    /// Whether a constant is the length of an array.
    pub fn is_length(&self, constant: &str) -> bool {
        let members = self
            .structures
            .iter()
            .flat_map(|structure| &structure.members);
        members
            .into_iter()
            .any(|member| member.length.as_deref() == Some(constant))
    }
}

fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut comment: Option<String> = None;
    for (index, mut rest) in text.lines().enumerate() {
        let mut line = Line {
            number: index + 1,
            ..Line::default()
        };
        loop {
            if let Some(open) = &mut comment {
                let (part, after) = match rest.split_once("*/") {
                    Some((part, after)) => (part, Some(after)),
                    None => (rest, None),
                };
                let part = part.trim();
                let part = part.strip_prefix('*').unwrap_or(part).trim();
                if !open.is_empty() && !part.is_empty() {
                    open.push(' ');
                }
                open.push_str(part);
                match after {
                    Some(after) => {
                        line.comment = comment.take();
                        rest = after;
                    }
                    None => break,
                }
            }
            let Some((code, after)) = rest.split_once("/*") else {
                line.code.push_str(rest);
                break;
            };
            line.code.push_str(code);
            comment = Some(String::new());
            rest = after;
        }
        // The lines inside a comment are nobody's.
        if comment.is_none() || !line.code.trim().is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// `define NAME value`; a guard has no value, and other directives say nothing about the layout.
fn constant(directive: &str) -> Option<Constant> {
    let (name, value) = directive
        .strip_prefix("define ")?
        .trim()
        .split_once(char::is_whitespace)?;
    is_word(name).then(|| Constant {
        name: name.into(),
        value: value.trim().into(),
    })
}

/// `u32 a, b[4] FP_PUBLIC;`
fn members(code: &str, doc: &str) -> Option<Vec<Member>> {
    let code = code.strip_suffix(';')?;
    let (structure, code) = match code.strip_prefix("struct ") {
        Some(rest) => ("struct ", rest),
        None => ("", code),
    };
    let (type_name, names) = code.split_once(char::is_whitespace)?;
    names
        .split(',')
        .map(|name| {
            let name = name.trim();
            let (name, tag) = match name.split_once(char::is_whitespace) {
                Some((name, tag)) => (name, Some(Tag::from_word(tag.trim())?)),
                None => (name, None),
            };
            let (name, length) = match name.strip_suffix(']').and_then(|name| name.split_once('['))
            {
                Some((name, length)) => (name, Some(length.into())),
                None => (name, None),
            };
            (is_word(name) && is_word(type_name)).then(|| Member {
                name: name.into(),
                type_name: format!("{structure}{type_name}"),
                length,
                tag,
                doc: doc.into(),
            })
        })
        .collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
