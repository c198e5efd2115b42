import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Protection } from '../keys/protection.ts';
import { createCode, createToken, hashOfToken, MAX_ATTEMPTS, type OneTimePurpose } from './secret.ts';
import {
  countAttempt,
  type Dead,
  endSecrets,
  findLatest,
  findSecret,
  insertSecret,
  listIssues,
  lockIssues,
  type StoredSecret,
  takeSecret,
} from './store.ts';

type Tx = Transactor<TenantDatabase>;

/** What a purpose keeps beside the secret, sealed at rest, for example a PKCE verifier. */
interface Kind<Payload> {
  readonly purpose: OneTimePurpose;
  readonly payload: z.ZodType<Payload>;
  readonly lifetimeMs: number;
}

interface Issue<Payload> {
  /** What the secret is for; for codes, who it is sent to. */
  readonly subject: string;
  readonly payload: Payload;
}

/** A secret that lives. */
export interface Living<Payload> {
  readonly hash: Buffer;
  readonly subject: string;
  readonly payload: Payload;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** Tokens that act once: long random texts that are found by their hash. */
export interface OneTimeTokens<Payload> {
  /** Writes the token; the transaction is that of its cause. */
  issue(tx: Tx, issue: Issue<Payload>): Promise<string>;
  /** Reads without using; what it finds may be used by another request meanwhile. */
  find(db: Reader<TenantDatabase>, token: string): Promise<Living<Payload> | Dead>;
  /** Uses the token in the transaction of its effect. */
  take(tx: Tx, token: string): Promise<Living<Payload> | Dead>;
  /**
   * Counts a use whose proof is judged afterwards, in a transaction of its own: a failure of the request does not undo
   * it. After five the token is `spent`.
   */
  count(token: string): Promise<Living<Payload> | Dead>;
  /** Ends the living tokens of a subject. */
  end(tx: Tx, subject: string): Promise<void>;
}

interface OneTimeDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly protection: Protection;
}

/** @param prefix of the tokens, for example `ch_` */
export function createTokens<Payload>(
  deps: OneTimeDeps,
  kind: Kind<Payload>,
  prefix = '',
): OneTimeTokens<Payload> {
  const { purpose } = kind;
  const open = opener(deps.protection, kind);
  const keyOf = (token: string) => ({ purpose, hash: hashOfToken(token) });
  const opened = (found: StoredSecret | Dead) => (typeof found === 'string' ? found : open(found));
  return {
    async issue(tx, { subject, payload }) {
      const token = createToken(prefix);
      await insert(deps, { tx, kind, hash: hashOfToken(token), subject, payload });
      return token;
    },
    find: async (db, token) => opened(await findSecret(db, keyOf(token), deps.clock.nowMs())),
    take: async (tx, token) => opened(await takeSecret(tx, keyOf(token), deps.clock.nowMs())),
    count: async (token) =>
      opened(await deps.db.transact((tx) => countAttempt(tx, keyOf(token), deps.clock.nowMs()))),
    end: (tx, subject) => endSecrets(tx, purpose, subject, deps.clock.nowMs()),
  };
}

/** Codes that a person types: six digits, found by the subject that they were sent for. */
export interface OneTimeCodes {
  /**
   * Ends earlier codes of the subject and writes a new one. @returns the code, or how long the sender must wait: 30 s
   * between two codes, five codes an hour
   */
  issue(tx: Tx, subject: string): Promise<{ readonly code: string } | { readonly waitSeconds: number }>;
  /**
   * Judges a code; the attempt is counted before, in a transaction of its own. A right code is not used yet: `take` uses
   * it.
   */
  judge(subject: string, code: string): Promise<Judged>;
  /** Uses a right code in the transaction of its effect. @returns false when another request has used it */
  take(tx: Tx, right: RightCode): Promise<boolean>;
  /** Ends the living codes of a subject. */
  end(tx: Tx, subject: string): Promise<void>;
}

