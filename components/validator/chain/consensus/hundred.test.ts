import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import { quorum, signBytes } from '#core/ledger/consensus.ts';
import { GetCommitResponseSchema } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { buildCandidate } from '../../intake/verification/judge.ts';
import { parseSubmission } from '../../intake/verification/submission.ts';
import { bundleOf } from '../../network/peering/commit-cache.ts';
import { parseCommit } from '../../network/transport/parse.ts';
import { wireCommit } from '../../network/transport/wire.ts';
import { testKey } from '../../testing/keys.ts';
import { genesisSubmission } from '../../testing/submissions.ts';
import { buildDocket, docketValue } from '../building/docket.ts';
import { certificateOf, signable } from '../sealing/sign-bytes.ts';
import { genesisConfigOf, genesisState } from '../state/genesis.ts';
import { advance, beginHeight, createMachine } from './machine.ts';
import type { Machine } from './machine-state.ts';
import type { HeightRules } from './members.ts';
import type { Effect, Message, Value, Vote } from './messages.ts';

const size = 100;
const needed = 67;
const ids = Array.from({ length: size }, (_, place) => `validator-${String(place).padStart(3, '0')}`);
/** Every third member, so that heights with a silent proposer are among the first. */
const silent = new Set(ids.filter((_, place) => place % 3 === 0 && place < 99));
const awake = ids.filter((id) => !silent.has(id));

const valueAt = (height: number, round: number): Value => {
  const name = `${height}/${round}`;
  return { hash: `h${name}`, merkleRoot: `m${name}`, logRoot: `l${name}`, timestamp: `t${name}` };
};

/** The machines of the live members. Every message reaches all of them, and timers fire when no message is in flight. */
class Hundred {
  readonly machines = new Map<string, Machine>();
  readonly decisions = new Map<number, { value: Value; rounds: Set<number>; members: Set<string> }>();
  readonly #way: (() => void)[] = [];
  #alarms: { readonly atMs: number; readonly act: () => void }[] = [];
  #nowMs = 0;
  votes = 0;
  proposals = 0;
  /** Messages of other members that were delivered; each costs one verification. */
  received = 0;

  constructor() {
    for (const id of awake) this.machines.set(id, createMachine(this.#rules(id, 0)));
  }

  #rules(self: string, height: number): HeightRules {
    const timers = { proposeMs: 3_000, voteMs: 1_000, stepMs: 500 };
    return { height, self, members: ids, quorum: quorum(size), timers };
  }

  decide(heights: number): void {
    for (const id of awake) this.#feed(id, { kind: 'work' });
    while (this.machines.values().some((machine) => machine.rules.height < heights)) {
      const next = this.#way.shift();
      if (next !== undefined) next();
      else this.#fireTimers();
    }
  }

  #fireTimers(): void {
    const [first] = this.#alarms.toSorted((a, b) => a.atMs - b.atMs);
    if (first === undefined) throw new Error('nothing is on its way and no timer is set');
    this.#nowMs = first.atMs;
    const due = this.#alarms.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#alarms = this.#alarms.filter(({ atMs }) => atMs > this.#nowMs);
    for (const { act } of due) act();
  }

  #feed(id: string, input: Parameters<typeof advance>[1]): void {
    const machine = this.machines.get(id);
    if (machine === undefined) return;
    for (const effect of advance(machine, input)) this.#perform(id, machine, effect);
  }

  #perform(id: string, machine: Machine, effect: Effect): void {
    if (effect.kind === 'build') {
      const { height, round } = effect;
      this.#way.push(() => this.#feed(id, { kind: 'built', round, value: valueAt(height, round) }));
    } else if (effect.kind === 'judge') {
      const { round, value } = effect.proposal;
      this.#way.push(() => this.#feed(id, { kind: 'judged', round, hash: value.hash, verdict: 'valid' }));
    } else if (effect.kind === 'sign') {
      this.#say(id, effect.message);
    } else if (effect.kind === 'schedule') {
      const { height, round, step, afterMs } = effect;
      const act = () => this.#feed(id, { kind: 'timeout', height, round, step });
      this.#alarms.push({ atMs: this.#nowMs + afterMs, act });
    } else if (effect.kind === 'decide') {
      this.#decided(id, machine, effect);
    } else {
      throw new Error(`${id}: ${effect.kind}`);
    }
  }

  #say(id: string, plain: Extract<Effect, { kind: 'sign' }>['message']): void {
    const own = { validatorId: id, signature: 's' };
    const message: Message =
      plain.kind === 'proposal'
        ? { ...plain, ...own }
        : { ...plain, timestamp: plain.timestamp ?? 'nil', ...own };
    // Sent to each other member, live or not.
    if (message.kind === 'proposal') this.proposals += size - 1;
    else this.votes += size - 1;
    for (const to of awake) {
      this.#way.push(() => {
        const { height } = this.machines.get(to)?.rules ?? { height: -1 };
        if (to !== id && message.height >= height) this.received += 1;
        this.#feed(to, { kind: 'message', message });
      });
    }
  }

  #decided(id: string, machine: Machine, effect: Extract<Effect, { kind: 'decide' }>): void {
    const { height, round, value, precommits } = effect;
    expect(new Set(precommits.map(({ validatorId }) => validatorId)).size).toBeGreaterThanOrEqual(needed);
    const known = this.decisions.get(height) ?? { value, rounds: new Set(), members: new Set() };
    this.decisions.set(height, known);
    expect(value).toEqual(known.value);
    known.rounds.add(round);
    known.members.add(id);
    for (const next of beginHeight(machine, this.#rules(id, height + 1))) this.#perform(id, machine, next);
    this.#way.push(() => this.#feed(id, { kind: 'work' }));
  }
}

