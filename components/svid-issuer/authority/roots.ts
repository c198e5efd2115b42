import { z } from 'zod';
import { issuerError } from '../errors.ts';
import type { AuthorityPem } from './authority.ts';

/** Time before the expiry of a root at which it is rotated without a request. */
export const renewalMs = 60 * 86_400_000;

const pem = z.string().min(1).max(8192);

const root = z.strictObject({
  certificatePem: pem,
  /** Removed as soon as the root no longer signs. */
  keyPem: pem.optional(),
  /** `next` is trusted and does not sign yet, `active` signs, `former` is trusted until its SVIDs have expired. */
  stage: z.enum(['next', 'active', 'former']),
  /** Start of its stage, milliseconds since the epoch. */
  sinceMs: z.int().nonnegative(),
  /** Milliseconds since the epoch. */
  notAfterMs: z.int().nonnegative(),
});
type Root = z.output<typeof root>;

const roots = z.strictObject({
  version: z.literal(1),
  trustDomain: z.string().max(255),
  roots: z.array(root).min(1).max(3),
  /** The last rotation request that was executed. */
  rotation: z.string().max(256).default(''),
});

/** The roots of an installation, as its Secret stores them. */
export type Roots = z.output<typeof roots>;

/**
 * Parses the stored roots.
 *
 * Errors: conflict/AUTHORITY_DAMAGED, conflict/ISSUER_TRUST_DOMAIN: such a Secret must not be overwritten.
 */
export function parseRoots(text: string, trustDomain: string): Roots {
  const parsed = roots.safeParse(tryJson(text));
  if (!parsed.success || activeRoot(parsed.data)?.keyPem === undefined) {
    throw issuerError('AUTHORITY_DAMAGED', 'the Secret holds no readable certificate authority');
  }
  if (parsed.data.trustDomain !== trustDomain) {
    const text = `the Secret belongs to the installation ${parsed.data.trustDomain}, not ${trustDomain}`;
    throw issuerError('ISSUER_TRUST_DOMAIN', text);
  }
  return parsed.data;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function activeRoot(from: Roots): Root | undefined {
  return from.roots.find(({ stage }) => stage === 'active');
}

/** The root that signs. */
export function signingRoot(from: Roots): Root & AuthorityPem {
  const active = activeRoot(from);
  if (active?.keyPem === undefined) {
    throw issuerError('AUTHORITY_DAMAGED', 'no root of the Secret can sign');
  }
  return { ...active, keyPem: active.keyPem };
}

/** PEM of every root that a workload must trust, the signing one first. */
export function bundleOf(from: Roots): string {
  const order = { active: 0, next: 1, former: 2 } as const;
  return from.roots
    .toSorted((a, b) => order[a.stage] - order[b.stage])
    .map(({ certificatePem }) => certificatePem)
    .join('');
}

export interface Circumstances {
  readonly nowMs: number;
  /** How long a root is trusted before it signs, and after it signed. */
  readonly overlapMs: number;
  /** Value of the annotation that requests a rotation. */
  readonly wanted: string | undefined;
}

/** The step that is due: `prepare` needs a new root, the others only the present ones. */
type Step = 'none' | 'prepare' | 'activate' | 'retire';

/**
 * Decides the step that is due. Only one rotation runs at a time: the next root signs once every workload had time to
 * trust it, and the former one is removed once nothing that it signed is valid.
 */
export function planStep(from: Roots, { nowMs, overlapMs, wanted }: Circumstances): Step {
  const isOver = ({ sinceMs }: Root) => nowMs - sinceMs >= overlapMs;
  const next = from.roots.find(({ stage }) => stage === 'next');
  if (next !== undefined) return isOver(next) ? 'activate' : 'none';
  const former = from.roots.find(({ stage }) => stage === 'former');
  if (former !== undefined) return isOver(former) ? 'retire' : 'none';
  const isWanted = wanted !== undefined && wanted !== '' && wanted.slice(0, 256) !== from.rotation;
  const isOld = signingRoot(from).notAfterMs - nowMs < renewalMs;
  return isWanted || isOld ? 'prepare' : 'none';
}

/** The first roots of an installation. A request that exists already counts as executed. */
export function firstRoots(
  trustDomain: string,
  made: NewRoot,
  nowMs: number,
  wanted: string | undefined,
): Roots {
  const first: Root = { ...made, stage: 'active', sinceMs: nowMs };
  return { version: 1, trustDomain, roots: [first], rotation: (wanted ?? '').slice(0, 256) };
}

export type NewRoot = AuthorityPem & Pick<Root, 'notAfterMs'>;

/** Adds a root that does not sign yet. */
export function prepare(from: Roots, made: NewRoot, { nowMs, wanted }: Circumstances): Roots {
  const next: Root = { ...made, stage: 'next', sinceMs: nowMs };
  return { ...from, roots: [...from.roots, next], rotation: (wanted ?? from.rotation).slice(0, 256) };
}

/** The next root signs, the active one becomes former and loses its key. */
export function activate(from: Roots, nowMs: number): Roots {
  const moved = from.roots.map((one): Root => {
    if (one.stage === 'next') return { ...one, stage: 'active', sinceMs: nowMs };
    const { keyPem: _key, ...rest } = one;
    return one.stage === 'active' ? { ...rest, stage: 'former', sinceMs: nowMs } : rest;
  });
  return { ...from, roots: moved };
}

/** Restarts the waiting time of the next root, because not every workload could know it yet. */
export function delay(from: Roots, nowMs: number): Roots {
  const roots = from.roots.map((one) => (one.stage === 'next' ? { ...one, sinceMs: nowMs } : one));
  return { ...from, roots };
}

/** Removes the former root. */
export function retire(from: Roots): Roots {
  return { ...from, roots: from.roots.filter(({ stage }) => stage !== 'former') };
}
