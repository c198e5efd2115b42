import { errors, type JWTVerifyResult, jwtVerify } from 'jose';
import { isBase64Url } from '#core/encoding/base64.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import { type Caller, callerOf, parseAccessClaims } from '#core/identity/claims.ts';
import { issuerOf } from '#core/identity/tiers.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { TokenKeys } from './keys.ts';
import type { RevocationView } from './revocations.ts';

const skewSeconds = 30;
// Tokens are minted with 4 KiB at most.
const tokenLimitCharacters = 8_192;
const cacheLimit = 10_000;

export interface Authenticator {
  /**
   * Verifies an access token.
   *
   * Errors: unauthenticated/UNAUTHORIZED (whatever is wrong with the token), unavailable/REVOCATIONS_STALE,
   * unavailable/TOKEN_KEYS_UNAVAILABLE.
   */
  authenticate(token: string): Promise<Caller>;
}

/** Judges callers whose token was verified before, for connections that outlive a request. */
export interface CallerCheck {
  /**
   * Errors: unauthenticated/UNAUTHORIZED when the token has expired or was revoked since,
   * unavailable/REVOCATIONS_STALE.
   */
  assertCurrent(caller: Caller): void;
}

export interface AuthenticatorOptions {
  readonly installation: string;
  readonly keys: TokenKeys;
  readonly revocations: Pick<RevocationView, 'isRevoked' | 'assertFresh'>;
  readonly clock: Clock;
}

/**
 * Verifies access tokens of an installation: ES256 only, `typ` at+jwt, issuer and audience of the installation, 30 s of
 * skew, not revoked (RFC 9068, RFC 8725). Verified tokens are cached by their text; expiry and revocation are judged at
 * every call. Each segment must be base64url without padding, white space or trailing bits (RFC 7515, section 2). An
 * ECDSA signature has a second valid form, (r, n - s), so revocation uses the `jti` and never the bytes of a token.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator & CallerCheck {
  const { keys, revocations, clock, installation } = options;
  const verified = new Map<string, Caller>();

  const verify = async (token: string): Promise<Caller> => {
    if (!isCompact(token)) throw refused('it is malformed');
    const { payload } = await verifySignature(token, { keys, clock, issuer: issuerOf(installation) });
    const caller = callerOf(parseAccessClaims(payload), installation);
    if (caller.issuedAtMs > clock.nowMs() + skewSeconds * 1000) throw refused('it was issued in the future');
    return caller;
  };

  const assertCurrent = (caller: Caller): void => {
    revocations.assertFresh();
    if (clock.nowMs() >= caller.expiresAtMs + skewSeconds * 1000) throw refused('it has expired');
    if (revocations.isRevoked(caller)) throw refused('it was revoked');
  };

  return {
    assertCurrent,
    authenticate: async (token) => {
      revocations.assertFresh();
      if (token.length > tokenLimitCharacters) throw refused('it is too long');
      const known = verified.get(token);
      const caller = known ?? (await verify(token));
      if (clock.nowMs() >= caller.expiresAtMs + skewSeconds * 1000) {
        verified.delete(token);
        throw refused('it has expired');
      }
      if (revocations.isRevoked(caller)) throw refused('it was revoked');
      if (known === undefined) remember(verified, token, caller);
      return caller;
    },
  };
}

function isCompact(token: string): boolean {
  const segments = token.split('.');
  return segments.length === 3 && segments.every((segment) => segment !== '' && isBase64Url(segment));
}

/** Evicts the oldest entry: a Map iterates in the order of insertion. */
function remember(verified: Map<string, Caller>, token: string, caller: Caller): void {
  if (verified.size >= cacheLimit) {
    for (const oldest of verified.keys()) {
      verified.delete(oldest);
      break;
    }
  }
  verified.set(token, caller);
}

interface Expectation {
  readonly keys: TokenKeys;
  readonly clock: Clock;
  readonly issuer: string;
}

async function verifySignature(
  token: string,
  { keys, clock, issuer }: Expectation,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(
      token,
      async ({ kid }) => {
        const key = kid === undefined ? undefined : await keys.find(kid);
        if (key === undefined) throw refused('it is signed by an unknown key');
        return key;
      },
      {
        algorithms: ['ES256'],
        typ: 'at+jwt',
        issuer,
        clockTolerance: skewSeconds,
        currentDate: new Date(clock.nowMs()),
        requiredClaims: ['exp', 'iat', 'sub', 'aud', 'jti'],
      },
    );
  } catch (error) {
    if (isAppError(error)) throw error;
    throw refused(reasonOf(error), error);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'it has expired';
  if (error instanceof errors.JWTClaimValidationFailed) return `its ${error.claim} is not accepted`;
  if (error instanceof errors.JOSEAlgNotAllowed) return 'its algorithm is not accepted';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong';
  return 'it is malformed';
}

function refused(reason: string, cause?: unknown): AppError {
  return new AppError('unauthenticated', 'UNAUTHORIZED', `Token refused: ${reason}`, { cause });
}
