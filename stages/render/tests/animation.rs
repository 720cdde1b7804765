//! `render` from outside: a policy in, an animation out that other libraries read.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::float_cmp, reason = "what is written as decimals comes back exactly")]

use std::sync::atomic::AtomicBool;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::protocol::{Blame, Failed, Level, Progress};
use provenir_api::{Digest, FigureIdentity, SourceFile};
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::Environment;
use provenir_kinds::render::{Format, RenderParameters};
use provenir_policy::{About, ActionMap, Activation, Layer, Policy, PolicySet, Squash};
use provenir_random::Stream;
use provenir_render::RenderExecution;
use provenir_sim::{Rollouts, Task, trial_seed};
use provenir_table::Table;

struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// A policy with weights by chance, so large that its actions are mostly at their limits.
fn policy(environment: Environment, time_feature: bool, seed: u64) -> Policy {
    let task = Task::named(environment.name()).unwrap();
    let (inputs, outputs) = (
        task.observation_width() + usize::from(time_feature),
        task.action_width(),
    );
    let mut stream = Stream::new(seed, "weights");
    let weights = (0..inputs * outputs)
        .map(|_| stream.uniform(-3.0, 3.0) as f32)
        .collect();
    let layer = Layer::new(inputs, outputs, weights, vec![0.0; outputs]).unwrap();
    let map = ActionMap {
        squash: Squash::Tanh,
        low: vec![-1.0; outputs],
        high: vec![1.0; outputs],
    };
    let about = About {
        environment: environment.name().to_owned(),
        time_feature,
        method: "chance".to_owned(),
        ..About::default()
    };
    Policy::new(vec![layer], Activation::Relu, None, map, about).unwrap()
}

fn parameters(environment: Environment, format: Format) -> RenderParameters {
    RenderParameters {
        env: environment,
        policy: None,
        normalization: None,
        activation: None,
        time_feature: None,
        checkpoint: None,
        seed: 3,
        trial: 1,
        steps: 60,
        format,
        fps: 20,
        speed: 1.0,
        width: 300,
        height: 200,
        title: None,
    }
}

fn render(policies: &PolicySet, parameters: &RenderParameters) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let context = Context::new(&Silent, &cancelled, "unused").with_action_key("the key");
    let inputs = Inputs::new().with_table("policy", policies.to_table().unwrap());
    RenderExecution.execute(parameters, &inputs, &context)
}

fn animation(environment: Environment, change: impl FnOnce(&mut RenderParameters)) -> (Vec<u8>, Table) {
    let mut parameters = parameters(environment, Format::Gif);
    change(&mut parameters);
    let outputs = render(&PolicySet::single(policy(environment, false, 1)), &parameters).unwrap();
    (
        outputs.get_file("animation").unwrap().to_vec(),
        outputs.get_table("data").unwrap().clone(),
    )
}

fn format(format: Format) -> impl FnOnce(&mut RenderParameters) {
    move |parameters| parameters.format = format
}

/// Every frame as it is seen, RGB, and how long it stays, s.
struct Seen {
    width: usize,
    height: usize,
    frames: Vec<(Vec<u8>, f64)>,
}

impl Seen {
    fn blank(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            frames: Vec::new(),
        }
    }

    /// Lays an RGBA patch over the last frame.
    fn lay(&mut self, [left, top, width]: [usize; 3], pixels: &[u8], delay: f64) {
        let before = self.frames.last().map(|(frame, _)| frame.clone());
        let mut screen = before.unwrap_or_else(|| vec![0; self.width * self.height * 3]);
        for (index, pixel) in pixels.chunks_exact(4).enumerate() {
            let at = (top + index / width) * self.width + left + index % width;
            match pixel[3] {
                0 => {}
                255 => screen[3 * at..][..3].copy_from_slice(&pixel[..3]),
                opacity => panic!("opacity {opacity}"),
            }
        }
        self.frames.push((screen, delay));
    }
}

fn see_gif(bytes: &[u8]) -> Seen {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(bytes).unwrap();
    assert_eq!(decoder.repeat(), gif::Repeat::Infinite);
    let mut seen = Seen::blank(usize::from(decoder.width()), usize::from(decoder.height()));
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        assert_eq!(frame.dispose, gif::DisposalMethod::Keep);
        let place = [frame.left, frame.top, frame.width].map(usize::from);
        seen.lay(place, &frame.buffer, f64::from(frame.delay) / 100.0);
    }
    seen
}

