//! Kernel series, and the choice of the newest package of a series.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::architecture::{Architecture, Flavour};

/// A series of kernels: the first two numbers of a release, and its flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Series {
    flavour: Flavour,
    major: u32,
    minor: u32,
}

impl Series {
    /// The series of these numbers.
    pub const fn new(flavour: Flavour, major: u32, minor: u32) -> Self {
        Self {
            flavour,
            major,
            minor,
        }
    }

    /// The series of a release such as `6.1.0-56-cloud-amd64`.
    pub fn of_release(release: &str) -> Option<Self> {
        let mut flavours = Flavour::ALL.into_iter();
        let flavour = flavours.find(|flavour| release.ends_with(flavour.ending()));
        Self::of_version(release, flavour.unwrap_or(Flavour::Amd64))
    }

    /// The series of a version of this flavour.
    fn of_version(version: &str, flavour: Flavour) -> Option<Self> {
        let mut numbers = version.splitn(3, ['.', '-', '+']).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Some(Self::new(flavour, major, minor)),
            _ => None,
        }
    }

    /// Its flavour.
    pub const fn flavour(self) -> Flavour {
        self.flavour
    }

    /// Its architecture.
    pub const fn architecture(self) -> Architecture {
        self.flavour.architecture()
    }

    /// Whether its numbers are lower, whatever the flavours.
    pub fn is_older_than(self, other: Self) -> bool {
        (self.major, self.minor) < (other.major, other.minor)
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = self.flavour.mark();
        f.pad(&format!("{}.{}{mark}", self.major, self.minor))
    }
}

impl From<Series> for String {
    fn from(series: Series) -> Self {
        series.to_string()
    }
}

impl TryFrom<String> for Series {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (version, flavour) = Flavour::split(&text);
        let series = Self::of_version(version, flavour);
        let series = series.filter(|series| series.to_string() == text);
        series.ok_or_else(|| {
            format!("expected a kernel series such as 6.1 or 6.1-arm64, not {text:?}")
        })
    }
}

/// What the user requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This series.
    Series(Series),
    /// The newest of this flavour that the archive offers.
    Newest(Flavour),
}

impl Wanted {
    /// The requested flavour.
    pub const fn flavour(self) -> Flavour {
        match self {
            Self::Series(series) => series.flavour(),
            Self::Newest(flavour) => flavour,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Series(series) => series.fmt(f),
            Self::Newest(flavour) => f.pad(&format!("newest{}", flavour.mark())),
        }
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let ("newest", flavour) = Flavour::split(text) {
            return Ok(Self::Newest(flavour));
        }
        let series = Series::try_from(text.to_owned()).map(Self::Series);
        series.map_err(|_| {
            "expected a kernel series such as 6.1, or “newest”; with -arm64 or -16k-arm64 behind it for that architecture".into()
        })
    }
}

/// A kernel that the archive offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The series.
    pub series: Series,
    /// The release, as in `uname -r`.
    pub release: String,
    /// The package that holds the kernel itself.
    pub package: String,
}

/// Finds the newest offer of a series, or of all series of a flavour, among the names of packages.
pub fn choose(wanted: Wanted, packages: &[String]) -> Option<Offer> {
    let flavour = wanted.flavour();
    let offers = packages.iter().filter_map(|package| {
        // Others with this prefix are debugging symbols, unsigned images, and names that only point to a version.
        let version = package
            .strip_prefix("linux-image-")?
            .strip_suffix(flavour.ending())?;
        let series = Series::of_version(version, flavour)?;
        let is_pointer = version == format!("{}.{}", series.major, series.minor);
        (!is_pointer).then_some((series, version))
    });
    let (series, version) = offers
        .filter(|(series, _)| {
            matches!(wanted, Wanted::Newest(_)) || wanted == Wanted::Series(*series)
        })
        .max_by(|(_, a), (_, b)| by_version(a, b))?;
    let release = format!("{version}{}", flavour.ending());
    // From 6.19 on the image's package is empty and the kernel is in another package.
    let split = format!("linux-binary-{release}");
    let package = if packages.contains(&split) {
        split
    } else {
        format!("linux-image-{release}")
    };
    Some(Offer {
        series,
        release,
        package,
    })
}

