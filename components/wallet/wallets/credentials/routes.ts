import { z } from 'zod';
import { credentialRequirement } from '#core/blueprint/model/credentials.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { readableText } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { CREDENTIAL_FORMATS } from '../../database/schema.ts';
import { refusals, walletRefusals } from '../../errors.ts';
import { identifier } from '../records/schemas.ts';
import { personOfWallet, type Wallet } from '../records/wallet.ts';
import {
  getCredential,
  getHeldWallet,
  getViewedWallet,
  isHolder,
  type KeepDeps,
  openActive,
  openCredential,
  removeCredential,
  storeCredential,
} from './keep.ts';
import { candidatesOf, isRequired } from './match.ts';
import { statusOf } from './status.ts';
import { countPresented, type HeldCredential, listCredentials } from './store.ts';

const base = '/api/v1/wallets/:address/credentials';
const route = {
  tag: 'Credentials',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
  noStore: true,
} as const;
const ofWallet = z.object({ address: identifier.describe('Address or id of the wallet.') });
const ofCredential = ofWallet.extend({ credentialId: z.string().max(64) });
const uuid = z.uuid();
const STATUSES = ['Active', 'Suspended', 'Revoked', 'Expired', 'Consumed'] as const;
/** A credential of an mdoc with a portrait fits. */
const longestCredential = 512 * 1024;

const credentialSchema = z
  .object({
    id: z.string(),
    type: z.string().describe('`vct`, or the type of the document.'),
    vct: z.string().nullable(),
    docType: z.string().nullable(),
    format: z.enum(CREDENTIAL_FORMATS),
    issuer: z.string().nullable().describe('As the credential names it; a name proves nothing.'),
    issuerTrusted: z.boolean().describe('Whether a source of this installation vouches for the issuer.'),
    issuerTrustReason: z.string().nullable().describe('Why not.'),
    subjectWallet: z.string(),
    issuedAt: z.string().nullable(),
    expiresAt: z.string().nullable(),
    storedAt: z.string(),
    status: z.enum(STATUSES),
    statusCheckedAt: z
      .string()
      .nullable()
      .describe(
        'When the status was asked for; what cannot be learnt leaves it. null without a list to ask.',
      ),
    keyBinding: z
      .enum(['HolderKey', 'OtherKey'])
      .describe('HolderKey: the wallet signs presentations. OtherKey: the app of the person has the key.'),
    usagePolicy: z.enum(['Reusable', 'SingleUse', 'LimitedUse']),
    presentationCount: z.int().describe('Presentations that the wallet app of the person reported.'),
    displayConfig: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'null for credentials of other issuers, which wallets show as the metadata of the issuer says.',
      ),
    claimNames: z.array(z.string()).describe('Of an mdoc `namespace/element`.'),
    claims: z.record(z.string(), z.unknown()).optional().describe('For the holder alone; not in lists.'),
  })
  .meta({ id: 'HeldCredential' });

const candidates = z.array(z.object({ credentialId: z.string(), disclosableClaims: z.array(z.string()) }));

/** A requirement of a workflow, with texts that people can read. */
const requirement = credentialRequirement.extend({ description: readableText.max(500).optional() });

const ofHolder = [...walletRefusals, ...refusals('CREDENTIAL_NOT_FOUND')];
const opening = refusals('WALLET_LOCKED', 'WALLET_DELETED');
const exampleRequirement = {
  type: 'urn:platform:credential:site-permit',
  requiredClaims: [{ claimName: 'permitNumber' }],
};

/** The credentials that wallets hold. What they say is read by their holder; others with a grant list them. */
export function mountCredentialRoutes(app: App, deps: KeepDeps): void {
  mountReads(app, deps);
  mountStore(app, deps);
  mountMatch(app, deps);
}

