import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, answer, json, page, pageSchema, pageWindow, paging } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import {
  operationIdUnder,
  WALLET_PREFIXES,
  type WalletPrefix,
  identifier as walletIdentifier,
} from '../records/schemas.ts';
import { administratorOf, type DeriveDeps, ensureDerivedKey, rotateDerivedKey } from './derive-key.ts';
import { createMasterKey, type MasterKeyDeps } from './master-key.ts';
import { KEY_USAGES } from './path.ts';
import { revokeDerivedKey } from './revoke-key.ts';
import { type DerivedKey, listDerivedKeys } from './store.ts';

export type OrganizationKeyDeps = DeriveDeps & MasterKeyDeps;

const custodyMode = 'Custodial';
const maxDepartmentId = 2 ** 31 - 1;
const usage = z.enum(KEY_USAGES);
const organizationParams = z.object({ orgId: identifier });
const keyParams = organizationParams.extend({ derivedKeyId: identifier });

const masterKeyBody = z
  .object({
    keyType: z.enum(['ED25519', 'NISTP256']).optional().describe('ED25519 when absent.'),
    replaces: walletIdentifier
      .optional()
      .describe('Address of the present master key, which is replaced while no key was derived from it.'),
  })
  .nullish();

const masterKeySchema = z.object({
  orgId: z.string(),
  mnemonic: z.string().optional().describe('24 words, shown once; absent for a repeated Idempotency-Key.'),
  walletAddress: z.string(),
  message: z.string(),
});

const deriveBody = z.object({
  userId: identifier.describe('Platform user of a member, or its id in the organisation.'),
  departmentId: z.int().min(0).max(maxDepartmentId).default(0),
  usage,
  custodyMode: z.string().max(50).default(custodyMode).describe('Custodial.'),
});

const derivedKeySchema = z.object({
  derivedKeyId: z.string(),
  walletAddress: z.string(),
  publicKey: z.string().describe('Base64: 32 bytes for Ed25519, SPKI DER otherwise.'),
  derivationPath: z.string(),
  usage,
  status: z.enum(['Active', 'Rotated', 'Revoked']),
  custodyMode: z.literal(custodyMode),
  userId: z.string(),
  departmentId: z.int(),
  createdAt: z.string(),
  rotatedAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
});

const rotatedSchema = z.object({
  newDerivedKeyId: z.string(),
  previousKeyId: z.string(),
  previousKeyStatus: z.literal('Rotated'),
  walletAddress: z.string().describe('Address of the new key.'),
  publicKey: z.string().describe('Base64, of the new key.'),
});

const revokedSchema = z.object({
  derivedKeyId: z.string(),
  status: z.literal('Revoked'),
  revokedAt: z.string(),
});

const route = { tag: 'Organisation keys', policy: 'RequireAdministrator', rateLimit: 'Api' } as const;
const access = refusals('WALLET_ACCESS_DENIED', 'PERSON_REQUIRED');
const derivation = refusals('MASTER_KEY_MISSING', 'MASTER_KEY_CHANGED', 'MEMBER_UNKNOWN', 'WALLET_EXISTS');
const masterState = refusals('WALLET_LOCKED');

export function mountOrganizationKeyRoutes(app: App, deps: OrganizationKeyDeps): void {
  for (const prefix of WALLET_PREFIXES) {
    mountMasterKey(app, deps, prefix);
    mountKeys(app, deps, prefix);
    mountEnds(app, deps, prefix);
  }
}

