use provenir_api::protocol::Blame;

use super::*;

fn refusal(parameters: &TrainParameters, inputs: &Inputs) -> Failure {
    train_with(parameters, inputs, &Listener::default()).unwrap_err()
}

#[test]
fn what_cannot_be_learnt_from_is_refused_with_its_reason() {
    let bc = parameters!({ "method": "bc", "hidden": [4], "epochs": 1 });
    let failure = refusal(&bc, &inputs(&demonstrations(0, 1)));
    assert_eq!(failure.to_string(), "there are no demonstrations to learn from");

    let demos = demonstrations(10, 1);
    let mut narrow = demonstrations(10, 2);
    narrow.observation = Matrix::new(1, vec![0.0; 10]).unwrap();
    let both = inputs(&demos).with_table("validation", narrow.into_table().unwrap());
    assert_eq!(
        refusal(&bc, &both).to_string(),
        "the observations to learn from have 3 entries, those to validate on 1"
    );

    let rbc = parameters!({ "method": "rbc", "hidden": [4], "epochs": 1, "rbc": { "block": 11 } });
    let failure = refusal(&rbc, &inputs(&demos));
    assert_eq!(failure.to_string(), "10 demonstrations do not make a block of 11");
    assert_eq!(failure.blame(), Blame::Stage);

    let published = parameters!({
        "method": "noisy-bc", "hidden": [4], "epochs": 5, "noisy_bc": { "form": "published", "members": 11 },
    });
    let failure = refusal(&published, &inputs(&demos));
    assert_eq!(failure.to_string(), "10 demonstrations do not make 11 parts");
    let range = parameters!({
        "method": "range-filter", "hidden": [4], "epochs": 1, "range_filter": { "bound": 1e-9 },
    });
    let failure = refusal(&range, &inputs(&demos));
    assert_eq!(
        failure.to_string(),
        "no action lies within ±0.000000001 in every component"
    );
}

#[test]
fn demonstrations_of_two_sorts_are_told_apart_by_what_made_them_so() {
    let bc = parameters!({ "method": "bc", "hidden": [4], "epochs": 1 });
    let with = demonstrations(10, 1);
    // As the time feature makes them: an entry less, too.
    let mut without = demonstrations(10, 2);
    without.about.time_feature = false;
    without.observation = Matrix::new(2, vec![0.0; 20]).unwrap();
    let told = |demos: &Demonstrations, validation: &Demonstrations| {
        let both = inputs(demos).with_table("validation", validation.clone().into_table().unwrap());
        refusal(&bc, &both).to_string()
    };
    assert_eq!(
        told(&with, &without),
        "the observations to learn from (`demos`) end with the time feature, those to validate on (`validation`) do not"
    );
    assert_eq!(
        told(&without, &with),
        "the observations to validate on (`validation`) end with the time feature, those to learn from (`demos`) do not"
    );
    without.about.environment = "ant".to_owned();
    assert_eq!(
        told(&with, &without),
        format!(
            "the observations to learn from are of the environment `{}`, those to validate on of `ant`",
            with.about.environment
        )
    );
    // An empty set validates nothing, whatever it is of.
    let nothing = without.select(&[]);
    let both = inputs(&with).with_table("validation", nothing.into_table().unwrap());
    train_with(&bc, &both, &Listener::default()).unwrap();
}

#[test]
fn a_range_filter_leaves_out_what_lies_beyond_its_bound() {
    let mut demos = demonstrations(50, 1);
    for row in [3, 17] {
        demos.action.row_mut(row)[1] = -1.0;
    }
    // As far as the experts that ship go.
    demos.action.row_mut(5)[0] = 0.9998;
    let listener = Listener::default();
    let range = parameters!({ "method": "range-filter", "hidden": [4], "epochs": 2 });
    let outputs = train_with(&range, &inputs(&demos), &listener).unwrap();
    let trust = outputs.get_table("trust").unwrap();
    for (row, trust) in trust.column_f64("trust").unwrap().iter().enumerate() {
        assert!((trust - f64::from(u8::from(![3, 17].contains(&row)))).abs() < 1e-15);
    }
    let told = "2 of 50 samples have an action beyond ±0.9999 and are left out".to_owned();
    assert!(listener.said.lock().unwrap().contains(&(Level::Info, told)));
}

