import { z } from 'zod';
import { commonSettings, databaseSettings, endpoint, secretFile } from '#kit/config/config.ts';

/** Every setting of the wallet service. */
export const walletSettings = z.object({
  ...commonSettings,
  ...databaseSettings,
  CHANCERY_KEK_FILE: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(secretFile).max(8))
    .describe(
      'File with the 32-byte key that wraps the data key of each wallet. Several, separated by commas: the first one ' +
        'wraps, all unwrap, and data keys under the others are wrapped again',
    ),
  CHANCERY_WALLET_DELETION_HOURS: z.coerce
    .number()
    .min(0)
    .max(8_760)
    .default(24)
    .describe('Hours that a wallet must have been locked before it can be deleted'),
  CHANCERY_CONTROL_SIGNATURES_PER_MINUTE: z.coerce
    .number()
    .int()
    .min(1)
    .max(10_000)
    .default(10)
    .describe('Control signatures of one register in any minute, over all replicas'),
  CHANCERY_CHECKPOINT_SIGNATURES_PER_MINUTE: z.coerce
    .number()
    .int()
    .min(1)
    .max(10_000)
    .default(600)
    .describe('Checkpoint signatures of one register in any minute, over all replicas'),
  CHANCERY_REGISTER_GRPC: endpoint.describe('Register service: sealed transactions (host:port)'),
  CHANCERY_BLUEPRINT_GRPC: endpoint
    .optional()
    .describe('Blueprint service: content of files (host:port); without it downloads answer 503'),
  CHANCERY_CREDENTIAL_GRPC: endpoint
    .optional()
    .describe(
      'Credential service: issuers and verifiers (host:port); without it credentials cannot be stored (503)',
    ),
  CHANCERY_TENANT_HTTPS: endpoint.describe('Tenant service: keys of tokens (host:port)'),
  CHANCERY_TENANT_GRPC: endpoint.describe('Tenant service: revocations (host:port)'),
  CHANCERY_TENANT_MTLS: endpoint.describe('Tenant service: token listener (host:port)'),
});

export type WalletConfig = z.output<typeof walletSettings>;
