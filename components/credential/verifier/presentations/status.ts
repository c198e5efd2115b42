import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import type { StatusReference } from '#core/credential/status-list/reference.ts';
import {
  findStatus,
  STATUS_INVALID,
  STATUS_SUSPENDED,
  STATUS_VALID,
  type StatusBits,
} from '#core/credential/status-list/status-list.ts';
import { judgeStatusTokenForm, verifyStatusToken } from '#core/credential/status-list/token.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { equalBytes } from '#core/encoding/text.ts';
import type { KeyOrigin } from '#core/trust/evaluate.ts';
import { judgeX5c } from '#core/trust/x5c.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Outbound, OutboundError } from '#kit/outbound/outbound.ts';
import type { StatusResult } from './verdict.ts';

/** Bounds of lists of other issuers: as they are sent, and inflated. */
const mostBytes = 4 * 1024 * 1024;
const mostInflatedBytes = 32 * 1024 * 1024;
const timeoutMs = 5_000;

const unzip = promisify(inflate);

interface StatusDeps {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, 'send'>;
  /** A list of this installation; undefined for an address that is not one of its own. */
  readonly findOwnList: (uri: string) => Promise<string | undefined>;
}

/** Signed lists by address, while their issuers allow it. */
interface CachedList {
  readonly token: string;
  readonly untilMs: number;
}

/** A signed list, and whether its issuer was asked for it now: own lists, and those that are kept, are not kept again. */
interface FoundList {
  readonly token: string;
  readonly isFetched: boolean;
}

/** A verified list, inflated; the same token under the same certificate is not verified again. */
interface OpenedList {
  readonly token: string;
  /** Thumbprint of the leaf of the credential's issuer; undefined for an issuer that is known by its DID. */
  readonly issuer: string | undefined;
  readonly ttlSeconds: number | undefined;
  readonly untilMs: number;
  readonly list: { readonly bits: StatusBits; readonly bytes: Uint8Array };
}

const mostKept = 64;
/** Largest list that is kept inflated. */
const mostOpenedBytes = 256 * 1024;
const leastTtlSeconds = 5;
const mostTtlSeconds = 86_400;

/** Statuses of credentials by their lists, which are kept as long as their issuers say. */
export class StatusReader {
  readonly #deps: StatusDeps;
  readonly #kept = new Map<string, CachedList>();
  readonly #opened = new Map<string, OpenedList>();

  constructor(deps: StatusDeps) {
    this.#deps = deps;
  }

  /**
   * The status of a credential. The list must be signed with the key of the credential's issuer.
   */
  async read(
    reference: StatusReference | 'unsupported' | undefined,
    origin: KeyOrigin,
  ): Promise<StatusResult> {
    if (reference === undefined) return 'NotPresent';
    if (reference === 'unsupported') return 'Unavailable';
    const found = await this.#find(reference.uri);
    if (found === undefined) return 'Unavailable';
    const value = await this.#valueOf(found, reference, origin);
    if (value === STATUS_VALID) return 'Valid';
    if (value === STATUS_SUSPENDED) return 'Suspended';
    // Values that are not known are no valid status.
    return value === undefined ? 'Unavailable' : revoked(value);
  }

