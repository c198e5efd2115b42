import { z } from 'zod';
import { ProtocolError } from '../../protocol/errors.ts';
import { type Possession, readPossession } from '../../protocol/possession.ts';
import type { Nonces } from '../nonces/nonces.ts';

const aheadSeconds = 60;
const ageSeconds = 300;

/** The keys that a request proves, and the nonce that it uses up. */
interface ProvenKeys {
  readonly keys: readonly Possession[];
  readonly nonce: string;
}

interface ProofContext {
  readonly nonces: Nonces;
  readonly issuer: string;
  readonly nowMs: number;
  /** Documents are bound to keys on P-256 alone. */
  readonly isMdoc: boolean;
  /** The only key that may be bound; any when null. */
  readonly thumbprint: string | null;
}

const payloadSchema = z.looseObject({
  aud: z.union([z.string(), z.array(z.string())]),
  iat: z.number(),
  nonce: z.string(),
  exp: z.number().optional(),
  nbf: z.number().optional(),
});

/**
 * Verifies proofs of possession (OpenID4VCI 1.0, appendix F.1). All of them carry the same nonce, and each another key.
 * Whether the nonce was used before is judged where it is used up.
 * @throws ProtocolError invalid_proof, invalid_nonce
 */
export async function judgeProofs(proofs: readonly string[], context: ProofContext): Promise<ProvenKeys> {
  const keys: Possession[] = [];
  const nonces = new Set<string>();
  for (const proof of proofs) {
    const { possession, nonce } = await judgeProof(proof, context);
    if (keys.some(({ thumbprint }) => thumbprint === possession.thumbprint))
      throw invalidProof('two proofs have the same key');
    keys.push(possession);
    nonces.add(nonce);
  }
  const [nonce, another] = nonces;
  if (nonce === undefined) throw invalidProof('no proof was sent');
  if (another !== undefined) throw invalidProof('the proofs of a request carry one nonce');
  const verdict = context.nonces.judge('c_nonce', nonce, context.nowMs);
  if (verdict !== 'live')
    throw invalidNonce(verdict === 'expired' ? 'the nonce has expired' : 'the nonce is unknown');
  return { keys, nonce };
}

export function invalidNonce(description: string): ProtocolError {
  return new ProtocolError('invalid_nonce', `${description}; get another one at the nonce endpoint`);
}

function invalidProof(description: string): ProtocolError {
  return new ProtocolError('invalid_proof', description);
}

async function judgeProof(proof: string, { issuer, nowMs, thumbprint, isMdoc }: ProofContext) {
  const possession = await readPossession(proof, 'openid4vci-proof+jwt');
  if (typeof possession === 'string') throw invalidProof(possession);
  const parsed = payloadSchema.safeParse(possession.payload);
  if (!parsed.success) throw invalidProof('aud, iat or nonce is missing');
  const { aud, iat, nonce, exp, nbf } = parsed.data;
  const isAudience = typeof aud === 'string' ? aud === issuer : aud.length === 1 && aud[0] === issuer;
  if (!isAudience) throw invalidProof('aud is not this credential issuer');
  const ageMs = nowMs - iat * 1000;
  if (ageMs > ageSeconds * 1000 || ageMs < -aheadSeconds * 1000)
    throw invalidProof('iat is too old, or in the future');
  if ((exp !== undefined && exp * 1000 <= nowMs) || (nbf !== undefined && nbf * 1000 > nowMs))
    throw invalidProof('the proof is not valid at this time');
  if (isMdoc && possession.jwk.kty !== 'EC') throw invalidProof('a document is bound to a key on P-256');
  if (thumbprint !== null && possession.thumbprint !== thumbprint)
    throw invalidProof('the offer is for another key');
  return { possession, nonce };
}
