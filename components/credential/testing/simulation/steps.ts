import fc from 'fast-check';
import type { StatusVerb } from './model.ts';

/** The wallets of a run; those from this one on are hostile. */
export const WALLETS = 10;
const firstHostile = 6;
export const TYPES = 2;

/** Which object of a kind a step concerns: 0 is the newest, 1 the one before. Counts on from the newest when there are fewer. */
type Which = number;

export type TokenHow = 'right' | 'wrong' | 'without' | 'unknown' | 'thrice' | 'bound';
export type CredentialHow =
  | 'right'
  | 'audience'
  | 'foreignKey'
  | 'configuration'
  | 'sameKey'
  | 'bare'
  | 'unbound'
  | 'unattested'
  /** Twice at one time with one nonce. */
  | 'twice'
  /** Four requests at one time, each with its own nonce. */
  | 'crowd';
export type PresentHow =
  | 'own'
  | 'stolen'
  | 'altered'
  | 'disclosure'
  | 'unsigned'
  | 'state'
  | 'nonce'
  | 'replayed'
  | 'declined'
  | 'twice';

type RefreshHow = 'right' | 'twice';

/** A wallet by its number. An honest one uses tokens and offers that are its own, whatever its number. */
export interface Doer<How> {
  readonly wallet: number;
  readonly isHonest: boolean;
  readonly how: How;
}

export type Step =
  | {
      readonly act: 'offer';
      readonly type: number;
      readonly hasTxCode: boolean;
      readonly expiresInSeconds: number;
      readonly validitySeconds: number | undefined;
      readonly boundTo: number | undefined;
    }
  | { readonly act: 'cancel'; readonly offer: Which }
  | (Doer<TokenHow> & { readonly act: 'token'; readonly offer: Which })
  /** An approval, or an exchange, of what an earlier step left behind; in haip-1.0. */
  | { readonly act: 'approve'; readonly pushed: Which; readonly isRight: boolean }
  | {
      readonly act: 'exchange';
      readonly code: Which;
      readonly wallet: number;
      readonly how: 'right' | 'verifier' | 'thrice';
    }
  | (Doer<RefreshHow> & { readonly act: 'refresh'; readonly refresh: Which })
  | { readonly act: 'nonce' }
  | (Doer<CredentialHow> & {
      readonly act: 'credential';
      readonly token: Which;
      /** A new one when undefined. */
      readonly nonce: Which | undefined;
      readonly count: number;
    })
  | { readonly act: 'clock'; readonly seconds: number }
  | { readonly act: 'upkeep' }
  | {
      readonly act: 'status';
      readonly credential: Which;
      readonly verb: StatusVerb;
      readonly caller: number;
    }
  | {
      readonly act: 'request';
      readonly caller: number;
      readonly type: number;
      readonly expiresInSeconds: number;
    }
  | { readonly act: 'object'; readonly request: Which }
  | (Doer<PresentHow> & { readonly act: 'present'; readonly request: Which; readonly credential: Which })
  | { readonly act: 'result'; readonly request: Which; readonly caller: number };

/** The newest object half of the time. */
const which = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(8) });
const honest = fc.nat(firstHostile - 1);
const hostile = fc.integer({ min: firstHostile, max: WALLETS - 1 });
const anyWallet = fc.nat(WALLETS - 1);
const type = fc.nat(TYPES - 1);
const caller = fc.nat(3);
const from = <const T>(...items: T[]) => fc.constantFrom(...items);

/** A wallet and what it does: an honest one does what is right with what is its own, a hostile one anything with all. */
function doer<const H>(fair: readonly H[], any: readonly H[]) {
  return fc.oneof(
    { weight: 3, arbitrary: fc.record({ wallet: honest, isHonest: fc.constant(true), how: from(...fair) }) },
    { weight: 2, arbitrary: fc.record({ wallet: hostile, isHonest: fc.constant(false), how: from(...any) }) },
  );
}

function both<A, B>(one: fc.Arbitrary<A>, other: fc.Arbitrary<B>): fc.Arbitrary<A & B> {
  return fc.tuple(one, other).map(([first, second]) => ({ ...first, ...second }));
}

const offer = fc.record({
  act: fc.constant('offer' as const),
  type,
  hasTxCode: fc.boolean(),
  expiresInSeconds: from(60, 600),
  validitySeconds: from(undefined, undefined, 120),
  boundTo: fc.option(fc.nat(WALLETS - 1), { nil: undefined, freq: 10 }),
});
const token = both(
  fc.record({ act: fc.constant('token' as const), offer: which }),
  doer<TokenHow>(
    ['right', 'right', 'bound'],
    ['right', 'wrong', 'wrong', 'without', 'unknown', 'thrice', 'bound'],
  ),
);
const credential = both(
  fc.record({
    act: fc.constant('credential' as const),
    token: which,
    nonce: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: which }),
    count: from(1, 1, 1, 1, 1, 2, 3, 4, 10, 11),
  }),
  doer<CredentialHow>(
    ['right'],
    [
      'right',
      'audience',
      'foreignKey',
      'configuration',
      'sameKey',
      'bare',
      'unbound',
      'unattested',
      'twice',
      'crowd',
    ],
  ),
);
const refresh = both(
  fc.record({ act: fc.constant('refresh' as const), refresh: which }),
  doer<RefreshHow>(['right'], ['right', 'twice']),
);
const present = both(
  fc.record({ act: fc.constant('present' as const), request: which, credential: which }),
  doer<PresentHow>(
    ['own'],
    ['own', 'stolen', 'altered', 'disclosure', 'unsigned', 'state', 'nonce', 'replayed', 'declined', 'twice'],
  ),
);

const weighted: readonly { readonly weight: number; readonly arbitrary: fc.Arbitrary<Step> }[] = [
  { weight: 5, arbitrary: offer },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('cancel' as const), offer: which }) },
  { weight: 8, arbitrary: token },
  {
    weight: 1,
    arbitrary: fc.record({ act: fc.constant('approve' as const), pushed: which, isRight: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant('exchange' as const),
      code: which,
      wallet: anyWallet,
      how: from('right', 'verifier', 'thrice'),
    }),
  },
  { weight: 3, arbitrary: refresh },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('nonce' as const) }) },
  { weight: 10, arbitrary: credential },
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant('clock' as const), seconds: from(1, 30, 60, 121, 301) }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('upkeep' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant('status' as const),
      credential: which,
      verb: from('suspend', 'suspend', 'reinstate', 'revoke'),
      caller,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant('request' as const),
      caller,
      type,
      expiresInSeconds: from(60, 300),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('object' as const), request: which }) },
  { weight: 10, arbitrary: present },
  { weight: 4, arbitrary: fc.record({ act: fc.constant('result' as const), request: which, caller }) },
];

/** One step of a wallet, a service, a person or the clock. */
export const anyStep: fc.Arbitrary<Step> = fc.oneof(...weighted);
