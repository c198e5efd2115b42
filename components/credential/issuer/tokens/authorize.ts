import { randomBytes } from 'node:crypto';
import { equalSecrets, sha256 } from '#core/crypto/hash.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { utf8 } from '#core/encoding/text.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { createSecret, openUnder, sealUnder, secretHash } from '../../protocol/secrets.ts';
import { type AttestedClient, invalidClient } from '../attestation/client.ts';
import {
  type AuthorizationCode,
  endOfferTokens,
  insertRefresh,
  lockRefresh,
  takeCode,
  useRefresh,
} from '../authorization/store.ts';
import { type DpopProof, dpopRefusal } from '../nonces/dpop.ts';
import { useOnce } from '../nonces/store.ts';
import { statusAt } from '../offers/offer.ts';
import { endOffer, lockOffer } from '../offers/store.ts';
import { type ExchangeDeps, tokenSeconds } from './exchange.ts';
import { insertAccessToken } from './store.ts';

/** How long a wallet may ask for fresh copies of its credential. */
const refreshSeconds = 30 * 86_400;

/** The client of a token request, and the key that the tokens are bound to. */
interface Bound {
  readonly client: AttestedClient;
  readonly dpop: DpopProof;
}

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** The configuration, where the wallet asked by `authorization_details`. */
  readonly detailed?: string;
}

/**
 * Gives tokens for an authorization code (RFC 6749, section 4.1.3; RFC 7636), to the key that the code is bound to, if it
 * is (RFC 9449, section 10). A code is used up by the first request that presents it, also by a wrong one.
 * @throws ProtocolError invalid_grant, invalid_client, invalid_dpop_proof
 */
export async function exchangeAuthorizationCode(
  { db, clock }: ExchangeDeps,
  request: Bound & {
    readonly code: string;
    readonly verifier: string;
    readonly redirectUri: string | undefined;
  },
): Promise<Tokens> {
  const now = new Date(clock.nowMs());
  const outcome = await db.transact(async (tx) => {
    const code = await takeCode(tx, secretHash(request.code));
    if (code === undefined || code.expiresAt <= now || !isRequesterOf(code, request)) return invalidGrant();
    const fault = await useProofs(tx, request);
    if (fault !== undefined) return fault;
    const offer = await lockOffer(tx, code.offerId);
    if (offer === undefined || statusAt(offer, now) !== 'Pending') return invalidGrant();
    const claims = openUnder(request.code, offer.id, code.sealedClaims);
    if (claims === undefined) throw new Error('the claims of a code cannot be opened with it');
    await endOffer(tx, offer.id, { status: 'Exchanged', reason: null, at: now });
    const tokens = await issueTokens(tx, { ...request, offerId: offer.id, claims, now });
    return code.hasDetails ? { ...tokens, detailed: offer.configurationId } : tokens;
  });
  return given(outcome);
}

/**
 * Gives new tokens for a refresh token, which is replaced, to the instance of the wallet that got it: its attested key and
 * its DPoP key (draft-ietf-oauth-attestation-based-client-auth, "Refresh token binding"). One that was used before ends all
 * tokens of its offer, because another party has a copy (RFC 9700, section 4.14.2).
 * @throws ProtocolError invalid_grant, invalid_client, invalid_dpop_proof
 */
export async function refreshTokens(
  { db, clock }: ExchangeDeps,
  request: Bound & { readonly refreshToken: string },
): Promise<Tokens> {
  const now = new Date(clock.nowMs());
  const outcome = await db.transact(async (tx) => {
    const tokenHash = secretHash(request.refreshToken);
    const token = await lockRefresh(tx, tokenHash);
    if (token === undefined || token.expiresAt <= now || token.clientId !== request.client.clientId)
      return invalidGrant();
    if (token.sealedClaims === null) {
      await endOfferTokens(tx, token.offerId);
      return invalidGrant();
    }
    if (token.dpopThumbprint !== request.dpop.thumbprint)
      return dpopRefusal('the token is bound to another key', false);
    if ((token.clientThumbprint ?? request.client.thumbprint) !== request.client.thumbprint)
      return invalidGrant();
    const fault = await useProofs(tx, request);
    if (fault !== undefined) return fault;
    const claims = openUnder(request.refreshToken, token.offerId, token.sealedClaims);
    if (claims === undefined) throw new Error('the claims of a refresh token cannot be opened with it');
    await useRefresh(tx, tokenHash);
    return issueTokens(tx, { ...request, offerId: token.offerId, claims, now });
  });
  return given(outcome);
}

/** A refusal is returned by its transaction and not thrown, because what it used up must commit. */
function given(outcome: Tokens | ProtocolError): Tokens {
  if (outcome instanceof ProtocolError) throw outcome;
  return outcome;
}

function isRequesterOf(
  code: AuthorizationCode,
  request: Bound & { readonly verifier: string; readonly redirectUri: string | undefined },
): boolean {
  if (code.clientId !== request.client.clientId) return false;
  if (code.dpopThumbprint !== null && code.dpopThumbprint !== request.dpop.thumbprint) return false;
  if (request.redirectUri !== undefined && request.redirectUri !== code.redirectUri) return false;
  const isVerifier = /^[A-Za-z0-9._~-]{43,128}$/.test(request.verifier);
  const challenge = encodeBase64Url(sha256(request.verifier));
  return isVerifier && equalSecrets(utf8(challenge), utf8(code.codeChallenge));
}

async function useProofs(
  tx: Transactor<CredentialDatabase>,
  { client, dpop }: Bound,
): Promise<ProtocolError | undefined> {
  if (!(await useOnce(tx, client.useOnce, client.expiresAt)))
    return invalidClient('the proof of the attested key was used before');
  if (!(await useOnce(tx, dpop.useOnce, dpop.expiresAt)))
    return dpopRefusal('the proof was used before', false);
  return undefined;
}

interface Issue extends Bound {
  readonly offerId: string;
  readonly claims: Buffer;
  readonly now: Date;
}

async function issueTokens(tx: Transactor<CredentialDatabase>, issue: Issue): Promise<Tokens> {
  const { offerId, claims: plain, now, client, dpop } = issue;
  const [accessToken, refreshToken] = [createSecret(randomBytes), createSecret(randomBytes)];
  const seal = (secret: string) => sealUnder(secret, offerId, { plain, random: randomBytes });
  await insertAccessToken(tx, {
    tokenHash: secretHash(accessToken),
    offerId,
    sealedClaims: seal(accessToken),
    dpopThumbprint: dpop.thumbprint,
    expiresAt: new Date(now.getTime() + tokenSeconds * 1000),
  });
  await insertRefresh(tx, secretHash(refreshToken), {
    offerId,
    clientId: client.clientId,
    clientThumbprint: client.thumbprint,
    dpopThumbprint: dpop.thumbprint,
    sealedClaims: seal(refreshToken),
    expiresAt: new Date(now.getTime() + refreshSeconds * 1000),
  });
  plain.fill(0);
  return { accessToken, refreshToken };
}

function invalidGrant(): ProtocolError {
  return new ProtocolError('invalid_grant', 'the code or token is not valid');
}
