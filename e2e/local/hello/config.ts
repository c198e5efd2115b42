import { z } from 'zod';
import { commonSettings, databaseSettings, endpoint } from '#kit/config/config.ts';

/** Every setting of the hello service. */
export const helloSettings = z.object({
  ...commonSettings,
  ...databaseSettings,
  CHANCERY_TENANT_HTTPS: endpoint.describe('Tenant service: keys of tokens (host:port)'),
  CHANCERY_TENANT_GRPC: endpoint.describe('Tenant service: revocations (host:port)'),
  CHANCERY_TENANT_MTLS: endpoint.describe('Tenant service: token listener (host:port)'),
});

export type HelloConfig = z.output<typeof helloSettings>;
