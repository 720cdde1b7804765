//! What fuzzing begins with: the repository's own files, and what the program makes of them.

use std::process::Command;

use camino::Utf8PathBuf;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use provenir_api::{Digest, FigureIdentity};
use provenir_policy::{About, ActionMap, Activation, Layer, Policy, PolicySet, Squash, Standardisation};
use provenir_table::demonstrations::Demonstrations;
use provenir_table::{Table, TableBuilder, write};

use crate::harness::{folder, repository};
use crate::stores::{MANIFEST, below, parts_of};
use crate::{SEPARATOR, archives};

fn of_extension(folder: &str, extension: &str) -> Vec<Utf8PathBuf> {
    let all = below(&repository().join(folder)).into_iter();
    all.filter(|path| path.extension() == Some(extension)).collect()
}

/// Every manifest of the repository, alone and with a base and options.
pub fn manifests() -> Vec<Vec<u8>> {
    let files = [of_extension("pipelines", "toml"), of_extension("tests", "toml")].concat();
    let texts = files.iter().filter_map(|path| fs_err::read_to_string(path).ok());
    let mut seeds: Vec<Vec<u8>> = texts.map(|text| shortened(&text).into_bytes()).collect();
    let base = b"format = 1\n[pipeline]\nname = \"p\"\n[axes]\na = [1, 2]\n[stages.s]\nkind = \"noop\"\nparams = { value = \"${a}\" }\n";
    let over = b"format = 1\nextends = \"base.toml\"\n[stages.t]\nkind = \"noop\"\ninputs = { many = \"s\" }\n[profiles.q]\naxes = { a = [3] }\n";
    for options in [
        "",
        "pq",
        "aa=1,2.5",
        "sstages.s.params.value=3\nos",
        "pq\naa=7\not",
    ] {
        seeds.push([&over[..], base, options.as_bytes()].join(SEPARATOR));
    }
    seeds.push(MANIFEST.as_bytes().to_vec());
    seeds
}

/// A manifest without comments and blank lines, which nothing is learnt from.
fn shortened(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

/// Nothing but bytes for the grammar to choose by.
pub fn choices() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for number in 0..64_u32 {
        let mut bytes = Vec::new();
        for part in 0..1 + number % 16 {
            bytes.extend_from_slice(Digest::of(format!("{number} {part}").as_bytes()).bytes());
        }
        seeds.push(bytes);
    }
    seeds
}

/// A store that the command made: all of its files together, and each alone.
pub fn stores() -> Vec<Vec<u8>> {
    let command = repository().join("target/release/provenir-noop");
    let root = folder().join("seeds");
    fs_err::create_dir_all(&root).expect("a folder can be made");
    fs_err::write(root.join("m.toml"), MANIFEST).expect("a manifest can be written");
    let run = |arguments: &[&str]| {
        let status = Command::new(&command).args(arguments).current_dir(&root).output();
        status.unwrap_or_else(|error| panic!("{command} cannot be run ({error}): `make build` makes it"));
    };
    run(&["run", "--cache", "cache", "m.toml"]);
    run(&[
        "run",
        "--cache",
        "cache",
        "m.toml",
        "--set",
        "stages.first.params.value=9",
    ]);
    run(&[
        "run",
        "--cache",
        "cache",
        "m.toml",
        "--set",
        "stages.first.params.value=9",
    ]);
    run(&["run", "--cache", "cache", "m.toml", "--force", "second"]);
    run(&["pin", "total", "m.toml", "--cache", "cache"]);
    run(&["runs", "tag", "last", "paper", "--cache", "cache"]);
    run(&["audit", "m.toml", "--cache", "cache"]);
    let key = "0".repeat(64);
    let collected = format!("{{\"time\":\"2026-01-01T00:00:00Z\",\"results\":[\"{key}\"]}}\n");
    let path = root.join("cache/runs-v1/gc.jsonl");
    fs_err::write(path, collected).expect("a file can be written");
    let parts = parts_of(&root);
    assert!(parts.len() > 10, "the command made no store");
    let mut seeds = parts.clone();
    seeds.push(parts.join(SEPARATOR));
    let records: Vec<Vec<u8>> = parts.iter().filter(|part| part[0] != b'b').cloned().collect();
    seeds.push(records.join(SEPARATOR));
    seeds.push(b"c{\"owner\":{\"host\":\"h\",\"pid\":1,\"start\":1,\"boot\":\"b\",\"namespace\":\"n\"},\"nonce\":\"1-2\"}".to_vec());
    seeds
}

/// Small tables of every type, of our writer and of others': with and without checksums, in every compression that is read.
pub fn tables() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for table in [
        sample(0),
        sample(3),
        demonstrations(),
        policy().to_table().expect("a policy is a table"),
    ] {
        let path = folder().join("seed.parquet");
        write(&path, &table).expect("a table can be written");
        seeds.push(fs_err::read(&path).expect("it can be read"));
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for dictionary in [true, false] {
                    seeds.push(foreign(&table, compression, version, dictionary));
                }
            }
        }
    }
    seeds
}

