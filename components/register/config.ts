import { z } from 'zod';
import { commonSettings, databaseSettings, endpoint } from '#kit/config/config.ts';

/** Every setting of the register service. */
export const registerSettings = z.object({
  ...commonSettings,
  ...databaseSettings,
  CHANCERY_TENANT_HTTPS: endpoint.describe('Tenant service, HTTPS: the published token keys.'),
  CHANCERY_TENANT_GRPC: endpoint.describe('Tenant service, gRPC: the revocation feed.'),
  CHANCERY_TENANT_MTLS: endpoint.describe(
    'Tenant service, mutual-TLS token listener: service tokens of this service.',
  ),
  CHANCERY_WALLET_GRPC: endpoint.describe('Wallet service, gRPC: wallets and the signing component.'),
  CHANCERY_PENDING_TTL_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(86_400)
    .default(300)
    .describe('How long an initiated register may wait for its finalisation.'),
  CHANCERY_VALIDATOR_FRESH_SECONDS: z.coerce
    .number()
    .int()
    .min(5)
    .max(86_400)
    .default(180)
    .describe('Age of an announcement up to which a validator belongs to the default set of new registers.'),
  CHANCERY_MAX_OPEN_REGISTRATIONS: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(20)
    .describe('Initiated registers an organisation may have open.'),
  CHANCERY_VERIFY_WORKERS: z.coerce
    .number()
    .int()
    .min(0)
    .max(64)
    .default(1)
    .describe('Worker threads that verify signatures of dockets; 0 verifies in the main thread.'),
  CHANCERY_SYSTEM_REGISTER_NETWORK: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/)
    .default('default')
    .describe('Name of the network that the system register belongs to; its id follows from it.'),
  CHANCERY_SYSTEM_REGISTER_VALIDATORS: z.coerce
    .number()
    .int()
    .min(0)
    .max(100)
    .default(0)
    .describe(
      'Validators that must have announced themselves before this service makes the system register; 0 leaves it to a Register resource.',
    ),
  CHANCERY_SEAL_ADMINISTRATOR_ONLY: z
    .stringbool()
    .default(false)
    .describe('Whether POST dockets/seal needs the role Administrator.'),
  CHANCERY_PUBLIC_SYNC_HEALTH: z
    .stringbool()
    .default(true)
    .describe(
      'Whether anonymous callers may read /health/sync, which names registers; otherwise it needs a token.',
    ),
});

export type RegisterConfig = z.output<typeof registerSettings>;
