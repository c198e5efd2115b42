import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { jsonPointer } from '#core/blueprint/members.ts';
import { faultOfClaims, pointerOf } from '#core/credential/sd-jwt/issue.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { readableLine } from '#core/encoding/readable.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase, TxCodeForm } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Registers } from '../../ledger/registers.ts';
import { isHighAssurance, type Profile } from '../../protocol/profile.ts';
import { createSecret, sealUnder, secretHash, txCodeHash } from '../../protocol/secrets.ts';
import { ensureConfiguration } from '../metadata/store.ts';
import type { Issuers } from '../signing/issuers.ts';
import { TRUST_ANCHORS } from '../signing/issuers.ts';
import { credentialOffer, type Offer } from './offer.ts';
import { insertOffer } from './store.ts';

/** Largest claims of a credential, in bytes of canonical JSON. */
const mostClaimBytes = 65_536;
const mostPaths = 256;

const text = z.string();

export const offerBody = z.strictObject({
  issuerWalletAddress: text.min(1).max(100).describe('Wallet of the organisation that issues.'),
  tenantId: z.guid().lowercase().describe('Id of the organisation that issues.'),
  credentialType: readableLine.min(1).max(200).describe('Type of the credential; its name for people.'),
  vct: z
    .url()
    .regex(/^[^\0-\x20\x7f]+$/, 'has a space or a control character')
    .max(500)
    .optional()
    .describe('Type in SD-JWT VCs, an absolute URI; `credentialType` where that is one, else a URN of it.'),
  doctype: readableLine.min(1).max(200).optional().describe('Document type of mso_mdoc.'),
  format: z
    .enum(['dc+sd-jwt', 'sd-jwt-vc', 'mso_mdoc'])
    .default('dc+sd-jwt')
    .describe('`sd-jwt-vc` is another spelling of `dc+sd-jwt`.'),
  trustAnchor: z.enum(TRUST_ANCHORS).default('x509-tenant').describe('`register` is not for haip-1.0.'),
  claims: z.custom<JsonObject>(isJsonObject, 'expected an object').describe('Claims about the subject.'),
  disclosablePaths: z
    .array(text.min(1).max(500))
    .max(mostPaths)
    .optional()
    .describe(
      'Claims that the holder may hold back: names of the top level, or JSON Pointers; all of the top level when absent.',
    ),
  validitySeconds: z.int().min(60).max(315_360_000).optional().describe('Absent: without an end.'),
  expiresInSeconds: z.int().min(60).max(86_400).default(600).describe('How long the offer can be taken.'),
  txCode: z
    .strictObject({
      inputMode: z.enum(['numeric', 'text']).default('numeric'),
      length: z.int().min(4).max(8).default(6),
      description: readableLine.max(300).optional(),
    })
    .optional()
    .describe('Requires a transaction code, which reaches the person another way.'),
  holderJwkThumbprint: text
    .regex(/^[A-Za-z0-9_-]{43}$/)
    .optional()
    .describe('Only a wallet with this key (RFC 7638, SHA-256) gets the credential.'),
  statusList: z.boolean().default(true).describe('Whether the credential can be suspended and revoked.'),
  registerId: text
    .regex(/^[0-9a-f]{32}$/)
    .optional()
    .describe('With trustAnchor register: the register on which changes of the status are recorded too.'),
});

type OfferBody = z.output<typeof offerBody>;

export interface CreateOfferDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly issuers: Issuers;
  readonly registers: Pick<Registers, 'exists'>;
  readonly issuerUrl: string;
  readonly profile: Profile;
}

const defaultTxCode = { inputMode: 'numeric', length: 6, description: undefined } as const;

const digits = '0123456789';
/** Without the characters that people confuse. */
const letters = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/**
 * Creates an offer. Codes are returned once and stored as hashes; the claims are stored sealed under the code.
 * @param createdBy client id of the service that offers
 */
export async function createOffer(deps: CreateOfferDeps, body: OfferBody, createdBy: string) {
  assertAnchor(deps.profile, body.trustAnchor);
  const configuration = configurationOf(body);
  const disclosable = body.disclosablePaths?.map(pointerOf) ?? null;
  const plain = readClaims(body, disclosable);
  const issuer = {
    organizationId: body.tenantId,
    walletAddress: body.issuerWalletAddress,
    trustAnchor: body.trustAnchor,
  };
  await deps.issuers.chainOf(issuer, 'Credentials');
  await assertRegister(deps, body);
  const [id, code, reference] = [randomUUID(), createSecret(randomBytes), createSecret(randomBytes)];
  // In haip-1.0 the code is how the person signs in.
  const asked = body.txCode ?? (isHighAssurance(deps.profile) ? defaultTxCode : undefined);
  const txCode = asked === undefined ? undefined : drawTxCode(asked);
  const createdAt = new Date(deps.clock.nowMs());
  const offer = {
    ...issuer,
    id,
    disclosable,
    createdAt,
    validitySeconds: body.validitySeconds ?? null,
    txCodeForm: txCode?.form ?? null,
    holderThumbprint: body.holderJwkThumbprint ?? null,
    registerId: body.registerId ?? null,
    hasStatus: body.statusList,
    expiresAt: new Date(createdAt.getTime() + body.expiresInSeconds * 1000),
    codeHash: secretHash(code),
    referenceHash: secretHash(reference),
    sealedCode: sealUnder(reference, id, { plain: Buffer.from(code), random: randomBytes }),
    sealedClaims: sealUnder(code, id, { plain, random: randomBytes }),
    txCode: txCode && { form: txCode.form, hash: txCodeHash(code, txCode.value) },
    createdBy,
  };
  const configurationId = await deps.db.transact(async (tx) => {
    const found = await ensureConfiguration(tx, { ...configuration, offeredAt: createdAt });
    await insertOffer(tx, { ...offer, configurationId: found });
    return found;
  });
  return presentCreated(deps, { ...offer, configurationId }, { code, reference, txCode });
}

