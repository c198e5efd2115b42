import { z } from 'zod';
import { sha256 } from '#core/crypto/hash.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { readPossession } from '../../protocol/possession.ts';
import type { Nonces } from './nonces.ts';

/** How far the clock of a wallet may be ahead, and how old a proof may be, in seconds. */
const aheadSeconds = 60;
const ageSeconds = 300;

/** A verified DPoP proof. */
export interface DpopProof {
  /** Thumbprint of its key. */
  readonly thumbprint: string;
  /** What serves once: key and `jti`. */
  readonly useOnce: string;
  readonly expiresAt: Date;
}

interface DpopContext {
  readonly nonces: Nonces;
  /** The method and the address of the request, without query. */
  readonly method: string;
  readonly url: string;
  readonly nowMs: number;
  /** The token that the request is made with, at resources. */
  readonly accessToken?: string | undefined;
}

const payloadSchema = z.looseObject({
  jti: z.string().min(1).max(256),
  htm: z.string(),
  htu: z.string(),
  iat: z.number(),
  nonce: z.string().optional(),
  ath: z.string().optional(),
});

/**
 * Verifies a DPoP proof (RFC 9449, section 4.3). A nonce of this issuer is required, so that none can be made in
 * advance.
 * @throws ProtocolError invalid_dpop_proof; use_dpop_nonce, with a new nonce in the header `DPoP-Nonce`
 */
export function judgeDpop(proof: string, context: DpopContext): DpopProof {
  const { nonces, nowMs } = context;
  const isResource = context.accessToken !== undefined;
  const read = readPossession(proof, 'dpop+jwt');
  if (typeof read === 'string') throw dpopRefusal(read, isResource);
  const parsed = payloadSchema.safeParse(read.payload);
  if (!parsed.success) throw dpopRefusal('jti, htm, htu or iat is missing', isResource);
  const { jti, htm, htu, iat, nonce, ath } = parsed.data;
  const fault = faultOf({ htm, htu, iat, ath }, context);
  if (fault !== undefined) throw dpopRefusal(fault, isResource);
  if (nonce === undefined || nonces.judge('dpop', nonce, nowMs) !== 'live')
    throw new ProtocolError('use_dpop_nonce', 'the proof needs the nonce of DPoP-Nonce', {
      status: isResource ? 401 : 400,
      headers: {
        'dpop-nonce': nonces.create('dpop', nowMs),
        ...(isResource && { 'www-authenticate': 'DPoP error="use_dpop_nonce"' }),
      },
    });
  return {
    thumbprint: read.thumbprint,
    useOnce: `dpop\n${read.thumbprint}\n${jti}`,
    expiresAt: new Date(nowMs + (ageSeconds + aheadSeconds) * 1000),
  };
}

/**
 * Verifies the proof in the header `DPoP` of a request of the authorization server; undefined where there is none.
 * @param url the address of the request
 * @throws ProtocolError invalid_dpop_proof, use_dpop_nonce
 */
export function readDpop(
  header: string | string[] | undefined,
  context: Pick<DpopContext, 'nonces' | 'url' | 'nowMs'>,
): DpopProof | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== 'string') throw dpopRefusal('several proofs were sent', false);
  return judgeDpop(header, { ...context, method: 'POST' });
}

/** The refusal of a proof; at a resource it is one of the token that the proof came with. */
export function dpopRefusal(description: string, isResource: boolean): ProtocolError {
  return new ProtocolError('invalid_dpop_proof', description, {
    status: isResource ? 401 : 400,
    ...(isResource && {
      headers: { 'www-authenticate': 'DPoP error="invalid_dpop_proof", algs="ES256 EdDSA"' },
    }),
  });
}

type Claims = Pick<z.output<typeof payloadSchema>, 'htm' | 'htu' | 'iat' | 'ath'>;

function faultOf({ htm, htu, iat, ath }: Claims, context: DpopContext): string | undefined {
  if (htm !== context.method) return 'htm is not the method of the request';
  if (addressOf(htu) !== addressOf(context.url)) return 'htu is not the address of the request';
  const ageMs = context.nowMs - iat * 1000;
  if (ageMs > ageSeconds * 1000 || ageMs < -aheadSeconds * 1000) return 'iat is too old, or in the future';
  if (context.accessToken === undefined) return undefined;
  if (ath !== encodeBase64Url(sha256(context.accessToken))) return 'ath is not the hash of the token';
  return undefined;
}

/** The address without query and fragment, as RFC 9449 section 4.3 compares it. */
function addressOf(text: string): string | undefined {
  const url = URL.parse(text);
  return url === null ? undefined : `${url.origin}${url.pathname}`;
}
