import { AppError } from '#core/errors/errors.ts';
import type { Random } from '#kit/testing/random.ts';
import type { Ledger } from '../../chain/sealing/ports.ts';
import type { FakeLedger } from '../fake-ledger.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';

/** The register service as validators reach it: with latency, outages and lost answers. */
export class RegisterService {
  readonly #ledger: Ledger;
  readonly #eventQueue: EventQueue;
  readonly #random: Random;
  #awayUntilMs = 0;
  /** Share of calls that fail, before or after they took effect. */
  loss = 0;

  constructor(ledgers: ReadonlyMap<string, FakeLedger>, eventQueue: EventQueue, random: Random) {
    this.#ledger = together(ledgers);
    this.#eventQueue = eventQueue;
    this.#random = random;
  }

  goAway(forMs: number): void {
    this.#awayUntilMs = this.#eventQueue.elapsedMs + forMs;
  }

  /** The port of one validator process. */
  endpoint(handle: ProcessHandle): Ledger {
    return new Proxy<Ledger>(this.#ledger, {
      get: (ledger, name) => {
        const member: unknown = Reflect.get(ledger, name);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]) => this.#call(handle, async () => Reflect.apply(member, ledger, given));
      },
    });
  }

  #call(handle: ProcessHandle, act: () => Promise<unknown>): Promise<unknown> {
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
    isSubscribed: async () => true,
    async listMemberRegisters() {
      const lists = [...ledgers.values()].map((ledger) => ledger.listMemberRegisters());
      return (await Promise.all(lists)).flat();
    },
  };
}
