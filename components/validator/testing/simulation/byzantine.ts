import { encodeBase64 } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import { formatLedgerTimestamp, parseTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import { buildHeader } from '#core/ledger/docket.ts';
import type { Random } from '#kit/testing/random.ts';
import { docketValue } from '../../chain/building/docket.ts';
import type { UnsignedMessage, Value, Vote } from '../../chain/consensus/messages.ts';
import { signable } from '../../chain/sealing/sign-bytes.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import type {
  CommitBundle,
  Envelope,
  Inbox,
  ProposalEnvelope,
  Transport,
} from '../../network/transport/transport.ts';
import type { EventQueue } from './event-queue.ts';
import type { ByzantineBehaviour } from './scenario.ts';
import type { Signing } from './signing.ts';

export interface ByzantineOptions {
  readonly validatorId: string;
  readonly behaviours: readonly ByzantineBehaviour[];
  readonly members: readonly string[];
  readonly eventQueue: EventQueue;
  readonly random: Random;
  readonly signing: Signing;
  state(registerId: string): RegisterState | undefined;
  /** Called for every Byzantine act. */
  did(behaviour: ByzantineBehaviour): void;
}

const maxRemembered = 64;

/**
 * A Byzantine member. It runs a correct validator, so that it has all of its knowledge, and corrupts its outgoing messages and
 * answers. Its signatures are real; it has only its own key.
 */
export class Byzantine {
  readonly #options: ByzantineOptions;
  readonly #does: ReadonlySet<ByzantineBehaviour>;
  readonly #twins = new Map<string, ProposalEnvelope>();
  readonly #stamped = new Map<string, ProposalEnvelope>();
  readonly #values = new Map<string, Value>();
  #remembered: Envelope[] = [];

  constructor(options: ByzantineOptions) {
    this.#options = options;
    this.#does = new Set(options.behaviours);
  }

  transport(wire: Transport): Transport {
    return {
      send: (to, envelope) => this.#send(wire, to, envelope),
      fetchRecords: (...query) => wire.fetchRecords(...query),
      fetchCommit: (...query) => wire.fetchCommit(...query),
    };
  }

  inbox(inbox: Inbox, wire: Transport): Inbox {
    const { random } = this.#options;
    return {
      receive: (from, envelope) => {
        this.#hear(wire, envelope);
        inbox.receive(from, envelope);
      },
      connected: (peer) => inbox.connected(peer),
      records: (...query) => {
        const withheld = this.#does.has('withholds records') && random.chance(0.7);
        if (!withheld) return inbox.records(...query);
        this.#options.did('withholds records');
        return [];
      },
      commit: (from, registerId, height) => {
        if (!this.#does.has('lies about commits')) return inbox.commit(from, registerId, height);
        const shift = random.pick([-1, 0, 0, 0, 1]);
        const bundle = inbox.commit(from, registerId, Math.max(0, height + shift));
        if (bundle === undefined) return undefined;
        this.#options.did('lies about commits');
        return this.#spoil(bundle);
      },
    };
  }

  #send(wire: Transport, to: string, envelope: Envelope): void {
    const { eventQueue, random, did } = this.#options;
    this.#replay(wire, envelope);
    if (this.#does.has('withholds records') && envelope.kind === 'hint' && random.chance(0.8)) {
      did('withholds records');
      return;
    }
    if (this.#does.has('is late') && random.chance(0.4)) {
      did('is late');
      eventQueue.after(random.between(500, 15_000), () => wire.send(to, envelope));
      return;
    }
    if (envelope.kind === 'proposal') this.#propose(wire, to, envelope);
    else if (envelope.kind === 'vote') this.#vote(wire, to, envelope);
    else wire.send(to, envelope);
  }

