//! The simulation: a daemon, a session's writer, a second writer, and what befalls them.

use std::collections::{BTreeMap, VecDeque};

use super::disk::{Disk, Torn, Writer};
use super::rules::{Rules, Second};
use super::step::Step;
use super::story::{Ending, Entry, Flaw, Marker, Name, Outcome, Parent, What};
use super::turn::{Last, Turn};
use super::world::{Truth, World};

/// The most prompts of one world.
const PROMPTS_MAX: usize = 12;
/// The most prompts that wait in a session.
const QUEUE_MAX: usize = 5;
/// The names of a second daemon's prompts; its ledger is not this one.
const FOREIGN: [char; 3] = ['X', 'Y', 'Z'];

/// Runs the steps.
pub(super) fn simulate(rules: Rules, steps: &[Step]) -> World {
    let mut simulation = Simulation::new(rules);
    for step in steps {
        simulation.take(*step);
    }
    World { story: simulation.disk.into_story(), truth: simulation.truth }
}

struct Simulation {
    rules: Rules,
    disk: Disk,
    truth: BTreeMap<Name, Truth>,
    is_daemon_up: bool,
    /// The session's writer; none when its process is gone.
    writer: Option<Writer>,
    queue: VecDeque<Name>,
    running: Option<Turn>,
    /// The turn that ran into its deadline and was overtaken.
    overtaken: Option<Turn>,
    second: Option<(Writer, Option<Name>)>,
    seconds: usize,
}

impl Simulation {
    fn new(rules: Rules) -> Self {
        let disk = Disk::default();
        let writer = Some(disk.writer());
        Self {
            rules,
            disk,
            truth: BTreeMap::new(),
            is_daemon_up: true,
            writer,
            queue: VecDeque::new(),
            running: None,
            overtaken: None,
            second: None,
            seconds: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Wait(millis) => self.disk.wait(millis),
            Step::Submit { is_marked, is_again } => self.submit(is_marked, is_again),
            Step::Work(what) => self.work(what),
            Step::WorkOvertaken(what) => self.work_overtaken(what),
            Step::Finish { outcome, has_said, is_recorded, is_overtaken } => {
                let turn = if is_overtaken { &mut self.overtaken } else { &mut self.running };
                let is_result_first = self.rules.writes_result_first;
                turn.iter_mut().for_each(|turn| turn.end(outcome, has_said, is_recorded, is_result_first));
            }
            Step::Cancel => self.cancel(),
            Step::Deadline => self.run_into_deadline(),
            Step::Note(what) => {
                self.write(Entry::new(None, what));
            }
            Step::Rewind(prompts) => self.rewind(prompts),
            Step::Second(what) => self.second_writes(what),
            Step::SecondEnds => self.second = None,
            Step::Lose { is_whole_prompt } => self.disk.lose(is_whole_prompt),
            Step::Tear { after, thousandths } => self.disk.tear(after, thousandths),
            Step::KillDaemon => self.kill_daemon(),
            Step::Kill => self.kill(),
            Step::ShutDown { ends } => self.shut_down(usize::from(ends)),
            Step::Restart { settles } => self.restart(settles),
        }
        match self.disk.take_torn() {
            None => {}
            Some(Torn::Ledger) => self.kill_daemon(),
            Some(Torn::Transcript) => {
                self.kill();
                self.second = None;
            }
        }
    }

    fn submit(&mut self, is_marked: bool, is_again: bool) {
        if !self.is_daemon_up || self.queue.len() == QUEUE_MAX {
            return;
        }
        let Some(name) = (if is_again { self.name_to_use_again() } else { self.next_name() }) else { return };
        let marker = if is_marked { Marker::Tail } else { Marker::None };
        self.disk.admit(name, marker);
        self.truth.insert(name, Truth::Silent);
        self.queue.push_back(name);
    }

    fn next_name(&self) -> Option<Name> {
        let index = u8::try_from(self.truth.len()).ok().filter(|index| usize::from(*index) < PROMPTS_MAX)?;
        Name::new(char::from(b'A' + index))
    }