fn see_apng(bytes: &[u8]) -> Seen {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().unwrap();
    let info = reader.info();
    let control = info.animation_control.unwrap();
    assert_eq!(control.num_plays, 0);
    let mut seen = Seen::blank(info.width as usize, info.height as usize);
    for _ in 0..control.num_frames {
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let output = reader.next_frame(&mut pixels).unwrap();
        let frame = *reader.info().frame_control().unwrap();
        assert_eq!(
            (frame.dispose_op, frame.blend_op),
            (png::DisposeOp::None, png::BlendOp::Over)
        );
        let place = [frame.x_offset, frame.y_offset, frame.width].map(|number| number as usize);
        let delay = f64::from(frame.delay_num) / f64::from(frame.delay_den);
        seen.lay(place, &pixels[..output.buffer_size()], delay);
    }
    seen
}

/// The frame that a viewer without animation shows.
fn see_svg(bytes: &[u8]) -> Vec<u8> {
    let svg = std::str::from_utf8(bytes).unwrap();
    let tree = resvg::usvg::Tree::from_str(svg, &resvg::usvg::Options::default()).unwrap();
    let (width, height) = (tree.size().width() as u32, tree.size().height() as u32);
    let mut picture = resvg::tiny_skia::Pixmap::new(width, height).unwrap();
    resvg::render(
        &tree,
        resvg::tiny_skia::Transform::identity(),
        &mut picture.as_mut(),
    );
    picture
        .data()
        .chunks_exact(4)
        .flat_map(|pixel| pixel[..3].to_vec())
        .collect()
}

/// The mean difference of two pictures' components, of 255.
fn difference(left: &[u8], right: &[u8]) -> f64 {
    assert_eq!(left.len(), right.len());
    let sum: u64 = left
        .iter()
        .zip(right)
        .map(|(left, right)| u64::from(left.abs_diff(*right)))
        .sum();
    sum as f64 / left.len() as f64
}

#[test]
fn a_gif_has_a_frame_for_every_tick_and_shows_what_an_apng_shows() {
    for environment in Environment::ALL {
        let (bytes, data) = animation(environment, format(Format::Gif));
        let gif = see_gif(&bytes);
        assert_eq!((gif.width, gif.height), (300, 200));
        let steps = data.rows() - 1;
        let ticks = (steps as f64 * 0.0165 * 20.0).ceil();
        assert_eq!(gif.frames.len() as f64, ticks + 1.0, "{environment:?}");
        let (last, others) = gif.frames.split_last().unwrap();
        assert!(others.iter().all(|(_, delay)| *delay == 0.05));
        assert_eq!(last.1, 1.0);
        let (bytes, _) = animation(environment, format(Format::Apng));
        let apng = see_apng(&bytes);
        assert_eq!(apng.frames.len(), gif.frames.len());
        for (frame, (left, right)) in gif.frames.iter().zip(&apng.frames).enumerate() {
            assert!(left == right, "{environment:?}: frame {frame}");
        }
        // Something moves from each frame to the next.
        assert!(gif.frames.windows(2).all(|pair| pair[0].0 != pair[1].0));
    }
}

#[test]
fn paces_that_hundredths_cannot_tell_do_not_drift_and_are_exact_in_an_apng() {
    let pace = |format: Format| {
        move |parameters: &mut RenderParameters| {
            parameters.format = format;
            parameters.fps = 30;
            parameters.speed = 0.5;
        }
    };
    let delays = |seen: &Seen| seen.frames.iter().map(|(_, delay)| *delay).collect::<Vec<_>>();
    let gif = delays(&see_gif(
        &animation(Environment::HalfCheetah, pace(Format::Gif)).0,
    ));
    let apng = delays(&see_apng(
        &animation(Environment::HalfCheetah, pace(Format::Apng)).0,
    ));
    // 60 steps are 0.99 s: at half the pace 59.4 ticks of 1/30 s.
    assert_eq!((gif.len(), apng.len()), (61, 61));
    for delays in [gif, apng] {
        let total: f64 = delays.iter().sum();
        assert!((total - (60.0 / 30.0 + 1.0)).abs() < 1e-9, "{total}");
    }
}

