//! `render`: draws an episode of a policy as an animation.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Parameters, Problem, Resources, Revision, SourceFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{POLICY, RANDOM, SIM, TABLE};
use crate::{Activation, Environment, PolicySource, facts, tables};

/// Seconds that a step of the simulated tasks lasts.
const STEP: f64 = 0.0165;
/// The most frames of an animation.
pub const MOST_FRAMES: u32 = 3000;
/// The most pixels of all frames together.
pub const MOST_PIXELS: u64 = 2_000_000_000;

/// Parameters of `render`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenderParameters {
    /// The task in which the policy acts.
    pub env: Environment,
    /// The policy, where it is not wired to the port `policy`: a policy (`.parquet` or `.safetensors`), or a
    /// Stable-Baselines3 archive of PPO, A2C, SAC, TQC, TD3 or DDPG (`.zip`).
    #[serde(default)]
    pub policy: Option<SourceFile>,
    /// The `VecNormalize` statistics (`.pkl`) that a Stable-Baselines3 agent was trained with.
    #[serde(default)]
    pub normalization: Option<SourceFile>,
    /// Activation of a Stable-Baselines3 agent whose archive does not tell.
    #[serde(default)]
    pub activation: Option<Activation>,
    /// Whether a Stable-Baselines3 agent reads the time feature: the share of the episode's time that is left, as the last
    /// number of an observation (RL Zoo's `TimeFeatureWrapper`); not, where absent. A policy says so itself, and is
    /// refused where it says otherwise.
    #[serde(default)]
    pub time_feature: Option<bool>,
    /// Which checkpoint of the policy acts; the last one, where absent.
    #[serde(default)]
    pub checkpoint: Option<u32>,
    /// Seed of the initial states, as `evaluate` has it.
    #[serde(default)]
    pub seed: u64,
    /// Which of the episodes that `evaluate` runs with that seed, from 0.
    #[serde(default)]
    pub trial: u32,
    /// Steps after which the animation ends, if the episode has not ended before.
    #[serde(default = "default_steps")]
    #[schemars(range(min = 1, max = 1000))]
    pub steps: u32,
    /// What file the animation is.
    #[serde(default)]
    pub format: Format,
    /// Frames a second.
    #[serde(default = "default_fps")]
    #[schemars(range(min = 1, max = 50))]
    pub fps: u32,
    /// How many simulated seconds a second shows: 1 is the real pace, 0.5 slow motion.
    #[serde(default = "default_speed")]
    #[schemars(range(min = 0.05, max = 20.0))]
    pub speed: f64,
    /// Width in pixels.
    #[serde(default = "default_width")]
    #[schemars(range(min = 240, max = 1920))]
    pub width: u32,
    /// Height in pixels.
    #[serde(default = "default_height")]
    #[schemars(range(min = 160, max = 1080))]
    pub height: u32,
    /// The words above the picture; task and method of the policy, where absent; none, where empty.
    #[serde(default)]
    pub title: Option<String>,
}

fn default_steps() -> u32 {
    1000
}

fn default_fps() -> u32 {
    20
}

fn default_speed() -> f64 {
    1.0
}

fn default_width() -> u32 {
    512
}

fn default_height() -> u32 {
    288
}

/// What file an animation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// GIF, shown everywhere.
    #[default]
    Gif,
    /// Animated PNG: the same pixels, and a pace that is exact.
    Apng,
    /// Animated SVG: sharp at every size, larger.
    Svg,
}

impl Format {
    /// The extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Gif => "gif",
            Self::Apng => "apng",
            Self::Svg => "svg",
        }
    }

    /// The extensions that its files may have: an animated PNG is a PNG.
    pub const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Gif => &["gif"],
            Self::Apng => &["apng", "png"],
            Self::Svg => &["svg"],
        }
    }

    /// The format of files with this extension.
    pub fn of(extension: &str) -> Option<Self> {
        match extension {
            "gif" => Some(Self::Gif),
            "apng" | "png" => Some(Self::Apng),
            "svg" => Some(Self::Svg),
            _ => None,
        }
    }
}

