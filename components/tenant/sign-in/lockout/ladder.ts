import { isLocked, type LockoutStep, type LockState, lockAfter } from './lockout.ts';

/** NIST SP 800-63B, "Rate Limiting (Throttling)": no more than 100 consecutive failures on one account. */
export const MAX_FAILURES_IN_A_ROW = 100;
/** A network stays known to an account for this time after a sign-in from it. */
export const knownNetworkMs = 30 * 86_400_000;
/** Maximum number of known networks per account; the least recently used one is evicted first. */
export const maxKnownNetworks = 16;
/** Above this number of networks an account counts failures from further networks together, as otherNetworks. */
export const maxCountedNetworks = 32;
/** Maximum number of network rows of one account: counted networks, additional known networks, and otherNetworks. */
export const maxNetworkRows = maxCountedNetworks + maxKnownNetworks + 1;
export const otherNetworks = 'other';

/** Limit of checked wrong passwords: `burst` at once, then one per `intervalMs` (generic cell rate algorithm). */
export interface GuessLimit {
  readonly burst: number;
  readonly intervalMs: number;
}

/** For all unknown networks of the account together. */
export const unknownNetworksLimit: GuessLimit = { burst: 15, intervalMs: 2 * 3_600_000 };
/** For each known network. */
export const knownNetworkLimit: GuessLimit = { burst: 15, intervalMs: 10 * 60_000 };

/** The state of one network of an account. */
export interface NetworkState extends LockState {
  /** Failures from this network since its last right password. */
  readonly failures: number;
  /** The lock has no audit event yet. */
  readonly unreported: boolean;
  readonly lastFailureAtMs: number | undefined;
  readonly lastSignInAtMs: number | undefined;
  /** Theoretical arrival time of the limit, while the network is known. */
  readonly theoreticalArrivalMs: number;
}

/** Failed sign-ins of one account, or of the addresses without an account that share one record. */
export interface Ladder {
  /** Consecutive failures from any network. */
  readonly failures: number;
  /** Closed to every network until an administrator unlocks. */
  readonly isClosed: boolean;
  readonly unreported: boolean;
  /** Theoretical arrival time of the limit of unknown networks. */
  readonly theoreticalArrivalMs: number;
  readonly networks: ReadonlyMap<string, NetworkState>;
}

export const emptyLadder: Ladder = {
  failures: 0,
  isClosed: false,
  unreported: false,
  theoreticalArrivalMs: 0,
  networks: new Map(),
};

const emptyNetwork: NetworkState = {
  failures: 0,
  lockedUntilMs: undefined,
  lockedPermanently: false,
  unreported: false,
  lastFailureAtMs: undefined,
  lastSignInAtMs: undefined,
  theoreticalArrivalMs: 0,
};

/** open: the password is checked · closed, locked: answered like a wrong password · slowed: retry after the seconds. */
export type Admission =
  | { readonly kind: 'open' }
  | { readonly kind: 'closed' }
  | { readonly kind: 'locked' }
  | { readonly kind: 'slowed'; readonly retryAfterSeconds: number };

export function isKnownNetwork(ladder: Ladder, network: string | undefined, nowMs: number): boolean {
  if (network === undefined) return false;
  const state = ladder.networks.get(network);
  return state !== undefined && isKnown(state, nowMs);
}

/** Whether a password from `network` is checked now. */
export function admit(ladder: Ladder, network: string | undefined, nowMs: number): Admission {
  if (ladder.isClosed) return { kind: 'closed' };
  const state = ladder.networks.get(keyOf(ladder, network)) ?? emptyNetwork;
  const known = isKnown(state, nowMs);
  if (!known && isLocked(state, nowMs)) return { kind: 'locked' };
  const waitMs = known
    ? waitOf(knownNetworkLimit, state.theoreticalArrivalMs, nowMs)
    : waitOf(unknownNetworksLimit, ladder.theoreticalArrivalMs, nowMs);
  return waitMs > 0 ? { kind: 'slowed', retryAfterSeconds: Math.ceil(waitMs / 1000) } : { kind: 'open' };
}

/**
 * The outcome of an attempt. wrong: a checked wrong password · right: right password and sign-in · proved: right
 * password without a sign-in · ignored: not checked and not counted.
 */
export type Outcome = 'wrong' | 'right' | 'proved' | 'ignored';

interface Settlement {
  readonly ladder: Ladder;
  /** The network whose state must be written. */
  readonly written: string;
  /** Evicted networks. */
  readonly dropped: readonly string[];
}

export interface Attempted {
  readonly network: string | undefined;
  readonly outcome: Outcome;
  readonly nowMs: number;
}

export function settle(ladder: Ladder, attempted: Attempted, steps: readonly LockoutStep[]): Settlement {
  const { outcome, nowMs } = attempted;
  if (outcome === 'right' && attempted.network !== undefined)
    return signedIn(ladder, attempted.network, nowMs);
  const key = keyOf(ladder, attempted.network);
  const state = ladder.networks.get(key) ?? emptyNetwork;
  switch (outcome) {
    case 'wrong':
      return failed(ladder, key, { state, nowMs, steps });
    case 'right':
    case 'proved':
      return written({ ...ladder, failures: 0 }, key, cleared(state));
    case 'ignored':
      return written(ladder, key, state);
  }
}

