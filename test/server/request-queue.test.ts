import { expect, test } from '../support/jest.ts';
import { RequestQueue, Ticket } from '../../src/http/request-queue.ts';

/** A request whose body is received when the test calls receive(). */
class Arrival extends Ticket {
  isRejected = false;
  private listeners: (() => void)[] = [];

  constructor(
    arrivedAt: number,
    readonly start: () => void,
    private isWhole: boolean,
  ) {
    super(arrivedAt, true);
  }

  reject(): void {
    this.isRejected = true;
  }

  isReceived(): boolean {
    return this.isWhole;
  }

  onceReceived(listener: () => void): void {
    this.listeners.push(listener);
  }

  receive(): void {
    this.isWhole = true;
    for (const listener of this.listeners.splice(0)) listener();
  }
}

/** A queue on a clock and an event loop that the test drives. */
class Simulation {
  private time = 0;
  private callbacks: (() => void)[] = [];
  readonly queue = new RequestQueue(
    () => this.time,
    (work) => this.callbacks.push(work),
  );
  readonly started: number[] = [];
  readonly running: Ticket[] = [];
  rejected = 0;
  private arrivals = 0;

  constructor(
    max: number,
    /** Time in ms that the event loop works on each request when it is started. */
    private readonly work = 0,
  ) {
    this.queue.max = max;
  }

  /** Has requests arrive, and returns those that are not rejected at once. */
  arrive(count: number, isReceived = true): Arrival[] {
    const arrived: Arrival[] = [];
    for (let index = 0; index < count; index++) {
      if (this.queue.isFull()) {
        this.rejected++;
        continue;
      }
      const number = (this.arrivals += 1);
      const start = () => {
        this.time += this.work;
        this.started.push(number);
        this.running.push(ticket);
      };
      const ticket = new Arrival(this.time, start, isReceived);
      arrived.push(ticket);
      this.queue.add(ticket);
    }
    return arrived;
  }

  /** Has a request arrive for each, received in full or not, in one callback of the event loop. */
  arriveAtOnce(received: boolean[]): void {
    for (const isReceived of received) {
      const ticket: Arrival = new Arrival(
        this.time,
        () => {
          this.started.push(0);
          this.running.push(ticket);
        },
        isReceived,
      );
      this.queue.add(ticket);
    }
  }

  pass(ms: number): void {
    this.time += ms;
  }

  /** Runs one turn of the event loop. */
  turn(): void {
    for (let due = this.callbacks.length; due > 0; due--) this.callbacks.shift()?.();
  }

  /** Completes the oldest requests in progress, each after this time in ms. */
  complete(count: number, ms: number): void {
    for (const ticket of this.running.splice(0, count)) {
      this.time += ms;
      this.queue.remove(ticket, true);
    }
  }

  /** Runs until each request is completed after this time in ms. Returns the total time. */
  drain(ms: number): number {
    const began = this.time;
    while (this.queue.size > 0) {
      this.turn();
      this.complete(1, ms);
    }
    return this.time - began;
  }
}

test('a burst of as many requests as allowed is answered in full, in its order, however slow the machine is', () => {
  const simulation = new Simulation(1_000);
  simulation.arrive(500);
  for (let second = 0; second < 10; second++) {
    simulation.turn();
    simulation.complete(10, 100);
    simulation.arrive(50);
  }
  expect(simulation.drain(100)).toBeGreaterThan(60_000);
  expect(simulation.rejected).toBe(0);
  expect(simulation.started).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
});

test('the maximum is a bound in any case', () => {
  const simulation = new Simulation(100);
  simulation.arrive(150);
  expect([simulation.queue.size, simulation.rejected]).toEqual([100, 50]);
});

test('in a standing queue, requests wait for no longer than the target, and as many are answered as before', () => {
  const simulation = new Simulation(1_000);
  // 20 arrive in the time of 10.
  for (let step = 0; step < 300; step++) {
    simulation.arrive(20);
    simulation.turn();
    for (let each = 0; each < 10; each++) {
      simulation.complete(1, 10);
      simulation.turn();
    }
  }
  expect(simulation.rejected).toBeGreaterThan(1_000);
  expect(simulation.started.length).toBeGreaterThan(29 * 100);
  // 500 ms at 10 ms each, and those in progress.
  expect(simulation.queue.size).toBeLessThanOrEqual(50 + 128);
  simulation.drain(10);
  const { rejected } = simulation;
  simulation.arrive(1_000);
  expect(simulation.rejected).toBe(rejected);
});

test('a standing queue of quick requests has half of the maximum', () => {
  const simulation = new Simulation(1_000);
  for (let step = 0; step < 30; step++) {
    simulation.arrive(200);
    simulation.turn();
    for (let each = 0; each < 100; each++) {
      simulation.complete(1, 0.1);
      simulation.turn();
    }
  }
  simulation.arrive(200);
  expect(simulation.queue.size).toBe(500);
});

test('work on the event loop is spread over its turns, and is waiting like any other', () => {
  const simulation = new Simulation(1_000, 3);
  simulation.arrive(300);
  simulation.turn();
  expect(simulation.started.length).toBeGreaterThan(1);
  expect(simulation.started.length * 3).toBeLessThan(10);
  // Those 300 clients send the next request when they have a response.
  for (let turn = 0; turn < 600; turn++) {
    const done = simulation.running.length;
    simulation.complete(done, 0);
    simulation.arrive(done);
    simulation.turn();
  }
  expect(simulation.rejected).toBeGreaterThan(0);
});

