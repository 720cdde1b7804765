use super::*;

/// Trains in the folder, writing a checkpoint after every epoch.
fn attempt(
    parameters: &TrainParameters,
    demos: &Demonstrations,
    folder: &camino::Utf8Path,
    listener: &Listener,
) -> Result<Outputs, Failure> {
    let context = Context::new(listener, &listener.cancelled, folder);
    let validation = demonstrations(40, 9).into_table().unwrap();
    let inputs = inputs(demos).with_table("validation", validation);
    execute(parameters, &inputs, &context, Duration::ZERO)
}

#[test]
fn a_training_that_is_stopped_anywhere_continues_to_the_same_bytes() {
    let demos = with_outliers(demonstrations(500, 8), 50);
    for (method, parameters) in super::company::every_method() {
        let parameters = TrainParameters {
            checkpoint_every: 3,
            batch: 128,
            ..parameters
        };
        let folder = tempfile::tempdir().unwrap();
        let folder = camino::Utf8Path::from_path(folder.path()).unwrap();
        let whole = attempt(&parameters, &demos, &folder.join("whole"), &Listener::default()).unwrap();
        let partial = folder.join("partial");
        // Four steps an epoch; reports are rationed by time, so that where it stops is not known, only that it does.
        let mut attempts = 0;
        let outputs = loop {
            let listener = Listener {
                stop_after: Mutex::new((attempts < 3).then_some(4 * attempts * 2 + 2)),
                ..Listener::default()
            };
            match attempt(&parameters, &demos, &partial, &listener) {
                Ok(outputs) => break outputs,
                Err(failure) => assert_eq!(failure.to_string(), "cancelled"),
            }
            attempts += 1;
        };
        for port in ["policy", "history", "trust"] {
            assert_eq!(
                outputs.get_table(port).unwrap().content(),
                whole.get_table(port).unwrap().content(),
                "{port} of {method}"
            );
        }
        let seconds = outputs
            .get_table("timing")
            .unwrap()
            .column_f64("seconds")
            .unwrap()
            .to_vec();
        assert_eq!(seconds.len(), 8);
        assert!(seconds.is_sorted());
    }
}

#[test]
fn a_damaged_checkpoint_is_told_and_not_used() {
    let demos = demonstrations(300, 8);
    let parameters = parameters!({ "method": "bc", "hidden": [12], "epochs": 4 });
    let folder = tempfile::tempdir().unwrap();
    let folder = camino::Utf8Path::from_path(folder.path()).unwrap();
    let whole = attempt(&parameters, &demos, folder, &Listener::default()).unwrap();
    let left = folder.join(crate::checkpoint::NAME);
    let bytes = fs_err::read(&left).unwrap();
    fs_err::write(&left, &bytes[..bytes.len() / 2]).unwrap();
    let listener = Listener::default();
    let again = attempt(&parameters, &demos, folder, &listener).unwrap();
    let content = |outputs: &Outputs| outputs.get_table("policy").unwrap().content();
    assert_eq!(content(&again), content(&whole));
    assert_eq!(listener.warnings().len(), 1);
    assert!(listener.warnings()[0].contains("damaged"));
    // One that is whole is used, and said to be.
    fs_err::write(&left, &bytes).unwrap();
    let listener = Listener::default();
    let again = attempt(&parameters, &demos, folder, &listener).unwrap();
    assert_eq!(content(&again), content(&whole));
    let said = listener.said.lock().unwrap();
    assert!(
        said.iter()
            .any(|(_, message)| message == "continuing an earlier attempt after 3 of 4 epochs")
    );
}
