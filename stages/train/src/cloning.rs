use std::ops::Range;

use provenir_nn::{Ensemble, NnError, Repeated, Shape};
use provenir_random::Stream;
use tch::{Kind, Tensor};

use crate::data::Data;
use crate::learner::Descent;
use crate::method::{Findings, Memory, Method, Notes, Stretch, Trace, frequencies, recall_learners};
use crate::order::{Order, Selected};
use crate::rounds::Rounds;
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

/// What minibatches are to a method of learning from them: all that is special to it. Whatever it is told and gives is of its
/// own policies, which are K here.
pub(crate) trait Rule {
    /// Whether only some samples of a minibatch give a gradient.
    fn selects(&self) -> bool {
        false
    }

    /// Prepares an epoch, counted from 0.
    fn begin_epoch(&mut self, _: u64, _: &Course<'_>) -> Result<(), NnError> {
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
    fn judge(&mut self, batch: &mut Batch) -> Result<Verdict, NnError>;

    /// What there is to note of each policy at the end of an epoch.
    fn notes(&self) -> Result<Notes, NnError> {
        Ok(Notes::default())
    }

    /// How much each sample is to be trusted under the finished policies, `[K · N]`; nothing where that is how often it
    /// gave a gradient when it was drawn.
    fn trust(&mut self, _: &Course<'_>) -> Result<Option<Vec<f64>>, NnError> {
        Ok(None)
    }

    /// Adds what the rule itself has learnt of each policy.
    fn remember(&self, _: &mut [Memory]) -> Result<(), NnError> {
        Ok(())
    }

    /// Takes it back.
    fn recall(&mut self, _: &[Memory]) -> Result<(), NnError> {
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

/// What a rule may look at at the start of an epoch and at the end: its policies, as if there were no others.
pub(crate) struct Course<'a> {
    pub(crate) data: &'a Data,
    pub(crate) ensemble: &'a Ensemble,
    /// Streams of the networks.
    pub(crate) networks: &'a [Stream],
    order: &'a Order,
    /// The first network among all.
    first: usize,
}

impl Course<'_> {
    /// What each network is off at every sample of its data set.
    pub(crate) fn residuals(&self) -> Result<Residuals, NnError> {
        Sweep::new(self.ensemble, self.data)?.residuals(self.ensemble)
    }

    /// The samples that a network may use.
    pub(crate) fn pool(&self, network: usize) -> Vec<usize> {
        self.order.pool(self.first + network)
    }
}

/// A rule, and which policies it is for.
pub(crate) struct Share {
    members: Range<usize>,
    rule: Box<dyn Rule>,
    /// Their data sets.
    data: Data,
}

impl Share {
    /// The rule is made for the data sets of the policies.
    pub(crate) fn new<R: Rule + 'static>(
        members: Range<usize>,
        data: &Data,
        rule: impl FnOnce(&Data) -> Result<R, NnError>,
    ) -> Result<Self, NnError> {
        let data = data.part(&members)?;
        Ok(Self {
            rule: Box::new(rule(&data)?),
            members,
            data,
        })
    }

    fn networks(&self, committee: usize) -> Range<usize> {
        self.members.start * committee..self.members.end * committee
    }

    /// Where its samples are among all.
    fn samples(&self) -> Range<usize> {
        self.members.start * self.data.samples..self.members.end * self.data.samples
    }
}

/// Learning from minibatches in an order that is drawn for every epoch: the policies take their steps together, and each
/// follows a rule.
pub(crate) struct Cloning<'a> {
    data: &'a Data,
    /// M
    committee: usize,
    rounds: Rounds,
    /// Streams of the networks.
    networks: Vec<Stream>,
    order: Order,
    student: Student,
    /// Where a rule selects.
    selected: Option<Selected>,
    /// Policy after policy.
    shares: Vec<Share>,
    trace: Trace,
    /// Minibatches of either size, and the rules' variants.
    repeated: Repeated<(usize, Vec<u8>)>,
}

