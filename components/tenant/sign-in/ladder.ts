import { isLocked, type LockoutStep, type LockState, lockAfter } from './lockout.ts';

/** NIST SP 800-63B, "Rate Limiting (Throttling)": no more than 100 consecutive failures on one account. */
export const MAX_FAILURES_IN_A_ROW = 100;
/** A network is known to an account for so long after a right sign-in from it. */
export const knownNetworkMs = 30 * 86_400_000;
/** Networks whose sign-ins are remembered per account; the one that was used longest ago is forgotten first. */
export const maxKnownNetworks = 16;
/** An account with so many networks counts failures from further ones together, as those of OTHER_NETWORKS. */
export const maxCountedNetworks = 32;
/** Most networks of one account: the counted ones, known ones that come on top, and OTHER_NETWORKS. */
export const maxNetworkRows = maxCountedNetworks + maxKnownNetworks + 1;
export const OTHER_NETWORKS = 'other';

/** Wrong passwords that are judged: `burst` at once, then one per `intervalMs` (generic cell rate algorithm). */
export interface Pace {
  readonly burst: number;
  readonly intervalMs: number;
}

/** All networks together that are not known to the account. */
export const unknownNetworksPace: Pace = { burst: 15, intervalMs: 2 * 3_600_000 };
/** Each known network. */
export const knownNetworkPace: Pace = { burst: 15, intervalMs: 10 * 60_000 };

/** What an account remembers of one network. */
export interface NetworkState extends LockState {
  /** Failures from there since the last right password from there. */
  readonly failures: number;
  /** The lock has not been reported yet. */
  readonly unreported: boolean;
  readonly lastFailureAtMs: number | undefined;
  readonly lastSignInAtMs: number | undefined;
  /** Theoretical arrival time of the pace, while the network is known. */
  readonly pacedUntilMs: number;
}

/** Failed sign-ins of one account, or of the addresses without an account that share one record. */
export interface Ladder {
  /** Failures in a row, from any network. */
  readonly failures: number;
  /** Closed to every network until an administrator unlocks. */
  readonly isClosed: boolean;
  readonly unreported: boolean;
  /** Theoretical arrival time of the pace of the networks that are not known. */
  readonly pacedUntilMs: number;
  readonly networks: ReadonlyMap<string, NetworkState>;
}

export const emptyLadder: Ladder = {
  failures: 0,
  isClosed: false,
  unreported: false,
  pacedUntilMs: 0,
  networks: new Map(),
};

const emptyNetwork: NetworkState = {
  failures: 0,
  lockedUntilMs: undefined,
  lockedPermanently: false,
  unreported: false,
  lastFailureAtMs: undefined,
  lastSignInAtMs: undefined,
  pacedUntilMs: 0,
};

/** open: the password decides · closed, locked: answered as a wrong password · slowed: judged again after the seconds. */
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

/** Whether a password from `network` is judged now. */
export function admit(ladder: Ladder, network: string | undefined, nowMs: number): Admission {
  if (ladder.isClosed) return { kind: 'closed' };
  const state = ladder.networks.get(keyOf(ladder, network)) ?? emptyNetwork;
  const known = isKnown(state, nowMs);
  if (!known && isLocked(state, nowMs)) return { kind: 'locked' };
  const waitMs = known
    ? waitOf(knownNetworkPace, state.pacedUntilMs, nowMs)
    : waitOf(unknownNetworksPace, ladder.pacedUntilMs, nowMs);
  return waitMs > 0 ? { kind: 'slowed', retryAfterSeconds: Math.ceil(waitMs / 1000) } : { kind: 'open' };
}

/**
 * What an attempt leaves. wrong: a judged wrong password · right: the password and the sign-in · proved: the right password,
 * but no sign-in · ignored: not judged, counts nothing.
 */
export type Outcome = 'wrong' | 'right' | 'proved' | 'ignored';

export interface Settlement {
  readonly ladder: Ladder;
  /** The network whose state is to be written. */
  readonly written: string;
  /** Networks that made room. */
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

/** Lifts every lock and every pace. The counts stay, so that unlocking does not lift the ceiling on guesses. */
export function unlocked(ladder: Ladder): Ladder {
  const networks = [...ladder.networks].map(([network, state]): [string, NetworkState] => [
    network,
    { ...state, lockedUntilMs: undefined, lockedPermanently: false, unreported: false, pacedUntilMs: 0 },
  ]);
  return { ...ladder, isClosed: false, unreported: false, pacedUntilMs: 0, networks: new Map(networks) };
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
    const pacedUntilMs = charged(knownNetworkPace, state.pacedUntilMs, nowMs);
    return written(total, key, { ...counted, pacedUntilMs });
  }
  const pacedUntilMs = charged(unknownNetworksPace, ladder.pacedUntilMs, nowMs);
  // Networks that are counted together are slowed and never locked together.
  const lock = key === OTHER_NETWORKS ? undefined : lockAfter(steps, counted.failures, nowMs);
  const locked = lock === undefined ? counted : { ...counted, ...lock, unreported: true };
  return written({ ...total, pacedUntilMs }, key, locked);
}

/** The network becomes known, or stays so. Failures and locks of other networks stay. */
function signedIn(ladder: Ladder, network: string, nowMs: number): Settlement {
  const state = { ...cleared(ladder.networks.get(network) ?? emptyNetwork), lastSignInAtMs: nowMs };
  const others = [...ladder.networks].filter(([name]) => name !== network);
  const known = others.filter(([, other]) => isKnown(other, nowMs)).toSorted(bySignIn);
  const dropped = known.slice(0, Math.max(0, known.length - maxKnownNetworks + 1)).map(([name]) => name);
  const room = maxNetworkRows - 1 - (others.length - dropped.length);
  if (room < 0) dropped.push(...idlest(others, nowMs).slice(0, -room));
  const networks = new Map(others.filter(([name]) => !dropped.includes(name)));
  const result = written({ ...ladder, failures: 0, networks }, network, state);
  return { ...result, dropped };
}

/** Networks that are not known, those without a lock first, then those that failed longest ago. */
function idlest(networks: readonly (readonly [string, NetworkState])[], nowMs: number): string[] {
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

/** A full ladder counts networks that it has no row for together, so that many networks neither grow nor displace it. */
function keyOf(ladder: Ladder, network: string | undefined): string {
  if (network === undefined) return OTHER_NETWORKS;
  if (ladder.networks.has(network)) return network;
  return ladder.networks.size < maxCountedNetworks ? network : OTHER_NETWORKS;
}

function isKnown(state: NetworkState, nowMs: number): boolean {
  return state.lastSignInAtMs !== undefined && nowMs - state.lastSignInAtMs < knownNetworkMs;
}

function waitOf(pace: Pace, pacedUntilMs: number, nowMs: number): number {
  return pacedUntilMs - nowMs - (pace.burst - 1) * pace.intervalMs;
}

function charged(pace: Pace, pacedUntilMs: number, nowMs: number): number {
  return Math.max(pacedUntilMs, nowMs) + pace.intervalMs;
}
