import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { z } from 'zod';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { issuerHeader, issuerName } from '../issuer/signing/issuer-header.ts';
import type { Issuers } from '../issuer/signing/issuers.ts';
import { signJwt } from '../issuer/signing/sign.ts';
import { STATUS_BITS } from './statuses.ts';
import { findList, keepSigned, type StatusList } from './store.ts';

const compress = promisify(deflate);

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
