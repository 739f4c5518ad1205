//! Limits, descriptors, I/O and switches that one process sets for itself.

use std::{
    fs::{self, File},
    io::{Read, Seek, Write},
};

use rustix::{
    fs::Mode,
    io::fcntl_dupfd_cloexec,
    process::{
        Resource, Rlimit, SpeculationFeature, SpeculationFeatureControl,
        control_speculative_feature, getrlimit, setrlimit,
    },
};

use super::{Species, single};
use crate::{
    expect::Expect::{Stat, State, Status, StatusAtLeast, Text},
    nest::{At, Grown, Nest, Trouble},
};

pub const SPECIES: &[Species] = &[
    single!("rlimits", [Stat(25, 123_456_789)], |nest| {
        limit(Resource::Rss, 123_456_789)?;
        limit(Resource::Sigpending, 777)?;
        nest.settle("rlimits")
    }),
    single!("umask", [Status("Umask", "0137")], |nest| {
        rustix::process::umask(Mode::from_raw_mode(0o137));
        nest.settle("umask")
    }),
    single!("descriptors", [StatusAtLeast("FDSize", 4_001)], |nest| {
        let hard = getrlimit(Resource::Nofile).maximum;
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: hard,
                maximum: hard,
            },
        )
        .at("RLIMIT_NOFILE")?;
        let null = File::open("/dev/null").at("open /dev/null")?;
        let _far = fcntl_dupfd_cloexec(&null, 4_000).map_err(|errno| {
            Trouble::unsupported(format!(
                "a descriptor of number 4000: {errno}; RLIMIT_NOFILE is {hard:?}"
            ))
        })?;
        nest.settle("descriptors")
    }),
    single!("oom-first", [Text("oom_score_adj", "1000")], |nest| oom(
        nest,
        "oom-first",
        "1000"
    )),
    single!("oom-never", [Text("oom_score_adj", "-1000")], |nest| oom(
        nest,
        "oom-never",
        "-1000"
    )),
    single!("file-io", [State('S')], |nest| {
        let path = std::env::temp_dir().join(format!(".fastproc-zoo-io-{}", std::process::id()));
        let mut file = File::options()
            .create_new(true)
            .read(true)
            .write(true)
            .open(&path)
            .at("a temporary file")?;
        fs::remove_file(&path).at("unlink")?;
        file.write_all(&[1; 100_000]).at("write")?;
        file.rewind().at("lseek")?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).at("read")?;
        nest.settle("file-io")
    }),
    single!(
        "speculation-store",
        [Status("Speculation_Store_Bypass", "thread mitigated")],
        |nest| {
            mitigated(
                nest,
                "speculation-store",
                SpeculationFeature::SpeculativeStoreBypass,
            )
        }
    ),
    single!(
        "speculation-branch",
        [Status("SpeculationIndirectBranch", "conditional disabled")],
        |nest| {
            mitigated(
                nest,
                "speculation-branch",
                SpeculationFeature::IndirectBranchSpeculation,
            )
        }
    ),
];

fn limit(resource: Resource, value: u64) -> Result<(), Trouble> {
    setrlimit(
        resource,
        Rlimit {
            current: Some(value),
            maximum: Some(value),
        },
    )
    .at("setrlimit")
}

fn oom(nest: &Nest, label: &str, score: &str) -> Grown {
    fs::write("/proc/self/oom_score_adj", score).at("oom_score_adj")?;
    nest.settle(label)
}

fn mitigated(nest: &Nest, label: &str, feature: SpeculationFeature) -> Grown {
    // Also refused with EPERM, to root, where the machine does not offer the choice.
    control_speculative_feature(feature, SpeculationFeatureControl::DISABLE)
        .map_err(|errno| Trouble::unsupported(format!("PR_SET_SPECULATION_CTRL: {errno}")))?;
    nest.settle(label)
}
