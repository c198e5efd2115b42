import { AppError } from '#core/errors/errors.ts';
import type { Random } from '#kit/testing/random.ts';
import type { KeyPart } from '../../chain/keys/key-snapshot.ts';
import type { Ledger } from '../../chain/sealing/ports.ts';
import type { FakeLedger } from '../fake-ledger.ts';
import { keyParts } from '../key-parts.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';

/** `stale`: without the latest dockets; `truncated`: a part is missing; `foreign`: of another chain. */
const keyFaults = ['late', 'lost', 'stale', 'truncated', 'foreign', 'emptied'] as const;

/** The register service as validators reach it: with latency, outages and lost answers. */
export class RegisterService {
  readonly #ledger: Ledger;
  readonly #eventQueue: EventQueue;
  readonly #random: Random;
  readonly #keyRandom: Random;
  readonly #ledgers: ReadonlyMap<string, FakeLedger>;
  #awayUntilMs = 0;
  /** Share of snapshots of keys that are faulty. */
  keyFaults = 0;
  /** Share of calls that fail, before or after they took effect. */
  loss = 0;

  constructor(ledgers: ReadonlyMap<string, FakeLedger>, eventQueue: EventQueue, random: Random) {
    this.#ledger = together(ledgers);
    this.#eventQueue = eventQueue;
    this.#random = random;
    this.#keyRandom = random.fork('keys');
    this.#ledgers = ledgers;
  }

  goAway(forMs: number): void {
    this.#awayUntilMs = this.#eventQueue.elapsedMs + forMs;
  }

  /** The port of one validator process. */
  endpoint(handle: ProcessHandle): Ledger {
    return new Proxy<Ledger>(this.#ledger, {
      get: (ledger, name) => {
        const member: unknown = Reflect.get(ledger, name);
        if (name === 'readKeys') return (registerId: string) => this.#readKeys(handle, registerId);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]) => this.#call(handle, async () => Reflect.apply(member, ledger, given));
      },
    });
  }

  /** A snapshot of keys, which may be faulty. */
  async *#readKeys(handle: ProcessHandle, registerId: string): AsyncGenerator<KeyPart> {
    const random = this.#keyRandom;
    const fault = random.chance(this.keyFaults) ? random.pick(keyFaults) : undefined;
    const dockets = this.#ledgers.get(registerId)?.dockets ?? [];
    const parts = await this.#call(handle, async () => {
      const missing = fault === 'stale' ? random.whole(1, 4) : 0;
      return [...keyParts(dockets.slice(0, Math.max(0, dockets.length - missing)))];
    });
    const waitMs = fault === 'late' ? random.between(1000, 15_000) : random.between(1, 200);
    await new Promise<void>((resolve) => this.#eventQueue.after(waitMs, resolve, handle));
    if (fault === 'lost')
      throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'The register service is away');
    const kept = fault === 'truncated' ? random.whole(0, parts.length - 1) : parts.length;
    for (const part of parts.slice(0, kept)) yield spoilt(part, fault);
  }

  #call<T>(handle: ProcessHandle, act: () => Promise<T>): Promise<T> {
    const [there, back] = [this.#random.between(0.2, 3), this.#random.between(0.2, 3)];
    const [isLostThere, isLostBack] = [this.#random.chance(this.loss), this.#random.chance(this.loss)];
    return new Promise((resolve, reject) => {
      const fail = () =>
        reject(new AppError('unavailable', 'RPC_UNAVAILABLE', 'The register service is away'));
      const answer = (give: () => void) => {
        if (isLostBack) this.#eventQueue.after(2000, fail, handle);
        else this.#eventQueue.after(back, give, handle);
      };
      this.#eventQueue.after(there, () => {
        if (isLostThere || this.#eventQueue.elapsedMs < this.#awayUntilMs)
          this.#eventQueue.after(20, fail, handle);
        else
          act().then(
            (value) => answer(() => resolve(value)),
            (error) => answer(() => reject(error)),
          );
      });
    });
  }
}

function spoilt(part: KeyPart, fault: (typeof keyFaults)[number] | undefined): KeyPart {
  if (fault === 'foreign' && part.kind === 'begin') return { ...part, logRoot: 'ee'.repeat(32) };
  // few missing keys cannot be told from none
  if (fault !== 'emptied' || part.kind === 'end') return part;
  if (part.kind === 'begin') return { ...part, transactionCount: part.transactionCount + 20 };
  return { ...part, bits: new Uint8Array(part.bits.length) };
}

/** The ledgers of several registers behind one interface. */
function together(ledgers: ReadonlyMap<string, FakeLedger>): Ledger {
  const of = (registerId: string) => {
    const ledger = ledgers.get(registerId);
    if (ledger === undefined)
      throw new AppError('not_found', 'REGISTER_NOT_FOUND', `No register ${registerId}`);
    return ledger;
  };
  return {
    async lookup(queries) {
      const answers = queries.map((query) => of(query.registerId).lookup([query]));
      return (await Promise.all(answers)).flat();
    },
    writeDocket: (sealed, attestations) =>
      of(sealed.docket.header.registerId).writeDocket(sealed, attestations),
    appendAttestation: (registerId, ...given) => of(registerId).appendAttestation(registerId, ...given),
    findRegister: (registerId) => of(registerId).findRegister(registerId),
    findTransaction: (registerId, txId) => of(registerId).findTransaction(registerId, txId),
    isSubscribed: async () => true,
    readKeys: (registerId, signal) => of(registerId).readKeys(registerId, signal),
    async listMemberRegisters() {
      const lists = [...ledgers.values()].map((ledger) => ledger.listMemberRegisters());
      return (await Promise.all(lists)).flat();
    },
  };
}
