//! Kernels in the cache: the bootable image, extracted from its package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    apt::{Apt, unpack},
    architecture::Architecture,
    cache::Cache,
    mirrors::Mirrors,
    series::{self, Offer, Series, Wanted},
};

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Image {
    /// The series.
    pub series: Series,
    /// The release, as in `uname -r`.
    pub release: String,
    /// The file to boot.
    pub kernel: PathBuf,
}

/// Fetches the newest kernel of each series; kernels in the cache are not fetched again.
pub fn fetch(cache: &Cache, wanted: &[Wanted], refresh: bool) -> Result<Vec<Image>> {
    let mirrors = Mirrors::of_system()?;
    let mut images: Vec<Image> = Vec::new();
    for architecture in Architecture::ALL {
        let of_this = |wanted: &&Wanted| wanted.flavour().architecture() == architecture;
        let wanted: Vec<Wanted> = wanted.iter().filter(of_this).copied().collect();
        if wanted.is_empty() {
            continue;
        }
        let apt = Apt::new(cache, &mirrors, architecture)?;
        for suite in apt.skipped() {
            println!("not looked in: {suite}, for which the system's apt sources have no mirror");
        }
        apt.update(refresh)?;
        images.extend(match fetch_offers(cache, &apt, &wanted) {
            // The archive changes, and removes what old lists offer.
            Err(error) if !refresh => {
                println!("{error:#}: trying again with new lists");
                apt.update(true)?;
                fetch_offers(cache, &apt, &wanted)?
            }
            result => result?,
        });
    }
    Ok(images)
}

fn fetch_offers(cache: &Cache, apt: &Apt, wanted: &[Wanted]) -> Result<Vec<Image>> {
    let mut packages = apt.packages("linux-image-")?;
    packages.append(&mut apt.packages("linux-binary-")?);
    let mut images: Vec<Image> = Vec::new();
    for &wanted in wanted {
        let Some(offer) = series::choose(wanted, &packages) else {
            bail!("no kernel of the series {wanted} is offered by the suites that were looked in");
        };
        if images.iter().all(|image| image.release != offer.release) {
            images.push(take_out(cache, apt, offer)?);
        }
    }
    Ok(images)
}

/// Downloads and unpacks the image of an offer into the cache.
fn take_out(cache: &Cache, apt: &Apt, offer: Offer) -> Result<Image> {
    let kernel = cache
        .folder("images")?
        .join(format!("vmlinuz-{}", offer.release));
    if !kernel.exists() {
        println!("fetching {}", offer.package);
        let folder = cache.folder("unpacked")?;
        clear(&folder)?;
        let package = apt.download(&offer.package, &folder)?;
        unpack(&package, &folder)?;
        let found = find_kernel(&folder, &offer.release)
            .with_context(|| format!("the package {} holds no kernel", offer.package))?;
        // Renaming is the last step, so that an image in the cache is complete.
        fs::rename(&found, &kernel)
            .with_context(|| format!("cannot move {} into the cache", found.display()))?;
        clear(&folder)?;
    }
    Ok(Image {
        series: offer.series,
        release: offer.release,
        kernel,
    })
}

fn clear(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder)
        .and_then(|()| fs::create_dir(folder))
        .with_context(|| format!("cannot clear {}", folder.display()))
}

fn find_kernel(folder: &Path, release: &str) -> Option<PathBuf> {
    let places = [
        format!("boot/vmlinuz-{release}"),
        format!("usr/lib/modules/{release}/vmlinuz"),
    ];
    places
        .into_iter()
        .map(|place| folder.join(place))
        .find(|path| path.is_file())
}
