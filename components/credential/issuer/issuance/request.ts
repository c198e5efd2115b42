import { z } from 'zod';
import { ProtocolError } from '../../protocol/errors.ts';
import { batchSize } from '../../protocol/grants.ts';
import { RESPONSE_ENCRYPTION } from '../metadata/documents.ts';
import type { Proofs } from './proofs.ts';

const text = z.string();

const encryptionKey = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: text,
  y: text,
  alg: z.enum(RESPONSE_ENCRYPTION.algorithms).optional(),
  kid: text.max(256).optional(),
});

/** For the reference; requests are read by `readCredentialRequest`, whose refusals are those of the protocol. */
export const credentialRequestSchema = z.object({
  credential_configuration_id: text.max(200).optional(),
  proofs: z.object({ jwt: z.array(text).describe('One proof for each credential.') }).optional(),
  credential_response_encryption: z
    .object({ jwk: encryptionKey, enc: z.enum(RESPONSE_ENCRYPTION.encodings) })
    .optional()
    .describe('The answer is a JWE to this key.'),
  credential_identifier: text.optional().describe('From `authorization_details` of the token response.'),
  format: text.optional().describe('With `vct`, of earlier drafts.'),
  vct: text.optional(),
  proof: z.object({ proof_type: text, jwt: text }).optional().describe('Of earlier drafts.'),
});

/** The key of the wallet that the answer is encrypted to. */
export type EncryptionRequest = NonNullable<
  z.output<typeof credentialRequestSchema>['credential_response_encryption']
>;

/** A request for credentials, read. */
export interface CredentialRequest {
  /** The configuration, the identifier of the token response, or the type of a request of an earlier draft. */
  readonly asked:
    | { readonly configurationId: string }
    | { readonly identifier: string }
    | { readonly credentialType: string };
  readonly proofs: Proofs;
  readonly encryption: EncryptionRequest | undefined;
}

/** Ids and types are looked up; PostgreSQL has no text with U+0000. */
const lookedUp = text.regex(/^[^\0]*$/);

const looseBody = z.looseObject({
  credential_configuration_id: lookedUp.max(200).optional(),
  credential_identifier: text.optional(),
  format: text.optional(),
  vct: lookedUp.max(500).optional(),
});

/**
 * Reads the body of a request for credentials (OpenID4VCI 1.0, section 8.2). Members that are not known are passed over.
 * @throws ProtocolError invalid_credential_request, invalid_proof, invalid_encryption_parameters
 */
export function readCredentialRequest(body: unknown): CredentialRequest {
  const parsed = looseBody.safeParse(body);
  if (!parsed.success) throw invalidRequest('the body is no request for credentials');
  return {
    asked: askedOf(parsed.data),
    proofs: proofsOf(parsed.data),
    encryption: encryptionOf(parsed.data['credential_response_encryption']),
  };
}

function askedOf(body: z.output<typeof looseBody>): CredentialRequest['asked'] {
  if (body.credential_identifier !== undefined) {
    if (body.credential_configuration_id !== undefined)
      throw invalidRequest('credential_identifier and credential_configuration_id exclude each other');
    return { identifier: body.credential_identifier };
  }
  if (body.credential_configuration_id !== undefined)
    return { configurationId: body.credential_configuration_id };
  const isSdJwt = body.format === 'dc+sd-jwt' || body.format === 'vc+sd-jwt';
  if (isSdJwt && body.vct !== undefined) return { credentialType: body.vct };
  throw invalidRequest('credential_configuration_id is missing');
}

const proofsSchema = z.strictObject({ jwt: z.array(text).min(1).max(batchSize) });
const attestationSchema = z.strictObject({ attestation: z.tuple([text]) });
const proofSchema = z.strictObject({ proof_type: z.literal('jwt'), jwt: text });

function proofsOf({ proofs, proof }: z.output<typeof looseBody>): Proofs {
  if (proofs !== undefined && proof !== undefined) throw invalidProof('proof and proofs exclude each other');
  if (proof !== undefined) {
    const single = proofSchema.safeParse(proof);
    if (!single.success) throw invalidProof('proof needs proof_type jwt and jwt');
    return { kind: 'jwt', jwts: [single.data.jwt] };
  }
  const attested = attestationSchema.safeParse(proofs);
  if (attested.success) return { kind: 'attestation', attestation: attested.data.attestation[0] };
  const several = proofsSchema.safeParse(proofs);
  if (!several.success)
    throw invalidProof(
      `proofs needs jwt with 1 to ${batchSize} proofs, or one attestation, and no other type`,
    );
  return { kind: 'jwt', jwts: several.data.jwt };
}

const encryptionSchema = z.looseObject({ jwk: encryptionKey, enc: z.enum(RESPONSE_ENCRYPTION.encodings) });

function encryptionOf(value: unknown): EncryptionRequest | undefined {
  if (value === undefined) return undefined;
  const parsed = encryptionSchema.safeParse(value);
  const isPrivate = parsed.success && 'd' in parsed.data.jwk;
  if (!parsed.success || isPrivate || 'zip' in parsed.data)
    throw new ProtocolError(
      'invalid_encryption_parameters',
      'the answer can be encrypted with ECDH-ES to a P-256 key, enc A128GCM or A256GCM, without compression',
    );
  return { jwk: parsed.data.jwk, enc: parsed.data.enc };
}

function invalidRequest(description: string): ProtocolError {
  return new ProtocolError('invalid_credential_request', description);
}

function invalidProof(description: string): ProtocolError {
  return new ProtocolError('invalid_proof', description);
}
