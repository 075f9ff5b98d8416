//! Tests of the gate: against a model with one list, under random schedules, and under concurrency.

use std::sync::atomic::AtomicU64;

use futures::future::join_all;
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

use crate::admission::queue::*;

const UNLIMITED: Duration = Duration::MAX;
/// The budget of the model, in units.
const ALL: u64 = 64;
const SHORT: u64 = 8;

/// An event at the gate.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A caller asks for a number of units.
    Comes(usize, u64, u64),
    /// A holder returns its units.
    Ends(usize),
    /// A waiting request leaves.
    Leaves(usize),
    /// A holder asks for more units.
    Grows(usize, u64),
    /// A holder returns some of its units.
    Shrinks(usize, u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        2 => (0..4_usize, 0..5_u64, 1..SHORT + 1).prop_map(|(class, caller, units)| Event::Comes(class, caller, units)),
        2 => (0..4_usize, 0..5_u64, 1..80_u64).prop_map(|(class, caller, units)| Event::Comes(class, caller, units)),
        3 => (0..100_usize).prop_map(Event::Ends),
        1 => (0..100_usize).prop_map(Event::Leaves),
        3 => (0..100_usize, 1..20_u64).prop_map(|(which, units)| Event::Grows(which, units)),
        1 => (0..100_usize, 1..20_u64).prop_map(|(which, units)| Event::Shrinks(which, units)),
    ];
    proptest::collection::vec(event, 1..120)
}

/// The gate in its simplest form, without regard to speed.
#[derive(Debug, Default)]
struct Model {
    held: Vec<(u64, PermitRequest)>,
    line: Vec<(u64, PermitRequest)>,
}

impl Model {
    fn free(&self) -> u64 {
        ALL - self.held.iter().map(|(_, ask)| ask.units).sum::<u64>()
    }

    /// The units that a request of this class and size must leave free.
    fn left_by(ask: &PermitRequest) -> u64 {
        ALL / 16 * if ask.units > SHORT { 4 } else { ask.class.reserve() }
    }

    fn fits(&self, ask: &PermitRequest) -> bool {
        self.free() >= ask.units + Self::left_by(ask)
    }

    /// Whether a short request fits into the quarter that long ones leave to short ones.
    fn may_pass(&self, ask: &PermitRequest) -> bool {
        let short: u64 = self.held.iter().map(|(_, ask)| ask.units).filter(|units| *units <= SHORT).sum();
        ask.units <= SHORT && short + ask.units <= ALL / 4
    }

    fn in_flight(&self, place: usize) -> u64 {
        self.held.iter().filter(|(_, ask)| ask.place == place).map(|(_, ask)| ask.units).sum()
    }

    /// Whether a caller has more than three times what is left to its class.
    fn has_its_share(&self, ask: &PermitRequest) -> bool {
        self.has_its_share_beside(ask, 0)
    }

    /// The same, without `has` units of its request.
    fn has_its_share_beside(&self, ask: &PermitRequest, has: u64) -> bool {
        self.in_flight(ask.place) - has > 3 * (self.free() + has).saturating_sub(Self::left_by(ask))
    }

    fn let_in(&mut self) {
        let next = |model: &Self, short_alone: bool| {
            let may = (0..model.line.len()).filter(|&at| {
                let ask = &model.line[at].1;
                !(model.has_its_share(ask) || (short_alone && ask.units > SHORT))
            });
            may.min_by_key(|&at| {
                let (name, ask) = model.line[at];
                (ask.class, model.in_flight(ask.place), name)
            })
        };
        // First the next request, then short requests pass long ones, until nothing changes.
        let mut waiting = usize::MAX;
        while self.line.len() < waiting {
            waiting = self.line.len();
            for short_alone in [false, true] {
                while let Some(first) = next(self, short_alone) {
                    let ask = &self.line[first].1;
                    if !self.fits(ask) || (short_alone && !self.may_pass(ask)) {
                        break;
                    }
                    let one = self.line.remove(first);
                    self.held.push(one);
                }
            }
        }
    }
}

/// A request at the gate.
#[derive(Debug)]
enum Guest {
    In(PermitRequest),
    Waits(PendingPermit),
}