/** Clears all locks and limits. The counts stay, so that unlocking does not reset the bound on guesses. */
export function unlocked(ladder: Ladder): Ladder {
  const networks = [...ladder.networks].map(([network, state]): [string, NetworkState] => [
    network,
    {
      ...state,
      lockedUntilMs: undefined,
      lockedPermanently: false,
      unreported: false,
      theoreticalArrivalMs: 0,
    },
  ]);
  return {
    ...ladder,
    isClosed: false,
    unreported: false,
    theoreticalArrivalMs: 0,
    networks: new Map(networks),
  };
}

function failed(
  ladder: Ladder,
  key: string,
  failure: { readonly state: NetworkState; readonly nowMs: number; readonly steps: readonly LockoutStep[] },
): Settlement {
  const { state, nowMs, steps } = failure;
  const inARow = ladder.failures + 1;
  const closes = inARow >= MAX_FAILURES_IN_A_ROW;
  const counted = { ...state, failures: state.failures + 1, lastFailureAtMs: nowMs };
  const total = {
    ...ladder,
    failures: inARow,
    isClosed: closes,
    unreported: ladder.unreported || closes,
  };
  if (isKnown(state, nowMs)) {
    const theoreticalArrivalMs = charged(knownNetworkLimit, state.theoreticalArrivalMs, nowMs);
    return written(total, key, { ...counted, theoreticalArrivalMs });
  }
  const theoreticalArrivalMs = charged(unknownNetworksLimit, ladder.theoreticalArrivalMs, nowMs);
  // Networks that are counted together are limited but never locked.
  const lock = key === otherNetworks ? undefined : lockAfter(steps, counted.failures, nowMs);
  const locked = lock === undefined ? counted : { ...counted, ...lock, unreported: true };
  return written({ ...total, theoreticalArrivalMs }, key, locked);
}

/** Marks the network as known. Failures and locks of other networks stay. */
function signedIn(ladder: Ladder, network: string, nowMs: number): Settlement {
  const state = { ...cleared(ladder.networks.get(network) ?? emptyNetwork), lastSignInAtMs: nowMs };
  const others = [...ladder.networks].filter(([name]) => name !== network);
  const known = others.filter(([, other]) => isKnown(other, nowMs)).toSorted(bySignIn);
  const dropped = known.slice(0, Math.max(0, known.length - maxKnownNetworks + 1)).map(([name]) => name);
  const room = maxNetworkRows - 1 - (others.length - dropped.length);
  if (room < 0) dropped.push(...evictionOrder(others, nowMs).slice(0, -room));
  const networks = new Map(others.filter(([name]) => !dropped.includes(name)));
  const result = written({ ...ladder, failures: 0, networks }, network, state);
  return { ...result, dropped };
}

/** Unknown networks in the order of eviction: without a lock first, then by the time of the last failure. */
function evictionOrder(networks: readonly (readonly [string, NetworkState])[], nowMs: number): string[] {
  const order = ([, state]: readonly [string, NetworkState]) =>
    (isLocked(state, nowMs) ? nowMs : 0) + (state.lastFailureAtMs ?? 0);
  return networks
    .filter(([, state]) => !isKnown(state, nowMs))
    .toSorted((a, b) => order(a) - order(b))
    .map(([name]) => name);
}

function bySignIn(a: readonly [string, NetworkState], b: readonly [string, NetworkState]): number {
  return (a[1].lastSignInAtMs ?? 0) - (b[1].lastSignInAtMs ?? 0);
}

function cleared(state: NetworkState): NetworkState {
  return { ...state, failures: 0, lockedUntilMs: undefined, lockedPermanently: false, unreported: false };
}

function written(ladder: Ladder, key: string, state: NetworkState): Settlement {
  const networks = new Map(ladder.networks).set(key, state);
  return { ladder: { ...ladder, networks }, written: key, dropped: [] };
}

/** A full ladder counts networks without a row together, so that many networks neither add rows nor displace any. */
function keyOf(ladder: Ladder, network: string | undefined): string {
  if (network === undefined) return otherNetworks;
  if (ladder.networks.has(network)) return network;
  return ladder.networks.size < maxCountedNetworks ? network : otherNetworks;
}

function isKnown(state: NetworkState, nowMs: number): boolean {
  return state.lastSignInAtMs !== undefined && nowMs - state.lastSignInAtMs < knownNetworkMs;
}

function waitOf(limit: GuessLimit, theoreticalArrivalMs: number, nowMs: number): number {
  return theoreticalArrivalMs - nowMs - (limit.burst - 1) * limit.intervalMs;
}

function charged(limit: GuessLimit, theoreticalArrivalMs: number, nowMs: number): number {
  return Math.max(theoreticalArrivalMs, nowMs) + limit.intervalMs;
}
