import { deepEqual, ok } from 'node:assert/strict';
import type { Caller } from '#core/identity/claims.ts';
import type { Attester } from '../attester.ts';
import { caller, type Fixture } from '../fixture.ts';
import { Presenter } from '../presenter.ts';
import { TestWallet, walletKey } from '../wallet.ts';
import {
  MOST_CREDENTIALS,
  type ModelCode,
  type ModelCredential,
  type ModelNonce,
  type ModelOffer,
  type ModelPushed,
  type ModelRefresh,
  type ModelRequest,
  type ModelToken,
  type SimulatedWallet,
} from './model.ts';
import { type Doer, WALLETS } from './steps.ts';

/** What all runs on one fixture share. */
export interface Stage {
  readonly fixture: Fixture;
  readonly isHighAssurance: boolean;
  readonly attester: Attester;
  readonly wallets: readonly SimulatedWallet[];
  /** How often each outcome was reached. */
  readonly reached: Map<string, number>;
}

/** Those who change statuses and ask for presentations, by their number in a step. */
export const CALLERS = ['Bearer service', 'Bearer administrator', 'Bearer other', 'Bearer member'] as const;

export async function openStage(
  fixture: Fixture,
  { attester, isHighAssurance }: Pick<Stage, 'attester' | 'isHighAssurance'>,
): Promise<Stage> {
  const { organizationId } = fixture.organization;
  const people: Readonly<Record<string, Partial<Caller>>> = {
    'Bearer administrator': { organizationId, roles: ['Administrator'] },
    'Bearer other': { organizationId: 'c0ffee00-0000-4000-8000-000000000000', roles: ['Administrator'] },
    'Bearer member': { organizationId, roles: [] },
  };
  for (const [header, change] of Object.entries(people)) fixture.callers.set(header, caller(change));
  const wallets = await Promise.all(
    Array.from({ length: WALLETS }, async () => ({
      keys: await Promise.all(Array.from({ length: MOST_CREDENTIALS + 1 }, () => walletKey())),
      dpopKey: await walletKey(),
      instance: await walletKey(),
    })),
  );
  return { fixture, attester, isHighAssurance, wallets, reached: new Map() };
}

/** One run: the service, and the model of what it made. */
export class World {
  readonly stage: Stage;
  readonly wallet: TestWallet;
  readonly presenter: Presenter;
  readonly offers: ModelOffer[] = [];
  readonly pushed: ModelPushed[] = [];
  readonly codes: ModelCode[] = [];
  readonly tokens: ModelToken[] = [];
  readonly refreshes: ModelRefresh[] = [];
  readonly nonces: ModelNonce[] = [];
  readonly credentials: ModelCredential[] = [];
  readonly requests: ModelRequest[] = [];
  /** Presentations that were posted, with the request they were made for. */
  readonly posted: { readonly presentation: string; readonly request: ModelRequest }[] = [];

  constructor(stage: Stage) {
    this.stage = stage;
    this.wallet = new TestWallet(stage.fixture);
    this.presenter = new Presenter(stage.fixture);
  }

  get nowMs(): number {
    return this.stage.fixture.clock.nowMs();
  }

  /**
   * The wallet of a step; an honest one is the owner of what it uses, where there is one.
   * @throws RangeError for a wallet that no run has
   */
  walletOf(
    { wallet: number, isHonest }: Pick<Doer<unknown>, 'wallet' | 'isHonest'>,
    owner?: SimulatedWallet | undefined,
  ): SimulatedWallet {
    const found = isHonest && owner !== undefined ? owner : this.stage.wallets[number];
    if (found === undefined) throw new RangeError(`there is no wallet ${number}`);
    return found;
  }

  reach(outcome: string): void {
    this.stage.reached.set(outcome, (this.stage.reached.get(outcome) ?? 0) + 1);
  }
}

/** The object that a step means, counted from the newest; undefined when there is none. */
export function pick<T>(items: readonly T[], which: number): T | undefined {
  return items[items.length - 1 - (which % Math.max(items.length, 1))];
}

interface Answer {
  readonly statusCode: number;
  readonly body: string;
}

/**
 * Compares the answers of requests at one time with the model: so many are accepted, and the others refused by a client
 * error, never by a failure of the service.
 * @returns those that were accepted
 */
export function accepted<A extends Answer>(
  world: World,
  what: string,
  { answers, expected }: { readonly answers: readonly A[]; readonly expected: number },
): readonly A[] {
  const good = answers.filter(({ statusCode }) => statusCode < 400);
  const told = answers.map(({ statusCode, body }) => `${statusCode} ${body.slice(0, 300)}`).join('\n');
  deepEqual(good.length, expected, `${what}: ${good.length} accepted, ${expected} expected\n${told}`);
  for (const { statusCode } of answers) ok(statusCode < 500, `${what} fails the service\n${told}`);
  world.reach(`${what} ${good.length > 0 ? 'accepted' : 'refused'}`);
  return good;
}

/** Sends the same request so often at one time. */
export function atOnce<A>(times: number, send: () => Promise<A>): Promise<A[]> {
  return Promise.all(Array.from({ length: times }, send));
}
