import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '#kit/clock/clock.ts';
import type { Reader } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { isHighAssurance, type Profile } from '../../protocol/profile.ts';
import { secretHash } from '../../protocol/secrets.ts';
import { type DpopProof, dpopRefusal, judgeDpop } from '../nonces/dpop.ts';
import type { Nonces } from '../nonces/nonces.ts';
import { type AccessToken, findAccessToken } from '../tokens/store.ts';

interface AuthoriseDeps {
  readonly db: { readonly read: Reader<CredentialDatabase> };
  readonly clock: Clock;
  readonly nonces: Nonces;
  readonly issuerUrl: string;
  readonly profile: Profile;
}

interface Authorised {
  readonly token: AccessToken;
  readonly accessToken: string;
  readonly dpop: DpopProof | undefined;
}

/**
 * Verifies the access token of a wallet. A token that is bound to a key is accepted with a proof of it alone, and a
 * bearer token without one, in the profile openid4vc-1.0.
 * @throws ProtocolError invalid_token, invalid_dpop_proof, use_dpop_nonce
 */
export async function authoriseWallet(
  deps: AuthoriseDeps,
  headers: IncomingHttpHeaders,
): Promise<Authorised> {
  const expected = isHighAssurance(deps.profile) ? 'DPoP' : 'Bearer';
  const [, scheme = '', accessToken] =
    /^(bearer|dpop) +([A-Za-z0-9_-]{1,256})$/i.exec(headers.authorization ?? '') ?? [];
  if (accessToken === undefined) throw invalidToken(expected, 'an access token is required');
  const token = await findAccessToken(deps.db.read, secretHash(accessToken));
  const nowMs = deps.clock.nowMs();
  if (token === undefined || token.expiresAt.getTime() <= nowMs)
    throw invalidToken(expected, 'the access token is unknown or has expired');
  const isDpop = scheme.toLowerCase() === 'dpop';
  if (token.dpopThumbprint === null) {
    if (isDpop || expected === 'DPoP') throw invalidToken('DPoP', 'the access token is bound to no key');
    return { token, accessToken, dpop: undefined };
  }
  if (!isDpop) throw invalidToken('DPoP', 'the access token is bound to a key');
  const dpop = readProof(deps, headers['dpop'], { accessToken, nowMs });
  if (dpop.thumbprint !== token.dpopThumbprint) throw dpopRefusal('the proof is of another key', true);
  return { token, accessToken, dpop };
}

function readProof(
  { nonces, issuerUrl }: AuthoriseDeps,
  header: string | string[] | undefined,
  { accessToken, nowMs }: { readonly accessToken: string; readonly nowMs: number },
): DpopProof {
  if (typeof header !== 'string') throw dpopRefusal('one DPoP proof is required', true);
  return judgeDpop(header, { nonces, method: 'POST', url: `${issuerUrl}/credential`, nowMs, accessToken });
}

function invalidToken(scheme: 'Bearer' | 'DPoP', description: string): ProtocolError {
  return new ProtocolError('invalid_token', description, {
    status: 401,
    headers: {
      'www-authenticate': `${scheme} error="invalid_token"${scheme === 'DPoP' ? ', algs="ES256 EdDSA"' : ''}`,
    },
  });
}
