//! Stable-Baselines3 archives as parts of an input: `data`, the pickle of the tensors, the pickle of the statistics, and the
//! tensors' storages. Put together, the checksums of the archives are right, so that what is within them is reached.

use std::io::{Cursor, Read, Write};

use camino::Utf8Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::SEPARATOR;

/// An archive and its statistics.
#[derive(Debug)]
pub struct Agent {
    /// `model.save`.
    pub archive: Vec<u8>,
    /// `VecNormalize.save`, where there is any.
    pub statistics: Option<Vec<u8>>,
}

impl Agent {
    /// Puts the parts together; what is in one part is an archive as it is.
    pub fn of(parts: &[&[u8]]) -> Self {
        let [data, pickle, statistics, storages @ ..] = parts else {
            return Self {
                archive: parts[0].to_vec(),
                statistics: parts.get(1).map(|part| part.to_vec()),
            };
        };
        let mut entries: Vec<(String, &[u8])> = vec![
            ("archive/data.pkl".to_owned(), pickle),
            ("archive/byteorder".to_owned(), b"little"),
        ];
        for (number, storage) in storages.iter().enumerate().take(64) {
            entries.push((format!("archive/data/{number}"), storage));
        }
        let network = zipped(&entries);
        let archive = zipped(&[
            ("data".to_owned(), data),
            ("policy.pth".to_owned(), &network),
            ("_stable_baselines3_version".to_owned(), b"2.0.0"),
        ]);
        Self {
            archive,
            statistics: (!statistics.is_empty()).then(|| statistics.to_vec()),
        }
    }
}

fn zipped(entries: &[(String, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in entries {
        writer
            .start_file(name.as_str(), options)
            .expect("an entry can be begun in memory");
        writer.write_all(content).expect("memory can be written to");
    }
    writer
        .finish()
        .expect("an archive can be finished in memory")
        .into_inner()
}

/// The parts of an archive that Stable-Baselines3 wrote, and of the statistics beside it.
pub fn parts_of(archive: &Utf8Path) -> Option<Vec<u8>> {
    let bytes = fs_err::read(archive).ok()?;
    let data = entry(&bytes, "data")?;
    let network = entry(&bytes, "policy.pth")?;
    let names: Vec<String> = {
        let zip = ZipArchive::new(Cursor::new(&network[..])).ok()?;
        zip.file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .collect()
    };
    let folder = names.iter().find_map(|name| name.strip_suffix("/data.pkl"))?;
    let mut parts = vec![
        data,
        entry(&network, &format!("{folder}/data.pkl"))?,
        fs_err::read(archive.with_extension("pkl")).unwrap_or_default(),
    ];
    for number in 0.. {
        let Some(storage) = entry(&network, &format!("{folder}/data/{number}")) else {
            break;
        };
        parts.push(storage);
    }
    Some(parts.join(SEPARATOR))
}

fn entry(archive: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut zip = ZipArchive::new(Cursor::new(archive)).ok()?;
    let mut bytes = Vec::new();
    zip.by_name(name).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
