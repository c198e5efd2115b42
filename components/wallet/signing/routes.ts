import { z } from 'zod';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, callerOf } from '#kit/http/http.ts';
import { refusal } from '../errors.ts';
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

const base64Text = z.string().max(1_398_104).describe('Base64, standard or URL-safe.');
const tags = ['Wallets'];

const signBody = z.object({
  data: base64Text,
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
  publicKey: base64Text,
  data: base64Text,
  signature: base64Text,
  algorithm: z.string().max(20),
  isPreHashed: z.boolean().default(false),
});

export function mountSigningRoutes(app: App, deps: SigningRouteDeps): void {
  for (const prefix of WALLET_PREFIXES) {
    mountSign(app, deps, prefix);
    mountVerify(app, deps, prefix);
  }
}

function mountSign(app: App, deps: SigningRouteDeps, prefix: WalletPrefix): void {
  app.post(
    `${prefix}/:id/sign`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'signData'),
        summary: 'Sign as the owner or under a grant',
        params: walletParams,
        body: signBody,
        response: { 200: signedSchema },
      },
    },
    async (request) => {
      const { data, algorithm, derivationPath, isPreHashed, hybridMode } = request.body;
      const signed = await signAs(deps, callerOf(request), request.params.id, {
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
  );
}

function mountVerify(app: App, deps: SigningRouteDeps, prefix: WalletPrefix): void {
  app.post(
    `${prefix}/verify`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'verifySignature'),
        summary: 'Verify a signature of any key',
        body: verifyBody,
        response: { 200: z.object({ isValid: z.boolean() }) },
      },
    },
    async (request) => {
      const { isPreHashed } = request.body;
      const algorithm = request.body.algorithm === 'RSA' ? 'RSA-4096' : request.body.algorithm;
      if (!isAlgorithm(algorithm)) throw refusal('ALGORITHM_UNKNOWN');
      const publicKey = decodeBase64Any(request.body.publicKey);
      const signature = decodeBase64Any(request.body.signature);
      const data = decodeBase64Any(request.body.data);
      if (isPreHashed && data.length !== 32) throw refusal('PREHASH_LENGTH');
      const isValid = isPreHashed
        ? deps.verifier.verifyDigest({ algorithm, publicKey, digest: data, signature })
        : deps.verifier.verify({ algorithm, publicKey, message: data, signature });
      return { isValid };
    },
  );
}
