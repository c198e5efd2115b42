import { z } from 'zod';
import { commonSettings, databaseSettings, endpoint, secretFile } from '#kit/config/config.ts';

/** Every setting of the blueprint service. */
export const blueprintSettings = z.object({
  ...commonSettings,
  ...databaseSettings,
  CHANCERY_TENANT_HTTPS: endpoint.describe('Tenant service: keys of tokens (host:port)'),
  CHANCERY_TENANT_GRPC: endpoint.describe('Tenant service: revocations and audit logs (host:port)'),
  CHANCERY_TENANT_MTLS: endpoint.describe('Tenant service: token listener (host:port)'),
  CHANCERY_WALLET_GRPC: endpoint.describe('Wallet service: wallets of callers, signatures (host:port)'),
  CHANCERY_REGISTER_GRPC: endpoint.describe('Register service: steps and publications (host:port)'),
  CHANCERY_REGISTER_HTTPS: endpoint.describe('Register service: rosters, publishing (host:port)'),
  CHANCERY_OPERATIONS_KEY_FILE: secretFile.describe(
    'File with the 32-byte key that seals what operations keep of people until they end',
  ),
  CHANCERY_DRAFT_WORKERS: z.coerce
    .number()
    .int()
    .min(1)
    .max(16)
    .default(2)
    .describe('Worker threads that judge drafts; more drafts at one time wait'),
  CHANCERY_FILE_QUOTA_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .max(Number.MAX_SAFE_INTEGER)
    .default(1024 ** 3)
    .describe(
      'Encrypted bytes of files that an organisation may keep here; a chunk counts for 4096 at least',
    ),
});

export type BlueprintConfig = z.output<typeof blueprintSettings>;
