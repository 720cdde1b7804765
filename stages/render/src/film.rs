use provenir_kinds::render::RenderParameters;

use crate::episode::{Episode, Moment};
use crate::vector::{Vector, between, plus, times};

/// Seconds for which the last frame stays.
const HOLD: f64 = 1.0;
/// The camera follows the mean of the torso's places this many steps before and after.
const SMOOTHING: usize = 20;

/// The frames of an animation, before anything is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Film {
    /// Words above the picture.
    pub(crate) title: String,
    /// px
    pub(crate) size: [u32; 2],
    /// Frames a second.
    pub(crate) fps: u32,
    /// For each of the robot's bodies the limb that it belongs to; 0 is the torso.
    pub(crate) limbs: Vec<usize>,
    pub(crate) episode: Episode,
    /// By moment of the episode.
    focus: Vec<Vector>,
    /// By frame, simulated s.
    times: Vec<f64>,
}

/// What a frame shows.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) moment: Moment,
    /// Where the camera looks.
    pub(crate) focus: Vector,
    /// Simulated time, s.
    pub(crate) time: f64,
    /// The robot has fallen.
    pub(crate) fallen: bool,
}

impl Film {
    pub(crate) fn new(
        episode: Episode,
        limbs: Vec<usize>,
        title: String,
        parameters: &RenderParameters,
    ) -> Self {
        let count = parameters.frames(episode.steps()) as usize;
        let end = episode.duration();
        let tick = parameters.speed / f64::from(parameters.fps);
        let mut times: Vec<f64> = (0..count - 1).map(|frame| frame as f64 * tick).collect();
        times.push(end);
        Self {
            title,
            size: [parameters.width, parameters.height],
            fps: parameters.fps,
            limbs,
            focus: smooth(&episode),
            times,
            episode,
        }
    }

    /// How many frames there are: at least two.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn frame(&self, frame: usize) -> Shown {
        let time = self.times[frame];
        let (before, share) = self.episode.place(time);
        let after = (before + 1).min(self.focus.len() - 1);
        Shown {
            moment: self.episode.at(time),
            focus: between(self.focus[before], self.focus[after], share),
            time,
            fallen: self.episode.terminated && frame + 1 == self.len(),
        }
    }

    /// When a frame begins, counted in so many parts of a second, rounded; the one after the last is the end.
    pub(crate) fn begins(&self, frame: usize, parts: u32) -> u64 {
        let seconds = if frame < self.len() {
            frame as f64 / f64::from(self.fps)
        } else {
            (self.len() - 1) as f64 / f64::from(self.fps) + HOLD
        };
        libm::round(seconds * f64::from(parts)) as u64
    }

    /// Along a straight line from the beginning: metres so far.
    pub(crate) fn distance(&self, shown: &Shown) -> f64 {
        shown.moment.torso[0] - self.episode.moments[0].torso[0]
    }
}

/// The torso's way without its steps: the mean of the places around each, as many before as after.
fn smooth(episode: &Episode) -> Vec<Vector> {
    let last = episode.moments.len() - 1;
    (0..=last)
        .map(|step| {
            let reach = SMOOTHING.min(step).min(last - step);
            let around = &episode.moments[step - reach..=step + reach];
            let sum = around
                .iter()
                .fold([0.0; 3], |sum, moment| plus(sum, moment.torso));
            times(1.0 / around.len() as f64, sum)
        })
        .collect()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "small numbers of few binary digits are exact")]
mod tests {
    use std::f64::consts::PI;

    use provenir_sim::Capsule;

    use super::*;
    use crate::episode::STEP;

    fn time_of(step: u32) -> f64 {
        f64::from(step) * STEP
    }

