import { z } from 'zod';
import type { Reader } from '#kit/db/db.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { refusal, refusals } from '../../errors.ts';
import { PRE_AUTHORIZED_GRANT } from '../../protocol/grants.ts';
import { openUnder, secretHash } from '../../protocol/secrets.ts';
import { findConfiguration } from '../metadata/store.ts';
import { type CreateOfferDeps, createOffer, offerBody } from './create.ts';
import { credentialOffer, statusAt } from './offer.ts';
import { endOffer, findOffer, findReferenced, listIssued, lockOffer } from './store.ts';

export type OfferRouteDeps = CreateOfferDeps;

const text = z.string();
const tag = 'Credential offers';

const credentialOfferSchema = z
  .object({
    credential_issuer: text,
    credential_configuration_ids: z.array(text),
    grants: z.object({
      [PRE_AUTHORIZED_GRANT]: z
        .object({
          'pre-authorized_code': text,
          tx_code: z.object({ input_mode: text, length: z.int(), description: text.optional() }).optional(),
        })
        .optional(),
      authorization_code: z.object({ issuer_state: text }).optional().describe('In haip-1.0.'),
    }),
  })
  .meta({ id: 'CredentialOffer' });

const createdSchema = z
  .object({
    offerId: text,
    credentialOffer: credentialOfferSchema,
    credentialOfferUri: text.describe('The offer by value, for a link or a QR code.'),
    credentialOfferReferenceUri: text.describe('The offer by reference: shorter, for a QR code.'),
    preAuthorizedCode: text.optional().describe('Not in haip-1.0.'),
    txCode: text.optional().describe('The transaction code, to be sent to the person another way.'),
    expiresAt: text,
    status: z.literal('Pending'),
  })
  .meta({ id: 'CreatedOffer' });

const stateSchema = z
  .object({
    offerId: text,
    credentialType: text,
    status: z.enum(['Pending', 'Exchanged', 'Expired']),
    reason: text.optional().describe('Why it ended: `cancelled`, or `tx_code` after too many wrong codes.'),
    createdAt: text,
    expiresAt: text,
    exchangedAt: text.optional(),
    issuedAt: text.optional(),
    credentialIds: z.array(text),
  })
  .meta({ id: 'OfferState' });

const offerId = z.object({ offerId: z.guid() });

const example = {
  issuerWalletAddress: 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
  tenantId: '0190a5b2-7c3d-4e4f-8a1b-2c3d4e5f6a7b',
  credentialType: 'Site permit',
  claims: { permitNumber: 'P-17', area: 620 },
};

/** Mounts the offers of services, and the offer by reference of wallets. */
export function mountOfferRoutes(app: App, deps: OfferRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/v1/offers',
    operationId: 'createOffer',
    tag,
    summary: 'Offer a credential to a wallet',
    description: 'Codes are in this answer only.',
    policy: 'RequireService',
    rateLimit: 'Api',
    body: { schema: offerBody, example },
    bodyLimitBytes: 131_072,
    noStore: true,
    answers: { 201: json('The offer.', createdSchema) },
    refusals: refusals(
      'CLAIMS_INVALID',
      'REGISTER_UNKNOWN',
      'REGISTERS_UNAVAILABLE',
      'ISSUER_WALLET_MISMATCH',
      'CERT_NOT_ENROLLED',
      'CERT_EXTERNAL_ANCHOR_UNAVAILABLE',
      'CERT_KEY_MISMATCH',
      'WALLETS_UNAVAILABLE',
      'CERTIFICATES_UNAVAILABLE',
    ),
    handle: ({ caller, body }) => createOffer(deps, body, caller.clientId),
  });

  addRoute(app, {
    method: 'GET',
    path: '/api/v1/offers/:offerId',
    operationId: 'getOffer',
    tag,
    summary: 'State of an offer',
    policy: 'RequireService',
    rateLimit: 'Api',
    params: offerId,
    noStore: true,
    answers: { 200: json('The state.', stateSchema) },
    refusals: refusals('OFFER_NOT_FOUND'),
    handle: ({ params }) => readState(deps, params.offerId),
  });

  addRoute(app, {
    method: 'DELETE',
    path: '/api/v1/offers/:offerId',
    operationId: 'cancelOffer',
    tag,
    summary: 'Cancel an offer that no wallet has taken',
    policy: 'RequireService',
    rateLimit: 'Api',
    params: offerId,
    answers: { 204: empty('The offer cannot be taken any more.') },
    refusals: refusals('OFFER_NOT_FOUND', 'OFFER_TAKEN'),
    handle: ({ params }) => cancelOffer(deps, params.offerId),
  });

  addRoute(app, {
    method: 'GET',
    path: '/api/v1/offers/:reference/credential-offer',
    operationId: 'getCredentialOffer',
    tag: 'Credential exchange',
    summary: 'An offer by reference (OpenID4VCI 1.0, section 4.1.3)',
    policy: 'Anonymous',
    rateLimit: 'CredentialExchange',
    params: z.object({ reference: text.regex(/^[A-Za-z0-9_-]{43}$/) }),
    noStore: true,
    answers: { 200: json('The offer.', credentialOfferSchema) },
    refusals: refusals('OFFER_NOT_FOUND', 'OFFER_ENDED'),
    handle: ({ params }) => readByReference(deps, params.reference),
  });
}

async function readState({ db, clock }: OfferRouteDeps, id: string) {
  const offer = await findOffer(db.read, id);
  if (offer === undefined) throw refusal('OFFER_NOT_FOUND');
  const { reason, exchangedAt, issuedAt } = offer;
  return {
    offerId: offer.id,
    credentialType: await displayNameOf(db.read, offer.configurationId),
    status: statusAt(offer, new Date(clock.nowMs())),
    ...(reason !== null && { reason }),
    createdAt: offer.createdAt.toISOString(),
    expiresAt: offer.expiresAt.toISOString(),
    ...(exchangedAt !== null && { exchangedAt: exchangedAt.toISOString() }),
    ...(issuedAt !== null && { issuedAt: issuedAt.toISOString() }),
    credentialIds: await listIssued(db.read, id),
  };
}

async function displayNameOf(db: Reader<CredentialDatabase>, configurationId: string): Promise<string> {
  return (await findConfiguration(db, configurationId))?.displayName ?? configurationId;
}

async function cancelOffer({ db, clock }: OfferRouteDeps, id: string): Promise<void> {
  const at = new Date(clock.nowMs());
  await db.transact(async (tx) => {
    const offer = await lockOffer(tx, id);
    if (offer === undefined) throw refusal('OFFER_NOT_FOUND');
    if (offer.status === 'Exchanged') throw refusal('OFFER_TAKEN');
    const reason = statusAt(offer, at) === 'Pending' ? 'cancelled' : null;
    if (offer.status === 'Pending') await endOffer(tx, id, { status: 'Expired', reason, at });
  });
}

async function readByReference({ db, clock, issuerUrl, profile }: OfferRouteDeps, reference: string) {
  const offer = await findReferenced(db.read, secretHash(reference));
  if (offer === undefined) throw refusal('OFFER_NOT_FOUND');
  const isOpen = statusAt(offer, new Date(clock.nowMs())) === 'Pending';
  const code =
    isOpen && offer.sealedCode !== null ? openUnder(reference, offer.id, offer.sealedCode) : undefined;
  if (code === undefined) throw refusal('OFFER_ENDED');
  return credentialOffer({ issuerUrl, profile }, offer, code.toString());
}