function mountMasterKey(app: App, deps: OrganizationKeyDeps, prefix: WalletPrefix): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${prefix}/org/:orgId/master-key`,
    operationId: operationIdUnder(prefix, 'createMasterKey'),
    summary: 'Make the wallet of an organisation that its keys are derived from',
    rateLimit: 'Strict',
    params: organizationParams,
    body: { schema: masterKeyBody, example: { keyType: 'ED25519' } },
    idempotency: 'handler',
    answers: { 201: json('The master key, with its mnemonic.', masterKeySchema) },
    refusals: [
      ...access,
      ...refusals('ORGANIZATION_WALLET_EXISTS', 'WALLET_EXISTS', 'MASTER_KEY_CHANGED', 'MASTER_KEY_IN_USE'),
    ],
    noStore: true,
    handle: async ({ caller, params: { orgId }, body, idempotencyKey }) => {
      const { keyType = 'ED25519', replaces } = body ?? {};
      const request = { organizationId: orgId, keyType, replaces };
      const { wallet, mnemonic, replayed } = await createMasterKey(deps, caller, request, idempotencyKey);
      const shown = mnemonic === undefined ? {} : { mnemonic };
      const message =
        mnemonic === undefined
          ? 'The words were in the first answer. While no key was derived, the master key can be made again.'
          : 'Write the words down. They are shown once and recover every key of the organisation.';
      return answer(
        201,
        { orgId, ...shown, walletAddress: wallet.address, message },
        { 'idempotency-replayed': replayed ? 'true' : undefined },
      );
    },
  });
}

function mountKeys(app: App, deps: OrganizationKeyDeps, prefix: WalletPrefix): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${prefix}/org/:orgId/derive-key`,
    operationId: operationIdUnder(prefix, 'ensureDerivedKey'),
    summary: 'Derive a key of the organisation for a member',
    params: organizationParams,
    body: {
      schema: deriveBody,
      example: { userId: '3f0e5a52-7f0b-4c0e-9d6b-1f1f6f1c2a77', usage: 'Identity' },
    },
    answers: {
      200: json('The active key exists.', derivedKeySchema),
      201: json('The new key.', derivedKeySchema),
    },
    refusals: [...access, ...derivation, ...masterState, ...refusals('CUSTODY_MODE_UNSUPPORTED')],
    handle: async ({ caller, params: { orgId }, body: { custodyMode: requested, ...name } }) => {
      if (requested !== custodyMode) throw refusal('CUSTODY_MODE_UNSUPPORTED');
      const { key, isNew } = await ensureDerivedKey(deps, caller, { organizationId: orgId, ...name });
      return answer(isNew ? 201 : 200, presentKey(key));
    },
  });

  addRoute(app, {
    ...route,
    method: 'GET',
    path: `${prefix}/org/:orgId/keys`,
    operationId: operationIdUnder(prefix, 'listDerivedKeys'),
    summary: 'Derived keys of the organisation, newest first',
    params: organizationParams,
    query: paging(),
    answers: { 200: json('A page of keys.', pageSchema(derivedKeySchema)) },
    refusals: access,
    handle: async ({ caller, params: { orgId }, query }) => {
      administratorOf(caller, orgId);
      const { keys, totalCount } = await listDerivedKeys(deps.db.read, orgId, pageWindow(query));
      return page(keys.map(presentKey), query, totalCount);
    },
  });
}

function mountEnds(app: App, deps: OrganizationKeyDeps, prefix: WalletPrefix): void {
  const path = `${prefix}/org/:orgId/keys/:derivedKeyId`;
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${path}/rotate`,
    operationId: operationIdUnder(prefix, 'rotateDerivedKey'),
    summary: 'Replace an active key by its successor',
    description: 'The earlier key signs nothing any more and still decrypts.',
    params: keyParams,
    idempotency: 'handler',
    answers: { 200: json('The new key.', rotatedSchema) },
    refusals: [
      ...access,
      ...derivation,
      ...masterState,
      ...refusals('DERIVED_KEY_NOT_FOUND', 'KEY_NOT_ACTIVE', 'WALLET_DELETED'),
    ],
    handle: async ({ caller, params: { orgId, derivedKeyId }, idempotencyKey }) => {
      const key = { organizationId: orgId, id: derivedKeyId };
      const { previous, successor } = await rotateDerivedKey(deps, caller, key, idempotencyKey);
      return {
        newDerivedKeyId: successor.wallet.id,
        previousKeyId: previous.wallet.id,
        previousKeyStatus: 'Rotated' as const,
        walletAddress: successor.wallet.address,
        publicKey: encodeBase64(successor.wallet.publicKey),
      };
    },
  });

  addRoute(app, {
    ...route,
    method: 'DELETE',
    path,
    operationId: operationIdUnder(prefix, 'revokeDerivedKey'),
    summary: 'Revoke a key and lock its wallet',
    params: keyParams,
    answers: { 200: json('The revocation; a repetition shows the first one.', revokedSchema) },
    refusals: [...access, ...refusals('DERIVED_KEY_NOT_FOUND')],
    handle: async ({ caller, params: { orgId, derivedKeyId } }) => {
      const key = { organizationId: orgId, id: derivedKeyId };
      const { revokedAtMs } = await revokeDerivedKey(deps, caller, key);
      return {
        derivedKeyId,
        status: 'Revoked' as const,
        revokedAt: apiTimestamp(revokedAtMs),
      };
    },
  });
}

function presentKey(key: DerivedKey): z.input<typeof derivedKeySchema> {
  const { wallet, rotatedAtMs, revokedAtMs } = key;
  return {
    derivedKeyId: wallet.id,
    walletAddress: wallet.address,
    publicKey: encodeBase64(wallet.publicKey),
    derivationPath: key.derivationPath,
    usage: key.usage,
    status: wallet.keyStatus ?? 'Active',
    custodyMode,
    userId: key.userId,
    departmentId: key.departmentId,
    createdAt: apiTimestamp(key.createdAtMs),
    rotatedAt: rotatedAtMs === undefined ? null : apiTimestamp(rotatedAtMs),
    revokedAt: revokedAtMs === undefined ? null : apiTimestamp(revokedAtMs),
  };
}
