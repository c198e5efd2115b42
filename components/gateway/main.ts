import { run } from '#kit/lifecycle/lifecycle.ts';
import { createGateway } from './compose.ts';
import { gatewaySettings } from './config.ts';

await run({ service: 'gateway', schema: gatewaySettings, create: createGateway });
