import { sha256Hex } from '#core/crypto/hash.ts';
import { createRandom } from '#kit/testing/random.ts';
import type { DocketBundle } from '../../ledger/dockets/docket.ts';
import { createLookup, type Lookup } from '../../ledger/lookup/store.ts';
import { projectedHeight } from '../../queries/projection/progress/store.ts';
import { buildDocket } from '../build-docket.ts';
import { startTestRegister, type TestRegister } from '../register.ts';
import { transaction } from '../sealed.ts';
import { addHistory, blueprintIds, idInHistory, senders, transactionsPerDocket } from './history.ts';

/** Dockets that are generated in one transaction. */
const stretch = 50;

/** Paths of the reads of a grown register; `deep` is half-way through it. */
const paths = {
  'get by id': ({ deepId }) => `/api/registers/R/transactions/${deepId}`,
  'graph, 200 nodes': ({ deepId }) => `/api/registers/R/transactions/graph?limit=200&before=${deepId}`,
  'dockets, a deep page': ({ dockets }) =>
    `/api/registers/R/dockets?pageSize=20&page=${Math.floor(dockets / 40) + 1}`,
  'sender list': () => `/api/query/senders/${addressOf(7)}/transactions?registerId=R&pageSize=100`,
  'sender list, from a cursor': ({ deepId }) =>
    `/api/registers/R/transactions?senderAddress=${addressOf(7)}&before=${deepId}&pageSize=100`,
  'wallet list': () => `/api/query/wallets/${addressOf(7)}/transactions?registerId=R&pageSize=100`,
  'blueprint list': () => `/api/query/blueprints/${blueprintIds[3]}/transactions?registerId=R&pageSize=100`,
  'page=N, half-way down': ({ count }) =>
    `/api/registers/R/transactions?pageSize=100&page=${Math.floor(count / 200) + 1}`,
  '$skip as far as it goes': ({ count }) =>
    `/odata/Transactions?$filter=registerId eq 'R'&$top=100&$skip=${Math.min(10_000, Math.floor(count / 2))}`,
  totalCount: () => '/api/registers/R/transactions?pageSize=1',
  $count: () => "/odata/Transactions/$count?$filter=registerId eq 'R'",
  'a filtered list with its count': () =>
    "/api/registers/R/transactions?pageSize=20&$filter=contains(senderAddress,'w')",
  statistics: () => '/api/query/stats?registerId=R',
} as const satisfies Record<string, (at: Depth) => string>;

/** Dockets to be signed. */
export interface DocketsToSign {
  readonly registers: number;
  /** Predecessors may be anywhere in the history, not only among the latest transactions. */
  readonly anywhere?: boolean;
  readonly count: number;
  readonly transactions: number;
}

type Signed = ReturnType<typeof transaction>;

interface Depth {
  readonly count: number;
  readonly dockets: number;
  readonly deepId: string;
}

/** The measured reads of a growing register. */
export type ReadName =
  | keyof typeof paths
  | 'lookup of 1,000 submissions'
  | 'lookup of 1,000 that follow anything';
export const readNames: readonly ReadName[] = [
  ...(Object.keys(paths) as (keyof typeof paths)[]),
  'lookup of 1,000 submissions',
  'lookup of 1,000 that follow anything',
];

/** How far back predecessors are, unless `anywhere`: all of the smaller register, and no more of a larger one. */
const usualReach = 100_000;

function addressOf(n: number): string {
  return senders[n]?.walletAddress ?? '';
}

/** One register with its own database that is grown and measured. */
export class Subject {
  readonly #service: TestRegister;
  readonly #lookUp: Lookup;
  /** The first one has the history. */
  readonly #registers: string[];
  #made = 0;
  #signed = 0;
  #turn = 0;
  #ready: { readonly registerId: string; readonly transactions: readonly Signed[] }[] = [];
  readonly #followed = new Set<number>();
  readonly #random = createRandom(1);

  private constructor(service: TestRegister, registerId: string) {
    this.#service = service;
    this.#lookUp = createLookup(service.database.read, service.ledger.segments);
    this.#registers = [registerId];
  }