impl RenderParameters {
    /// Where the policy is from.
    pub fn source(&self) -> PolicySource<'_> {
        PolicySource {
            name: "policy",
            pointer: "/policy",
            file: self.policy.as_ref(),
            normalization: self.normalization.as_ref(),
            activation: self.activation,
            time_feature: self.time_feature,
        }
    }

    /// How many frames an episode of so many steps takes: one at every tick of the pace, and one at its end.
    pub fn frames(&self, steps: u32) -> u32 {
        let ticks = f64::from(steps) * STEP * f64::from(self.fps) / self.speed;
        // What is left of rounding does not make a further tick.
        (ticks - 1e-9).ceil() as u32 + 1
    }
}

impl Parameters for RenderParameters {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.source().problems();
        let frames = self.frames(self.steps);
        let pixels = u64::from(frames) * u64::from(self.width) * u64::from(self.height);
        if frames > MOST_FRAMES {
            problems.push(
                Problem::new(
                    "/speed",
                    format!("the animation has up to {frames} frames; at most {MOST_FRAMES} are drawn"),
                )
                .beside(["/fps", "/steps"])
                .help("raise `speed`, or lower `fps` or `steps`"),
            );
        } else if pixels > MOST_PIXELS {
            problems.push(
                Problem::new(
                    "/width",
                    format!(
                        "the frames have up to {pixels} pixels together; at most {MOST_PIXELS} are drawn"
                    ),
                )
                .beside(["/height", "/fps", "/speed", "/steps"])
                .help("lower `width` and `height`, or draw fewer frames (`fps`, `speed`, `steps`)"),
            );
        }
        problems
    }
}

/// The declaration of `render`.
pub struct Render;

impl Kind for Render {
    type Parameters = RenderParameters;
    const NAME: &'static str = "render";
    const SUMMARY: &'static str = "Draws an episode of a policy as an animation.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "render",
            number: 1,
        },
        SIM,
        POLICY,
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Platform;
    const PRIVILEGED_INPUTS: &'static [&'static str] = &["policy"];

    fn inputs() -> Vec<InputPort> {
        vec![InputPort {
            name: "policy",
            doc: "A policy, with any number of checkpoints.",
            arity: Arity::One,
            required: false,
            content: tables::policy(),
        }]
    }

    fn outputs() -> Vec<OutputPort> {
        let float = |name| Column::new(name, ColumnType::Float64);
        let extensions = ["gif", "apng", "png", "svg"];
        vec![
            OutputPort {
                name: "animation",
                doc: "The animation: a GIF, APNG or SVG, as `format` says.",
                content: Content::FileOf(extensions.map(str::to_owned).to_vec()),
                volatile: false,
            },
            OutputPort {
                name: "data",
                doc: "What is drawn: one row for the beginning of the episode, and one per step.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("step", ColumnType::UInt32),
                    float("time").unit("s"),
                    float("distance").unit("m"),
                    float("height").unit("m"),
                    float("return"),
                ])),
                volatile: false,
            },
        ]
    }

    fn facts(parameters: &RenderParameters) -> Facts {
        facts::environment(parameters.env, ["animation", "data"])
            .need(facts::ENVIRONMENT, "policy", facts::same(parameters.env))
            .file("animation", parameters.format.extensions(), "/format")
    }

    fn resources(parameters: &RenderParameters) -> Resources {
        // An animated SVG has some kilobytes a frame; a few pictures are held at a time.
        let pixels = u64::from(parameters.width) * u64::from(parameters.height);
        let frames = u64::from(parameters.frames(parameters.steps));
        Resources {
            memory: 256 + (64 * pixels + 32_768 * frames) / (1 << 20),
            ..Resources::default()
        }
    }

    fn check(parameters: &RenderParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        parameters.source().check(wired)
    }
}