function mountReads(app: App, deps: KeepDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: base,
    operationId: 'listHeldCredentials',
    summary: 'The credentials of a wallet, the oldest first',
    params: ofWallet,
    query: z.object({ type: z.string().max(500).optional(), status: z.enum(STATUSES).optional() }),
    answers: { 200: json('The credentials.', z.object({ credentials: z.array(credentialSchema) })) },
    refusals: walletRefusals,
    handle: async ({ caller, params, query }) => {
      const wallet = await getViewedWallet(deps, caller, params.address);
      const nowMs = deps.clock.nowMs();
      const { type, status } = query;
      const chosen = (await listCredentials(deps.db.read, wallet.id)).filter(
        (each) =>
          (type === undefined || each.type === type) &&
          (status === undefined || statusOf(each, nowMs) === status),
      );
      return { credentials: await presentAll(deps, wallet, chosen) };
    },
  });

  addRoute(app, {
    ...route,
    method: 'GET',
    path: `${base}/:credentialId`,
    operationId: 'getHeldCredential',
    summary: 'One credential, with its claims for the holder',
    params: ofCredential,
    answers: { 200: json('The credential.', credentialSchema) },
    refusals: [...ofHolder, ...opening],
    handle: async ({ caller, params }) => {
      const wallet = await getViewedWallet(deps, caller, params.address);
      const credential = await getCredential(deps, wallet, idOf(params.credentialId));
      const claims = isHolder(wallet, caller)
        ? (await openCredential(deps, wallet, credential)).claims
        : undefined;
      return presentOne(deps, wallet, credential, claims);
    },
  });

  addRoute(app, {
    ...route,
    method: 'GET',
    path: `${base}/:credentialId/export`,
    operationId: 'exportHeldCredential',
    summary: 'A credential as it was stored, for the holder',
    params: ofCredential,
    answers: {
      200: json(
        'The credential: a compact SD-JWT, or base64url of IssuerSigned.',
        z.object({ id: z.string(), format: z.enum(CREDENTIAL_FORMATS), credential: z.string() }),
      ),
    },
    refusals: [...ofHolder, ...opening],
    handle: async ({ caller, params }) => {
      const wallet = await getHeldWallet(deps, caller, params.address);
      const found = await getCredential(deps, wallet, idOf(params.credentialId));
      const { credential } = await openCredential(deps, wallet, found);
      return { id: found.id, format: found.format, credential };
    },
  });
}

function mountStore(app: App, deps: KeepDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: base,
    operationId: 'storeHeldCredential',
    summary: 'Store a credential that the wallet received, once it is verified',
    rateLimit: 'Strict',
    params: ofWallet,
    body: {
      schema: z.object({
        credential: z
          .string()
          .min(1)
          .max(longestCredential)
          .describe('A compact SD-JWT VC, or an mdoc as base64url of IssuerSigned, bound to a key.'),
      }),
      example: { credential: 'eyJ0eXAiOiJkYytzZC1qd3QiLCJhbGciOiJFUzI1NiJ9.e30.c2ln~' },
    },
    answers: {
      201: json('The stored credential.', credentialSchema),
      200: json('The same credential, which was stored before.', credentialSchema),
    },
    refusals: [
      ...walletRefusals,
      ...opening,
      ...refusals('CREDENTIAL_INVALID', 'CREDENTIAL_ISSUER_UNKNOWN'),
      ...refusals('CREDENTIALS_FULL', 'CREDENTIALS_UNAVAILABLE'),
    ],
    handle: async ({ caller, params, body }) => {
      const stored = await storeCredential(deps, caller, params.address, body.credential);
      const { credential, wallet, isNew } = stored;
      const { claims } = await openCredential(deps, wallet, credential);
      return answer(isNew ? 201 : 200, await presentOne(deps, wallet, credential, claims));
    },
  });

  addRoute(app, {
    ...route,
    method: 'DELETE',
    path: `${base}/:credentialId`,
    operationId: 'deleteHeldCredential',
    summary: 'Delete the copy of a wallet; the credential itself stays valid',
    params: ofCredential,
    answers: { 204: empty('The copy is deleted.') },
    refusals: ofHolder,
    handle: async ({ caller, params }) => {
      const wallet = await getHeldWallet(deps, caller, params.address);
      await removeCredential(deps, wallet, idOf(params.credentialId));
    },
  });
}

