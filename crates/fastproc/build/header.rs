//! Parses the headers that BPF programs and the library share: the part of C that `bpf/record.h` names.
//!
//! Anything else stops the build. A test compares the result with what clang made of the same header.

/// The contents of a header, in its order.
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
    /// As written, with `struct` before the name of a structure.
    pub type_name: String,
    /// The length of an array, as written.
    pub length: Option<String>,
    pub tags: Tags,
    pub doc: String,
}

/// The tags behind a member's name: see `bpf/record.h`.
#[derive(Debug, Default)]
pub struct Tags {
    pub shown: Option<Shown>,
    pub threads: Option<Threads>,
    /// The value that means "not known", as written.
    pub unknown: Option<String>,
    pub is_inner: bool,
    pub presence: Option<Presence>,
}

/// Who may see a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Public,
    Ticks,
    BootTicks,
    Tracers,
    Nobody,
}

/// How a member comes from threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    Process,
    Leader,
    Sum,
}

/// When a structure of a record has contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Always,
    Group,
}

/// How users see a record.
pub struct View {
    /// The structure that holds the groups.
    pub record: &'static str,
    /// The module of the structures.
    pub path: &'static str,
    /// The type that lends a record and has an accessor for each group.
    pub of: &'static str,
    /// What a record describes.
    pub noun: &'static str,
    /// The names of the generated files: the groups, and the accessors.
    pub files: [&'static str; 2],
    /// Structures that only the other crates of this project use.
    pub hidden: &'static [&'static str],
}

impl View {
    /// The view of record.h.
    pub const PROCESS: Self = Self {
        record: "fp_record",
        path: "crate::record",
        of: "Process",
        noun: "process",
        files: ["fields", "process"],
        hidden: &["fp_exit_record", "fp_name_parts"],
    };

    /// Whether the record combines values of threads.
    pub fn has_threads(&self) -> bool {
        self.noun == "process"
    }
}

impl Member {
    pub fn is_structure(&self) -> bool {
        self.structure().is_some()
    }

    /// The name of the structure, if the member is one.
    pub fn structure(&self) -> Option<&str> {
        self.type_name.strip_prefix("struct ")
    }
}

impl Tags {
    /// `None` if a word is not a tag, or repeats or contradicts another tag.
    fn parse(words: &str) -> Option<Self> {
        let mut tags = Self::default();
        for word in words.split_whitespace() {
            let is_new = match word {
                "FP_PUBLIC" => tags.shown.replace(Shown::Public).is_none(),
                "FP_TICKS" => tags.shown.replace(Shown::Ticks).is_none(),
                "FP_BOOT_TICKS" => tags.shown.replace(Shown::BootTicks).is_none(),
                "FP_TRACERS" => tags.shown.replace(Shown::Tracers).is_none(),
                "FP_NOBODY" => tags.shown.replace(Shown::Nobody).is_none(),
                "FP_PROCESS" => tags.threads.replace(Threads::Process).is_none(),
                "FP_LEADER" => tags.threads.replace(Threads::Leader).is_none(),
                "FP_SUM" => tags.threads.replace(Threads::Sum).is_none(),
                "FP_ALWAYS" => tags.presence.replace(Presence::Always).is_none(),
                "FP_GROUP" => tags.presence.replace(Presence::Group).is_none(),
                "FP_INNER" => !std::mem::replace(&mut tags.is_inner, true),
                _ => {
                    let value = word.strip_prefix("FP_UNKNOWN(")?.strip_suffix(')')?;
                    tags.unknown.replace(value.into()).is_none()
                }
            };
            is_new.then_some(())?;
        }
        Some(tags)
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
    /// Panics at an unknown line, and names it.
    pub fn parse(path: &str, text: &str) -> Self {
        let mut header = Self::default();
        let mut open: Option<Structure> = None;
        let mut above = None;
        for line in lines(text) {
            let (code, comment) = (line.code.trim(), line.comment);
            if code.is_empty() {
                // A blank line separates a comment from the next member.
                above = comment;
                continue;
            }
            let doc = [above.take(), comment].into_iter().flatten();
            let doc = doc.collect::<Vec<_>>().join(" ");
            let unknown = || -> ! { panic!("{path}:{}: cannot read {code:?}", line.number) };
            if let Some(directive) = code.strip_prefix('#') {
                header.constants.extend(constant(directive));
            } else if code.starts_with("typedef ") {
                // types.h has these.
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

    /// Panics if a member of a record lacks a tag that it must have.
    pub fn require_tags(&self, path: &str, view: &View) {
        let record = self.find(view.record);
        let is_group = |name: &str| {
            let members = record.into_iter().flat_map(|record| &record.members);
            members
                .into_iter()
                .any(|member| member.structure() == Some(name))
        };
        for structure in &self.structures {
            for member in &structure.members {
                let tags = &member.tags;
                let lacks = if structure.name == view.record {
                    tags.presence
                        .is_none()
                        .then_some("when it is there (FP_GROUP, FP_ALWAYS)")
                } else if member.structure().is_some() {
                    None
                } else if tags.shown.is_none() {
                    Some("who may see it (FP_PUBLIC, FP_TRACERS, ...)")
                } else if view.has_threads() && is_group(&structure.name) && tags.threads.is_none()
                {
                    Some("how it comes from threads (FP_PROCESS, FP_LEADER, FP_SUM)")
                } else {
                    None
                };
                let (structure, member) = (&structure.name, &member.name);
                if let Some(lacks) = lacks {
                    panic!("{path}: struct {structure}: a tag of {member} must say {lacks}");
                }
            }
        }
    }

    /// Finds the structure of this name.
    pub fn find(&self, name: &str) -> Option<&Structure> {
        self.structures
            .iter()
            .find(|structure| structure.name == name)
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
        // Skip the inner lines of a comment.
        if comment.is_none() || !line.code.trim().is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// Parses `define NAME value`. `None` for a guard, which has no value, and for other directives, which do not affect
/// the layout.
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

/// Parses `u32 a, b[4] FP_PUBLIC FP_LEADER;`.
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
            let (name, tags) = name.split_once(char::is_whitespace).unwrap_or((name, ""));
            let tags = Tags::parse(tags)?;
            let (name, length) = match name.strip_suffix(']').and_then(|name| name.split_once('['))
            {
                Some((name, length)) => (name, Some(length.into())),
                None => (name, None),
            };
            (is_word(name) && is_word(type_name)).then(|| Member {
                name: name.into(),
                type_name: format!("{structure}{type_name}"),
                length,
                tags,
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