    /// A ball that rolls 1 cm a step.
    fn film(steps: u32, change: impl FnOnce(&mut RenderParameters)) -> Film {
        let moments = (0..=steps).map(|step| {
            let torso = [0.01 * f64::from(step), 0.0, 1.0];
            let ball = Capsule {
                body: 0,
                from: torso,
                to: torso,
                radius: 0.1,
            };
            Moment {
                capsules: vec![ball],
                torso,
                total_reward: f64::from(step),
            }
        });
        let episode = Episode {
            moments: moments.collect(),
            terminated: true,
        };
        let mut parameters: RenderParameters =
            serde_json::from_value(serde_json::json!({ "env": "hopper", "fps": 25 })).unwrap();
        change(&mut parameters);
        Film::new(episode, vec![0], String::new(), &parameters)
    }

    #[test]
    fn frames_are_as_far_apart_as_the_pace_says_and_the_last_shows_the_end() {
        // 1000 steps are 16.5 s: 412.5 ticks of 1/25 s.
        let film = film(1000, |_| {});
        assert_eq!(film.len(), 414);
        assert!((film.frame(25).time - 1.0).abs() < 1e-12);
        assert!((film.frame(413).time - 16.5).abs() < 1e-12);
        assert!(film.frame(413).fallen && !film.frame(412).fallen);
        // One centimetre in 16.5 ms.
        assert!((film.distance(&film.frame(25)) - 0.01 / 0.0165).abs() < 1e-9);
        assert_eq!(film.frame(25).moment.total_reward, 60.0);
        assert_eq!(film.frame(413).moment.total_reward, 1000.0);
    }

    #[test]
    fn slow_motion_takes_longer_and_whole_ticks_get_no_frame_twice() {
        let slow = film(400, |parameters| parameters.speed = 0.5);
        // 6.6 s at half the pace and 25 fps: 330 ticks.
        assert_eq!(slow.len(), 331);
        assert!((slow.frame(1).time - 0.02).abs() < 1e-12);
        assert!(slow.frame(329).time < slow.frame(330).time - 0.01);
        assert_eq!(film(1, |_| {}).len(), 2);
    }

    #[test]
    fn delays_add_up_without_drift() {
        let film = film(400, |parameters| parameters.fps = 30);
        let hundredths: Vec<u64> = (0..film.len())
            .map(|frame| film.begins(frame + 1, 100) - film.begins(frame, 100))
            .collect();
        assert!(
            hundredths[..film.len() - 1]
                .iter()
                .all(|delay| (3..=4).contains(delay))
        );
        assert_eq!(hundredths[film.len() - 1], 100);
        let sum: u64 = hundredths[..film.len() - 1].iter().sum();
        let seconds = (film.len() - 1) as f64 / 30.0;
        assert!((sum as f64 / 100.0 - seconds).abs() <= 0.005);
    }

    #[test]
    fn the_camera_keeps_to_straight_ways_and_smooths_steps() {
        let mut film = film(200, |_| {});
        for (found, moment) in film.focus.iter().zip(&film.episode.moments) {
            assert!((found[0] - moment.torso[0]).abs() < 1e-12);
        }
        // A period of as many steps as are averaged vanishes.
        for (step, moment) in film.episode.moments.iter_mut().enumerate() {
            moment.torso[2] = 1.0 + libm::sin(2.0 * PI * step as f64 / (2 * SMOOTHING + 1) as f64);
        }
        let focus = smooth(&film.episode);
        assert!(
            focus[SMOOTHING..=200 - SMOOTHING]
                .iter()
                .all(|point| (point[2] - 1.0).abs() < 1e-9)
        );
    }

    #[test]
    fn between_steps_bodies_move_in_straight_lines() {
        let film = film(10, |_| {});
        let moment = film.episode.at(time_of(3) + 0.25 * STEP);
        assert!((moment.capsules[0].from[0] - 0.0325).abs() < 1e-12);
        assert_eq!(moment.total_reward, 3.0);
        assert_eq!(film.episode.at(time_of(7)), film.episode.moments[7]);
        assert_eq!(film.episode.at(99.0), film.episode.moments[10]);
    }
}
