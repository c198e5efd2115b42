import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { Eligibility } from './judge.ts';
import { PROVENANCES, STATUSES, type StoredCertificate } from './store.ts';

const keySource = z
  .enum(['Primary', 'HaipCoKey'])
  .describe('The primary key of the wallet, or its P-256 key for issuing beside an Ed25519 one.');

export const certificateSchema = z
  .object({
    id: z.string(),
    provenance: z.enum(PROVENANCES).describe('Of the own authority of the organisation, or of another CA.'),
    status: z.enum(STATUSES),
    subjectDn: z.string(),
    serialNumber: z.string().describe('Hexadecimal.'),
    san: z.array(z.string()).describe('Subject alternative names, such as DNS:example.org.'),
    notBefore: z.string(),
    notAfter: z.string(),
    boundKeySource: keySource,
    boundPublicKeyThumbprint: z.string().describe('SHA-256 thumbprint of the key (RFC 7638), base64url.'),
    chain: z
      .array(z.object({ subjectDn: z.string(), thumbprint: z.string().describe('SHA-256, hexadecimal.') }))
      .describe('The leaf first, up to the self-signed certificate where it is known.'),
    createdAt: z.string(),
    revokedAt: z.string().optional(),
  })
  .meta({ id: 'OrganizationCertificate' });

export function presentCertificate(certificate: StoredCertificate): z.output<typeof certificateSchema> {
  const { chain, anchor, revokedAtMs } = certificate;
  const all = [...chain, ...(anchor === undefined ? [] : [anchor])].map((der) => new X509Certificate(der));
  return {
    id: certificate.id,
    provenance: certificate.provenance,
    status: certificate.status,
    subjectDn: all[0] === undefined ? '' : nameOf(all[0]),
    serialNumber: certificate.serialNumber,
    san: alternativeNames(all[0]?.subjectAltName ?? ''),
    notBefore: apiTimestamp(certificate.notBeforeMs),
    notAfter: apiTimestamp(certificate.notAfterMs),
    boundKeySource: certificate.keySource,
    boundPublicKeyThumbprint: certificate.keyThumbprint,
    chain: all.map((each) => ({ subjectDn: nameOf(each), thumbprint: thumbprintOf(each) })),
    createdAt: apiTimestamp(certificate.createdAtMs),
    ...(revokedAtMs !== undefined && { revokedAt: apiTimestamp(revokedAtMs) }),
  };
}

/** A certificate may have its names in the alternative ones alone: Node.js has no text for its subject then. */
function nameOf({ subject }: { readonly subject: string | undefined }): string {
  return (subject ?? '').split('\n').join(', ');
}

function thumbprintOf({ fingerprint256 }: X509Certificate): string {
  return fingerprint256.replaceAll(':', '').toLowerCase();
}

/** The names of the text that Node.js writes; names with commas are quoted there. */
function alternativeNames(text: string): string[] {
  return text.match(/(?:"(?:[^"\\]|\\.)*"|[^",])+/g)?.map((name) => name.trim()) ?? [];
}

export const eligibilitySchema = z.object({
  eligible: z.boolean(),
  reason: z.string().nullable().describe('The code of the refusal while it is not eligible.'),
  boundKeySource: keySource.nullable(),
});

export function presentEligibility(eligibility: Eligibility): z.output<typeof eligibilitySchema> {
  const { eligible, reason, boundKeySource } = eligibility;
  return { eligible, reason: reason ?? null, boundKeySource: boundKeySource ?? null };
}