function mountMatch(app: App, deps: KeepDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${base}/match`,
    operationId: 'checkHeldCredentials',
    summary: 'The active credentials, bound to the holder key, that meet requirements of a workflow',
    params: ofWallet,
    body: {
      schema: z.object({ requirements: z.array(requirement).min(1).max(16) }),
      example: { requirements: [exampleRequirement] },
    },
    answers: {
      200: json(
        'The candidates of each requirement, in the order of the requirements.',
        z.object({ matches: z.array(z.object({ type: z.string(), candidates })) }),
      ),
    },
    refusals: [...walletRefusals, ...opening],
    handle: async ({ caller, params, body: { requirements } }) => {
      const wallet = await getHeldWallet(deps, caller, params.address);
      // A credential that is bound to another key proves nothing about who stored it.
      const held = await openActive(
        deps,
        wallet,
        (credential) =>
          credential.isBoundToHolderKey && requirements.some((each) => isRequired(each, credential)),
      );
      return {
        matches: requirements.map((each) => ({
          type: each.type,
          candidates: candidatesOf(each, held).map(({ credentialId, disclosableClaims }) => ({
            credentialId,
            disclosableClaims: [...disclosableClaims],
          })),
        })),
      };
    },
  });
}

/** An id that is no UUID names no credential. */
function idOf(text: string): string {
  return uuid.safeParse(text).data ?? '00000000-0000-0000-0000-000000000000';
}

type Presented = z.input<typeof credentialSchema>;

async function presentAll(
  deps: KeepDeps,
  wallet: Wallet,
  credentials: readonly HeldCredential[],
): Promise<Presented[]> {
  const person = personOfWallet(wallet);
  const ids = credentials.map(({ id }) => id);
  const counts = person === undefined ? new Map() : await countPresented(deps.db.read, person, ids);
  const nowMs = deps.clock.nowMs();
  return credentials.map((credential) => ({
    ...describe(credential, wallet, nowMs),
    presentationCount: counts.get(credential.id) ?? 0,
  }));
}

async function presentOne(
  deps: KeepDeps,
  wallet: Wallet,
  credential: HeldCredential,
  claims: JsonObject | undefined,
): Promise<Presented> {
  const [presented] = await presentAll(deps, wallet, [credential]);
  if (presented === undefined) throw new Error('a credential was not presented');
  return { ...presented, ...(claims !== undefined && { claims: { ...claims } }) };
}

function describe(
  credential: HeldCredential,
  wallet: Wallet,
  nowMs: number,
): Omit<Presented, 'presentationCount'> {
  const { format, type, issuedAtMs, expiresAtMs } = credential;
  return {
    id: credential.id,
    type,
    vct: format === 'sd-jwt-vc' ? type : null,
    docType: format === 'mso_mdoc' ? type : null,
    format,
    issuer: credential.issuer ?? null,
    issuerTrusted: credential.isTrusted,
    issuerTrustReason: credential.trustReason ?? null,
    subjectWallet: wallet.address,
    issuedAt: issuedAtMs === undefined ? null : apiTimestamp(issuedAtMs),
    expiresAt: expiresAtMs === undefined ? null : apiTimestamp(expiresAtMs),
    storedAt: apiTimestamp(credential.storedAtMs),
    status: statusOf(credential, nowMs),
    statusCheckedAt:
      credential.statusReference === undefined ? null : apiTimestamp(credential.statusCheckedAtMs),
    keyBinding: credential.isBoundToHolderKey ? 'HolderKey' : 'OtherKey',
    usagePolicy: 'Reusable',
    displayConfig: null,
    claimNames: [...credential.claimNames],
  };
}
