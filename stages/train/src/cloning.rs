use std::ops::Range;

use provenir_nn::{Ensemble, NnError, Repeated, Shape};
use provenir_random::Stream;
use tch::{Kind, Tensor};

use crate::data::Data;
use crate::learner::Descent;
use crate::method::{Findings, Memory, Method, Notes, Stretch, Trace, frequencies, recall_learners};
use crate::order::{Order, Selected};
use crate::student::{Batch, Student};
use crate::sweep::{Residuals, Sweep};

/// What all methods are given.
#[derive(Clone)]
pub(crate) struct Setting<'a> {
    pub(crate) shape: Shape,
    pub(crate) data: &'a Data,
    /// One for each policy and data set.
    pub(crate) streams: Vec<Stream>,
    /// Samples of a minibatch.
    pub(crate) batch: usize,
    /// Epochs of the whole training.
    pub(crate) epochs: u64,
    pub(crate) descent: Descent,
}

impl Setting<'_> {
    /// A stream for each network of committees of this size.
    pub(crate) fn networks(&self, committee: usize) -> Vec<Stream> {
        if committee == 1 {
            return self.streams.clone();
        }
        self.streams
            .iter()
            .flat_map(|stream| (0..committee as u64).map(|member| stream.child("member", member)))
            .collect()
    }

    /// Minibatches for committees of this size.
    pub(crate) fn order(&self, committee: usize) -> Result<Order, NnError> {
        let data = self.data;
        Order::new(
            self.networks(committee),
            committee,
            data.samples,
            self.batch,
            data.device(),
        )
    }

    /// Networks at initial values from streams of that name, for minibatches in that order.
    pub(crate) fn student(&self, networks: &[Stream], name: &str, order: &Order) -> Result<Student, NnError> {
        let initial = initial(networks, name, 0);
        Student::new(&self.shape, &initial, self.descent, self.data, order.sizes())
    }
}

/// Streams of initial values: of each network, for the training of that number.
pub(crate) fn initial(networks: &[Stream], name: &str, round: u64) -> Vec<Stream> {
    networks.iter().map(|stream| stream.child(name, round)).collect()
}

/// What minibatches are to a method of learning from them: all that is special to it.
pub(crate) trait Rule {
    /// Whether only some samples of a minibatch give a gradient.
    const SELECTS: bool = false;

    /// As [`Method::span`].
    fn span(&self, _: u64, epochs: u64) -> Range<u64> {
        0..epochs
    }

    /// Prepares an epoch, counted from 0.
    fn begin_epoch(&mut self, _: u64, _: &mut Course<'_>) -> Result<(), NnError> {
        Ok(())
    }

    /// What decides, beside values on the device, which operations [`Rule::judge`] asks for.
    fn variant(&self) -> u8 {
        0
    }

    /// As [`Method::announce`]: learning rates of each network, for what the rule itself learns.
    fn announce(&mut self, _: &[Vec<f64>]) -> Result<(), NnError> {
        Ok(())
    }

    /// Begins the next of the steps that were announced.
    fn advance(&mut self) -> Result<(), NnError> {
        Ok(())
    }

    /// Ends a step.
    fn settle(&mut self) -> Result<(), NnError> {
        Ok(())
    }

    /// Gives the loss of each network on the minibatch, and turns the residuals into its derivative by the output. A GPU
    /// repeats it ([`Repeated`]): it reads and writes tensors that stay where they are, and nothing of the host changes.
    fn judge(&mut self, batch: &mut Batch<'_>) -> Result<Verdict, NnError>;

    /// What there is to note of each policy at the end of an epoch.
    fn notes(&self) -> Result<Notes, NnError> {
        Ok(Notes::default())
    }

    /// How much each sample is to be trusted under the finished policies, `[K · N]`; nothing where that is how often it
    /// gave a gradient when it was drawn.
    fn trust(&mut self, _: &mut Course<'_>) -> Result<Option<Vec<f64>>, NnError> {
        Ok(None)
    }

    /// Adds what the rule itself has learnt.
    fn remember(&self, _: &mut Memory) -> Result<(), NnError> {
        Ok(())
    }

    /// Takes it back.
    fn recall(&mut self, _: &Memory) -> Result<(), NnError> {
        Ok(())
    }
}

/// A minibatch as a rule sees it.
pub(crate) struct Verdict {
    /// Loss of each network, `[J]`.
    pub(crate) loss: Tensor,
    /// Which samples give a gradient, `[J, B]`, 1 or 0, where the rule selects.
    pub(crate) selected: Option<Tensor>,
}

/// What a rule may look at and prepare at the start of an epoch and at the end.
pub(crate) struct Course<'a> {
    pub(crate) data: &'a Data,
    pub(crate) student: &'a mut Student,
    pub(crate) order: &'a Order,
    /// Streams of the networks.
    pub(crate) networks: &'a [Stream],
}

impl Course<'_> {
    /// What each network is off at every sample of its data set.
    pub(crate) fn residuals(&self) -> Result<Residuals, NnError> {
        Sweep::new(self.student.ensemble(), self.data)?.residuals(self.student.ensemble())
    }
}

/// Learning from minibatches in an order that is drawn for every epoch, by a rule.
pub(crate) struct Cloning<'a, R> {
    data: &'a Data,
    /// M
    committee: usize,
    /// Streams of the networks.
    networks: Vec<Stream>,
    order: Order,
    student: Student,
    /// Where the rule selects.
    selected: Option<Selected>,
    rule: R,
    trace: Trace,
    /// Minibatches of either size, and the rule's variants.
    repeated: Repeated<(usize, u8)>,
}