  async #valueOf(
    found: FoundList,
    { uri, index }: StatusReference,
    origin: KeyOrigin,
  ): Promise<number | undefined> {
    const opened = this.#findOpened(found, uri, origin) ?? (await this.#open(found, uri, origin));
    if (opened === undefined) return undefined;
    if (found.isFetched) this.#keep(uri, opened);
    return findStatus(opened.list, index);
  }

  #findOpened({ token }: FoundList, uri: string, origin: KeyOrigin): OpenedList | undefined {
    const opened = this.#opened.get(uri);
    const isSame = opened?.token === token && opened.issuer === leafOf(origin);
    return isSame && opened.untilMs > this.#deps.clock.nowMs() ? opened : undefined;
  }

  /** Verifies and inflates a list; undefined when it is not the issuer's. */
  async #open({ token }: FoundList, uri: string, origin: KeyOrigin): Promise<OpenedList | undefined> {
    const form = judgeStatusTokenForm(token);
    if (form.result === undefined) return undefined;
    const issuerKey = keyOf(form.result.header, origin);
    if (issuerKey === undefined) return undefined;
    const nowMs = this.#deps.clock.nowMs();
    const expected = { uri, issuerKey, algorithms: ['ES256'] as const, atMs: nowMs };
    const { result } = verifyStatusToken(form.result, expected);
    if (result === undefined) return undefined;
    const bytes = await inflated(result.compressed);
    if (bytes === undefined) return undefined;
    const { bits, ttlSeconds, expiresAt = Number.POSITIVE_INFINITY } = result;
    const issuer = leafOf(origin);
    const opened = { token, issuer, ttlSeconds, untilMs: expiresAt * 1000, list: { bits, bytes } };
    if (issuer !== undefined && bytes.length <= mostOpenedBytes) setBounded(this.#opened, uri, opened);
    return opened;
  }

  /** Keeps a list that its issuer was asked for, never beyond its expiry. */
  #keep(uri: string, { token, ttlSeconds, untilMs }: OpenedList): void {
    if (ttlSeconds === undefined) return;
    const seconds = Math.min(Math.max(ttlSeconds, leastTtlSeconds), mostTtlSeconds);
    const keptUntilMs = this.#deps.clock.nowMs() + seconds * 1000;
    setBounded(this.#kept, uri, { token, untilMs: Math.min(keptUntilMs, untilMs) });
  }

  async #find(uri: string): Promise<FoundList | undefined> {
    const own = await this.#deps.findOwnList(uri);
    if (own !== undefined) return { token: own, isFetched: false };
    const kept = this.#kept.get(uri);
    if (kept !== undefined && kept.untilMs > this.#deps.clock.nowMs())
      return { token: kept.token, isFetched: false };
    try {
      const answer = await this.#deps.outbound.send(uri, {
        headers: { accept: 'application/statuslist+jwt' },
        limits: { timeoutMs, maxBytes: mostBytes },
      });
      return answer.status === 200 ? { token: answer.body.toString('utf8'), isFetched: true } : undefined;
    } catch (error) {
      if (error instanceof OutboundError) return undefined;
      throw error;
    }
  }
}

/** Keeps a value in place of the oldest one when there are too many. */
function setBounded<T>(kept: Map<string, T>, uri: string, value: T): void {
  kept.delete(uri);
  const [oldest] = kept.keys();
  if (kept.size >= mostKept && oldest !== undefined) kept.delete(oldest);
  kept.set(uri, value);
}

/** The thumbprint of a credential's leaf; undefined for an issuer that is known by its DID. */
function leafOf(origin: KeyOrigin): string | undefined {
  return origin.kind === 'x5c' ? origin.path[0]?.thumbprint : undefined;
}

function revoked(value: number): StatusResult {
  return value === STATUS_INVALID ? 'Revoked' : 'Unavailable';
}

/** The key of a list, when it is that of the credential's issuer. */
function keyOf({ x5c, kid }: JsonObject, origin: KeyOrigin) {
  if (origin.kind === 'did') {
    const isSame = typeof kid === 'string' && kid.split('#', 1)[0] === origin.did;
    return isSame ? origin.key : undefined;
  }
  const [leaf] = judgeX5c(x5c).result ?? [];
  const [issuerLeaf] = origin.path;
  if (leaf === undefined || issuerLeaf === undefined) return undefined;
  // The key of the credential vouches for the list; another certificate proves nothing by its names.
  return equalBytes(leaf.spki, issuerLeaf.spki) ? leaf.key : undefined;
}

/** Inflates zlib data within its bound; undefined when it is larger, none, or has bytes behind it. */
async function inflated(compressed: Uint8Array): Promise<Uint8Array | undefined> {
  try {
    return await unzip(compressed, { maxOutputLength: mostInflatedBytes, rejectGarbageAfterEnd: true });
  } catch {
    return undefined;
  }
}