#[test]
fn the_last_good_checkpoint_stays_where_numbers_are_no_longer_finite() {
    let demos = demonstrations(300, 1);
    // Steps so large that the networks leave single precision behind after some epochs.
    let wild = parameters!({
        "method": "bc", "hidden": [8, 8], "epochs": 400, "batch": 100, "learning_rate": 1.0, "gradient_clip": 0.0,
        "schedule": "constant", "weight_decay": 10.0,
    });
    let folder = tempfile::tempdir().unwrap();
    let partial = camino::Utf8Path::from_path(folder.path()).unwrap();
    let listener = Listener::default();
    let context = Context::new(&listener, &listener.cancelled, partial);
    let failure = execute(&wild, &inputs(&demos), &context, Duration::ZERO).unwrap_err();
    let message = failure.to_string();
    let (_, epoch) = message.split_once("in epoch ").unwrap();
    let epoch: u64 = epoch.split(' ').next().unwrap().parse().unwrap();
    assert!(epoch > 1, "{message}");
    let bytes = fs_err::read(partial.join(crate::checkpoint::NAME)).unwrap();
    let state = crate::checkpoint::decode(&bytes).unwrap();
    assert_eq!(state.epochs, epoch - 1);
    assert!(
        state.memories[0].learners[0]
            .networks
            .iter()
            .all(|value| value.is_finite())
    );
    let help = format!("; the checkpoint after epoch {} stays", epoch - 1);
    assert!(format!("{failure:?}").contains(&help), "{failure:?}");
}

#[test]
fn numbers_that_are_not_finite_end_the_training_where_they_arise() {
    let mut demos = demonstrations(600, 1);
    demos.observation.row_mut(123)[1] = 3e38;
    let bc = parameters!({
        "method": "bc", "hidden": [4], "epochs": 3, "batch": 200, "standardize": false, "seed": 1,
    });
    let failure = refusal(&bc, &inputs(&demos));
    // The batch that holds sample 123 in the first epoch's order.
    let order = Stream::new(1, "train").child("order", 0).permutation(600);
    let batch = order.iter().position(|sample| *sample == 123).unwrap() / 200 + 1;
    assert!(
        failure
            .to_string()
            .starts_with(&format!("the loss of batch {batch} of 3 in epoch 1 is ")),
        "{failure}"
    );
    assert_eq!(failure.blame(), Blame::Stage);
}

#[test]
fn columns_that_do_not_vary_are_told_once_and_do_no_harm() {
    let mut demos = demonstrations(300, 1);
    for row in 0..300 {
        let observation = demos.observation.row_mut(row);
        observation[1] = 5.0;
        observation[2] *= 1e-4;
    }
    let listener = Listener::default();
    let bc = parameters!({ "method": "bc", "hidden": [4], "epochs": 2 });
    let outputs = train_with(&bc, &inputs(&demos), &listener).unwrap();
    assert_eq!(
        listener.warnings(),
        [
            "observations do not vary in columns 1 (counted from 0): the policy learns nothing from them",
            "observations hardly vary in columns 2 (counted from 0): standardised with a deviation of 0.001, the \
          `standardize_floor`"
        ]
    );
    let policies = policies(&outputs);
    let scale = &policies.last().standardisation().unwrap().scale;
    assert!((scale[1] - 1e-3).abs() < 1e-15 && (scale[2] - 1e-3).abs() < 1e-15 && scale[0] > 0.9);
}

#[test]
fn an_empty_validation_set_is_told() {
    let empty = demonstrations(300, 1).select(&[]).into_table().unwrap();
    let listener = Listener::default();
    let bc = parameters!({ "method": "bc", "hidden": [4], "epochs": 1 });
    let inputs = inputs(&demonstrations(300, 1)).with_table("validation", empty);
    let outputs = train_with(&bc, &inputs, &listener).unwrap();
    assert_eq!(
        listener.warnings(),
        ["the validation set is empty: there is no validation loss"]
    );
    let history = outputs.get_table("history").unwrap();
    assert_eq!(history.optional_f64("validation_loss").unwrap(), [None]);
}

#[test]
fn a_range_that_leaves_out_most_samples_is_warned_about() {
    let demos = demonstrations(300, 1);
    let beyond = |bound: f32| {
        demos
            .action
            .iter()
            .filter(|row| row.iter().any(|value| value.abs() > bound))
            .count()
    };
    for (bound, is_most) in [(0.2, true), (5.0, false)] {
        let left_out = beyond(bound);
        assert_eq!(2 * left_out > 300, is_most);
        let listener = Listener::default();
        let parameters = parameters!({
            "method": "range-filter", "hidden": [4], "epochs": 1, "range_filter": { "bound": bound },
        });
        train_with(&parameters, &inputs(&demos), &listener).unwrap();
        assert_eq!(
            listener.warnings().len(),
            usize::from(is_most),
            "{:?}",
            listener.warnings()
        );
        let said = listener.said.lock().unwrap();
        let told = format!("{left_out} of 300 samples have an action beyond");
        assert!(said.iter().any(|(_, said)| said.starts_with(&told)), "{said:?}");
    }
}

#[test]
fn blocks_that_are_mostly_dirty_are_told() {
    let listener = Listener::default();
    let rbc = parameters!({
        "method": "rbc", "hidden": [4], "epochs": 1, "rbc": { "block": 4, "assumed_epsilon": 0.2 },
    });
    train_with(&rbc, &inputs(&demonstrations(300, 1)), &listener).unwrap();
    assert_eq!(listener.warnings().len(), 1);
    assert!(listener.warnings()[0].contains("only 41 % of blocks of 4"));
}