impl<'a, R: Rule> Cloning<'a, R> {
    /// Policies at their initial values, of `committee` networks each.
    pub(crate) fn new(setting: &Setting<'a>, committee: usize, rule: R) -> Result<Self, NnError> {
        let data = setting.data;
        let repeated = Repeated::new(data.device())?;
        let networks = setting.networks(committee);
        let order = setting.order(committee)?;
        let student = setting.student(&networks, "policy", &order)?;
        Ok(Self {
            data,
            committee,
            selected: R::SELECTS
                .then(|| Selected::new(data.members * data.samples, data.device()))
                .transpose()?,
            networks,
            order,
            student,
            rule,
            trace: Trace::new(data.members, data.device())?,
            repeated,
        })
    }

    /// From now on each network uses these samples alone.
    pub(crate) fn restrict(&mut self, pools: Vec<Vec<usize>>) {
        self.order.restrict(pools);
    }

    /// What each network is off at every sample of its data set.
    pub(crate) fn residuals(&self) -> Result<Residuals, NnError> {
        Sweep::new(self.student.ensemble(), self.data)?.residuals(self.student.ensemble())
    }

    fn course(&mut self) -> (Course<'_>, &mut R) {
        let course = Course {
            data: self.data,
            student: &mut self.student,
            order: &self.order,
            networks: &self.networks,
        };
        (course, &mut self.rule)
    }

    fn selections(&self) -> Result<Vec<u64>, NnError> {
        match &self.selected {
            Some(selected) => selected.counts(),
            None => Ok(self.order.drawn().to_vec()),
        }
    }
}

/// The mean over each committee.
fn of_policies(values: &Tensor, committee: usize) -> Result<Tensor, NnError> {
    if committee == 1 {
        return Ok(values.shallow_clone());
    }
    Ok(values
        .f_view([-1, committee as i64])?
        .f_mean_dim(1, false, Kind::Float)?)
}

impl<R: Rule> Method for Cloning<'_, R> {
    fn policies(&self) -> &Ensemble {
        self.student.ensemble()
    }

    fn committee(&self) -> usize {
        self.committee
    }

    fn span(&self, epoch: u64, epochs: u64) -> Range<u64> {
        self.rule.span(epoch, epochs)
    }

    fn begin_epoch(&mut self, epoch: u64) -> Result<(), NnError> {
        let (mut course, rule) = self.course();
        rule.begin_epoch(epoch, &mut course)?;
        self.order.shuffle(epoch);
        Ok(())
    }

    fn stretch(&self) -> usize {
        self.order.stretch()
    }

    fn announce(&mut self, stretch: &Stretch, rates: &[Vec<f64>]) -> Result<(), NnError> {
        self.order.announce(stretch.within.clone())?;
        let of_networks = |rates: &Vec<f64>| -> Vec<f64> {
            let each = rates.iter();
            each.flat_map(|rate| std::iter::repeat_n(*rate, self.committee))
                .collect()
        };
        let rates: Vec<Vec<f64>> = rates.iter().map(of_networks).collect();
        self.student.learner.announce(&rates)?;
        self.rule.announce(&rates)
    }

    fn step(&mut self, within: usize) -> Result<(), NnError> {
        let place = self.order.load(within)?;
        self.student.learner.advance()?;
        self.rule.advance()?;
        let Self {
            data,
            committee,
            order,
            student,
            selected,
            rule,
            trace,
            repeated,
            ..
        } = self;
        let index = order.minibatch(place);
        repeated.run((place, rule.variant()), || {
            let mut batch = student.pass(data, index)?;
            let Verdict {
                loss,
                selected: flags,
            } = rule.judge(&mut batch)?;
            if let (Some(selected), Some(flags)) = (selected.as_mut(), flags) {
                selected.add(index, &flags.f_to_kind(Kind::Int64)?.f_reshape(-1)?)?;
            }
            let norm = student.descend(&batch)?;
            trace.note(Trace::LOSS, &of_policies(&loss, *committee)?)?;
            trace.note(Trace::NORM, &of_policies(norm, *committee)?)
        })?;
        self.student.learner.settle()?;
        self.rule.settle()
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn foresee(&mut self, stretch: &Stretch) {
        // An order is drawn for a whole epoch.
        if stretch.within.start == 0 {
            self.order.foresee(stretch.epoch);
        }
    }

    fn notes(&self) -> Result<Notes, NnError> {
        self.rule.notes()
    }

    fn memory(&self) -> Result<Memory, NnError> {
        let mut memory = Memory {
            learners: vec![self.student.learner.save()?],
            drawn: self.order.drawn().to_vec(),
            selected: self.selections()?,
            values: Vec::new(),
        };
        self.rule.remember(&mut memory)?;
        Ok(memory)
    }

    fn recall(&mut self, memory: &Memory) -> Result<(), NnError> {
        recall_learners([&mut self.student.learner], memory)?;
        self.order.recall(memory)?;
        if let Some(selected) = &mut self.selected {
            selected.recall(memory)?;
        }
        self.rule.recall(memory)
    }

    fn findings(&mut self) -> Result<Findings, NnError> {
        let (mut course, rule) = self.course();
        let trust = match rule.trust(&mut course)? {
            Some(trust) => trust,
            None => frequencies(self.order.drawn(), &self.selections()?),
        };
        Ok(Findings {
            trust,
            tau: Vec::new(),
        })
    }
}
