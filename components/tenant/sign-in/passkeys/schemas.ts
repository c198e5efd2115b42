import { z } from 'zod';

const bytes = z
  .string()
  .max(65_536)
  .regex(/^[A-Za-z0-9_-]*$/, 'expected base64url');

const credential = {
  id: bytes.min(1),
  rawId: bytes.min(1),
  type: z.literal('public-key'),
  authenticatorAttachment: z.enum(['cross-platform', 'platform']).optional().catch(undefined),
  clientExtensionResults: z.record(z.string(), z.unknown()).default({}),
};

/** `RegistrationResponseJSON` of WebAuthn Level 3, 5.1.8. */
export const attestationSchema = z.object({
  ...credential,
  response: z.object({
    clientDataJSON: bytes,
    attestationObject: bytes,
    transports: z.array(z.string().max(32)).max(16).default([]),
  }),
});
export type Attestation = z.output<typeof attestationSchema>;

/** `AuthenticationResponseJSON` of WebAuthn Level 3, 5.1.8. */
export const assertionSchema = z.object({
  ...credential,
  response: z.object({
    clientDataJSON: bytes,
    authenticatorData: bytes,
    signature: bytes,
    userHandle: bytes.nullish(),
  }),
});
export type Assertion = z.output<typeof assertionSchema>;

export const transactionId = z.string().min(1).max(256);