  #replay(wire: Transport, envelope: Envelope): void {
    const { random, members, did } = this.#options;
    if (!this.#does.has('replays and relabels')) return;
    this.#remembered.push(envelope);
    this.#remembered = this.#remembered.slice(-maxRemembered);
    if (random.chance(0.2)) {
      did('replays and relabels');
      wire.send(random.pick(members), random.pick(this.#remembered));
    }
    const old = random.pick(this.#remembered);
    if (old.kind !== 'vote' || !random.chance(0.2)) return;
    const { vote } = old;
    const relabelled: Vote = random.pick([
      { ...vote, round: vote.round + 1 },
      { ...vote, height: vote.height + 1 },
      { ...vote, kind: vote.kind === 'prevote' ? 'precommit' : 'prevote' },
      { ...vote, validatorId: random.pick(members) },
    ]);
    wire.send(random.pick(members), { ...old, vote: relabelled });
  }

  #hear(wire: Transport, envelope: Envelope): void {
    if (envelope.kind !== 'proposal') return;
    this.#values.set(placeOf(envelope), envelope.proposal.value);
    if (!this.#does.has('votes for everything')) return;
    this.#options.did('votes for everything');
    this.#approve(wire, this.#options.members, envelope);
  }

  /** Sends both votes for a proposal after some time, regardless of earlier votes. */
  #approve(wire: Transport, receivers: readonly string[], { registerId, proposal }: ProposalEnvelope): void {
    const { eventQueue, random } = this.#options;
    const { height, round, value } = proposal;
    for (const kind of ['prevote', 'precommit'] as const) {
      const vote = this.#sign(registerId, { kind, height, round, value, timestamp: value.timestamp });
      if (vote === undefined) return;
      for (const to of receivers) {
        const send = () => wire.send(to, { kind: 'vote', registerId, vote });
        eventQueue.after(random.pick([0, 10, 1000]) * random.next(), send);
      }
    }
  }

  #propose(wire: Transport, to: string, given: ProposalEnvelope): void {
    const { random, validatorId, did } = this.#options;
    const isOwn = given.proposal.validatorId === validatorId;
    const envelope = (isOwn && this.#does.has('stamps wrongly') && this.#stamp(wire, given)) || given;
    this.#values.set(placeOf(envelope), envelope.proposal.value);
    const twin = isOwn && this.#does.has('proposes twice') ? this.#twin(envelope) : undefined;
    if (twin === undefined || random.chance(0.5)) {
      wire.send(to, envelope);
      return;
    }
    did('proposes twice');
    if (random.chance(0.1)) wire.send(to, envelope);
    wire.send(to, twin);
    this.#approve(wire, [to], twin);
  }

  /** Another docket at the same position: the same transactions with a later timestamp. */
  #twin(envelope: ProposalEnvelope): ProposalEnvelope | undefined {
    const place = placeOf(envelope);
    const known = this.#twins.get(place);
    if (known !== undefined) return known;
    const twin = this.#restamp(envelope, 1n);
    if (twin !== undefined) this.#twins.set(place, twin);
    return twin;
  }

  /**
   * The own docket with a timestamp at the bounds of timeliness, before its predecessor or far away, so that members whose
   * clocks differ within the allowed precision may judge it differently.
   */
  #stamp(wire: Transport, envelope: ProposalEnvelope): ProposalEnvelope | undefined {
    const { random, members, did } = this.#options;
    const place = placeOf(envelope);
    const known = this.#stamped.get(place);
    const state = this.#options.state(envelope.registerId);
    if (known !== undefined || state === undefined || envelope.proposal.polRound >= 0) return known;
    const { precisionMs, messageDelayMs } = state.rules;
    const nearMs = random.between(-300, 300);
    const byMs = random.pick([
      precisionMs + nearMs,
      -messageDelayMs - precisionMs + nearMs,
      -600_000,
      600_000,
      0,
    ]);
    const stamped = this.#restamp(envelope, byMs === 0 ? undefined : BigInt(Math.round(byMs * 1000)));
    if (stamped === undefined) return undefined;
    did('stamps wrongly');
    this.#stamped.set(place, stamped);
    this.#approve(wire, members, stamped);
    return stamped;
  }