  get #registerId(): string {
    return this.#registers[0] ?? '';
  }

  static async open(databaseUrl: string): Promise<Subject> {
    const service = await startTestRegister('growth', { databaseUrl });
    return new Subject(service, await service.createRegister());
  }

  /** Generates history up to a number of transactions. */
  async growTo(count: number, progress: (made: number) => void): Promise<void> {
    const { database } = this.#service;
    while (this.#made < count) {
      const dockets = Math.min(stretch, Math.ceil((count - this.#made) / transactionsPerDocket));
      const state = await this.#service.state(this.#registerId);
      await database.transact(async (tx) => addHistory(tx, { state, made: this.#made }, dockets));
      this.#made += dockets * transactionsPerDocket;
      progress(this.#made);
    }
    const { ledger } = this.#service;
    ledger.segments.of(await this.#service.state(this.#registerId));
    await ledger.segments.settled();
    await this.#tidyUp();
  }

  /**
   * Vacuums as autovacuum does over time. A table of ten million rows takes longer than a statement of the service may.
   */
  async #tidyUp(): Promise<void> {
    const client = await this.#service.database.pool.connect();
    try {
      await client.query('set statement_timeout = 0');
      await client.query('vacuum (analyze, freeze)');
      await client.query('checkpoint');
    } finally {
      client.release(true);
    }
  }

  /** Creates registers without a history up to a number. */
  async openMore(registers: number): Promise<void> {
    while (this.#registers.length < registers)
      this.#registers.push(await this.#service.createRegister(`Register ${this.#registers.length}`));
  }

  /**
   * Signs the dockets for `append`, in turn for each of the registers. Every second transaction has a predecessor
   * without a successor.
   */
  sign({ registers, count, transactions, anywhere = false }: DocketsToSign): void {
    const reach = anywhere ? this.#made : Math.min(usualReach, this.#made);
    this.#ready = Array.from({ length: count }, () => {
      const registerId = this.#registers[this.#turn++ % registers] ?? '';
      const signed: Signed[] = [];
      for (let n = 0; n < transactions; n += 1) {
        const followed = n % 2 === 0 ? undefined : (this.#unfollowed(reach) ?? signed.at(-1)?.txId);
        signed.push(this.#transaction(registerId, n, followed));
      }
      return { registerId, transactions: signed };
    });
  }

  /** The id of a recent generated transaction without a successor; undefined once there is hardly one left. */
  #unfollowed(reach: number): string | undefined {
    const pairs = Math.floor(this.#made / 2);
    if (this.#followed.size >= pairs * 0.9) return undefined;
    const first = pairs - Math.floor(reach / 2);
    for (;;) {
      const place = this.#random.whole(first, pairs - 1) * 2 + 1;
      if (this.#followed.has(place)) continue;
      this.#followed.add(place);
      return idInHistory(place);
    }
  }

  #transaction(registerId: string, n: number, previousTransactionId: string | undefined): Signed {
    const key = senders[n % senders.length];
    this.#signed += 1;
    return transaction({
      registerId,
      blueprintId: blueprintIds[n % blueprintIds.length],
      payload: { serial: this.#signed },
      ...(key !== undefined && { key }),
      ...(n % 4 === 0 && { recipients: [addressOf(n % senders.length)] }),
      ...(previousTransactionId !== undefined && { previousTransactionId }),
    });
  }

  /**
   * Stores the signed dockets one after the other, by the same path as a validator's docket, and waits for their index
   * rows; returns CPU microseconds.
   */
  async append(): Promise<number> {
    let cpuMicros = 0;
    for (const { registerId, transactions } of this.#ready) {
      const bundle = buildDocket(await this.#service.state(registerId), transactions, this.#service.members);
      const before = process.cpuUsage();
      await this.#write(bundle);
      const { user, system } = process.cpuUsage(before);
      cpuMicros += user + system;
    }
    const before = process.cpuUsage();
    for (const registerId of new Set(this.#ready.map((docket) => docket.registerId)))
      await this.#project(registerId);
    const { user, system } = process.cpuUsage(before);
    this.#ready = [];
    return cpuMicros + user + system;
  }

  async #project(registerId: string): Promise<void> {
    const { database, ledger } = this.#service;
    const { registerNo, height } = await this.#service.state(registerId);
    while ((await projectedHeight(database.read, registerNo)) < height) {
      ledger.projector.wake(registerNo);
      await ledger.projector.progress(registerNo, 100);
    }
  }

  async #write(bundle: DocketBundle): Promise<void> {
    const result = await this.#service.ledger.writeDocket(bundle);
    if (result.outcome !== 'stored') throw new Error(JSON.stringify(result).slice(0, 500));
  }

  /** Milliseconds of one read; each `n` reads different data. */
  async read(name: ReadName, n: number): Promise<number> {
    const startedAt = performance.now();
    if (name === 'lookup of 1,000 submissions') await this.#lookup(n, Math.min(usualReach, this.#made));
    else if (name === 'lookup of 1,000 that follow anything') await this.#lookup(n, this.#made);
    else await this.#ask(paths[name], n);
    return performance.now() - startedAt;
  }

  async #ask(pathOf: (at: Depth) => string, n: number): Promise<void> {
    const count = this.#made;
    const deepId = idInHistory(Math.floor(count / 2) + (n + 1) * 7);
    const path = pathOf({ count, dockets: count / transactionsPerDocket, deepId });
    const answer = await this.#service.call('GET', path.replaceAll('R', this.#registerId), {
      token: 'admin',
    });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`);
  }

  async #lookup(round: number, reach: number): Promise<void> {
    const questions = Array.from({ length: 1_000 }, (_, index) => ({
      registerId: this.#registerId,
      txId: sha256Hex(`new ${round} ${index}`),
      previousTxId: idInHistory(this.#made - reach + ((index * 7_919 + round + 1) % reach)),
      replayKey: sha256Hex(`${round} ${index}`).slice(0, 32),
      pin: '',
    }));
    const answers = await this.#lookUp(questions);
    if (answers.some((answer) => answer.previousType !== 'Action'))
      throw new Error('a predecessor is missing');
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }
}
