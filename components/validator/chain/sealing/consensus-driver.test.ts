import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { Scheduler } from '#kit/clock/timers.ts';
import { World } from '../../testing/world.ts';
import { bft1 } from '../consensus/bft1.ts';
import type { Effect, Evidence, Input, Vote } from '../consensus/messages.ts';
import type { LogRecord } from '../records/entries.ts';
import { ConsensusDriver, type ConsensusDriverOptions } from './consensus-driver.ts';
import type { Peers } from './peers.ts';

const world = new World();
beforeAll(async () => {
  await world.open();
  await world.begin();
});
afterAll(() => world.remove());

/** A driver whose machine answers work with the given effects; `append` ends when the test says so. */
function open(effects: readonly Effect[], onEvidence: (driver: ConsensusDriver) => void = () => {}) {
  const inputs: Input[] = [];
  const appended: LogRecord[] = [];
  const written = Promise.withResolvers<number>();
  const { signer, runtime } = world;
  const clock = manualClock(0);
  const options: ConsensusDriverOptions = {
    self: 'validator-0',
    signer,
    scheduler: new Scheduler(clock),
    clock,
    peers: { broadcast: () => {}, isAbsent: () => false } as Partial<Peers> as Peers,
    log: runtime.log,
    consensus: {
      ...bft1(),
      advance: (_machine, input) => {
        inputs.push(input);
        return input.kind === 'work' ? [...effects] : [];
      },
    },
    append: (record) => {
      appended.push(record);
      return written.promise;
    },
    build: () => undefined,
    judge: () => [],
    onDecided: () => {},
    draftAttestation: () => {
      throw new Error('a vote decides nothing here');
    },
    onEvidence: () => onEvidence(driver),
    onInvalid: () => {},
    onFailed: (error) => {
      throw error;
    },
  };
  const driver: ConsensusDriver = new ConsensusDriver(options, world.register.state);
  return { driver, inputs, appended, written };
}

const nilVote = () =>
  ({
    kind: 'sign',
    message: {
      kind: 'prevote',
      height: world.register.state.height,
      round: 0,
      value: undefined,
      timestamp: undefined,
    },
  }) as const;
const vote = { kind: 'prevote', height: 1, round: 0, validatorId: 'validator-1' } as Partial<Vote> as Vote;
const evidence = { kind: 'duplicate-vote', first: vote, second: vote } as Evidence;

/** Completes everything that needs no external event. */
async function nextTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('a halt that an effect causes', () => {
  it('is seen by the effects and inputs that follow it', () => {
    const { driver, inputs, appended } = open([{ kind: 'evidence', evidence }, nilVote()], (halted) => {
      halted.receive(vote, undefined);
      halted.stop();
    });
    driver.work();
    expect(inputs).toEqual([{ kind: 'work' }]);
    expect(appended).toEqual([]);
  });

  it('is seen by a message that is being logged: it is not signed', async () => {
    const halted = open([nilVote()]);
    const before = world.signer.signed.length;
    halted.driver.work();
    expect(halted.appended).toMatchObject([{ kind: 'own' }]);
    halted.driver.stop();
    halted.written.resolve(1);
    await nextTurns();
    expect(world.signer.signed).toHaveLength(before);
    const running = open([nilVote()]);
    running.driver.work();
    running.written.resolve(1);
    await nextTurns();
    expect(world.signer.signed).toHaveLength(before + 1);
  });
});
