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
import { STATUS_BITS } from '../protocol/statuses.ts';
import { findList, keepSigned, readStatuses, type StatusList } from './store.ts';

const compress = promisify(deflate);
const gzipBytes = promisify(gzip);

/** How long a signed list is valid, and after which time readers ask again, in seconds. */
const validSeconds = 86_400;
export const ttlSeconds = 60;

interface StatusListsDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly issuers: Issuers;
  readonly issuerUrl: string;
}

/** The address of a list, which is signed into credentials. */
export function statusListUrl(issuerUrl: string, listId: string): string {
  return `${issuerUrl}/api/v1/credentials/ietf-status-lists/${listId}`;
}

/** Forms of a list: as JWT, as CWT, and as bitstrings of the W3C. */
type ListForm = 'jwt' | 'cwt' | 'revocation' | 'suspension';

/** A list that is about to be signed. */
interface DraftedList extends StatusList {
  readonly statuses: Buffer;
}

interface SignedForm {
  readonly version: number;
  readonly at: Date;
  readonly bytes: Uint8Array;
}

const mostForms = 32;

/**
 * Signed forms of the status lists of this issuer. A form is signed anew after a change, and when half of its validity is
 * over; of requests at one time one signs it. The JWT is stored, the other forms are kept in memory.
 */
export class StatusLists {
  readonly #deps: StatusListsDeps;
  readonly #signed = new Map<string, SignedForm>();
  readonly #signing = new Map<string, Promise<Uint8Array>>();

  constructor(deps: StatusListsDeps) {
    this.#deps = deps;
  }

  /**
   * Errors: not_found STATUS_LIST_NOT_FOUND, those of `Issuers`; unprocessable CERT_NOT_ENROLLED for a CWT of the
   * register, which needs a chain.
   */
  async get(listId: string, form: ListForm): Promise<Uint8Array> {
    const list = await findList(this.#deps.db.read, listId);
    if (list === undefined) throw refusal('STATUS_LIST_NOT_FOUND');
    const current = this.#findCurrent(list, form);
    if (current !== undefined) return current;
    const key = `${listId} ${form} ${list.version}`;
    const signing = this.#signing.get(key) ?? this.#sign(list, form);
    this.#signing.set(key, signing);
    try {
      return await signing;
    } finally {
      this.#signing.delete(key);
    }
  }

  /**
   * The JWT of a list of this issuer by its address; undefined for an address that is not one of its own, empty for a list
   * that cannot be had. Errors: unavailable, timeout.
   */
  async findOwn(uri: string): Promise<string | undefined> {
    const base = statusListUrl(this.#deps.issuerUrl, '');
    if (!uri.startsWith(base)) return undefined;
    const listId = z.guid().safeParse(uri.slice(base.length));
    if (!listId.success) return '';
    try {
      return Buffer.from(await this.get(listId.data, 'jwt')).toString();
    } catch (error) {
      // An outage may be over at the next try; everything else is a list that cannot be had.
      if (!isAppError(error) || isAppError(error, 'unavailable') || isAppError(error, 'timeout')) throw error;
      return '';
    }
  }

  #findCurrent(list: StatusList, form: ListForm): Uint8Array | undefined {
    const nowMs = this.#deps.clock.nowMs();
    if (form === 'jwt') {
      const { signed } = list;
      return signed !== undefined && isCurrent(list, signed, nowMs) ? utf8(signed.token) : undefined;
    }
    const signed = this.#signed.get(`${list.id} ${form}`);
    return signed !== undefined && isCurrent(list, signed, nowMs) ? signed.bytes : undefined;
  }

  async #sign(list: StatusList, form: ListForm): Promise<Uint8Array> {
    const { db, clock } = this.#deps;
    const at = new Date(clock.nowMs());
    const { statuses, version } = await readStatuses(db.read, list.id);
    const drafted = { ...list, statuses };
    if (form === 'jwt') {
      const token = await this.#signJwt(drafted, at);
      await db.transact((tx) => keepSigned(tx, list.id, { token, version, at }));
      return utf8(token);
    }
    const bytes =
      form === 'cwt' ? await this.#signCwt(drafted, at) : await this.#signBitstring(drafted, form, at);
    if (this.#signed.size >= mostForms) this.#signed.clear();
    this.#signed.set(`${list.id} ${form}`, { version, at, bytes });
    return bytes;
  }

  async #signJwt(list: DraftedList, at: Date): Promise<string> {
    const { issuers, issuerUrl } = this.#deps;
    const lst = encodeBase64Url(await compress(list.statuses, { level: 9 }));
    const iat = Math.floor(at.getTime() / 1000);
    const chain = await issuers.chainOf(list, 'Statuses');
    const header = { alg: 'ES256', typ: 'statuslist+jwt', ...issuerHeader(list, chain) };
    const payload = {
      sub: statusListUrl(issuerUrl, list.id),
      iss: issuerName(list, issuerUrl),
      iat,
      exp: iat + validSeconds,
      ttl: ttlSeconds,
      status_list: { bits: STATUS_BITS, lst },
    };
    return signJwt(issuers, { issuer: list, chain, header, payload });
  }

  async #signCwt(list: DraftedList, at: Date): Promise<Uint8Array> {
    const { issuers, issuerUrl } = this.#deps;
    const certificates = await issuers.chainOf(list, 'Statuses');
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
    return issueStatusCwt(claims, (message) =>
      signAsIssuer(issuers, { issuer: list, chain: certificates }, message),
    );
  }

  /** BitstringStatusListCredential (W3C Bitstring Status List v1.0), secured as a JWT. */
  async #signBitstring(
    list: DraftedList,
    purpose: 'revocation' | 'suspension',
    at: Date,
  ): Promise<Uint8Array> {
    const { issuers, issuerUrl } = this.#deps;
    const chain = await issuers.chainOf(list, 'Statuses');
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

function isCurrent(
  list: StatusList,
  signed: { readonly version: number; readonly at: Date },
  nowMs: number,
): boolean {
  return signed.version === list.version && nowMs - signed.at.getTime() < (validSeconds / 2) * 1000;
}
