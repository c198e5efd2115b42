import { z } from 'zod';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusal, refusals, walletRefusals } from '../errors.ts';
import {
  operationIdUnder,
  WALLET_PREFIXES,
  type WalletPrefix,
  walletParams,
} from '../wallets/records/schemas.ts';
import { type SignDeps, signAs } from './sign.ts';

export interface SigningRouteDeps extends SignDeps {
  readonly verifier: Verifier;
}

const BASE64_TEXT = z.string().max(1_398_104).describe('Base64, standard or URL-safe.');
const tag = 'Wallets';

const signBody = z.object({
  data: BASE64_TEXT,
  algorithm: z.string().max(20),
  derivationPath: z
    .string()
    .max(200)
    .optional()
    .describe(
      'Context name, platform:register-attestation; raw paths for owners only. The keys of all other contexts sign ' +
        'only through the routes of their purpose: 403 DERIVATION_CONTEXT_RESERVED, by name and by raw path.',
    ),
  isPreHashed: z.boolean().default(false),
  hybridMode: z.boolean().default(false),
});

const signedSchema = z.object({
  signature: z.string(),
  algorithm: z.string(),
  timestamp: z.string(),
  publicKey: z.string(),
  signedBy: z.string().describe('Address of the wallet.'),
  keyAddress: z.string().describe('Address of the key that signed.'),
});

const verifyBody = z.object({
  publicKey: BASE64_TEXT,
  data: BASE64_TEXT,
  signature: BASE64_TEXT,
  algorithm: z.string().max(20),
  isPreHashed: z.boolean().default(false),
});

export function mountSigningRoutes(app: App, deps: SigningRouteDeps): void {
  for (const prefix of WALLET_PREFIXES) {
    mountSign(app, deps, prefix);
    mountVerify(app, deps, prefix);
  }
}

const exampleData = 'aGVsbG8sIGxlZGdlcg==';

function mountSign(app: App, deps: SigningRouteDeps, prefix: WalletPrefix): void {
  addRoute(app, {
    method: 'POST',
    path: `${prefix}/:id/sign`,
    operationId: operationIdUnder(prefix, 'signData'),
    tag,
    summary: 'Sign as the owner or under a grant',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    params: walletParams,
    body: { schema: signBody, example: { data: exampleData, algorithm: 'ED25519' } },
    answers: { 200: json('The signature.', signedSchema) },
    refusals: [
      ...walletRefusals,
      ...refusals(
        'WALLET_LOCKED',
        'WALLET_DELETED',
        'KEY_ROTATED',
        'ALGORITHM_MISMATCH',
        'INVALID_BASE64',
        'DERIVATION_UNSUPPORTED',
      ),
      ...refusals('UNKNOWN_DERIVATION_CONTEXT', 'DERIVATION_CONTEXT_RESERVED', 'HYBRID_UNSUPPORTED'),
      ...refusals('PREHASH_LENGTH', 'INVALID_DERIVATION_PATH'),
    ],
    handle: async ({ caller, params, body }) => {
      const { data, algorithm, derivationPath, isPreHashed, hybridMode } = body;
      const signed = await signAs(deps, caller, params.id, {
        data: decodeBase64Any(data),
        preHashed: isPreHashed,
        derivationPath,
        algorithm,
        hybridMode,
      });
      return {
        signature: encodeBase64(signed.signature),
        algorithm: signed.algorithm,
        timestamp: apiTimestamp(deps.clock.nowMs()),
        publicKey: encodeBase64(signed.publicKey),
        signedBy: signed.wallet.address,
        keyAddress: signed.keyAddress,
      };
    },
  });
}

const verifyExample = {
  publicKey: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
  data: exampleData,
  signature: '5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw==',
  algorithm: 'ED25519',
} as const;

function mountVerify(app: App, deps: SigningRouteDeps, prefix: WalletPrefix): void {
  addRoute(app, {
    method: 'POST',
    path: `${prefix}/verify`,
    operationId: operationIdUnder(prefix, 'verifySignature'),
    tag,
    summary: 'Verify a signature of any key',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    body: { schema: verifyBody, example: verifyExample },
    answers: { 200: json('Whether the signature is valid.', z.object({ isValid: z.boolean() })) },
    refusals: refusals('ALGORITHM_UNKNOWN', 'PREHASH_LENGTH', 'INVALID_BASE64'),
    handle: ({ body }) => {
      const { isPreHashed } = body;
      const algorithm = body.algorithm === 'RSA' ? 'RSA-4096' : body.algorithm;
      if (!isAlgorithm(algorithm)) throw refusal('ALGORITHM_UNKNOWN');
      const publicKey = decodeBase64Any(body.publicKey);
      const signature = decodeBase64Any(body.signature);
      const data = decodeBase64Any(body.data);
      if (isPreHashed && data.length !== 32) throw refusal('PREHASH_LENGTH');
      const isValid = isPreHashed
        ? deps.verifier.verifyDigest({ algorithm, publicKey, digest: data, signature })
        : deps.verifier.verify({ algorithm, publicKey, message: data, signature });
      return { isValid };
    },
  });
}
