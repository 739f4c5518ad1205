//! Metrics that other programs write to `*.prom` files in certain folders.

mod parse;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use self::parse::{Parsed, Sample, parse};
use super::ask::{Askers, PATIENCE, Question};
use crate::{
    exposition::{Exposition, Family, Format, Kind, Value, escape},
    names,
};

crate::metrics::families! {
    MTIME = "node_textfile_mtime_seconds" Gauge &["file"], "When a file was written that was read without an error, since 1970. --collector.textfile, as the next.";
    ERROR = "node_textfile_scrape_error" Gauge &[], "1 if a file or a folder of --collector.textfile.directory could not be read, or contains an invalid metric.";
}

/// Limits of the bytes of one file, and of all files together.
const FILE_BYTES: u64 = 4 << 20;
const ALL_BYTES: u64 = 16 << 20;

/// A part that is left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("the textfile collector leaves out {}: {reason}", path.display())]
pub struct LeftOut {
    path: PathBuf,
    reason: String,
}

/// Metadata that change when a file is written.
type Version = (u64, u64, u64, i64, i64, i64, i64);

fn version(metadata: &Metadata) -> Version {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}

#[derive(Debug)]
struct Kept {
    version: Version,
    mtime: i64,
    families: Result<Vec<Parsed>, String>,
}

/// All files, as they were last read.
#[derive(Debug)]
pub(super) struct Textfiles {
    folders: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Kept>,
    left_out: BTreeSet<LeftOut>,
    /// Parts whose omission was already reported.
    said: BTreeSet<LeftOut>,
    merged: Vec<Merged>,
    /// Names of this exporter's own metrics, and prefixes of such names.
    own: HashSet<&'static str>,
    own_beginnings: Vec<&'static str>,
}

/// A family with the series of all files that have it.
#[derive(Debug)]
struct Merged {
    name: String,
    kind: Kind,
    help: Option<String>,
    files: Vec<PathBuf>,
    /// Places of its series: a file, and the index of the family in it.
    places: Vec<(PathBuf, usize)>,
    /// Whether another family has its name without `_total`.
    shares_stem: bool,
}

/// Reads the files in a thread of its own, since they may be on a file system that does not answer.
#[derive(Debug)]
pub(super) struct Collector {
    files: Arc<Mutex<Textfiles>>,
    askers: Askers<Reading>,
    /// Whether the files were read in time.
    is_current: bool,
}

#[derive(Debug)]
struct Reading(Arc<Mutex<Textfiles>>);

impl Question for Reading {
    type Answer = ();

    fn server(&self) -> u64 {
        0
    }

    fn rank(&self) -> u8 {
        0
    }

    fn ask(&self) {
        lock(&self.0).read_unprivileged();
    }
}

fn lock(files: &Mutex<Textfiles>) -> MutexGuard<'_, Textfiles> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    /// No file is read yet. Families with a name of `own` are left out.
    pub(super) fn new(folders: Vec<PathBuf>, own: &[Family]) -> Self {
        Self {
            files: Arc::new(Mutex::new(Textfiles::new(folders, own))),
            // One question has a quarter of this time.
            askers: Askers::new("textfiles", PATIENCE.saturating_mul(4)),
            is_current: false,
        }
    }

    /// Reads files that have changed, unless the thread is still busy with an earlier call.
    pub(super) fn collect(&mut self) {
        let answers = self.askers.ask(vec![Reading(self.files.clone())]);
        self.is_current = answers == [Some(())];
    }

    /// The files, if they were read in time.
    pub(super) fn read(&self) -> Option<MutexGuard<'_, Textfiles>> {
        self.is_current.then(|| lock(&self.files))
    }
}

impl Textfiles {
    /// No file is read yet. Families with a name of `own` are left out.
    fn new(folders: Vec<PathBuf>, own: &[Family]) -> Self {
        let names = || own.iter().map(|family| family.name);
        Self {
            folders,
            files: BTreeMap::new(),
            left_out: BTreeSet::new(),
            said: BTreeSet::new(),
            merged: Vec::new(),
            own: names().map(stem).collect(),
            own_beginnings: names().filter_map(|name| name.strip_suffix('*')).collect(),
        }
    }

    /// Gives up the privileges of this thread for good, then reads files that have changed. Whoever may write to a folder
    /// can put a link to any file there: they get no more than this program's user may read.
    fn read_unprivileged(&mut self) {
        let none = CapabilitySet::empty();
        let none = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        if let Err(error) = set_capabilities(None, none) {
            self.files.clear();
            self.left_out.clear();
            for folder in self.folders.clone() {
                self.leave_out(&folder, format!("cannot give up privileges: {error}"));
            }
            return self.merge();
        }
        self.read();
    }

