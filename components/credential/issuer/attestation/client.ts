import type { IncomingHttpHeaders } from 'node:http';
import type { Certificate } from '#core/trust/certificate.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { confirmedKey, readAttested, readSignedBy } from './attested.ts';

const ageSeconds = 300;
const aheadSeconds = 60;

/** A wallet that its maker attested. */
export interface AttestedClient {
  readonly clientId: string;
  /** Of the attested key, which is that of one instance of the wallet. */
  readonly thumbprint: string;
  /** What serves once: key and `jti` of the proof. */
  readonly useOnce: string;
  readonly expiresAt: Date;
}

interface ClientContext {
  /** Authorities of attesters. */
  readonly authorities: readonly Certificate[];
  /** The issuer: what the proof is for. */
  readonly audience: string;
  readonly nowMs: number;
}

/**
 * Authenticates a wallet by its attestation and a proof of the attested key (OpenID4VCI 1.0, appendix E): the headers
 * `OAuth-Client-Attestation` and `OAuth-Client-Attestation-PoP`.
 * @param clientId the parameter `client_id`, where the request has it
 * @throws ProtocolError invalid_client
 */
export function authenticateClient(
  headers: IncomingHttpHeaders,
  clientId: string | undefined,
  { authorities, audience, nowMs }: ClientContext,
): AttestedClient {
  const attestation = headerOf(headers, 'oauth-client-attestation');
  const proof = headerOf(headers, 'oauth-client-attestation-pop');
  const attested = readAttested(attestation, { typ: 'oauth-client-attestation+jwt', authorities, nowMs });
  if (typeof attested === 'string') throw invalidClient(`the attestation is refused: ${attested}`);
  const { sub, exp } = attested.payload;
  if (typeof sub !== 'string' || sub === '' || sub.length > 500 || typeof exp !== 'number')
    throw invalidClient('the attestation has no sub or exp');
  if (clientId !== undefined && clientId !== sub)
    throw invalidClient('client_id is not that of the attestation');
  const key = confirmedKey(attested.payload);
  if (key === undefined) throw invalidClient('the attestation has no key on P-256');
  const proven = readSignedBy(proof, 'oauth-client-attestation-pop+jwt', key);
  if (typeof proven === 'string') throw invalidClient(`the proof of the attested key is refused: ${proven}`);
  const { aud, jti, iat } = proven.payload;
  if (aud !== audience) throw invalidClient('aud of the proof is not this issuer');
  if (typeof jti !== 'string' || jti === '' || jti.length > 256) throw invalidClient('the proof has no jti');
  const age = typeof iat === 'number' ? nowMs / 1000 - iat : Number.POSITIVE_INFINITY;
  if (age > ageSeconds || age < -aheadSeconds)
    throw invalidClient('iat of the proof is too old, or in the future');
  return {
    clientId: sub,
    thumbprint: key.thumbprint,
    useOnce: `client\n${key.thumbprint}\n${jti}`,
    expiresAt: new Date(nowMs + (ageSeconds + aheadSeconds) * 1000),
  };
}

export function invalidClient(description: string): ProtocolError {
  return new ProtocolError('invalid_client', description, { status: 401 });
}

function headerOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  if (typeof value !== 'string' || value === '') throw invalidClient(`the header ${name} is required, once`);
  return value;
}