fn names(list: &[(u64, PermitRequest)]) -> Vec<u64> {
    let mut names: Vec<u64> = list.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

proptest! {
    #[test]
    fn the_gate_admits_the_same_requests_as_the_model(events in events()) {
        let gate = Arc::new(Gate::new(ALL, SHORT, UNLIMITED));
        let (mut model, mut guests) = (Model::default(), BTreeMap::new());
        for (name, event) in (0_u64..).zip(events) {
            match event {
                Event::Comes(class, caller, units) => {
                    let ask = gate.request(Priority::ALL[class], ClientBucket::numbered(caller), units);
                    prop_assert!(ask.units <= units && (ask.units > 0));
                    let guest = if gate.try_take(ask) {
                        Guest::In(ask)
                    } else {
                        Guest::Waits(gate.join(ask).unwrap())
                    };
                    guests.insert(name, guest);
                    model.line.push((name, ask));
                }
                Event::Ends(which) if !model.held.is_empty() => {
                    let (name, ask) = model.held.remove(which % model.held.len());
                    let Some(Guest::In(held)) = guests.remove(&name) else { panic!("{name} is not in") };
                    prop_assert_eq!(held, ask);
                    gate.release(ask);
                }
                Event::Leaves(which) if !model.line.is_empty() => {
                    let (name, _) = model.line.remove(which % model.line.len());
                    guests.remove(&name);
                }
                Event::Grows(which, units) if !model.held.is_empty() => {
                    let at = which % model.held.len();
                    let (name, ask) = model.held[at];
                    // Growth passes waiting requests, but takes nothing from the reserves for other classes, for other
                    // callers and, once the holder is long, for short requests.
                    let all = PermitRequest { units: ask.units + units, ..ask };
                    let has_its_share = model.has_its_share_beside(&all, ask.units);
                    let may = model.free() >= units + Model::left_by(&all) && !has_its_share;
                    let Some(Guest::In(held)) = guests.get_mut(&name) else { panic!("{name} is not in") };
                    prop_assert_eq!(gate.try_grow(held, units), may);
                    model.held[at].1.units += if may { units } else { 0 };
                    prop_assert_eq!(*held, model.held[at].1);
                }
                Event::Shrinks(which, units) if !model.held.is_empty() => {
                    let at = which % model.held.len();
                    let (name, ask) = &mut model.held[at];
                    let Some(Guest::In(held)) = guests.get_mut(name) else { panic!("{name} is not in") };
                    gate.shrink(held, units);
                    ask.units = ask.units.saturating_sub(units);
                    prop_assert_eq!(held, ask);
                }
                Event::Ends(_) | Event::Leaves(_) | Event::Grows(..) | Event::Shrinks(..) => continue,
            }
            model.let_in();
            for guest in guests.values_mut() {
                if let Guest::Waits(turn) = guest
                    && turn.let_in.try_recv().is_ok()
                {
                    turn.is_over = true;
                    *guest = Guest::In(turn.ask);
                }
            }
            let inside: Vec<u64> =
                guests.iter().filter(|(_, guest)| matches!(guest, Guest::In(_))).map(|(name, _)| *name).collect();
            prop_assert_eq!(&inside, &names(&model.held), "after {:?}", event);
            prop_assert_eq!(gate.free(), model.free());
            prop_assert_eq!(gate.waiting(), model.line.len());
        }
        // All holders end, and so do the requests admitted then: no request and no unit is lost.
        drop(guests.extract_if(.., |_, guest| matches!(guest, Guest::Waits(_))).collect::<Vec<_>>());
        for guest in guests.into_values() {
            let Guest::In(ask) = guest else { continue };
            gate.release(ask);
        }
        prop_assert_eq!((gate.free(), gate.waiting()), (ALL, 0));
        prop_assert_eq!(gate.long.load(Ordering::Relaxed), 0);
        prop_assert!(gate.in_flight.iter().all(|units| units.load(Ordering::Relaxed) == 0));
    }
}

/// Takes units, holds them for a while, and returns them; returns whether the request was admitted within `max_wait`.
async fn visit(gate: &Arc<Gate>, ask: PermitRequest, max_wait: Duration, hold: Duration) -> bool {
    if !gate.try_take(ask) {
        let Some(turn) = gate.join(ask) else { return false };
        if timeout(max_wait, turn.wait()).await.is_err() {
            return false;
        }
    }
    sleep(hold).await;
    gate.release(ask);
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_lose_no_units() {
    let gate = Arc::new(Gate::new(64, 8, UNLIMITED));
    let (inside, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let visitors = (0..64_u64).map(|caller| {
        let (gate, inside, most) = (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&most));
        tokio::spawn(async move {
            for round in 0..200_u64 {
                let class = Priority::ALL[usize::try_from((caller + round) % 4).unwrap()];
                let ask = gate.request(
                    class,
                    ClientBucket::numbered(caller % 7),
                    1 + (caller * 31 + round * 17) % 30,
                );
                if !gate.try_take(ask) {
                    let turn = gate.join(ask).unwrap();
                    if round % 3 == 0 {
                        // It leaves before its turn, or just as its turn comes.
                        let _ = timeout(Duration::from_micros(round), turn.wait())
                            .await
                            .map(|ask| gate.release(ask));
                        continue;
                    }
                    turn.wait().await;
                }
                let mut ask = ask;
                most.fetch_max(inside.fetch_add(ask.units, Ordering::SeqCst) + ask.units, Ordering::SeqCst);
                if gate.try_grow(&mut ask, round % 5) {
                    let inside = inside.fetch_add(round % 5, Ordering::SeqCst) + round % 5;
                    most.fetch_max(inside, Ordering::SeqCst);
                }
                tokio::task::yield_now().await;
                inside.fetch_sub(ask.units, Ordering::SeqCst);
                if round % 2 == 0 {
                    gate.shrink(&mut ask, round % 7);
                }
                gate.release(ask);
            }
        })
    });
    for visitor in join_all(visitors).await {
        visitor.unwrap();
    }
    assert!((1..=64).contains(&most.load(Ordering::SeqCst)));
    assert_eq!((gate.free(), gate.waiting(), gate.long.load(Ordering::Relaxed)), (64, 0, 0));
    assert!(gate.in_flight.iter().all(|units| units.load(Ordering::Relaxed) == 0));
}

/// How often one caller is served within a minute, beside `others` concurrent requests of another caller.
async fn served_beside(others: u64) -> u32 {
    let gate = Arc::new(Gate::new(16, 16, UNLIMITED));
    let ask = |caller| gate.request(Priority::Metadata, ClientBucket::numbered(caller), 1);
    // Of different lengths, so that they do not all end at once.
    let hold = |number: u64| Duration::from_millis(20 + number * 7 % 13);
    let greedy = async {
        join_all((0..others).map(|other| {
            let (gate, ask) = (&gate, ask(1));
            async move {
                for round in 0_u64.. {
                    visit(gate, ask, UNLIMITED, hold(other + round)).await;
                }
            }
        }))
        .await;
        std::future::pending::<()>().await;
    };
    let modest = async {
        let mut served = 0;
        for round in 0..1000 {
            served += u32::from(visit(&gate, ask(2), UNLIMITED, hold(round)).await);
        }
        served
    };
    let began = Instant::now();
    let served = tokio::select! {
        served = modest => served,
        () = greedy => 0,
    };
    // Scaled to a minute.
    let millis = u32::try_from(began.elapsed().as_millis()).unwrap();
    served * 60_000 / millis
}

#[tokio::test(start_paused = true)]
async fn a_caller_keeps_four_fifths_of_its_throughput_beside_one_with_a_hundred_times_its_load() {
    let (alone, beside) = (served_beside(0).await, served_beside(100).await);
    assert!(alone > 1000, "{alone}");
    assert!(beside * 5 >= alone * 4, "{beside} of {alone}");
}

#[tokio::test(start_paused = true)]
async fn classes_are_admitted_in_order_and_leave_the_reserve_to_those_before() {
    let gate = Arc::new(Gate::new(16, 16, UNLIMITED));
    let callers = std::cell::Cell::new(0);
    let ask = |class| gate.request(class, ClientBucket::numbered(callers.replace(callers.get() + 1)), 1);
    for (class, most) in [
        (Priority::Background, 13),
        (Priority::Elements, 1),
        (Priority::StoredBytes, 1),
        (Priority::Metadata, 1),
    ] {
        let taken = (0..16).take_while(|_| gate.try_take(ask(class))).count();
        assert_eq!(taken, most, "{class:?}");
    }
    let order = Mutex::new(Vec::new());
    let waiting =
        [Priority::Background, Priority::Elements, Priority::StoredBytes, Priority::Metadata].map(|class| {
            let turn = gate.join(ask(class)).unwrap();
            let order = &order;
            async move {
                turn.wait().await;
                order.lock().unwrap().push(class);
            }
        });
    let ends = async {
        for caller in 0..16 {
            sleep(Duration::from_millis(1)).await;
            gate.release(gate.request(Priority::Metadata, ClientBucket::numbered(caller), 1));
        }
    };
    futures::join!(join_all(waiting), ends);
    assert_eq!(*order.lock().unwrap(), Priority::ALL);
}

#[tokio::test(start_paused = true)]
async fn one_caller_that_never_returns_units_does_not_block_others() {
    let gate = Arc::new(Gate::new(1024, 8, Duration::from_millis(250)));
    let ask = |caller, units| gate.request(Priority::Elements, ClientBucket::numbered(caller), units);
    let all_it_can = |caller| (0..1024).take_while(|_| gate.try_take(ask(caller, 1))).count();
    assert_eq!(all_it_can(1), 673, "three quarters of what the class can have, and the unit beyond");
    // Its next requests wait in the queue, and others pass.
    let waits: Vec<_> = (0..100).map(|_| gate.join(ask(1, 1)).unwrap()).collect();
    // Units that return now and then give a drain rate; only callers above their share wait by it.
    for _ in 0..3 {
        sleep(DRAIN_RATE_WINDOW).await;
        gate.release(ask(1, 1));
    }
    assert!(gate.would_exceed_wait(ask(1, 1)));
    for caller in 2..6 {
        assert!(!gate.would_exceed_wait(ask(caller, 1)), "{caller}");
        let turn = gate.join(ask(caller, 1)).unwrap();
        timeout(Duration::ZERO, turn.wait()).await.expect("no wait");
    }
    assert_eq!(gate.waiting(), waits.len() - 3, "as many were admitted as ended");
}

/// Any number of callers hold long requests without end, and more long requests wait.
#[tokio::test(start_paused = true)]
async fn short_requests_of_every_class_are_admitted_beside_endless_long_ones() {
    for held in Priority::ALL {
        let gate = Arc::new(Gate::new(1024, 8, Duration::ZERO));
        let long = |caller| gate.request(held, ClientBucket::numbered(caller), 128);
        let taken = (0..20).filter(|caller| gate.try_take(long(*caller))).count();
        assert_eq!(taken, 6, "three quarters of all");
        let _waits: Vec<_> = (20..40).map(|caller| gate.join(long(caller)).unwrap()).collect();
        // Short requests that end give a drain rate, by which long ones would wait without end.
        for round in 0..40 {
            for class in Priority::ALL {
                let ask = gate.request(class, ClientBucket::numbered(100 + round), 8);
                assert!(!gate.would_exceed_wait(ask), "{class:?} in round {round}");
                let turn = gate.join(ask).unwrap();
                timeout(Duration::ZERO, turn.wait()).await.expect("no wait");
                sleep(DRAIN_RATE_WINDOW / 3).await;
                gate.release(ask);
            }
        }
        assert_eq!(gate.waiting(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_series_of_short_requests_does_not_block_long_ones() {
    let gate = Arc::new(Gate::new(1024, 8, UNLIMITED));
    let short = |caller| gate.request(Priority::Elements, ClientBucket::numbered(caller), 8);
    let callers = std::cell::Cell::new(0);
    let visit = || async {
        loop {
            let caller = callers.replace(callers.get() + 1);
            visit(&gate, short(caller), UNLIMITED, Duration::from_millis(10)).await;
        }
    };
    // Twice as many at a time as fit.
    let flood = join_all((0..256).map(|_| visit()));
    let long = async {
        sleep(Duration::from_millis(100)).await;
        assert!(gate.waiting() > 100);
        for caller in 0..50 {
            let ask = gate.request(Priority::Elements, ClientBucket::numbered(1_000_000 + caller), 256);
            assert!(visit_once(&gate, ask).await, "{caller}");
        }
    };
    tokio::select! {
        _ = flood => unreachable!(),
        () = long => {}
    }
}

/// Whether a request was admitted within a second.
async fn visit_once(gate: &Arc<Gate>, ask: PermitRequest) -> bool {
    visit(gate, ask, Duration::from_secs(1), Duration::from_millis(10)).await
}

#[tokio::test(start_paused = true)]
async fn a_request_that_would_wait_too_long_is_rejected_at_once() {
    let max_wait = Duration::from_secs(1);
    let gate = Arc::new(Gate::new(16, 16, max_wait));
    let ask = |caller| gate.request(Priority::Metadata, ClientBucket::numbered(caller), 1);
    // Sixteen per tenth of a second; each request of the first caller would wait for those before it.
    let hold = Duration::from_millis(100);
    let greedy = join_all((0..400).map(|_| visit(&gate, ask(1), UNLIMITED, hold)));
    let asks = async {
        sleep(Duration::from_millis(450)).await;
        let began = Instant::now();
        assert!(gate.waiting() > 300);
        assert!(gate.join(ask(1)).is_none(), "behind all requests of its own");
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(gate.would_exceed_wait(ask(1)), "and is rejected before it joins");
        assert!(gate.join(ask(2)).is_some(), "ahead of them");
        assert!(!gate.would_exceed_wait(ask(2)));
        assert!(visit(&gate, ask(2), max_wait, hold).await);
    };
    let (served, ()) = tokio::join!(greedy, asks);
    assert!(served.iter().all(|is_served| *is_served));
    assert_eq!((gate.free(), gate.waiting()), (16, 0));
    assert!(!gate.would_exceed_wait(ask(1)), "the queue is empty");
}

#[tokio::test(start_paused = true)]
async fn no_request_is_rejected_for_few_units_that_return_first() {
    let max_wait = Duration::from_millis(250);
    let gate = Arc::new(Gate::new(1024, 1024, max_wait));
    let ask = |caller, units| gate.request(Priority::Metadata, ClientBucket::numbered(caller), units);
    let holders = [ask(1, 511), ask(2, 512), ask(3, 1)];
    assert!(holders.iter().all(|holder| gate.try_take(*holder)));
    let first = gate.join(ask(4, 64)).unwrap();
    // Until now one unit was returned in all this time.
    sleep(DRAIN_RATE_WINDOW).await;
    gate.release(holders[2]);
    let second = gate.join(ask(5, 64)).expect("nothing is known of the other holders");
    gate.release(holders[0]);
    for turn in [first, second] {
        gate.release(timeout(Duration::ZERO, turn.wait()).await.expect("no wait"));
    }
    // A holder that returns little for as long as a request may wait does delay others.
    sleep(DRAIN_RATE_MAX_AGE * 2).await;
    assert!(gate.try_take(ask(6, 511)));
    let _waits = gate.join(ask(4, 64)).unwrap();
    for _ in 0..3 {
        sleep(DRAIN_RATE_WINDOW).await;
        gate.release(ask(6, 1));
    }
    assert!(gate.join(ask(5, 64)).is_none());
}

/// Slow readers of all of a budget leave at once while others wait for them.
#[tokio::test(start_paused = true)]
async fn once_slow_readers_have_left_no_request_is_rejected() {
    let max_wait = Duration::from_millis(250);
    let gate = Arc::new(Gate::new(8, 8, max_wait));
    let ask = |caller| gate.request(Priority::Metadata, ClientBucket::numbered(caller), 1);
    let readers: Vec<_> = (0..8).map(ask).collect();
    assert!(readers.iter().all(|reader| gate.try_take(*reader)));
    let waits = [gate.join(ask(8)).unwrap(), gate.join(ask(9)).unwrap()];
    sleep(max_wait + DRAIN_RATE_WINDOW).await;
    for reader in readers {
        gate.release(reader);
    }
    for turn in waits {
        gate.release(timeout(Duration::ZERO, turn.wait()).await.expect("no wait"));
    }
    for burst in 0..3 {
        sleep(DRAIN_RATE_WINDOW).await;
        let callers = (0..40).map(|caller| visit_once(&gate, ask(10 + 40 * burst + caller)));
        assert!(join_all(callers).await.iter().all(|is_served| *is_served), "burst {burst}");
    }
}

#[test]
fn a_drain_rate_stays_valid_for_a_second_without_waiters() {
    let start = Instant::now();
    for (idle, is_believed) in
        [(DRAIN_RATE_MAX_AGE, true), (DRAIN_RATE_MAX_AGE + Duration::from_millis(1), false)]
    {
        let mut pace = DrainRate::new(1, Duration::ZERO);
        pace.update(start);
        pace.add(5);
        pace.update(start + DRAIN_RATE_WINDOW);
        assert_eq!(pace.per_second, Some(50));
        let end = start + DRAIN_RATE_WINDOW * 3;
        pace.rest(end);
        pace.update(end + idle);
        assert_eq!(pace.per_second, is_believed.then_some(50));
        // The time in which the queue was empty is in no window.
        pace.add(7);
        pace.update(end + idle + DRAIN_RATE_WINDOW);
        assert_eq!(pace.per_second, Some(if is_believed { 60 } else { 70 }));
    }
}
