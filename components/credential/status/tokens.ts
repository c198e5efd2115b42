import { promisify } from 'node:util';
import { deflate, gzip } from 'node:zlib';
import { z } from 'zod';
import { issueStatusCwt } from '#core/credential/mdoc/status-cwt.ts';
import { bitstringOf, STATUS_INVALID, STATUS_SUSPENDED } from '#core/credential/status-list/status-list.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { utf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { issuerHeader, issuerName } from '../issuer/signing/issuer-header.ts';
import type { Issuers } from '../issuer/signing/issuers.ts';
import { signAsIssuer, signJwt } from '../issuer/signing/sign.ts';
import { STATUS_BITS } from './statuses.ts';
import { findList, keepSigned, type StatusList } from './store.ts';

const compress = promisify(deflate);
const gzipBytes = promisify(gzip);

/** How long a signed list is valid, and after which time readers ask again, in seconds. */
const validSeconds = 86_400;
export const ttlSeconds = 60;

export interface StatusTokenDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly issuers: Issuers;
  readonly issuerUrl: string;
}

/** The address of a list, which is signed into credentials. */
export function statusListUrl(issuerUrl: string, listId: string): string {
  return `${issuerUrl}/api/v1/credentials/ietf-status-lists/${listId}`;
}

/**
 * The status list token of a list (draft-ietf-oauth-status-list-21, section 5.1), signed by its issuer. It is signed anew
 * after a change, and when half of its validity is over.
 * @throws AppError not_found STATUS_LIST_NOT_FOUND, and those of `Issuers`
 */
export async function getStatusToken(deps: StatusTokenDeps, listId: string): Promise<string> {
  const list = await findList(deps.db.read, listId);
  if (list === undefined) throw refusal('STATUS_LIST_NOT_FOUND');
  const nowMs = deps.clock.nowMs();
  if (list.signed !== undefined && isCurrent(list, list.signed, nowMs)) return list.signed.token;
  const at = new Date(nowMs);
  const token = await signList(deps, list, at);
  await deps.db.transact((tx) => keepSigned(tx, listId, { token, version: list.version, at }));
  return token;
}

/**
 * A list of this issuer by its address; undefined for an address that is not one of its own, empty for a list that cannot
 * be had. Errors: unavailable, timeout.
 */
export async function readListOfOurs(deps: StatusTokenDeps, uri: string): Promise<string | undefined> {
  const base = statusListUrl(deps.issuerUrl, '');
  if (!uri.startsWith(base)) return undefined;
  const listId = z.guid().safeParse(uri.slice(base.length));
  if (!listId.success) return '';
  return getStatusToken(deps, listId.data).catch((error: unknown) => {
    // An outage may be over at the next try; everything else is a list that cannot be had.
    if (!isAppError(error) || isAppError(error, 'unavailable') || isAppError(error, 'timeout')) throw error;
    return '';
  });
}

function isCurrent(list: StatusList, signed: { version: number; at: Date }, nowMs: number): boolean {
  return signed.version === list.version && nowMs - signed.at.getTime() < (validSeconds / 2) * 1000;
}

async function signList(deps: StatusTokenDeps, list: StatusList, at: Date): Promise<string> {
  const lst = encodeBase64Url(await compress(list.statuses, { level: 9 }));
  const iat = Math.floor(at.getTime() / 1000);
  const chain = await deps.issuers.chainOf(list);
  const header = { alg: 'ES256', typ: 'statuslist+jwt', ...issuerHeader(list, chain) };
  const payload = {
    sub: statusListUrl(deps.issuerUrl, list.id),
    iss: issuerName(list, deps.issuerUrl),
    iat,
    exp: iat + validSeconds,
    ttl: ttlSeconds,
    status_list: { bits: STATUS_BITS, lst },
  };
  return signJwt(deps.issuers, { issuer: list, chain, header, payload });
}

/** Other forms of the same lists: as CWT, and as bitstrings of the W3C. */
type ListForm = 'cwt' | 'revocation' | 'suspension';

interface SignedForm {
  readonly version: number;
  readonly at: Date;
  readonly bytes: Uint8Array;
}

const mostForms = 32;

/** The other forms of lists, kept in memory as long as they are current. */
export class ListForms {
  readonly #deps: StatusTokenDeps;
  readonly #signed = new Map<string, SignedForm>();

  constructor(deps: StatusTokenDeps) {
    this.#deps = deps;
  }

  /** Errors: as `getStatusToken`; unprocessable CERT_NOT_ENROLLED for a CWT of the register, which needs a chain. */
  async get(listId: string, form: ListForm): Promise<Uint8Array> {
    const list = await findList(this.#deps.db.read, listId);
    if (list === undefined) throw refusal('STATUS_LIST_NOT_FOUND');
    const key = `${listId} ${form}`;
    const nowMs = this.#deps.clock.nowMs();
    const signed = this.#signed.get(key);
    if (signed !== undefined && isCurrent(list, signed, nowMs)) return signed.bytes;
    const at = new Date(nowMs);
    const bytes = form === 'cwt' ? await this.#signCwt(list, at) : await this.#signBitstring(list, form, at);
    if (this.#signed.size >= mostForms) this.#signed.clear();
    this.#signed.set(key, { version: list.version, at, bytes });
    return bytes;
  }

  async #signCwt(list: StatusList, at: Date): Promise<Uint8Array> {
    const { issuers, issuerUrl } = this.#deps;
    const certificates = await issuers.chainOf(list);
    if (certificates.length === 0) throw refusal('CERT_NOT_ENROLLED');
    const issuedAt = Math.floor(at.getTime() / 1000);
    const claims = {
      uri: statusListUrl(issuerUrl, list.id),
      issuedAt,
      expiresAt: issuedAt + validSeconds,
      ttlSeconds,
      bits: STATUS_BITS,
      compressed: await compress(list.statuses, { level: 9 }),
      certificates,
    } as const;
    return issueStatusCwt(claims, (digest) =>
      signAsIssuer(issuers, { issuer: list, chain: certificates }, digest),
    );
  }

  /** BitstringStatusListCredential (W3C Bitstring Status List v1.0), secured as a JWT. */
  async #signBitstring(
    list: StatusList,
    purpose: 'revocation' | 'suspension',
    at: Date,
  ): Promise<Uint8Array> {
    const { issuers, issuerUrl } = this.#deps;
    const chain = await issuers.chainOf(list);
    const url = `${issuerUrl}/api/v1/credentials/status-lists/${list.id}?purpose=${purpose}`;
    const value = purpose === 'revocation' ? STATUS_INVALID : STATUS_SUSPENDED;
    const bits = bitstringOf({ bits: STATUS_BITS, bytes: list.statuses }, value);
    const encodedList = `u${encodeBase64Url(await gzipBytes(bits, { level: 9 }))}`;
    const header = { alg: 'ES256', typ: 'vc+jwt', cty: 'vc', ...issuerHeader(list, chain) };
    const payload = {
      '@context': ['https://www.w3.org/ns/credentials/v2'],
      id: url,
      type: ['VerifiableCredential', 'BitstringStatusListCredential'],
      issuer: issuerName(list, issuerUrl),
      validFrom: at.toISOString(),
      validUntil: new Date(at.getTime() + validSeconds * 1000).toISOString(),
      credentialSubject: {
        id: `${url}#list`,
        type: 'BitstringStatusList',
        statusPurpose: purpose,
        encodedList,
        ttl: ttlSeconds * 1000,
      },
    };
    return utf8(await signJwt(issuers, { issuer: list, chain, header, payload }));
  }
}