/**
 * In haip-1.0 a credential has the certificate of its issuer in x5c (HAIP 1.0, section 6.1.1), and none that the register
 * vouches for has one.
 * @throws AppError invalid CLAIMS_INVALID
 */
function assertAnchor(profile: Profile, trustAnchor: OfferBody['trustAnchor']): void {
  if (isHighAssurance(profile) && trustAnchor === 'register')
    throw refusal('CLAIMS_INVALID', { message: 'in haip-1.0 trustAnchor is x509-tenant or x509-lotl' });
}

/** @throws AppError invalid CLAIMS_INVALID, unprocessable REGISTER_UNKNOWN, unavailable REGISTERS_UNAVAILABLE */
async function assertRegister(
  { registers }: Pick<CreateOfferDeps, 'registers'>,
  { registerId, trustAnchor, statusList }: OfferBody,
): Promise<void> {
  if (registerId === undefined) return;
  if (trustAnchor !== 'register' || !statusList)
    throw refusal('CLAIMS_INVALID', {
      message: 'registerId belongs to credentials with a status whose trustAnchor is register',
    });
  if (!(await registers.exists(registerId))) throw refusal('REGISTER_UNKNOWN');
}

interface Codes {
  readonly code: string;
  readonly reference: string;
  readonly txCode: { readonly value: string } | undefined;
}

function presentCreated(
  { issuerUrl, profile }: Pick<CreateOfferDeps, 'issuerUrl' | 'profile'>,
  offer: Pick<Offer, 'id' | 'configurationId' | 'txCodeForm' | 'expiresAt'>,
  { code, reference, txCode }: Codes,
) {
  const credential_offer = credentialOffer({ issuerUrl, profile }, offer, code);
  const scheme = isHighAssurance(profile) ? 'haip-vci' : 'openid-credential-offer';
  const byValue = new URLSearchParams({ credential_offer: JSON.stringify(credential_offer) });
  const byReference = new URLSearchParams({
    credential_offer_uri: `${issuerUrl}/api/v1/offers/${reference}/credential-offer`,
  });
  return {
    offerId: offer.id,
    credentialOffer: credential_offer,
    credentialOfferUri: `${scheme}://?${byValue}`,
    credentialOfferReferenceUri: `${scheme}://?${byReference}`,
    ...(!isHighAssurance(profile) && { preAuthorizedCode: code }),
    ...(txCode !== undefined && { txCode: txCode.value }),
    expiresAt: offer.expiresAt.toISOString(),
    status: 'Pending' as const,
  };
}

/** What is offered: a type in a format. @throws AppError invalid CLAIMS_INVALID */
function configurationOf({ credentialType, vct, doctype, format, claims }: OfferBody) {
  const isMdoc = format === 'mso_mdoc';
  const type = vct ?? (URL.canParse(credentialType) ? credentialType : urnOf(credentialType));
  if (isMdoc && doctype === undefined) throw refusal('CLAIMS_INVALID', { message: 'an mdoc needs doctype' });
  return {
    format: isMdoc ? ('mso_mdoc' as const) : ('dc+sd-jwt' as const),
    credentialType: isMdoc ? (doctype ?? '') : type,
    displayName: credentialType,
    claims: isMdoc ? Object.entries(claims).flatMap(elementsOf) : Object.keys(claims),
  };
}

function elementsOf([namespace, elements]: [string, unknown]): string[] {
  return isJsonObject(elements)
    ? Object.keys(elements).map((element) => jsonPointer([namespace, element]))
    : [];
}

function urnOf(name: string): string {
  return `urn:platform:credential:${encodeURIComponent(name.toLowerCase().replaceAll(' ', '-'))}`;
}

/** @throws AppError invalid CLAIMS_INVALID */
function readClaims(body: OfferBody, disclosable: readonly string[] | null): Uint8Array {
  const { claims } = body;
  const fault =
    body.format === 'mso_mdoc' ? faultOfMdoc(body) : faultOfClaims(claims, disclosable ?? undefined);
  if (fault !== undefined) throw refusal('CLAIMS_INVALID', { message: fault });
  const plain = canonicalBytes(claims);
  if (plain.length > mostClaimBytes)
    throw refusal('CLAIMS_INVALID', { message: `the claims may have ${mostClaimBytes} bytes at most` });
  return plain;
}

/** Why claims are none of an mdoc: elements by namespace, all of which the holder may hold back. */
function faultOfMdoc({ claims, disclosablePaths, trustAnchor }: OfferBody): string | undefined {
  if (trustAnchor === 'register')
    return 'an mdoc is signed under a certificate: the register cannot be its anchor';
  if (disclosablePaths !== undefined) return 'every element of an mdoc is disclosable by itself';
  const spaces = Object.values(claims);
  const isEmpty = (space: unknown) => !isJsonObject(space) || Object.keys(space).length === 0;
  if (spaces.length === 0 || spaces.some(isEmpty)) return 'the claims of an mdoc are elements by namespace';
  return undefined;
}

/** Draws a transaction code without bias. */
function drawTxCode({ inputMode, length, description }: NonNullable<OfferBody['txCode']>) {
  const alphabet = inputMode === 'numeric' ? digits : letters;
  const most = 256 - (256 % alphabet.length);
  let value = '';
  while (value.length < length) {
    const [byte = most] = randomBytes(1);
    if (byte < most) value += alphabet.charAt(byte % alphabet.length);
  }
  const form: TxCodeForm = { inputMode, length, ...(description !== undefined && { description }) };
  return { value, form };
}
