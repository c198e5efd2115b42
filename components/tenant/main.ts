import { run } from '#kit/lifecycle/lifecycle.ts';
import { createTenant } from './compose.ts';
import { tenantSettings } from './config.ts';

await run({ service: 'tenant', schema: tenantSettings, create: createTenant });