test('a request with nothing ahead of it is started without a turn of the event loop, until the time of the turn is used up', () => {
  const simulation = new Simulation(1_000, 2);
  simulation.arrive(1);
  simulation.turn();
  simulation.arrive(300);
  expect(simulation.started.length).toBe(3);
  simulation.turn();
  expect(simulation.started.length).toBe(6);
});

test('fewer requests are in progress at a time while they are slow, and more when they are quick again', () => {
  const simulation = new Simulation(1_000);
  const inProgress = () => {
    simulation.arrive(200);
    simulation.turn();
    simulation.turn();
    return simulation.running.length;
  };
  expect(inProgress()).toBe(128);
  simulation.drain(600);
  expect(inProgress()).toBe(32);
  simulation.drain(0.1);
  simulation.arrive(200);
  simulation.drain(0.1);
  expect(inProgress()).toBe(128);
});

test('a request that waits for its body takes the place of no other', () => {
  const simulation = new Simulation(1_000);
  simulation.arrive(300, false);
  simulation.turn();
  simulation.turn();
  simulation.turn();
  simulation.arrive(1);
  simulation.turn();
  expect(simulation.started.length).toBe(301);
});

test('requests that wait for their bodies leave the queue to all others, and as many as the maximum may wait', () => {
  const simulation = new Simulation(100);
  const waiting = simulation.arrive(100, false);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  expect(simulation.started.length).toBe(100);
  expect(simulation.queue.isFull()).toBe(false);
  const [late] = simulation.arrive(1, false);
  const [whole] = simulation.arrive(1);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  expect([late?.isRejected, late?.state, whole?.state]).toEqual([true, 'outside', 'running']);
  if (waiting[0]) simulation.queue.remove(waiting[0], false);
  const [next] = simulation.arrive(1, false);
  simulation.turn();
  expect([next?.isRejected, next?.state]).toEqual([false, 'unreceived']);
});

test('a request whose body comes late is in progress from then on', () => {
  const simulation = new Simulation(1_000);
  const late = simulation.arrive(128, false);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  expect(simulation.started.length).toBe(128);
  for (const ticket of late) ticket.receive();
  simulation.arrive(10);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  expect(simulation.started.length).toBe(128);
  simulation.complete(10, 1);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  expect(simulation.started.length).toBe(138);
  simulation.complete(128, 1);
  expect([simulation.queue.size, simulation.running.length]).toEqual([0, 0]);
});

test('the time that a body took to come does not count as time in progress', () => {
  const simulation = new Simulation(1_000);
  const late = simulation.arrive(100, false);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  simulation.pass(20_000);
  for (const ticket of late) ticket.receive();
  simulation.complete(100, 0);
  simulation.arrive(200);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  expect(simulation.running.length).toBe(128);
});

test('the place of a request that waits for its body is given to the next one in the queue', () => {
  const simulation = new Simulation(1_000);
  simulation.arrive(127);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  // The first one is started as it arrives, within the time of a turn, and has the last place until
  // its body is found to be missing.
  simulation.arriveAtOnce([false, true]);
  for (let turn = 0; turn < 5; turn++) simulation.turn();
  expect(simulation.started.length).toBe(129);
});

test('an empty queue rejects nothing, however many requests were started before', () => {
  // Two are started in a turn.
  const simulation = new Simulation(100, 3);
  simulation.arrive(60);
  for (let turn = 0; turn < 25; turn++) simulation.turn();
  while (simulation.rejected === 0) {
    simulation.complete(2, 0);
    simulation.arrive(2);
    simulation.turn();
  }
  while (simulation.queue.size > simulation.running.length) simulation.turn();
  expect(simulation.running.length).toBeGreaterThanOrEqual(50);
  expect(simulation.queue.isFull()).toBe(false);
});

test('a request that its caller has started takes no place', () => {
  const simulation = new Simulation(1);
  const { queue } = simulation;
  const ticket = new Arrival(0, () => undefined, false);
  queue.addStarted(ticket);
  expect([queue.size, queue.isFull()]).toEqual([1, false]);
  queue.remove(ticket, true);
  expect(queue.size).toBe(0);
  // Nor does it free a place for requests that wait for their bodies.
  const waiting = [0, 1].flatMap(() => {
    const arrived = simulation.arrive(1, false);
    for (let turn = 0; turn < 3; turn++) simulation.turn();
    return arrived;
  });
  expect(waiting.map(({ isRejected }) => isRejected)).toEqual([false, true]);
});

test('a request whose client leaves before its turn is not started', () => {
  const { queue } = new Simulation(10);
  let starts = 0;
  const ticket = queue.issue(
    () => starts++,
    () => true,
  );
  queue.add(ticket);
  queue.remove(ticket, false);
  queue.remove(ticket, false);
  expect([queue.size, starts]).toEqual([0, 0]);
});

test('requests behind one whose start throws are started all the same', () => {
  const simulation = new Simulation(10);
  const failing = () => {
    throw new Error('start');
  };
  simulation.queue.add(simulation.queue.issue(failing, () => true));
  simulation.arrive(3);
  expect(() => simulation.turn()).toThrow('start');
  simulation.turn();
  simulation.turn();
  expect(simulation.started).toEqual([1, 2, 3]);
});