impl<'a> Cloning<'a> {
    /// Policies at their initial values, of `committee` networks each, all of which follow one rule.
    pub(crate) fn new<R: Rule + 'static>(
        setting: &Setting<'a>,
        committee: usize,
        rule: impl FnOnce(&Data) -> Result<R, NnError>,
    ) -> Result<Self, NnError> {
        let all = Share::new(0..setting.data.members, setting.data, rule)?;
        Self::shared(setting, committee, vec![all])
    }

    /// As [`Cloning::new`], where the rules of these shares, which stand policy after policy, are for all.
    pub(crate) fn shared(
        setting: &Setting<'a>,
        committee: usize,
        shares: Vec<Share>,
    ) -> Result<Self, NnError> {
        let data = setting.data;
        let members = shares.iter().flat_map(|share| share.members.clone());
        assert!(members.eq(0..data.members), "a rule for each policy");
        let repeated = Repeated::new(data.device())?;
        let networks = setting.networks(committee);
        let order = setting.order(committee)?;
        let student = setting.student(&networks, "policy", &order)?;
        let selects = shares.iter().any(|share| share.rule.selects());
        Ok(Self {
            data,
            committee,
            rounds: Rounds {
                count: 1,
                epochs: setting.epochs,
            },
            selected: selects
                .then(|| Selected::new(data.members * data.samples, data.device()))
                .transpose()?,
            networks,
            order,
            student,
            shares,
            trace: Trace::new(data.members, data.device())?,
            repeated,
        })
    }

    /// From now on the policies begin anew with every round.
    pub(crate) fn in_rounds(mut self, rounds: Rounds) -> Self {
        self.rounds = rounds;
        self
    }

    /// From now on the networks from this one on use these samples alone.
    pub(crate) fn restrict(&mut self, first: usize, pools: Vec<Vec<usize>>) {
        self.order.restrict(first, pools);
    }

    /// What each network is off at every sample of its data set.
    pub(crate) fn residuals(&self) -> Result<Residuals, NnError> {
        Sweep::new(self.student.ensemble(), self.data)?.residuals(self.student.ensemble())
    }

    /// Calls `attend` with each rule, what it may look at, and where its samples are among all.
    fn each_course(
        &mut self,
        mut attend: impl FnMut(&mut dyn Rule, &Course<'_>, Range<usize>) -> Result<(), NnError>,
    ) -> Result<(), NnError> {
        for share in &mut self.shares {
            let (networks, samples) = (share.networks(self.committee), share.samples());
            let course = Course {
                data: &share.data,
                ensemble: &self.student.ensemble().part(&networks)?,
                networks: &self.networks[networks.clone()],
                order: &self.order,
                first: networks.start,
            };
            attend(share.rule.as_mut(), &course, samples)?;
        }
        Ok(())
    }

    /// How often each sample gave a gradient, `[K · N]`.
    fn selections(&self) -> Result<Vec<u64>, NnError> {
        let mut counts = self.order.drawn().to_vec();
        if let Some(selected) = &self.selected {
            let selected = selected.counts()?;
            for share in self.shares.iter().filter(|share| share.rule.selects()) {
                counts[share.samples()].copy_from_slice(&selected[share.samples()]);
            }
        }
        Ok(counts)
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

impl Method for Cloning<'_> {
    fn policies(&self) -> &Ensemble {
        self.student.ensemble()
    }

    fn committee(&self) -> usize {
        self.committee
    }

    fn span(&self, epoch: u64, _: u64) -> Range<u64> {
        self.rounds.span(epoch)
    }

    fn begin_epoch(&mut self, epoch: u64) -> Result<(), NnError> {
        self.each_course(|rule, course, _| rule.begin_epoch(epoch, course))?;
        if let Some(round) = self.rounds.next(epoch) {
            let initial = initial(&self.networks, "policy", round);
            self.student.learner.begin_anew(&initial)?;
        }
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
        for share in &mut self.shares {
            let networks = share.networks(self.committee);
            let own: Vec<Vec<f64>> = rates
                .iter()
                .map(|rates| rates[networks.clone()].to_vec())
                .collect();
            share.rule.announce(&own)?;
        }
        Ok(())
    }

    fn step(&mut self, within: usize) -> Result<(), NnError> {
        let place = self.order.load(within)?;
        self.student.learner.advance()?;
        for share in &mut self.shares {
            share.rule.advance()?;
        }
        let variants = self.shares.iter().map(|share| share.rule.variant()).collect();
        let Self {
            data,
            committee,
            order,
            student,
            selected,
            shares,
            trace,
            repeated,
            ..
        } = self;
        let index = order.minibatch(place);
        repeated.run((place, variants), || {
            let batch = student.pass(data, index)?;
            for share in &mut *shares {
                let mut own = batch.part(&share.networks(*committee), share.samples().start)?;
                let Verdict {
                    loss,
                    selected: flags,
                } = share.rule.judge(&mut own)?;
                if let (Some(selected), Some(flags)) = (selected.as_mut(), flags) {
                    selected.add(&own.index, &flags.f_to_kind(Kind::Int64)?.f_reshape(-1)?)?;
                }
                let loss = of_policies(&loss, *committee)?;
                trace.note_part(Trace::LOSS, share.members.start, &loss)?;
            }
            let norm = student.descend(&batch)?;
            trace.note(Trace::NORM, &of_policies(norm, *committee)?)
        })?;
        self.student.learner.settle()?;
        for share in &mut self.shares {
            share.rule.settle()?;
        }
        Ok(())
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
        let mut notes = Notes::default();
        for share in &self.shares {
            let own = share.rule.notes()?;
            let all = [
                (&mut notes.sigma, own.sigma),
                (&mut notes.effective, own.effective),
            ];
            for (values, own) in all {
                values.extend(own);
                values.resize(share.members.end, None);
            }
        }
        Ok(notes)
    }

    fn memory(&self) -> Result<Vec<Memory>, NnError> {
        let learners = vec![self.student.learner.save()?];
        let mut memories = Memory::of_each(
            self.data.members,
            &learners,
            self.order.drawn(),
            &self.selections()?,
        );
        for share in &self.shares {
            share.rule.remember(&mut memories[share.members.clone()])?;
        }
        Ok(memories)
    }

    fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        recall_learners([&mut self.student.learner], memories)?;
        self.order.recall(memories)?;
        if let Some(selected) = &mut self.selected {
            selected.recall(memories)?;
        }
        for share in &mut self.shares {
            share.rule.recall(&memories[share.members.clone()])?;
        }
        Ok(())
    }

    fn findings(&mut self) -> Result<Findings, NnError> {
        let mut trust = frequencies(self.order.drawn(), &self.selections()?);
        self.each_course(|rule, course, samples| {
            if let Some(own) = rule.trust(course)? {
                trust[samples].copy_from_slice(&own);
            }
            Ok(())
        })?;
        Ok(Findings {
            trust,
            tau: Vec::new(),
        })
    }
}
