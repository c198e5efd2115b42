import { randomInt, randomUUID } from 'node:crypto';
import type { JsonObject } from '#core/encoding/json.ts';
import type { Certificate } from '#core/trust/certificate.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Database, isUniqueViolation, type Transactor } from '#kit/db/db.ts';
import { insertEvents } from '../../audit/store.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import type { Meter } from '../../metrics.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { batchSize } from '../../protocol/grants.ts';
import type { Possession } from '../../protocol/possession.ts';
import type { Profile } from '../../protocol/profile.ts';
import { openObjectUnder } from '../../protocol/secrets.ts';
import { LIST_SIZE } from '../../protocol/statuses.ts';
import { findOpenList, insertList } from '../../status/store.ts';
import type { Configuration } from '../metadata/configuration.ts';
import { findConfiguration, findConfigurationOfType } from '../metadata/store.ts';
import { type DpopProof, dpopRefusal } from '../nonces/dpop.ts';
import type { Nonces } from '../nonces/nonces.ts';
import { nonceSeconds } from '../nonces/nonces.ts';
import { useOnce, wasUsed } from '../nonces/store.ts';
import type { Offer } from '../offers/offer.ts';
import type { Issuers } from '../signing/issuers.ts';
import { type AccessToken, countIssued } from '../tokens/store.ts';
import { type Drafted, signCredential } from './credentials.ts';
import { invalidNonce, judgeProofs } from './proofs.ts';
import type { CredentialRequest } from './request.ts';
import { insertCredentials, markIssued, type NewCredential } from './store.ts';

export interface IssueDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly nonces: Nonces;
  readonly issuers: Issuers;
  readonly issuerUrl: string;
  readonly profile: Profile;
  readonly authorities: readonly Certificate[];
  readonly requiresKeyAttestation: boolean;
  readonly meter: Meter;
}

/** The token of a request, verified. */
interface Authorised {
  readonly token: AccessToken;
  readonly accessToken: string;
  readonly dpop: DpopProof | undefined;
}

/** A signed credential, and what is stored of it. */
interface Signed {
  readonly credential: string;
  readonly stored: NewCredential;
}

/** Attempts to find free places in a status list, which other requests take at the same time. */
const mostAttempts = 3;

/**
 * Issues one credential for each proven key (OpenID4VCI 1.0, section 8). They are signed first; then one transaction uses
 * up the nonce and writes them, so a request that fails can be repeated, and none leaves that is not written.
 * @throws ProtocolError, and AppErrors of `Issuers`
 */
export async function issueCredentials(
  deps: IssueDeps,
  authorised: Authorised,
  request: CredentialRequest,
): Promise<readonly string[]> {
  const { token, accessToken } = authorised;
  const { offer } = token;
  const configuration = await judgeConfiguration(deps, offer, request);
  const nowMs = deps.clock.nowMs();
  const { keys, nonce } = judgeProofs(request.proofs, {
    nonces: deps.nonces,
    issuer: deps.issuerUrl,
    nowMs,
    isMdoc: configuration.format === 'mso_mdoc',
    authorities: deps.authorities,
    requiresAttestation: deps.requiresKeyAttestation,
    thumbprint: offer.holderThumbprint,
  });
  if (await wasUsed(deps.db.read, nonce)) throw invalidNonce('the nonce was used before');
  if (token.issued + keys.length > batchSize) throw spent();
  const claims = openObjectUnder(accessToken, offer.id, token.sealedClaims);
  for (let attempt = 1; ; attempt += 1) {
    const signed = await signAll(deps, { offer, configuration, claims, keys, now: new Date(nowMs) });
    try {
      await deps.db.transact((tx) => write(tx, { ...authorised, nonce, now: new Date(nowMs) }, signed));
      deps.meter.issued(configuration.format, signed.length);
      return signed.map(({ credential }) => credential);
    } catch (error) {
      if (!isUniqueViolation(error) || attempt >= mostAttempts) throw error;
    }
  }
}