#[test]
fn an_svg_shows_its_first_frame_where_nothing_is_animated_and_has_them_all() {
    for environment in [Environment::Walker2D, Environment::Ant] {
        let (svg, _) = animation(environment, format(Format::Svg));
        let (gif, _) = animation(environment, format(Format::Gif));
        let gif = see_gif(&gif);
        let off = difference(&see_svg(&svg), &gif.frames[0].0);
        assert!(off < 1.0, "{environment:?}: {off}");
        assert!(difference(&gif.frames[0].0, &gif.frames[gif.frames.len() - 1].0) > 1.5);

        let text = std::str::from_utf8(&svg).unwrap();
        let document = resvg::usvg::roxmltree::Document::parse(text).unwrap();
        let frames: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("animate"))
            .collect();
        assert_eq!(frames.len(), gif.frames.len());
        // Each is displayed from where the one before ends.
        let mut end = 0.0;
        for (index, frame) in frames.iter().enumerate() {
            let times: Vec<f64> = frame
                .attribute("keyTimes")
                .unwrap()
                .split(';')
                .map(|time| time.parse().unwrap())
                .collect();
            let values: Vec<&str> = frame.attribute("values").unwrap().split(';').collect();
            let shown = values.iter().position(|value| *value == "inline").unwrap();
            assert_eq!((values.len(), times[0]), (times.len(), 0.0));
            assert_eq!(times[shown], end, "frame {index}");
            end = times.get(shown + 1).copied().unwrap_or(1.0);
            let hidden = frame.parent().unwrap().attribute("display") == Some("none");
            assert_eq!(hidden, index > 0);
        }
        assert_eq!(end, 1.0);
        let duration: f64 = frames[0]
            .attribute("dur")
            .unwrap()
            .strip_suffix('s')
            .unwrap()
            .parse()
            .unwrap();
        let of_gif: f64 = gif.frames.iter().map(|(_, delay)| delay).sum();
        assert!((duration - of_gif).abs() < 0.01);
    }
}

#[test]
fn nothing_in_an_svg_but_shapes_and_their_times() {
    let (svg, _) = animation(Environment::Hopper, |parameters| {
        parameters.format = Format::Svg;
        parameters.title = Some("<script>alert(1)</script> & more".to_owned());
    });
    let text = std::str::from_utf8(&svg).unwrap();
    let document = resvg::usvg::roxmltree::Document::parse(text).unwrap();
    let known = ["svg", "title", "metadata", "defs", "path", "g", "use", "animate"];
    for node in document
        .descendants()
        .filter(resvg::usvg::roxmltree::Node::is_element)
    {
        assert!(
            known.contains(&node.tag_name().name()),
            "{}",
            node.tag_name().name()
        );
        assert!(
            node.attributes()
                .all(|attribute| !attribute.name().starts_with("on"))
        );
    }
}

#[test]
fn every_file_leads_back_to_its_cell_and_data() {
    for wanted in [Format::Gif, Format::Apng, Format::Svg] {
        let (bytes, data) = animation(Environment::Hopper, format(wanted));
        let identity = FigureIdentity {
            action_key: "the key".to_owned(),
            data: data.content(),
        };
        assert_eq!(FigureIdentity::read(&bytes), Some(identity), "{wanted:?}");
    }
}

#[test]
fn the_same_episode_gives_the_same_bytes_and_another_others() {
    for wanted in [Format::Gif, Format::Apng, Format::Svg] {
        let once = animation(Environment::Ant, format(wanted)).0;
        assert!(
            once == animation(Environment::Ant, format(wanted)).0,
            "{wanted:?}"
        );
        let other = animation(Environment::Ant, |parameters| {
            parameters.format = wanted;
            parameters.trial = 2;
        });
        assert!(once != other.0);
    }
}

#[test]
fn what_is_drawn_is_the_episode_that_evaluate_runs() {
    let hopper = policy(Environment::Hopper, true, 5);
    let mut parameters = parameters(Environment::Hopper, Format::Gif);
    parameters.steps = 1000;
    parameters.width = 240;
    parameters.height = 160;
    let outputs = render(&PolicySet::single(hopper.clone()), &parameters).unwrap();
    let data = outputs.get_table("data").unwrap();
    let task = Task::named("hopper").unwrap();
    let episodes = Rollouts::of(task, &hopper)
        .run_policy(&hopper, &[trial_seed(3, 1)], |_| true)
        .unwrap();
    let last = |name: &str| *data.column_f64(name).unwrap().last().unwrap();
    assert_eq!(data.rows() as u32 - 1, episodes[0].length);
    assert_eq!(last("return"), episodes[0].total_reward);
    assert!(episodes[0].terminated, "random actions make Hopper fall");
    let time = f64::from(episodes[0].length) * 0.0165;
    assert!((last("time") - time).abs() < 1e-9);
    assert_eq!(data.column_f64("distance").unwrap()[0], 0.0);
}

