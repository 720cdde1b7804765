//! Policies as tables of tensors, through Parquet and back; and what is refused.

use camino::Utf8Path;
use proptest::prelude::*;
use provenir_api::port::{Column, ColumnType, TableSchema};
use provenir_policy::{About, Activation, Layer, Policy, PolicyError, PolicySet, Squash};
use provenir_random::Stream;
use provenir_table::{Metadata, Table, TableBuilder, read, write};

use crate::support::{policy, with_squash};

/// The schema that the contract declares for policies.
fn schema() -> TableSchema {
    let list = |item| ColumnType::List(Box::new(item));
    TableSchema::new(vec![
        Column::new("checkpoint", ColumnType::UInt32),
        Column::new("name", ColumnType::Utf8),
        Column::new("shape", list(ColumnType::UInt32)),
        Column::new("values", list(ColumnType::Float32)).nullable(),
        Column::new("values64", list(ColumnType::Float64)).nullable(),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_set_comes_back_from_a_file(
        seed: u64,
        widths in prop::collection::vec(1_usize..30, 2..5),
        numbers in prop::collection::btree_set(any::<u32>(), 1..4),
        standardised: bool,
    ) {
        let checkpoints = numbers.iter().map(|number| (*number, policy(seed ^ u64::from(*number), &widths, standardised)));
        let set = PolicySet::new(checkpoints.collect()).unwrap();
        let table = set.to_table().unwrap();
        prop_assert_eq!(table.schema(), schema());
        let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("policy.parquet");
        let written = write(&path, &table).unwrap();
        let again = PolicySet::from_table(&read(&path, Some(written.object)).unwrap()).unwrap();
        prop_assert_eq!(&again, &set);
        let last = *numbers.last().unwrap();
        prop_assert_eq!(again.get(last), Some(again.last()));

        // The order of rows says nothing.
        let mut rows: Vec<usize> = (0..table.rows()).collect();
        Stream::new(seed, "rows").shuffle(&mut rows);
        prop_assert_eq!(&PolicySet::from_table(&table.select(&rows).unwrap()).unwrap(), &set);
    }
}

/// Content digests recorded before policies could have notes or a clipped action map: a policy without them digests as it
/// did, so that no key moves.
#[test]
fn a_policy_of_old_digests_as_it_did() {
    let digest = |standardised| {
        let set = PolicySet::single(policy(1, &[3, 4, 2], standardised));
        set.to_table().unwrap().content().to_string()
    };
    assert_eq!(
        [digest(true), digest(false)],
        [
            "dac006cf39494718920b9b375589d4682f5405f628c72a09a889b620df214a78",
            "35960a50a005b1b733f59ff59a33fee1264233cc75065d41ddcd539ebda25dfb"
        ]
    );
}

#[test]
fn notes_and_clipped_action_maps_come_back() {
    let squash = Squash::ClippedTanh { bound: 0.1 + 0.2 };
    let noted = with_squash(
        &policy(1, &[3, 4, 2], true),
        squash,
        &[("training_steps", "1000000"), ("source", "é \n")],
    );
    let set = PolicySet::single(noted);
    assert_eq!(PolicySet::from_table(&set.to_table().unwrap()).unwrap(), set);
}

#[test]
fn notes_do_not_describe_a_policy() {
    let good = policy(1, &[3, 4, 2], true);
    for key in ["environment", "action_clip", "checkpoint", "provenir_policy"] {
        let about = About {
            notes: [(key.to_owned(), "1".to_owned())].into(),
            ..good.about().clone()
        };
        let refused = Policy::new(
            good.layers().to_vec(),
            Activation::Relu,
            None,
            good.action_map().clone(),
            about,
        );
        assert_eq!(
            refused.unwrap_err().to_string(),
            format!("not a policy: `{key}` cannot be a note: it is how files describe a policy")
        );
    }
}

/// The rows of a table of tensors, to be spoiled.
#[derive(Clone)]
struct Rows {
    checkpoints: Vec<u32>,
    names: Vec<String>,
    shapes: Vec<Vec<u32>>,
    values: Vec<Option<Vec<f32>>>,
    values64: Vec<Option<Vec<f64>>>,
    metadata: Metadata,
}

impl Rows {
    fn new() -> Self {
        let table = PolicySet::single(policy(1, &[3, 4, 2], true)).to_table().unwrap();
        let owned = |list: Option<&[f32]>| list.map(<[f32]>::to_vec);
        Self {
            checkpoints: table.column_u32("checkpoint").unwrap().to_vec(),
            names: table
                .column_utf8("name")
                .unwrap()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            shapes: table
                .column_list_u32("shape")
                .unwrap()
                .into_iter()
                .map(<[u32]>::to_vec)
                .collect(),
            values: table
                .optional_list_f32("values")
                .unwrap()
                .into_iter()
                .map(owned)
                .collect(),
            values64: table
                .optional_list_f64("values64")
                .unwrap()
                .into_iter()
                .map(|list| list.map(<[f64]>::to_vec))
                .collect(),
            metadata: table.metadata().clone(),
        }
    }

    fn row(&self, name: &str) -> usize {
        self.names.iter().position(|found| found == name).unwrap()
    }

    fn table(self) -> Table {
        TableBuilder::new()
            .u32("checkpoint", self.checkpoints)
            .utf8("name", self.names)
            .list_u32("shape", self.shapes)
            .optional_list_f32("values", self.values)
            .optional_list_f64("values64", self.values64)
            .build()
            .unwrap()
            .with_metadata(&self.metadata)
    }
}

fn refusal(spoil: impl FnOnce(&mut Rows)) -> String {
    let mut rows = Rows::new();
    spoil(&mut rows);
    PolicySet::from_table(&rows.table()).unwrap_err().to_string()
}

#[test]
fn every_flaw_of_the_metadata_is_named() {
    let set = |name: &'static str, value: &'static str| {
        refusal(move |rows| {
            rows.metadata.insert(name, value);
        })
    };
    assert_eq!(
        set("activation", "gelu"),
        "the table's metadata `activation` is `relu` or `tanh`, not `gelu`"
    );
    assert_eq!(
        set("action_map", "none"),
        "the table's metadata `action_map` is `clip`, `tanh` or `clipped-tanh`, not `none`"
    );
    assert_eq!(
        set("action_map", "clipped-tanh"),
        "the table's metadata `action_clip` is missing"
    );
    assert_eq!(
        set("action_clip", "2"),
        "the table's metadata `action_clip` belongs to the action map `clipped-tanh`, not to `tanh`"
    );
    for bound in ["-1", "0", "NaN", "inf"] {
        let refused = refusal(|rows| {
            rows.metadata.insert("action_map", "clipped-tanh");
            rows.metadata.insert("action_clip", bound);
        });
        assert!(refused.contains("not a positive number"), "{refused}");
    }
    assert_eq!(
        set("time_feature", "1"),
        "the table's metadata `time_feature` is `true` or `false`, not `1`"
    );
    assert_eq!(
        set("observation_clip", "ten"),
        "the table's metadata `observation_clip` is a number, not `ten`"
    );
    for clip in ["-1", "0", "NaN", "inf"] {
        assert!(set("observation_clip", clip).contains("not a positive number"));
    }
    assert_eq!(
        refusal(|rows| drop(rows.metadata.remove("environment"))),
        "the table's metadata `environment` is missing"
    );
}

#[test]
fn every_flaw_of_the_tensors_is_named() {
    assert!(PolicySet::from_table(&Rows::new().table()).is_ok());
    let at = |name: &'static str, spoil: fn(&mut Rows, usize)| {
        refusal(move |rows| {
            let row = rows.row(name);
            spoil(rows, row);
        })
    };
    let weight = "layers.1.weight";
    assert_eq!(
        at(weight, |rows, row| rows.values[row] = None),
        "not a policy: the tensor `layers.1.weight` of checkpoint 0 needs exactly one of `values` and `values64`"
    );
    assert_eq!(
        at(weight, |rows, row| rows.shapes[row] = vec![2, 5]),
        "not a policy: checkpoint 0: the tensor `layers.1.weight` has 8 values and a shape of 2 entries that does not fit them"
    );
    assert!(at(weight, |rows, row| rows.shapes[row] = vec![u32::MAX, u32::MAX]).contains("does not fit"));
    assert!(at(weight, |rows, row| rows.shapes[row] = vec![]).contains("does not fit"));
    assert!(at(weight, |rows, row| rows.shapes[row] = vec![8]).contains("weights of shape [8]"));
    assert_eq!(
        at(weight, |rows, row| rows.shapes[row] = vec![4, 2]),
        "not a policy: checkpoint 0: layer 1 has 2 biases for 4 outputs"
    );
    assert_eq!(
        at(weight, |rows, row| rows.names[row] = "layers.2.weight".to_owned()),
        "not a policy: checkpoint 0: no use for the tensor `layers.1.bias`"
    );
    assert_eq!(
        at(weight, |rows, row| rows.names[row] = "layers.1.bias".to_owned()),
        "not a policy: checkpoint 0 has two tensors `layers.1.bias`"
    );
    assert_eq!(
        at(weight, |rows, row| rows.values[row].as_mut().unwrap()[3] =
            f32::NAN),
        "not a policy: checkpoint 0: a layer has weights that are not finite"
    );
    assert_eq!(
        at("action.low", |rows, row| rows.checkpoints[row] = 9),
        "not a policy: checkpoint 0: the tensor `action.low` is missing"
    );
    assert!(at("action.low", |rows, row| rows.values[row] = Some(vec![3.0, 3.0])).contains("not in order"));
    assert!(
        at("observation.scale", |rows, row| rows.values64[row]
            .as_mut()
            .unwrap()[0] = 0.0)
        .contains("not positive")
    );
    assert!(
        at("observation.mean", |rows, row| rows.names[row] =
            "observation.means".to_owned())
        .contains("`observation.mean` is missing")
    );
    assert!(
        at("observation.mean", |rows, row| {
            rows.values64[row] = None;
            rows.values[row] = Some(vec![0.0; 3]);
        })
        .contains("belongs in `values64`")
    );
    let empty = Rows::new().table().select(&[]).unwrap();
    assert_eq!(
        PolicySet::from_table(&empty).unwrap_err().to_string(),
        "not a policy: it has no checkpoints"
    );
    let other = TableBuilder::new().u32("checkpoint", vec![]).build().unwrap();
    assert!(matches!(
        PolicySet::from_table(&other),
        Err(PolicyError::Table(_))
    ));
}

#[test]
fn parts_that_do_not_fit_make_no_policy() {
    let (good, other) = (policy(1, &[3, 4, 2], true), policy(1, &[3, 5, 2], true));
    let error = |checkpoints| PolicySet::new(checkpoints).unwrap_err().to_string();
    assert_eq!(
        error(vec![(2, good.clone()), (2, good.clone())]),
        "not a policy: checkpoint 2 follows checkpoint 2"
    );
    assert!(error(vec![(1, good.clone()), (2, other.clone())]).contains("checkpoint 2 has another shape"));
    assert!(error(vec![(1, good.clone()), (2, policy(1, &[3, 4, 2], false))]).contains("checkpoint 2"));

    let layers = vec![good.layers()[0].clone(), other.layers()[1].clone()];
    let build = |layers: Vec<Layer>| {
        Policy::new(
            layers,
            Activation::Relu,
            None,
            good.action_map().clone(),
            About::default(),
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        build(layers),
        "not a policy: layer 0 gives 4 values where layer 1 takes 5"
    );
    assert_eq!(build(vec![]), "not a policy: it has no layers");
    let square = Layer::new(2, 2, vec![0.0; 4], vec![0.0; 2]).unwrap();
    assert_eq!(
        build(vec![square; 65]),
        "not a policy: it has 65 layers; at most 64 are taken"
    );
    assert!(Layer::new(0, 1, vec![], vec![0.0]).is_err());
    assert!(Layer::new(1, 1 << 17, vec![0.0; 1 << 17], vec![0.0; 1 << 17]).is_err());
    assert!(Layer::new(2, 1, vec![0.0; 3], vec![0.0]).is_err());
}

proptest! {
    /// Whatever the table of tensors holds, it is refused or it can act.
    #[test]
    fn no_table_of_tensors_makes_a_panic(
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..5), 0..4),
        shapes in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0_u32..6, 0..4)), 0..3),
        values in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<f32>(), 0..13)), 0..3),
    ) {
        let mut rows = Rows::new();
        let count = rows.names.len();
        for (left, right, column) in swaps {
            let (left, right) = (left.index(count), right.index(count));
            match column {
                0 => rows.names.swap(left, right),
                1 => rows.shapes.swap(left, right),
                2 => rows.values.swap(left, right),
                3 => rows.values64.swap(left, right),
                _ => rows.checkpoints[left] += 1,
            }
        }
        for (row, shape) in shapes {
            rows.shapes[row.index(count)] = shape;
        }
        for (row, list) in values {
            rows.values[row.index(count)] = Some(list);
        }
        if let Ok(set) = PolicySet::from_table(&rows.table()) {
            for (_, policy) in set.checkpoints() {
                let mut actions = vec![0.0; policy.action_width()];
                policy.actor().act(&vec![0.5; policy.observation_width()], &mut actions);
            }
        }
    }
}