/// Compares releases number by number, and the texts between the numbers as text.
fn by_version(a: &str, b: &str) -> Ordering {
    parts(a).cmp(parts(b))
}

/// Splits a release into texts and the numbers after them.
fn parts(release: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut rest = release;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let digits = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        rest = after;
        Some((text, number.parse().unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chosen release and package; two dashes if there is none.
    fn offer(wanted: &str, packages: &[&str]) -> String {
        let packages: Vec<_> = packages.iter().map(|name| (*name).to_owned()).collect();
        let offer = choose(wanted.parse().unwrap(), &packages);
        offer.map_or("--".into(), |offer| {
            format!("{} in {}", offer.release, offer.package)
        })
    }

    #[test]
    fn the_newest_of_a_series_is_found() {
        let packages = [
            "linux-image-cloud-amd64",
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-57-cloud-amd64-unsigned",
            "linux-image-6.1.0-58-cloud-amd64-dbg",
            "linux-image-6.1.0-0.deb11.60-cloud-amd64",
            "linux-image-6.1.0-59-amd64",
            "linux-image-6.12-cloud-amd64",
            "linux-image-6.12.9+deb13-cloud-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12.117+deb13-cloud-amd64",
        ];
        assert_eq!(
            offer("6.1", &packages),
            "6.1.0-56-cloud-amd64 in linux-image-6.1.0-56-cloud-amd64"
        );
        let newest = "6.12.117+deb13-cloud-amd64 in linux-image-6.12.117+deb13-cloud-amd64";
        assert_eq!(offer("6.12", &packages), newest);
        assert_eq!(offer("newest", &packages), newest);
        assert_eq!(offer("6.2", &packages), "--");
        assert_eq!(offer("newest", &[]), "--");
    }

    #[test]
    fn each_flavour_has_its_own_kernels() {
        let packages = [
            "linux-image-6.12.117+deb13-cloud-amd64",
            "linux-image-6.12.116+deb13-cloud-arm64",
            "linux-image-6.12.115+deb13-arm64-16k",
            "linux-image-6.12.118+deb13-arm64",
            "linux-image-6.13.1+deb13-cloud-amd64",
        ];
        for (wanted, release) in [
            ("6.12", "6.12.117+deb13-cloud-amd64"),
            ("6.12-arm64", "6.12.116+deb13-cloud-arm64"),
            ("newest-arm64", "6.12.116+deb13-cloud-arm64"),
            ("6.12-16k-arm64", "6.12.115+deb13-arm64-16k"),
        ] {
            let found = offer(wanted, &packages);
            assert_eq!(found, format!("{release} in linux-image-{release}"));
            let series = Series::of_release(release).unwrap();
            assert_eq!(
                series.flavour(),
                wanted.parse::<Wanted>().unwrap().flavour()
            );
        }
    }

    #[test]
    fn the_kernel_is_found_where_the_image_was_split() {
        let packages = [
            "linux-image-7.3.4+deb13-cloud-amd64",
            "linux-binary-7.3.4+deb13-cloud-amd64",
        ];
        let found = "7.3.4+deb13-cloud-amd64 in linux-binary-7.3.4+deb13-cloud-amd64";
        assert_eq!(offer("7.3", &packages), found);
    }

    #[test]
    fn only_a_series_is_a_series() {
        assert_eq!("newest".parse(), Ok(Wanted::Newest(Flavour::Amd64)));
        assert_eq!("newest-arm64".parse(), Ok(Wanted::Newest(Flavour::Arm64)));
        let series = Series::new(Flavour::Arm64Pages16K, 6, 12);
        assert_eq!("6.12-16k-arm64".parse(), Ok(Wanted::Series(series)));
        assert_eq!(String::from(series), "6.12-16k-arm64");
        for text in [
            "",
            "6",
            "6.",
            "6.x",
            "6.1.2",
            "06.1",
            "Newest",
            "6.1 ",
            "-6.1",
            "6.1-",
            "6.1-mips",
            "-arm64",
            "6.1-arm64-16k",
        ] {
            assert!(text.parse::<Wanted>().is_err(), "{text:?}");
        }
    }
}
