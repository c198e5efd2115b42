import { z } from 'zod';
import type { Certificate } from '#core/trust/certificate.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { batchSize } from '../../protocol/grants.ts';
import { type Possession, readPossession } from '../../protocol/possession.ts';
import { readKeyAttestation } from '../attestation/keys.ts';
import type { Nonces } from '../nonces/nonces.ts';

const aheadSeconds = 60;
const ageSeconds = 300;

/** The keys that a request proves, and the nonce that it uses up. */
interface ProvenKeys {
  readonly keys: readonly Possession[];
  readonly nonce: string;
}

interface ProofContext {
  /** Authorities of attesters of keys. */
  readonly authorities: readonly Certificate[];
  /** Whether keys must be attested. */
  readonly requiresAttestation: boolean;
  readonly nonces: Nonces;
  readonly issuer: string;
  readonly nowMs: number;
  /** Documents are bound to keys on P-256 alone. */
  readonly isMdoc: boolean;
  /** The only key that may be bound; any when null. */
  readonly thumbprint: string | null;
}

/** What a wallet proves its keys by: a JWT of each key, or an attestation of all of them. */
export type Proofs =
  | { readonly kind: 'jwt'; readonly jwts: readonly string[] }
  | { readonly kind: 'attestation'; readonly attestation: string };

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
export function judgeProofs(proofs: Proofs, context: ProofContext): ProvenKeys {
  const { keys, nonce } =
    proofs.kind === 'jwt' ? judgeJwts(proofs.jwts, context) : judgeAttestation(proofs.attestation, context);
  const verdict = context.nonces.judge('c_nonce', nonce, context.nowMs);
  if (verdict !== 'live')
    throw invalidNonce(verdict === 'expired' ? 'the nonce has expired' : 'the nonce is unknown');
  for (const { jwk, thumbprint } of keys) {
    if (context.isMdoc && jwk.kty !== 'EC') throw invalidProof('a document is bound to a key on P-256');
    if (context.thumbprint !== null && thumbprint !== context.thumbprint)
      throw invalidProof('the offer is for another key');
  }
  return { keys, nonce };
}

function judgeJwts(jwts: readonly string[], context: ProofContext): ProvenKeys {
  const keys: Possession[] = [];
  const nonces = new Set<string>();
  for (const jwt of jwts) {
    const { possession, nonce } = judgeProof(jwt, context);
    if (keys.some(({ thumbprint }) => thumbprint === possession.thumbprint))
      throw invalidProof('two proofs have the same key');
    keys.push(possession);
    nonces.add(nonce);
  }
  const [nonce, another] = nonces;
  if (nonce === undefined) throw invalidProof('no proof was sent');
  if (another !== undefined) throw invalidProof('the proofs of a request carry one nonce');
  return { keys, nonce };
}

/** A key attestation in place of proofs (OpenID4VCI 1.0, appendix F.3): a credential for each attested key. */
function judgeAttestation(attestation: string, context: ProofContext): ProvenKeys {
  const read = readKeyAttestation(attestation, context);
  if (typeof read === 'string') throw invalidProof(`the key attestation is refused: ${read}`);
  const { keys, nonce } = read;
  if (nonce === undefined) throw invalidProof('the key attestation has no nonce');
  if (keys.length > batchSize) throw invalidProof(`a request has ${batchSize} keys at most`);
  if (new Set(keys.map(({ thumbprint }) => thumbprint)).size !== keys.length)
    throw invalidProof('a key is attested twice');
  return { keys, nonce };
}

/**
 * Judges that the key of a proof is among those that its `key_attestation` vouches for, until the time that it names
 * (appendix D.1).
 */
function assertAttested({ header, thumbprint }: Possession, context: ProofContext): void {
  const { key_attestation: attestation } = header;
  if (attestation === undefined && !context.requiresAttestation) return;
  if (typeof attestation !== 'string') throw invalidProof('the proof needs key_attestation');
  const read = readKeyAttestation(attestation, context);
  if (typeof read === 'string') throw invalidProof(`the key attestation is refused: ${read}`);
  if (!read.hasExpiry) throw invalidProof('the key attestation has no exp');
  if (!read.keys.some((key) => key.thumbprint === thumbprint)) throw invalidProof('the key is not attested');
}

export function invalidNonce(description: string): ProtocolError {
  return new ProtocolError('invalid_nonce', `${description}; get another one at the nonce endpoint`);
}

function invalidProof(description: string): ProtocolError {
  return new ProtocolError('invalid_proof', description);
}

function judgeProof(proof: string, context: ProofContext) {
  const { issuer, nowMs } = context;
  const possession = readPossession(proof, 'openid4vci-proof+jwt');
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
  assertAttested(possession, context);
  return { possession, nonce };
}
