import { randomBytes } from 'node:crypto';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { FormParameters } from '#kit/http/http.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { createSecret, openObjectUnder, sealUnder, secretHash } from '../../protocol/secrets.ts';
import { type AttestedClient, invalidClient } from '../attestation/client.ts';
import { type DpopProof, dpopRefusal } from '../nonces/dpop.ts';
import { useOnce } from '../nonces/store.ts';
import { statusAt } from '../offers/offer.ts';
import { lockOfferByCode } from '../offers/store.ts';
import { insertPushed } from './store.ts';

/** How long a pushed request can be used, in seconds. */
export const pushedSeconds = 300;
const requestPrefix = 'urn:ietf:params:oauth:request_uri:';

export interface PushDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
}

interface Pusher {
  readonly client: AttestedClient;
  readonly dpop: DpopProof | undefined;
}

/** Sealed under the request URI. */
interface PushedSecrets {
  readonly issuerState: string;
  readonly claims: JsonObject;
}

/**
 * Takes a pushed authorization request (RFC 9126) for the offer that `issuer_state` names. What the approval needs is
 * sealed under the request URI. The code will be bound to the key that `dpop_jkt` names or that the proof is of (RFC 9449,
 * section 10).
 * @throws ProtocolError invalid_request, unsupported_response_type, invalid_scope, invalid_client, invalid_dpop_proof
 */
export async function pushRequest(
  { db, clock }: PushDeps,
  form: FormParameters,
  { client, dpop }: Pusher,
): Promise<string> {
  const asked = readRequest(form);
  if (dpop !== undefined && (asked.dpopThumbprint ?? dpop.thumbprint) !== dpop.thumbprint)
    throw dpopRefusal('dpop_jkt names another key', false);
  const now = new Date(clock.nowMs());
  const requestUri = `${requestPrefix}${createSecret(randomBytes)}`;
  await db.transact(async (tx) => {
    if (!(await useOnce(tx, client.useOnce, client.expiresAt)))
      throw invalidClient('the proof of the attested key was used before');
    if (dpop !== undefined && !(await useOnce(tx, dpop.useOnce, dpop.expiresAt)))
      throw dpopRefusal('the proof was used before', false);
    const offer = await lockOfferByCode(tx, secretHash(asked.issuerState));
    if (offer === undefined || offer.sealedClaims === null || statusAt(offer, now) !== 'Pending')
      throw invalid('issuer_state names no offer that can be taken');
    if (asked.configurationId !== offer.configurationId)
      throw new ProtocolError('invalid_scope', 'the offer is for another configuration');
    const claims = openObjectUnder(asked.issuerState, offer.id, offer.sealedClaims);
    const secrets: PushedSecrets = { issuerState: asked.issuerState, claims };
    await insertPushed(tx, secretHash(requestUri), {
      offerId: offer.id,
      clientId: client.clientId,
      redirectUri: asked.redirectUri,
      codeChallenge: asked.codeChallenge,
      dpopThumbprint: dpop?.thumbprint ?? asked.dpopThumbprint,
      hasDetails: asked.hasDetails,
      state: asked.state,
      sealed: sealUnder(requestUri, offer.id, { plain: canonicalBytes(secrets), random: randomBytes }),
      expiresAt: new Date(now.getTime() + pushedSeconds * 1000),
    });
  });
  return requestUri;
}

interface PushedTerms {
  readonly issuerState: string;
  readonly configurationId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string;
  readonly dpopThumbprint: string | null;
  readonly hasDetails: boolean;
  readonly state: string | null;
}

function readRequest(form: FormParameters): PushedTerms {
  if (form.get('response_type') !== 'code')
    throw new ProtocolError('unsupported_response_type', 'response_type must be code');
  if (form.has('request_uri')) throw invalid('request_uri may not be pushed');
  const codeChallenge = form.get('code_challenge');
  const isS256 = form.get('code_challenge_method') === 'S256';
  if (!isS256 || codeChallenge === undefined || !isDigest(codeChallenge))
    throw invalid('code_challenge with code_challenge_method S256 is required');
  const state = form.get('state') ?? null;
  if (state !== null && state.length > 1_000) throw invalid('state is too long');
  const dpopThumbprint = form.get('dpop_jkt') ?? null;
  if (dpopThumbprint !== null && !isDigest(dpopThumbprint))
    throw invalid('dpop_jkt is no SHA-256 thumbprint');
  return {
    issuerState: form.get('issuer_state') ?? '',
    configurationId: configurationOf(form),
    redirectUri: redirectOf(form.get('redirect_uri')),
    codeChallenge,
    dpopThumbprint,
    hasDetails: form.has('authorization_details'),
    state,
  };
}

/** Whether a text has the form of a SHA-256 digest in base64url. */
const isDigest = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

/** `scope`, or `authorization_details` of one credential (OpenID4VCI 1.0, section 5.1). */
function configurationOf(form: FormParameters): string {
  const details = form.get('authorization_details');
  const scope = form.get('scope');
  if (details === undefined) {
    if (scope === undefined)
      throw new ProtocolError('invalid_scope', 'scope or authorization_details is required');
    return scope;
  }
  const [only, more] = readDetails(details);
  if (!isJsonObject(only) || more !== undefined || only['type'] !== 'openid_credential')
    throw invalid('authorization_details asks for one openid_credential');
  const { credential_configuration_id: id } = only;
  if (typeof id !== 'string') throw invalid('authorization_details names no credential_configuration_id');
  return id;
}

function readDetails(text: string): readonly unknown[] {
  try {
    const value = toValue(scanJson(text));
    if (Array.isArray(value)) return value;
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
  }
  throw invalid('authorization_details is no list');
}

const refusedSchemes: readonly string[] = ['javascript:', 'data:', 'vbscript:', 'file:', 'blob:', 'about:'];

/** Where the person goes back to: the wallet's https address, or its own scheme. */
function redirectOf(text: string | undefined): string {
  const url = text === undefined || text.length > 2_000 ? null : URL.parse(text);
  if (url === null || url.hash !== '' || refusedSchemes.includes(url.protocol))
    throw invalid('redirect_uri is missing or not allowed');
  const isLoopback = url.hostname === '127.0.0.1' || url.hostname === '[::1]' || url.hostname === 'localhost';
  if (url.protocol === 'http:' && !isLoopback) throw invalid('redirect_uri must be https');
  return text ?? '';
}

function invalid(description: string): ProtocolError {
  return new ProtocolError('invalid_request', description);
}