describe('a set of a hundred', () => {
  test('decides with a third of it silent at a bounded cost per member and docket', () => {
    const heights = 4;
    const hundred = new Hundred();
    hundred.decide(heights);
    let rounds = 0;
    for (let height = 0; height < heights; height += 1) {
      const decision = hundred.decisions.get(height);
      expect(decision?.members.size).toBe(awake.length);
      // The proposer of round 0 is silent at heights 0 and 3; the following proposer never is.
      expect([...(decision?.rounds ?? [])]).toEqual([height % 3 === 0 ? 1 : 0]);
      rounds += height % 3 === 0 ? 2 : 1;
    }
    const perMember = (count: number) => Math.round(count / awake.length / rounds);
    process.stdout.write(
      `a set of ${size}, ${silent.size} silent: each member sends ${perMember(hundred.votes)} votes a round ` +
        `and verifies ${perMember(hundred.received)} messages of others\n`,
    );
    // A prevote and a precommit to and from each other member, and a proposal.
    expect(hundred.votes / awake.length).toBeLessThanOrEqual(2 * (size - 1) * rounds);
    expect(hundred.votes / awake.length).toBeGreaterThanOrEqual(2 * (size - 1) * heights);
    expect(hundred.received / awake.length).toBeLessThanOrEqual((2 * (awake.length - 1) + 1) * rounds);
    expect(hundred.proposals).toBe((size - 1) * heights);
  });

  test('decides nothing with one more silent member, and becomes quiescent', () => {
    const hundred = new Hundred();
    hundred.machines.delete(awake[0] ?? '');
    expect(hundred.machines.size).toBe(needed - 1);
    expect(() => hundred.decide(1)).toThrow('nothing is on its way and no timer is set');
    expect(hundred.decisions.size).toBe(0);
    expect(hundred.votes).toBe((needed - 1) * (size - 1));
  });

  test('begins, and its certificate of a hundred signatures verifies and fits the wire limits', () => {
    const verifier = createVerifier(nodeEd25519());
    const keys = new Map(ids.map((id, place) => [id, testKey(20 + place)]));
    const registerId = '0123456789abcdef0123456789abcdef';
    const networkId = 'test.chancery.local';
    const { text } = genesisSubmission({
      registerId,
      owner: testKey(1),
      system: testKey(9),
      validators: ids.map((validatorId, place) => ({ validatorId, key: testKey(20 + place) })),
      createdAtMs: Date.UTC(2026, 0, 1),
    });
    const submission = parseSubmission(text);
    const genesis = buildCandidate(submission, { maxTransactionBytes: 524_288, requireBoundTxId: false });
    const state = genesisState(genesis, networkId, verifier);
    const { members } = state;
    expect(members).toHaveLength(size);
    const docket = buildDocket(
      state,
      [{ ...genesis, exclusivePredecessor: false, replayKey: undefined, addedAtMs: 0 }],
      {
        validatorAddress: testKey(20).address,
        nowMicros: 0n,
        genesisConfig: genesisConfigOf(genesis.payload, networkId),
      },
    );
    const { header } = docket;
    const value = docketValue(header);
    const precommits = members.map(({ validatorId }): Vote => {
      const { timestamp } = value;
      const message = { kind: 'precommit', height: 0, round: 0, value, timestamp } as const;
      const bytes = signBytes(signable(state, message, timestamp));
      const signature = encodeBase64(keys.get(validatorId)?.sign(bytes) ?? new Uint8Array());
      return { ...message, validatorId, signature };
    });
    const certificate = certificateOf(state, { height: 0, round: 0, value, precommits });
    const context = { members, networkId, registerId, verifier, docket: header };
    expect(verifyCertificate(certificate, context)).toEqual([]);
    const few = { ...certificate, signatures: certificate.signatures.slice(0, needed - 1) };
    expect(verifyCertificate(few, context)).not.toEqual([]);
    const enough = { ...certificate, signatures: certificate.signatures.slice(0, needed) };
    expect(verifyCertificate(enough, context)).toEqual([]);
    const wire = create(GetCommitResponseSchema, wireCommit(bundleOf({ docket, certificate })));
    const bytes = toBinary(GetCommitResponseSchema, wire).length;
    process.stdout.write(
      `docket 0 of a set of ${size}: ${bytes} bytes as a commit, genesisConfig ${header.genesisConfig?.length}, ` +
        `certificate ${JSON.stringify(certificate).length}\n`,
    );
    // A gRPC message holds 16 MiB, a body at the register service 64 KiB of genesisConfig.
    expect(bytes).toBeLessThan(256 * 1024);
    expect(header.genesisConfig?.length).toBeLessThan(65_536);
    expect(parseCommit(wire)?.certificate).toEqual(certificate);
  });
});