export interface RightCode {
  readonly hash: Buffer;
}

export type Judged = RightCode | 'wrong' | Dead;

const cooldownMs = 30_000;
const hourMs = 3_600_000;
const maxPerHour = 5;
const codeSchema = z.object({ mac: z.base64url() });

export function createCodes(
  deps: OneTimeDeps,
  code: { readonly purpose: OneTimePurpose; readonly lifetimeMs: number },
): OneTimeCodes {
  const { db, clock, protection } = deps;
  const { purpose } = code;
  const kind: Kind<z.output<typeof codeSchema>> = { ...code, payload: codeSchema };
  const open = opener(protection, kind);
  const macOf = (subject: string, text: string) =>
    createHmac('sha256', protection.codeKey)
      .update(JSON.stringify([purpose, subject, text]))
      .digest();
  return {
    async issue(tx, subject) {
      await lockIssues(tx, purpose, subject);
      const waitMs = waitOf(await listIssues(tx, purpose, subject, clock.nowMs() - hourMs), clock.nowMs());
      if (waitMs > 0) return { waitSeconds: Math.ceil(waitMs / 1000) };
      await endSecrets(tx, purpose, subject, clock.nowMs());
      const text = createCode();
      const payload = { mac: macOf(subject, text).toString('base64url') };
      await insert(deps, { tx, kind, hash: randomBytes(32), subject, payload });
      return { code: text };
    },
    async judge(subject, text) {
      const latest = await findLatest(db.read, purpose, subject);
      if (latest === undefined) return 'unknown';
      const key = { purpose, hash: latest.hash };
      const counted = await db.transact((tx) => countAttempt(tx, key, clock.nowMs()));
      if (typeof counted === 'string') return counted;
      const expected = Buffer.from(open(counted).payload.mac, 'base64url');
      return timingSafeEqual(expected, macOf(subject, text.trim())) ? { hash: latest.hash } : 'wrong';
    },
    take: async (tx, { hash }) =>
      typeof (await takeSecret(tx, { purpose, hash }, clock.nowMs())) !== 'string',
    end: (tx, subject) => endSecrets(tx, purpose, subject, clock.nowMs()),
  };
}

/** @param issues times of earlier codes of the last hour, the latest first */
function waitOf(issues: readonly number[], nowMs: number): number {
  const [latest] = issues;
  const first = issues[maxPerHour - 1];
  const cooling = latest === undefined ? 0 : latest + cooldownMs - nowMs;
  const full = first === undefined ? 0 : first + hourMs - nowMs;
  return Math.max(cooling, full, 0);
}

interface Insertion<Payload> extends Issue<Payload> {
  readonly tx: Tx;
  readonly kind: Kind<Payload>;
  readonly hash: Buffer;
}

async function insert<Payload>(deps: OneTimeDeps, insertion: Insertion<Payload>): Promise<void> {
  const { tx, kind, hash, subject, payload } = insertion;
  const createdAtMs = deps.clock.nowMs();
  await insertSecret(tx, {
    hash,
    purpose: kind.purpose,
    subject,
    sealed: deps.protection.seal(Buffer.from(JSON.stringify(payload)), placeOf(hash)),
    maxAttempts: MAX_ATTEMPTS,
    createdAtMs,
    expiresAtMs: createdAtMs + kind.lifetimeMs,
  });
}

function opener<Payload>(protection: Protection, kind: Kind<Payload>) {
  return (secret: StoredSecret): Living<Payload> => {
    const { hash, subject, createdAtMs, expiresAtMs } = secret;
    const text = protection.open(secret.sealed, placeOf(hash)).toString();
    return { hash, subject, payload: kind.payload.parse(JSON.parse(text)), createdAtMs, expiresAtMs };
  };
}

function placeOf(hash: Buffer): string {
  return `one_time_secrets.sealed:${hash.toString('base64url')}`;
}