/**
 * @throws ProtocolError unknown_credential_configuration, unknown_credential_identifier; invalid_credential_request for
 * one that the offer has not
 */
async function judgeConfiguration(
  { db }: IssueDeps,
  offer: Offer,
  { asked }: CredentialRequest,
): Promise<Configuration> {
  if ('identifier' in asked && asked.identifier !== offer.configurationId)
    throw new ProtocolError('unknown_credential_identifier', 'the token was given with no such identifier');
  const found =
    'credentialType' in asked
      ? await findConfigurationOfType(db.read, { format: 'dc+sd-jwt', credentialType: asked.credentialType })
      : await findConfiguration(db.read, 'identifier' in asked ? asked.identifier : asked.configurationId);
  if (found === undefined)
    throw new ProtocolError('unknown_credential_configuration', 'this issuer has no such configuration');
  if (found.id !== offer.configurationId)
    throw new ProtocolError('invalid_credential_request', 'the token was given for another configuration');
  return found;
}

function spent(): ProtocolError {
  return new ProtocolError('credential_request_denied', `the offer gives ${batchSize} credentials at most`);
}

interface Issue {
  readonly offer: Offer;
  readonly configuration: Configuration;
  readonly claims: JsonObject;
  readonly keys: readonly Possession[];
  readonly now: Date;
}

async function signAll(deps: IssueDeps, issue: Issue): Promise<readonly Signed[]> {
  const [chain, places] = await Promise.all([
    deps.issuers.chainOf(issue.offer, 'Credentials'),
    drawPlaces(deps, issue),
  ]);
  return Promise.all(
    issue.keys.map((key, index) => signOne(deps, { ...issue, chain, key, place: places[index] })),
  );
}

async function signOne(
  deps: IssueDeps,
  { key, ...issue }: Omit<Drafted, 'holderKey'> & { readonly key: Possession },
): Promise<Signed> {
  const { credential, expiresAt } = await signCredential(deps, { ...issue, holderKey: key.jwk });
  const { place, now } = issue;
  return {
    credential,
    stored: { id: randomUUID(), holderThumbprint: key.thumbprint, place, issuedAt: now, expiresAt },
  };
}

/** Random places in the open list of the issuer, which tell nothing about their order. */
async function drawPlaces(
  { db }: IssueDeps,
  { offer, keys }: Issue,
): Promise<readonly NewCredential['place'][]> {
  if (!offer.hasStatus) return [];
  for (;;) {
    const drawn = new Set<number>();
    while (drawn.size < keys.length) drawn.add(randomInt(LIST_SIZE));
    const indexes = [...drawn];
    const list = await findOpenList(db.read, offer, indexes);
    if (list === undefined) await db.transact((tx) => insertList(tx, offer));
    else if (list.taken.size === 0) return indexes.map((index) => ({ listId: list.id, index }));
  }
}

type Written = Authorised & { readonly nonce: string; readonly now: Date };

async function write(
  tx: Transactor<CredentialDatabase>,
  { token, dpop, nonce, now }: Written,
  signed: readonly Signed[],
): Promise<void> {
  if (!(await markIssued(tx, token.offer.id, now)))
    throw new ProtocolError('credential_request_denied', 'the credential was suspended or revoked');
  const isCounted = await countIssued(tx, token.tokenHash, { count: signed.length, most: batchSize });
  if (!isCounted) throw spent();
  if (dpop !== undefined && !(await useOnce(tx, dpop.useOnce, dpop.expiresAt)))
    throw dpopRefusal('the proof was used before', true);
  const expiresAt = new Date(now.getTime() + 2 * nonceSeconds * 1000);
  if (!(await useOnce(tx, nonce, expiresAt))) throw invalidNonce('the nonce was used before');
  const stored = signed.map((one) => one.stored);
  await insertCredentials(tx, token.offer, stored);
  const { organizationId, configurationId: detail } = token.offer;
  const event = { organizationId, kind: 'issued', detail, at: now } as const;
  await insertEvents(
    tx,
    stored.map(({ id: resourceId }) => ({ ...event, resourceId })),
  );
}