fn refusal(result: Result<Outputs, Failure>) -> (Blame, String, String) {
    let failed = Failed::from(result.unwrap_err());
    (failed.blame, failed.message, failed.help.unwrap_or_default())
}

#[test]
fn a_policy_of_something_else_is_refused_by_name() {
    let (blame, message, help) = refusal(render(
        &PolicySet::single(policy(Environment::Ant, false, 1)),
        &parameters(Environment::Hopper, Format::Gif),
    ));
    assert_eq!(blame, Blame::Stage);
    assert_eq!(
        message,
        "the policy does not fit: it was made for the environment `ant`, not for `hopper`"
    );
    assert!(help.contains("`ant`"), "{help}");
    let set = PolicySet::new(vec![
        (2, policy(Environment::Hopper, false, 1)),
        (7, policy(Environment::Hopper, false, 2)),
    ]);
    let wrong = RenderParameters {
        checkpoint: Some(3),
        ..parameters(Environment::Hopper, Format::Gif)
    };
    let (_, message, help) = refusal(render(&set.unwrap(), &wrong));
    assert_eq!(message, "the policy has no checkpoint 3");
    assert!(
        help.starts_with("it has 2 and 7") || help.starts_with("it has `2`"),
        "{help}"
    );
}

#[test]
fn checkpoints_are_chosen_by_number() {
    let set = PolicySet::new(vec![
        (2, policy(Environment::Hopper, false, 1)),
        (7, policy(Environment::Hopper, false, 2)),
    ])
    .unwrap();
    let drawn = |checkpoint: Option<u32>| {
        let parameters = RenderParameters {
            checkpoint,
            ..parameters(Environment::Hopper, Format::Gif)
        };
        render(&set, &parameters)
            .unwrap()
            .get_file("animation")
            .unwrap()
            .to_vec()
    };
    assert!(drawn(None) == drawn(Some(7)));
    assert!(drawn(None) != drawn(Some(2)));
}

/// Runs with files; each is given by the pointer of its parameter.
fn render_files(parameters: &RenderParameters, files: &[(&str, &Utf8Path)]) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let mut context = Context::new(&Silent, &cancelled, "unused");
    for (pointer, path) in files {
        let digest = Digest::of(&fs_err::read(path).unwrap());
        context = context.with_source(*pointer, *path, digest);
    }
    RenderExecution.execute(parameters, &Inputs::new(), &context)
}

fn recorded(name: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stable-baselines/tests/fixtures")
        .join(name)
}

#[test]
fn files_are_told_apart_by_what_they_hold_where_their_names_say_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    let set = PolicySet::single(policy(Environment::Hopper, false, 1));
    let safetensors = folder.join("0123");
    fs_err::write(&safetensors, set.to_safetensors()).unwrap();
    let of_file = |path: &Utf8Path| RenderParameters {
        policy: Some(SourceFile(path.to_owned())),
        ..parameters(Environment::Hopper, Format::Gif)
    };
    let drawn = render_files(&of_file(&safetensors), &[("/policy", &safetensors)]).unwrap();
    let wired = render(&set, &parameters(Environment::Hopper, Format::Gif)).unwrap();
    let content = |outputs: &Outputs| outputs.get_table("data").unwrap().content();
    assert_eq!(content(&drawn), content(&wired));
    let archive = recorded("hopper.zip");
    assert!(render_files(&of_file(&archive), &[("/policy", &archive)]).is_ok());
    let nothing = folder.join("4567");
    fs_err::write(&nothing, b"GIF89a").unwrap();
    let (_, message, _) = refusal(render_files(&of_file(&nothing), &[("/policy", &nothing)]));
    assert_eq!(
        message,
        format!("the policy `{nothing}` is neither a policy nor an archive")
    );
}

#[test]
fn an_agent_off_by_the_time_feature_is_told_so() {
    let (archive, statistics) = (recorded("hopper-time.zip"), recorded("hopper-time.pkl"));
    let mut parameters = RenderParameters {
        policy: Some(SourceFile(archive.clone())),
        normalization: Some(SourceFile(statistics.clone())),
        ..parameters(Environment::Hopper, Format::Gif)
    };
    let files = [("/policy", archive.as_path()), ("/normalization", &statistics)];
    let (_, message, help) = refusal(render_files(&parameters, &files));
    assert!(message.contains("sees 16 numbers"), "{message}");
    assert!(help.contains("set `time_feature = true`"), "{help}");
    parameters.time_feature = Some(true);
    assert!(render_files(&parameters, &files).is_ok());
}