    fn name_to_use_again(&self) -> Option<Name> {
        let is_over =
            |name: &Name| [&self.running, &self.overtaken].into_iter().flatten().all(|turn| turn.prompt != *name);
        self.disk.last_settled().filter(is_over)
    }

    /// The running turn does the next thing; when there is none, the prompt that waits longest is dispatched.
    fn work(&mut self, what: What) {
        if self.writer.is_none() {
            return;
        }
        if self.running.is_none() && self.is_daemon_up {
            self.running = self.queue.pop_front().map(Turn::new);
        }
        if let Some(mut turn) = self.running.take() {
            turn.hear();
            self.running = self.go_on(turn, what);
        }
    }

    fn work_overtaken(&mut self, what: What) {
        if self.writer.is_some() {
            self.overtaken = self.overtaken.take().and_then(|turn| self.go_on(turn, what));
        }
    }

    /// One thing of a turn; the turn, unless that was its last.
    fn go_on(&mut self, mut turn: Turn, what: What) -> Option<Turn> {
        if turn.is_ending() {
            let last = turn.next_of_rest()?;
            self.write_last(&turn, last);
        } else if !turn.has_asked {
            self.ask(&mut turn);
        } else if turn.can_write(what) && self.write(Entry::new(Some(turn.prompt), what)) {
            turn.has_open_call = match what {
                What::Call | What::BlindCall => true,
                What::Tool => false,
                _ => turn.has_open_call,
            };
        }
        Some(turn)
    }

    fn ask(&mut self, turn: &mut Turn) {
        let mut entry = Entry::new(Some(turn.prompt), What::User);
        entry.flaws.extend((!self.rules.stamps).then_some(Flaw::Bare));
        turn.has_asked = self.write(entry);
        if turn.has_asked {
            let truth = match turn.is_wished {
                Some(true) => Truth::Wished,
                _ if turn.is_cancelling => Truth::Cancelling,
                _ => Truth::Running,
            };
            self.truth.insert(turn.prompt, truth);
        }
    }

    fn write_last(&mut self, turn: &Turn, last: Last) {
        let entry = |what| Entry::new(Some(turn.prompt), what);
        let truth = match last {
            Last::Tool => self.write(entry(What::Tool)).then_some(None),
            Last::Note => self.write(entry(What::Note)).then_some(None),
            Last::Answer { is_final } => self.write(entry(What::Answer)).then_some(is_final.then_some(Truth::Answered)),
            Last::Result(outcome) => self.write(entry(What::Result(outcome))).then_some(Some(Truth::Ended(outcome))),
            Last::Terminal(outcome) => {
                if self.is_daemon_up && !turn.is_released {
                    self.disk.end(turn.prompt, ending(outcome));
                }
                None
            }
        };
        if let Some(truth) = truth.flatten() {
            self.truth.insert(turn.prompt, truth);
        }
    }

    /// The session's writer writes; whether all of it got to the disk.
    fn write(&mut self, entry: Entry) -> bool {
        self.writer.as_mut().is_some_and(|writer| self.disk.write(writer, entry))
    }

    fn cancel(&mut self) {
        if !self.is_daemon_up {
            return;
        }
        match &mut self.running {
            // The daemon does not know yet what the turn is about to write.
            Some(turn) if self.rules.wishes && !turn.is_released => {
                if turn.is_wished.is_none() {
                    turn.is_wished = Some(self.disk.wish(turn.prompt));
                    let truth = self.truth.entry(turn.prompt).or_insert(Truth::Silent);
                    if *truth == Truth::Running && turn.is_wished == Some(true) {
                        *truth = Truth::Wished;
                    }
                }
            }
            Some(turn) if !turn.is_ending() => {
                turn.is_cancelling = true;
                let truth = self.truth.entry(turn.prompt).or_insert(Truth::Silent);
                if *truth == Truth::Running {
                    *truth = Truth::Cancelling;
                }
            }
            _ => {
                if let Some(name) = self.queue.pop_back() {
                    self.disk.end(name, Ending::Cancelled);
                }
            }
        }
    }