  /** A proposal shifted by that many microseconds; undefined sets the timestamp of the previous docket. */
  #restamp(envelope: ProposalEnvelope, byMicros: bigint | undefined): ProposalEnvelope | undefined {
    const { header, proposal, recordHashes, registerId } = envelope;
    const { height, round, polRound } = proposal;
    const state = this.#options.state(registerId);
    if (state?.height !== height || height === 0) return undefined;
    const micros = (text: string) => ticksToMicros(parseTimestamp(text));
    const at = byMicros === undefined ? micros(state.headTimestamp) : micros(header.timestamp) + byMicros;
    const timestamp = formatLedgerTimestamp(at);
    const leaves = recordHashes.map((hash) => decodeHex(hash, 32));
    const other = buildHeader({ ...header, timestamp }, leaves, state.log);
    const value = docketValue(other);
    const message: UnsignedMessage = { kind: 'proposal', height, round, polRound, value };
    const signature = this.#signature(registerId, message, timestamp);
    if (signature === undefined) return undefined;
    return { ...envelope, header: other, proposal: { ...proposal, value, signature } };
  }

  #vote(wire: Transport, to: string, envelope: Extract<Envelope, { kind: 'vote' }>): void {
    const { random, validatorId, did } = this.#options;
    const { vote, registerId } = envelope;
    const mine = vote.validatorId === validatorId;
    if (mine && this.#does.has('votes nil')) {
      did('votes nil');
      const nil = this.#sign(registerId, { ...vote, value: undefined, timestamp: vote.timestamp });
      if (nil !== undefined) wire.send(to, { ...envelope, vote: nil });
      return;
    }
    if (mine && this.#does.has('votes twice') && random.chance(0.5)) {
      did('votes twice');
      const other = this.#values.get(`${registerId}/${vote.height}/${vote.round}`);
      const value = vote.value === undefined ? other : undefined;
      const timestamp = value === undefined ? vote.timestamp : value.timestamp;
      const second = this.#sign(registerId, { ...vote, value, timestamp });
      if (second !== undefined) wire.send(to, { ...envelope, vote: second });
      if (random.chance(0.5)) return;
    }
    wire.send(to, envelope);
  }

  #sign(
    registerId: string,
    vote: Omit<Vote, 'validatorId' | 'signature' | 'value'> & { value: Omit<Value, 'timestamp'> | undefined },
  ): Vote | undefined {
    const { kind, height, round, timestamp } = vote;
    const value = vote.value && {
      hash: vote.value.hash,
      merkleRoot: vote.value.merkleRoot,
      logRoot: vote.value.logRoot,
    };
    const signature = this.#signature(registerId, { kind, height, round, value, timestamp }, timestamp);
    if (signature === undefined) return undefined;
    return { kind, height, round, value, timestamp, validatorId: this.#options.validatorId, signature };
  }

  #signature(registerId: string, message: UnsignedMessage, timestamp: string): string | undefined {
    const { signing, validatorId } = this.#options;
    const state = this.#options.state(registerId);
    if (state === undefined) return undefined;
    return encodeBase64(signing.forge(validatorId, signable(state, message, timestamp)));
  }

  #spoil(bundle: CommitBundle): CommitBundle {
    const { certificate, header, recordHashes } = bundle;
    const { signatures } = certificate;
    const [first] = signatures;
    return this.#options.random.pick([
      bundle,
      { ...bundle, certificate: { ...certificate, signatures: signatures.slice(1) } },
      { ...bundle, certificate: { ...certificate, round: certificate.round + 1 } },
      { ...bundle, certificate: { ...certificate, signatures: first ? signatures.map(() => first) : [] } },
      { ...bundle, header: { ...header, timestamp: `${header.timestamp.slice(0, -7)}1+00:00` } },
      { ...bundle, recordHashes: [...recordHashes].reverse() },
      { ...bundle, recordHashes: recordHashes.slice(1) },
    ]);
  }
}

function placeOf({ registerId, proposal }: ProposalEnvelope): string {
  return `${registerId}/${proposal.height}/${proposal.round}`;
}
