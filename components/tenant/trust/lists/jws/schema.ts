import { z } from 'zod';

/** URIs, times and names; none may have a U+0000, which PostgreSQL cannot store. */
const text = z
  .string()
  .max(4096)
  .refine((value) => !value.includes('\0'));
const names = z
  .array(z.looseObject({ lang: text, value: text }))
  .min(1)
  .max(100);

const serviceSchema = z.looseObject({
  ServiceInformation: z.looseObject({
    ServiceTypeIdentifier: text.optional(),
    ServiceStatus: text.optional(),
    ServiceDigitalIdentity: z.looseObject({
      X509Certificates: z.array(z.looseObject({ val: z.string() })).optional(),
    }),
  }),
});

/** The members of a list of trusted entities that are read (ETSI TS 119 602 V1.1.1, clause 6). */
export const entityListSchema = z.looseObject({
  LoTE: z.looseObject({
    ListAndSchemeInformation: z.looseObject({
      LoTEVersionIdentifier: z.literal(1),
      LoTESequenceNumber: z.number(),
      SchemeOperatorName: names,
      SchemeTerritory: text.optional(),
      ListIssueDateTime: text,
      NextUpdate: text.nullish(),
    }),
    TrustedEntitiesList: z
      .array(z.looseObject({ TrustedEntityServices: z.array(serviceSchema) }))
      .default([]),
  }),
});

/** The header of its signature (ETSI TS 119 182-1, clause 5; RFC 7515). */
export const headerSchema = z.looseObject({
  alg: z.enum(['ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512']),
  x5c: z.array(z.string().max(65_536)).min(1).max(10),
  crit: z.array(z.enum(['sigT', 'b64', 'sigPId', 'x5t#o'])).optional(),
  b64: z.literal(true).optional(),
  'x5t#S256': z.string().max(64).optional(),
  // A detached payload.
  sigD: z.undefined().optional(),
});