fn foreign(table: &Table, compression: Compression, version: WriterVersion, dictionary: bool) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_writer_version(version)
        .set_dictionary_enabled(dictionary)
        .set_created_by("another".to_owned())
        .build();
    let batch = table.batch();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).expect("a writer can be made");
    writer.write(batch).expect("a batch can be written");
    writer.into_inner().expect("a file can be finished")
}

fn sample(rows: u32) -> Table {
    let each = || 0..rows;
    TableBuilder::new()
        .u64("sample", each().map(u64::from).collect())
        .u32("episode", each().collect())
        .i64("offset", each().map(i64::from).collect())
        .fixed_list_f32(
            "observation",
            2,
            each().flat_map(|row| [row as f32, 0.5]).collect(),
        )
        .f64("return", each().map(f64::from).collect())
        .bool("terminated", each().map(|row| row == 1).collect())
        .utf8("method", each().map(|row| ["bc", "rbc"][row as usize % 2]))
        .optional_f64("loss", each().map(|row| (row > 0).then_some(0.5)).collect())
        .optional_utf8("note", each().map(|row| (row > 0).then(|| format!("r{row}"))))
        .list_u32("shape", each().map(|row| (0..row).collect()).collect())
        .optional_list_f32(
            "values",
            each()
                .map(|row| (row > 0).then(|| vec![1.0; row as usize]))
                .collect(),
        )
        .metadata("environment", "hopper")
        .build()
        .expect("a table can be built")
}

fn demonstrations() -> Table {
    let table = TableBuilder::new()
        .u64("sample", vec![0, 1, 2])
        .u32("episode", vec![0, 0, 1])
        .u32("step", vec![0, 1, 0])
        .fixed_list_f32("observation", 2, vec![0.0; 6])
        .fixed_list_f32("action", 1, vec![0.5; 3])
        .f32("reward", vec![1.0; 3])
        .bool("terminated", vec![false, true, false])
        .bool("truncated", vec![false, false, true])
        .metadata("environment", "hopper")
        .metadata("expert", "nobody")
        .build()
        .expect("a table can be built");
    // Where they are none, the target reads a table like any other.
    Demonstrations::from_table(&table)
        .and_then(Demonstrations::into_table)
        .unwrap_or(table)
}

fn policy() -> PolicySet {
    let layer = |inputs: usize, outputs: usize| {
        Layer::new(inputs, outputs, vec![0.25; inputs * outputs], vec![0.0; outputs])
            .expect("a layer can be made")
    };
    let policy = Policy::new(
        vec![layer(2, 3), layer(3, 1)],
        Activation::Relu,
        Some(Standardisation {
            mean: vec![0.0; 2],
            scale: vec![1.0; 2],
            clip: Some(10.0),
        }),
        ActionMap {
            squash: Squash::Tanh,
            low: vec![-1.0],
            high: vec![1.0],
        },
        About {
            environment: "hopper".to_owned(),
            time_feature: false,
            method: "bc".to_owned(),
            notes: [("source".to_owned(), "a seed".to_owned())].into(),
        },
    );
    let policy = policy.expect("a policy can be made");
    PolicySet::new(vec![(0, policy.clone()), (7, policy)]).expect("a set can be made")
}

/// Policies as safetensors: as files, and as header and data.
pub fn safetensors() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = of_extension("stages", "safetensors")
        .iter()
        .filter_map(|path| fs_err::read(path).ok())
        .collect();
    files.push(policy().to_safetensors());
    let set = PolicySet::single(policy().last().clone());
    files.push(set.to_safetensors());
    let mut seeds = files.clone();
    for file in files {
        if let Some((length, rest)) = file.split_first_chunk()
            && let Some((header, data)) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)
        {
            seeds.push([header, data].join(SEPARATOR));
        }
    }
    seeds
}

/// The archives of the tests, as files and as parts.
pub fn agents() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for path in of_extension("stages/stable-baselines/tests/fixtures", "zip") {
        seeds.extend(fs_err::read(&path));
        seeds.extend(archives::parts_of(&path));
    }
    seeds
}

/// Sealed figures of every format.
pub fn figures() -> Vec<Vec<u8>> {
    let identity = FigureIdentity {
        action_key: "ab".repeat(32),
        data: Digest::of(b"data"),
    };
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\">{}</svg>",
        identity.svg_metadata()
    );
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let text = [b"provenir\0\0\0\0\0", identity.text().as_bytes()].concat();
    for (name, data) in [(b"IHDR", vec![0; 13]), (b"iTXt", text), (b"IEND", Vec::new())] {
        png.extend(u32::try_from(data.len()).unwrap_or_default().to_be_bytes());
        png.extend(name);
        png.extend(data);
        png.extend([0; 4]);
    }
    let mut gif = b"GIF89a\x01\0\x01\0\0\0\0".to_vec();
    gif.extend(identity.gif_comment());
    gif.extend(b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b");
    let open = [svg.into_bytes(), png, gif];
    let sealed = open.clone().map(FigureIdentity::seal);
    [open, sealed].concat()
}
