import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { commonSettings, endpoint, port } from '#kit/config/config.ts';
import { keyFilterModes } from './intake/lookup/sealed-lookup.ts';

const count = z.coerce.number().int();
const mebibyte = 1024 * 1024;

/** Every setting of a validator. */
export const validatorSettings = z.object({
  ...commonSettings,
  CHANCERY_GRPC_PORT: port.default(5000).describe('Port of gRPC over mutual TLS; 0 takes any free one.'),
  CHANCERY_DATA_DIR: z.string().min(1).describe('Directory of the log; it belongs to this validator alone.'),
  CHANCERY_VALIDATOR_ID: z
    .string()
    .regex(/^validator-[A-Za-z0-9._-]{1,100}$/, 'expected validator-<name>')
    .describe('Name of the validator: its client id and the id of its key.'),
  CHANCERY_VALIDATOR_ENDPOINT: z
    .string()
    .regex(/^[^\s:]+:\d{1,5}$/, 'expected host:port')
    .optional()
    .describe('host:port that other services reach the gRPC listener at; the listen address when absent.'),
  CHANCERY_TENANT_HTTPS: endpoint.describe('Tenant service, HTTPS: the published token keys.'),
  CHANCERY_TENANT_GRPC: endpoint.describe('Tenant service, gRPC: the revocation feed.'),
  CHANCERY_TENANT_MTLS: endpoint.describe(
    'Tenant service, mutual-TLS token listener: the service tokens of this validator.',
  ),
  CHANCERY_WALLET_GRPC: endpoint.describe('Wallet service, gRPC: the signing component.'),
  CHANCERY_REGISTER_GRPC: endpoint.describe('Register service, gRPC: the ledger and the directory.'),
  CHANCERY_POOL_MAX_TRANSACTIONS: count
    .min(1)
    .max(1_000_000)
    .default(10_000)
    .describe('Action transactions that may wait in one register.'),
  CHANCERY_POOL_MAX_CONTROL_TRANSACTIONS: count
    .min(1)
    .max(100_000)
    .default(1_000)
    .describe('Control transactions that may wait in one register, beside the others.'),
  CHANCERY_POOL_MAX_BYTES: count
    .min(mebibyte)
    .default(64 * mebibyte)
    .describe('Bytes of transactions that one register may hold in memory.'),
  CHANCERY_POOL_MAX_BYTES_TOTAL: count
    .min(mebibyte)
    .default(256 * mebibyte)
    .describe('Bytes of transactions that all registers together may hold in memory.'),
  CHANCERY_KEY_FILTERS: z
    .enum(keyFilterModes)
    .default('on')
    .describe(
      'Whether the keys of a register decide that a transaction is new: on, off, or shadow (the register service is asked all the same, and differences are counted).',
    ),
  CHANCERY_KEY_FILTERS_MAX_BYTES: count
    .min(mebibyte)
    .default(128 * mebibyte)
    .describe('Bytes of keys that all registers together may hold in memory.'),
  CHANCERY_LOG_SEGMENT_BYTES: count
    .min(65_536)
    .max(512 * mebibyte)
    .default(16 * mebibyte)
    .describe('Size at which the log begins another file.'),
  CHANCERY_LOG_RETAIN_BYTES: count
    .min(65_536)
    .default(256 * mebibyte)
    .describe(
      'Size of the log above which its oldest files are deleted; a quarter of the volume is recommended.',
    ),
  CHANCERY_VERIFY_WORKERS: count
    .min(0)
    .max(64)
    .default(availableParallelism() > 2 ? availableParallelism() - 1 : availableParallelism())
    .describe('Threads that verify signatures; 0 verifies in the main thread.'),
});

export type ValidatorConfig = z.output<typeof validatorSettings>;