    /// Reads files that have changed.
    fn read(&mut self) {
        self.left_out.clear();
        let mut before = std::mem::take(&mut self.files);
        let mut room = ALL_BYTES;
        for folder in self.folders.clone() {
            match prom_files(&folder) {
                Ok(paths) => {
                    for path in paths {
                        self.read_file(path, &mut before, &mut room);
                    }
                }
                Err(error) => self.leave_out(&folder, error.to_string()),
            }
        }
        self.merge();
    }

    fn read_file(&mut self, path: PathBuf, before: &mut BTreeMap<PathBuf, Kept>, room: &mut u64) {
        let opened = open(&path, FILE_BYTES.min(*room));
        let (file, metadata) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.leave_out(&path, error.to_string()),
        };
        *room -= metadata.size();
        let version = version(&metadata);
        let known = before.remove(&path).filter(|kept| kept.version == version);
        let kept = known.unwrap_or_else(|| Kept {
            version,
            mtime: metadata.mtime(),
            families: text_of(file, metadata.size())
                .map_err(|error| error.to_string())
                .and_then(|text| parse(&text).map_err(|wrong| wrong.to_string())),
        });
        if let Err(reason) = &kept.families {
            self.leave_out(&path, reason.clone());
        }
        self.files.insert(path, kept);
    }

    fn leave_out(&mut self, path: &Path, reason: String) {
        let path = path.into();
        self.left_out.insert(LeftOut { path, reason });
    }

    /// Merges families of the same name. What would be invalid in one text is left out.
    fn merge(&mut self) {
        self.merged.clear();
        let mut by_name = HashMap::<&str, usize>::new();
        let mut seen = HashSet::new();
        let mut conflicts = Vec::new();
        for (path, kept) in &self.files {
            for (at, family) in kept.families.iter().flatten().enumerate() {
                let is_own = self.own.contains(stem(&family.name))
                    || self
                        .own_beginnings
                        .iter()
                        .any(|own| family.name.starts_with(own));
                let known = by_name.get(&*family.name).map(|&at| &self.merged[at]);
                let key = |sample: &Sample| (sample.name.clone(), sample.labels.clone());
                let conflict = if is_own {
                    Some("is a name of this exporter's own")
                } else if known.is_some_and(|known| known.kind != family.kind) {
                    Some("has another type in another file")
                } else if known.is_some_and(|known| {
                    family.help.is_some() && known.help.is_some() && known.help != family.help
                }) {
                    Some("has another help text in another file")
                } else if family
                    .samples
                    .iter()
                    .any(|sample| seen.contains(&key(sample)))
                {
                    Some("has a series that another file has as well")
                } else {
                    None
                };
                if let Some(conflict) = conflict {
                    conflicts.push((path.clone(), format!("{} {conflict}", family.name)));
                    continue;
                }
                seen.extend(family.samples.iter().map(key));
                let into = *by_name.entry(&family.name).or_insert_with(|| {
                    self.merged.push(Merged {
                        name: family.name.clone(),
                        kind: family.kind,
                        help: None,
                        files: Vec::new(),
                        places: Vec::new(),
                        shares_stem: false,
                    });
                    self.merged.len() - 1
                });
                let merged = &mut self.merged[into];
                merged.help = merged.help.take().or_else(|| family.help.clone());
                merged.files.push(path.clone());
                merged.places.push((path.clone(), at));
            }
        }
        for family in &mut self.merged {
            let stem = stem(&family.name);
            family.shares_stem = stem != family.name && by_name.contains_key(stem);
        }
        for (path, reason) in conflicts {
            self.leave_out(&path, reason);
        }
    }

    /// Parts that are left out now, and were not at the last call.
    pub(super) fn news(&mut self) -> Vec<LeftOut> {
        let news = self.left_out.difference(&self.said).cloned().collect();
        self.said.clone_from(&self.left_out);
        news
    }

    /// Writes the last text of all files.
    pub(super) fn write(&self, text: &mut Exposition) {
        for family in &self.merged {
            let help = family.help.clone().unwrap_or_else(|| {
                let files: Vec<_> = family.files.iter().map(|path| name_of(path)).collect();
                format!("Metric read from {}", files.join(", "))
            });
            // As a counter it would have the other family's name in OpenMetrics.
            let kind = match text.format() {
                Format::OpenMetrics if family.shares_stem => Kind::Untyped,
                _ => family.kind,
            };
            text.header(&family.name, kind, &help_text(&help));
            for (path, at) in &family.places {
                let families = self
                    .files
                    .get(path)
                    .and_then(|kept| kept.families.as_ref().ok());
                let samples = families.and_then(|families| families.get(*at));
                for sample in samples.into_iter().flat_map(|family| &family.samples) {
                    text.series(&sample.name, &sample.labels, "", Value::Real(sample.value));
                }
            }
        }
        let right = self.files.iter().filter(|(_, kept)| kept.families.is_ok());
        let right = right.map(|(path, kept)| {
            let label = format!("file=\"{}\"", escape(&name_of(path)));
            (label, Value::Signed(kept.mtime))
        });
        text.all(&MTIME, right);
        text.one(&ERROR, Value::Whole((!self.left_out.is_empty()).into()));
    }
}