    fn run_into_deadline(&mut self) {
        let Some(name) = self.running.as_mut().filter(|_| self.is_daemon_up).and_then(Turn::release) else { return };
        self.disk.end(name, Ending::Deadline);
        if self.rules.overlaps && self.overtaken.is_none() {
            self.overtaken = self.running.take();
        }
    }

    /// Takes the branch back to before one of its last prompts. Only between turns.
    fn rewind(&mut self, prompts: usize) {
        let is_idle = self.running.is_none() && self.overtaken.is_none() && self.queue.is_empty();
        let Some(writer) = self.writer.as_mut().filter(|_| is_idle && self.is_daemon_up) else { return };
        let Some(before) = self.disk.before_prompt(writer, prompts) else { return };
        let entry = Entry { parent: before.map_or(Parent::Nobody, Parent::Record), ..Entry::new(None, What::Rewind) };
        self.disk.write(writer, entry);
    }

    fn second_writes(&mut self, what: What) {
        let Some((writer, name)) = &mut self.second else {
            self.seconds += 1;
            let letter = FOREIGN[self.seconds % FOREIGN.len()];
            let name = Name::new(letter).filter(|_| self.rules.second == Second::Stamped);
            let mut writer = self.disk.writer();
            self.disk.write(&mut writer, self.question(name));
            self.second = Some((writer, name));
            return;
        };
        // A turn result names its prompt, and who is not stamped has no name to give.
        if name.is_some() || !matches!(what, What::Result(_)) {
            self.disk.write(writer, Entry::new(*name, what));
        }
    }

    /// How the second program asks. Another daemon's client may ask nothing but a reminder.
    fn question(&self, name: Option<Name>) -> Entry {
        match self.rules.second {
            Second::Session => Entry::new(None, What::Job),
            Second::Stamped if self.seconds.is_multiple_of(4) => {
                Entry { flaws: vec![Flaw::Stamped], ..Entry::new(name, What::Reminder) }
            }
            _ => Entry::new(name, What::User),
        }
    }

    /// Without its daemon the session's writer goes on with its turn, or goes down with it.
    fn kill_daemon(&mut self) {
        self.is_daemon_up = false;
        self.queue.clear();
        if !self.rules.lingers {
            self.kill();
        }
    }

    fn kill(&mut self) {
        self.is_daemon_up = false;
        self.queue.clear();
        self.writer = None;
        self.running = None;
        self.overtaken = None;
    }

    /// Ends every prompt, the running one first, and stops. A daemon that is killed before it is through leaves its writer to
    /// itself.
    fn shut_down(&mut self, ends: usize) {
        if !self.is_daemon_up {
            return;
        }
        let running = self.running.as_mut().and_then(Turn::release);
        let names: Vec<_> = running.into_iter().chain(self.queue.drain(..)).collect();
        let is_through =
            names.iter().take(ends).all(|name| self.disk.end(*name, Ending::Shutdown)) && names.len() <= ends;
        if is_through { self.kill() } else { self.kill_daemon() }
    }

    /// What may be settled truthfully is settled, where the bits say so, and the daemon takes up the session anew.
    fn restart(&mut self, settles: u8) {
        if self.is_daemon_up {
            return;
        }
        self.kill();
        for (index, name) in self.disk.dangling().into_iter().enumerate() {
            let Some(ending) = self.truth.get(&name).copied().and_then(honest_ending) else { continue };
            if settles >> (index % 8) & 1 == 1 && !self.disk.end(name, ending) {
                return;
            }
        }
        self.is_daemon_up = true;
        self.writer = Some(self.disk.writer());
    }
}

/// The terminal that a sound load may give a prompt.
fn honest_ending(truth: Truth) -> Option<Ending> {
    match truth {
        Truth::Silent => None,
        Truth::Running | Truth::Cancelling => Some(Ending::Lost),
        Truth::Wished => Some(Ending::Cancelled),
        Truth::Answered => Some(Ending::Completed),
        Truth::Ended(outcome) => Some(ending(outcome)),
    }
}

fn ending(outcome: Outcome) -> Ending {
    match outcome {
        Outcome::Completed => Ending::Completed,
        Outcome::Cancelled => Ending::Cancelled,
        Outcome::Failed => Ending::Failed,
    }
}
