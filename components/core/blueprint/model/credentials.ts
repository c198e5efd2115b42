import { z } from 'zod';
import { duration, logic, pointer, text, word } from './values.ts';

const claim = z.strictObject({ claimName: word(200), expectedValue: z.unknown().optional() });
const assurance = z.enum(['Low', 'Substantial', 'High']);
const format = z.enum(['sd-jwt-vc', 'mso_mdoc']);

const trustSource = z.strictObject({
  kind: z.enum(['register', 'x509-tenant', 'trustlist', 'did-allowlist']),
  trustListId: word(100).optional(),
  allowedIssuers: z.array(word(300)).max(64).optional(),
  confersAssurance: assurance.optional(),
});

/** Which sources may vouch for an issuer. */
export const trustPolicy = z.strictObject({
  sources: z.array(trustSource).min(1).max(16),
  combinator: z.enum(['anyOf', 'allOf']).optional(),
  minAssuranceLevel: assurance.optional(),
});

/** A credential that the sender of an action presents. */
export const credentialRequirement = z.strictObject({
  /** `vct` for `sd-jwt-vc`, the document type for `mso_mdoc`. */
  type: word(200),
  format: format.optional(),
  /** Requirements with the same group are alternatives. */
  anyOfGroup: word(64).optional(),
  requiredClaims: z.array(claim).max(64).optional(),
  optionalClaims: z.array(claim).max(64).optional(),
  trustPolicy: trustPolicy.optional(),
  revocationCheckPolicy: z.enum(['FailClosed', 'FailOpen']).optional(),
  presentationSource: z.enum(['Internal', 'HaipExternalWallet', 'PlatformWallet']).optional(),
  description: text(500).optional(),
});

const displayConfig = z.strictObject({
  backgroundColor: text(32).optional(),
  textColor: text(32).optional(),
  icon: text(2000).optional(),
  cardLayout: text(64).optional(),
  highlightClaims: z.array(word(200)).max(16).optional(),
});

/** A credential that is issued when an action is sealed. */
export const credentialIssuanceConfig = z.strictObject({
  credentialType: word(200),
  vct: text(500).optional(),
  displayName: text(200).optional(),
  format: format.optional(),
  trustAnchor: z.enum(['register', 'x509-tenant', 'x509-lotl']).optional(),
  targetAudience: z.enum(['PlatformWallet', 'HaipExternalWallet']).optional(),
  recipientParticipantId: word(64),
  claimMappings: z
    .array(z.strictObject({ claimName: word(200), sourceField: pointer }))
    .min(1)
    .max(64),
  disclosable: z.array(word(200)).max(64).optional(),
  expiryDuration: duration.optional(),
  registerId: text(64).optional(),
  usagePolicy: z.enum(['Reusable', 'SingleUse', 'LimitedUse']).optional(),
  maxPresentations: z.int().min(1).optional(),
  displayConfig: displayConfig.optional(),
  holderKeySourceField: pointer.optional(),
  issuanceCondition: logic.optional(),
});