fn name_of(path: &Path) -> Cow<'_, str> {
    names::text(path.as_os_str().as_bytes())
}

/// In `OpenMetrics` a counter's family has no `_total`.
fn stem(name: &str) -> &str {
    name.strip_suffix("_total").unwrap_or(name)
}

/// The help text, escaped for a HELP line of either format.
fn help_text(help: &str) -> String {
    help.replace('\\', "\\\\").replace('\n', "\\n")
}

fn prom_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("prom")) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Opens a regular file that is not too large, without blocking on a pipe that has no writer.
fn open(path: &Path, most: u64) -> io::Result<(File, Metadata)> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if metadata.size() > most {
        return Err(io::Error::other(format!(
            "it has {} bytes; one file may have {FILE_BYTES}, and all together {ALL_BYTES}",
            metadata.size()
        )));
    }
    Ok((file, metadata))
}

/// Reads the first `size` bytes. What is written meanwhile belongs to the next scrape.
fn text_of(file: File, size: u64) -> io::Result<String> {
    let mut text = String::new();
    file.take(size).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use fastproc_testbed::{Folder, gate, needs};
    use rustix::{
        process::Uid,
        thread::{set_keep_capabilities, set_thread_res_uid},
    };

    use super::*;

    /// As `node_exporter` writes it; a name that is not UTF-8 has the text that the label `file` has.
    #[test]
    fn a_help_text_is_one_line_with_the_names_of_the_files() {
        let folder = Folder::new("textfiles");
        let path = folder.join(OsStr::from_bytes(b"a\\b\nc\xff.prom"));
        fs::write(&path, "node_left 1\n").expect("the file is written");
        let mut textfiles = Textfiles::new(vec![folder.to_path_buf()], &[]);
        textfiles.read();
        let mut text = Exposition::new(Format::Prometheus, Vec::new());
        textfiles.write(&mut text);
        let text = String::from_utf8(text.finish()).expect("UTF-8");
        let name = format!(r"{}/a\\\\b\nc\\xff.prom", folder.display());
        let help = format!("# HELP node_left Metric read from {name}\n");
        let label = format!("{{file=\"{name}\"}}");
        assert!(text.contains(&help) && text.contains(&label), "{text}");
    }

    /// As the collecting process holds them: another user than root, with `CAP_DAC_READ_SEARCH`.
    #[test]
    fn a_file_that_only_privileges_can_open_is_left_out() {
        needs!(gate::root());
        let folder = Folder::new("textfiles");
        let private = folder.join("private.prom");
        fs::write(&private, "node_left 1\n").expect("the file is written");
        fs::set_permissions(&private, PermissionsExt::from_mode(0o600)).expect("its mode is set");
        let (own, theirs) = (folder.join("own.prom"), 65_533);
        fs::write(&own, "node_own 1\n").expect("the file is written");
        chown(&own, Some(theirs), None).expect("root sets the owner");
        let folders = vec![folder.to_path_buf()];
        let thread = std::thread::spawn(move || {
            let uid = Uid::from_raw(theirs);
            set_keep_capabilities(true).expect("a thread may");
            set_thread_res_uid(uid, uid, uid).expect("root may change its user");
            let search = CapabilitySet::DAC_READ_SEARCH;
            let held = CapabilitySets {
                effective: search,
                permitted: search,
                inheritable: CapabilitySet::empty(),
            };
            set_capabilities(None, held).expect("it was root");
            File::open(&private).expect("it still may");
            let mut textfiles = Textfiles::new(folders, &[]);
            textfiles.read_unprivileged();
            let read: Vec<PathBuf> = textfiles.files.into_keys().collect();
            (read, textfiles.left_out.into_iter().next())
        });
        let (read, left_out) = thread.join().expect("it has not failed");
        assert_eq!(read, [own]);
        let left_out = left_out.expect("one is left out").to_string();
        assert!(
            left_out.contains("private.prom: Permission denied"),
            "{left_out}"
        );
    }
}
